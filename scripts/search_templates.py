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
    json_output: Annotated[Path | None, typer.Option("--json", help="A file to write the scores to.")] = None,
) -> None:
    """Find the template that suits a backbone: Spearman x 100 of its vectors at [MASK], before any training.

    Without --templates PromptBERT's greedy search runs (its Table 4, printed beside where it has the template).

    Example: python -m scripts.search_templates --model bundled --dev STSB/dev.tsv
    """
    import cse
    from cse.data import scored_pairs
    from cse.errors import ArtefactError
    from cse.template_search import dev_score, greedy, published, read_templates
    from cse.templates import Template

    if json_output is not None and json_output.is_dir():
        raise ValueError(f"{json_output} is a folder; give --json a file")
    listed = None if templates is None else read_templates(templates)
    pairs = scored_pairs(dev)
    encoder = cse.load(model)
    if encoder.pooling is None:
        raise ArtefactError(f"{model} is a trained checkpoint and has its template; give --model a backbone")
    score = dev_score(encoder, pairs, denoise=denoise, final_period=final_period)

    def scored(template: Template) -> float:
        value = score(template)
        log(f"{value:6.2f}  {template.text}")
        return value

    found = greedy(scored) if listed is None else {template: scored(template) for template in listed}
    rows = [{"template": t.text, "score": value, "published": published(t)} for t, value in found.items()]
    if json_output is not None:
        settings = {"model": model, "backbone": encoder.backbone_fingerprint, "dev": str(dev), "pairs": len(pairs)}
        _write(json_output, {**settings, "denoise": denoise, "final_period": final_period, "templates": rows})
    _show(rows)


def _write(path: Path, value: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OSError(f"{path}: cannot be written ({error}); give --json another file") from error


def _show(rows: list[dict[str, Any]]) -> None:
    typer.echo(f"{'here':>6} {'BERT-base':>10}  template")
    best = max(rows, key=lambda row: row["score"])
    for row in rows:
        beside = "" if row["published"] is None else f"{row['published']:.2f}"
        typer.echo(f"{row['score']:6.2f} {beside:>10}  {row['template']}{'  (best)' if row is best else ''}")


app = command(main)

if __name__ == "__main__":
    app()
