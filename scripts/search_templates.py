"""Score templates on STS-B dev with an untrained backbone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from scripts.cli import command, log


def main(
    model: Annotated[str, typer.Option(help="A backbone: bundled, or a folder or hub id of a masked language model.")],
    dev: Annotated[Path, typer.Option(help="Scored pairs: score, sentence, sentence, tab-separated (STS-B dev).")],
    templates: Annotated[
        Path | None, typer.Option(help="Templates, one a line, instead of PromptBERT's greedy search.")
    ] = None,
    denoise: Annotated[bool, typer.Option("--denoise", help="Subtract what the template alone says.")] = False,
    final_period: Annotated[
        bool, typer.Option("--final-period", help="End sentences without . ? \" or ' by a period, as PromptBERT does.")
    ] = False,
    json_output: Annotated[
        Path | None, typer.Option("--json", help="A file for the scores, kept after each template and gone on with.")
    ] = None,
) -> None:
    """Find the template that suits a backbone: Spearman x 100 of its vectors at [MASK], before any training.

    Without --templates PromptBERT's greedy search runs (its Table 4, printed beside where it has the template).

    Example: python -m scripts.search_templates --model bundled --dev STSB/dev.tsv
    """
    from cse.benchmark.template_search import dev_score, greedy, published, read_templates
    from cse.data import scored_pairs
    from cse.errors import ArtefactError
    from cse.files import write_json
    from cse.loading import open_model
    from cse.model_names import Kind, resolve
    from cse.templates import Template

    listed = None if templates is None else read_templates(templates)
    pairs = scored_pairs(dev)
    reference = resolve(model)
    if reference.kind is Kind.CHECKPOINT:
        raise ArtefactError(f"{model} is a trained checkpoint and has its template; give --model a backbone")
    encoder = open_model(reference)
    score = dev_score(encoder, pairs, denoise=denoise, final_period=final_period)

    settings = {
        "model": model, "backbone": encoder.backbone_fingerprint, "dev": str(dev), "pairs": len(pairs),
        "denoise": denoise, "final_period": final_period,
    }  # fmt: skip
    known = _earlier(json_output, settings)

    def rows(scores: dict[str, float]) -> list[dict[str, Any]]:
        return [{"template": t, "score": value, "published": published(Template(t))} for t, value in scores.items()]

    def save() -> None:
        if json_output is not None:
            write_json(json_output, {**settings, "templates": rows(known)})

    def scored(template: Template) -> float:
        if template.text not in known:
            known[template.text] = score(template)
            save()
        log(f"{known[template.text]:6.2f}  {template.text}")
        return known[template.text]

    save()  # a place that cannot be written is said before the work
    found = greedy(scored) if listed is None else {template: scored(template) for template in listed}
    _show(rows({template.text: value for template, value in found.items()}))


def _earlier(path: Path | None, settings: dict[str, Any]) -> dict[str, float]:
    """The scores that `path` holds for the same settings."""
    if path is None or not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        scores = {row["template"]: float(row["score"]) for row in value.pop("templates")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of template scores ({error}); give another --json") from error
    if value != settings:
        raise ValueError(f"{path}: holds scores of other settings ({value}); give another --json")
    return scores


def _show(rows: list[dict[str, Any]]) -> None:
    typer.echo(f"{'here':>6} {'BERT-base':>10}  template")
    best = max(rows, key=lambda row: row["score"])
    for row in rows:
        beside = "" if row["published"] is None else f"{row['published']:.2f}"
        typer.echo(f"{row['score']:6.2f} {beside:>10}  {row['template']}{'  (best)' if row is best else ''}")


app = command(main)

if __name__ == "__main__":
    app()
