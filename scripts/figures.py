"""Which figures a task's results are drawn as; the numbers behind each stand in the results file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.cli import log

if TYPE_CHECKING:
    from cse.benchmark.results import ModelRecord


def draw(task: str, models: Mapping[str, ModelRecord], folder: Path) -> None:
    """Write the PNG figures of `task` (few-shot or geometry) into `folder`, all models side by side."""
    from cse.benchmark import figures

    def having(unit: str) -> dict[str, Any]:
        return {label: one.scores[unit] for label, one in models.items() if unit in one.scores}

    if task == "few-shot":
        sets = dict.fromkeys(name for record in models.values() for name in record.scores)
        runs = {name: {label: scores["runs"] for label, scores in having(name).items()} for name in sets}
        _said(figures.violins(runs, folder / "few-shot.png", "16 labelled sentences per class, 10 seeds: accuracy"))
    if task == "geometry":
        points = {label: distribution["points"] for label, distribution in having("distribution").items()}
        _said(figures.similarity_by_grade(points, folder / "similarity.png", "Cosine by grade, STS-B test"))
        maps = {label: found["points"] for label, found in having("map").items()}
        _said(figures.pair_maps(maps, folder / "pairs.png", "STS-B test pairs graded 0, 3 and 5, t-SNE"))
        if curves := {label: removal["curve"] for label, removal in having("removal").items()}:
            _said(figures.removal_curves(curves, folder / "removal.png", "Without the most frequent tokens"))
        for label, bias in having("static-bias").items():
            path = folder / f"static-embeddings-{label.replace(' ', '-')}.png"
            _said(figures.token_picture(bias["picture"], path, f"Word embeddings of {label}, two principal components"))


def draw_sweep(runs: Mapping[int, Sequence[float]], name: str, path: Path) -> None:
    """DCPCSE's Figure 2 of this reproduction: prompt length against average score."""
    from cse.benchmark import figures

    title = f"Average of seven STS tasks by prompt length, {name}"
    _said(figures.sweep({name: runs}, path, title, varied="prompt length"))


def draw_templates(scores: Mapping[str, float], name: str, path: Path) -> None:
    """PromptBERT's Table 4 of this reproduction as bars."""
    from cse.benchmark import figures

    _said(figures.template_bars(scores, path, f"STS-B dev by template, {name}, untrained"))


def _said(path: Path) -> None:
    log(f"wrote {path}")
