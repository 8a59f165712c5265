"""Figures of each task, drawn from a results file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cse.benchmark import figures

if TYPE_CHECKING:
    from cse.benchmark.results import ModelRecord
    from cse.evaluation import Scores
    from cse.evaluation.tasks import Task

    Drawing = Callable[[Mapping[str, Scores], Path], list[Path]]  # scores of one unit by model, folder


def draw(task: Task, models: Mapping[str, ModelRecord], folder: Path) -> list[Path]:
    """Write the PNG figures of `task` to `folder`, all models side by side, and return their paths.

    Raises ValueError for a task without figures, and for results without the points to draw.
    """
    if not task.figures:
        raise ValueError(f"{task.name} has no figure")
    drawn: list[Path] = []
    for figure, unit in task.figures.items():
        if unit is None:
            drawn += [_accuracies(models, folder / f"{figure}.png")]
        elif scores := {label: one.scores[unit] for label, one in models.items() if unit in one.scores}:
            drawn += DRAWINGS[figure](scores, folder)
    return drawn


def draw_sweep(runs: Mapping[int, Sequence[float]], name: str, path: Path) -> Path:
    """Draw DCPCSE's Figure 2 from this reproduction: average score by prompt length."""
    title = f"Average of seven STS tasks by prompt length, {name}"
    return figures.sweep({name: runs}, path, title, varied="prompt length")


def draw_templates(scores: Mapping[str, float], name: str, path: Path) -> Path:
    """Draw PromptBERT's Table 4 from this reproduction as bars."""
    return figures.template_bars(scores, path, f"STS-B dev by template, {name}, untrained")


def _accuracies(models: Mapping[str, ModelRecord], path: Path) -> Path:
    sets = dict.fromkeys(name for record in models.values() for name in record.scores)
    runs = {
        name: {label: one.scores[name]["runs"] for label, one in models.items() if name in one.scores} for name in sets
    }
    return figures.violins(runs, path, "16 labelled sentences per class, 10 seeds: accuracy")


def _similarity(scores: Mapping[str, Scores], folder: Path) -> list[Path]:
    points = {label: found["points"] for label, found in scores.items()}
    return [figures.similarity_by_grade(points, folder / "similarity.png", "Cosine by grade, STS-B test")]


def _pairs(scores: Mapping[str, Scores], folder: Path) -> list[Path]:
    points = {label: found["points"] for label, found in scores.items()}
    return [figures.pair_maps(points, folder / "pairs.png", "STS-B test pairs graded 0, 3 and 5, t-SNE")]


def _removal(scores: Mapping[str, Scores], folder: Path) -> list[Path]:
    curves = {label: found["curve"] for label, found in scores.items()}
    return [figures.removal_curves(curves, folder / "removal.png", "Without the most frequent tokens")]


def _static_embeddings(scores: Mapping[str, Scores], folder: Path) -> list[Path]:
    """Draw one figure per model, as each has its own tokens and axes."""
    return [
        figures.token_picture(
            found["picture"],
            folder / f"static-embeddings-{label.replace(' ', '-')}.png",
            f"Word embeddings of {label}, two principal components",
        )
        for label, found in scores.items()
    ]


DRAWINGS: dict[str, Drawing] = {
    "similarity": _similarity, "pairs": _pairs, "removal": _removal, "static-embeddings": _static_embeddings,
}  # fmt: skip
