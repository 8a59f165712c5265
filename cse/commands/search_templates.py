"""Score templates on STS-B dev with an untrained backbone."""

from __future__ import annotations

from pathlib import Path

import typer

from cse.commands import cli


def main(
    model: str = cli.option("Backbone: bundled, or a folder or hub id of a masked language model.", default=...),
    dev: Path = cli.option("A file of scored pairs: score and two sentences (STS-B dev).", default=...),
    family: str | None = cli.option(f"{cli.FAMILY} Only its backbone is used."),
    templates: Path | None = cli.option("Templates, one a line, instead of PromptBERT's greedy search."),
    denoise: bool = cli.flag("Subtract the template's bias."),
    final_period: bool = cli.flag("End sentences without . ? \" or ' by a period, as PromptBERT does."),
    json_output: Path | None = cli.option("File for the scores, saved after each template and continued.", "--json"),
) -> None:
    """Find the best template for a backbone: Spearman x 100 of its vectors at [MASK], before any training.

    Without --templates, PromptBERT's greedy search runs; scores of its Table 4 are printed next to ours.

    Example: cse search-templates --model bundled --dev STSB/dev.tsv
    """
    from cse.corpus.supervised import scored_pairs
    from cse.evaluation import template_search as search
    from cse.evaluation.metrics import check_grades
    from cse.evaluation.results import name_and_checksum
    from cse.models.loading import open_model
    from cse.models.names import resolve_backbone

    listed = None if templates is None else search.read_templates(templates)
    pairs = scored_pairs(dev, cli.log)
    check_grades(pairs, dev)
    encoder = open_model(resolve_backbone(model, family))
    score = search.dev_score(encoder, pairs, denoise=denoise, final_period=final_period)

    settings = {
        "model": model, "backbone": encoder.backbone_fingerprint, "dev": name_and_checksum(dev), "pairs": len(pairs),
        "denoise": denoise, "final_period": final_period,
    }  # fmt: skip
    scored = search.resumed(score, settings, json_output, cli.log)
    scores = search.greedy(scored) if listed is None else {template: scored(template) for template in listed}
    rows = search.compared({template.text: value for template, value in scores.items()})
    best = max(rows, key=lambda row: row["score"])
    typer.echo(f"{'here':>6} {'BERT-base':>10}  template")
    for row in rows:
        published = "" if row["published"] is None else f"{row['published']:.2f}"
        typer.echo(f"{row['score']:6.2f} {published:>10}  {row['template']}{'  (best)' if row is best else ''}")


app = cli.command(main)
