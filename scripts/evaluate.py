"""Score models on evaluation tasks."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scripts.cli import check_choice, command, log, print_json
from scripts.figures import draw
from scripts.tables import TASKS, print_comparisons, print_scores, print_seeds

if TYPE_CHECKING:
    import numpy as np

    from cse.evaluation import Encode, Unit
    from cse.representations import TextEncoder

POINTS = ("cosines", "grades", "points", "picture")  # only what --compare and --figures draw from


def main(
    task: Annotated[str, typer.Argument(help=f"{', '.join(TASKS)}.")],
    model: Annotated[list[str], typer.Option(help="A model or a file of word vectors; repeat for several.")],
    data: Annotated[
        Path, typer.Option(help="The task's folder (README, Evaluate); hub downloads STS or transfer sets.")
    ],
    pooling: Annotated[
        list[str] | None,
        typer.Option(
            help="mean, cls, first-last, static, prompt, top-tokens or top-tokens-denoised, for every plain backbone; "
            "repeat for several."
        ),
    ] = None,
    postprocess: Annotated[str | None, typer.Option(help="whitening or flow, fitted on --fit.")] = None,
    fit: Annotated[Path | None, typer.Option(help="Sentences for --postprocess; the first 20,000 count.")] = None,
    details: Annotated[bool, typer.Option("--details", help="sts: Pearson and every subset too.")] = False,
    tokenised: Annotated[Path | None, typer.Option(help="sts: folder with SentEval's tokenised text.")] = None,
    final_period: Annotated[
        bool, typer.Option("--final-period", help="Texts get PromptBERT's final full stop.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="sts: paired bootstrap of the first model against the others.")
    ] = False,
    figures: Annotated[Path | None, typer.Option(help="few-shot, geometry: folder for the figures.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 128,
    json_output: Annotated[
        str | None, typer.Option("--json", help="Results file, kept after every set and gone on with; - prints it.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin the results file anew.")] = False,
) -> None:
    """Score models on a task; several models make a table, with the published row beside where there is one.

    Example: python -m scripts.evaluate sts --model promptbert --model simcse --data STS_FOLDER --compare
    """
    from cse.evaluation.results import new_results, open_results, save_results
    from cse.lineup import Lineup

    _check(task, compare, figures)
    path = Path(json_output) if json_output not in (None, "-") else None
    data = _fetched(task) if str(data) == "hub" and not data.exists() else data
    lineup = Lineup(model, pooling or (), postprocess, fit)
    protocol = {
        "data": data.resolve().name, "details": details, "final_period": final_period,
        "tokenised": tokenised is not None, "fit": fit.name if fit else None, "points": compare or figures is not None,
    }  # fmt: skip
    shared = _units(task, data, details, tokenised)
    results = new_results(task, protocol, " ".join(["python -m scripts.evaluate", *sys.argv[1:]]))
    results = results if overwrite else open_results(path, results)

    def save() -> None:
        if path:
            save_results(path, results)

    for name, encoder in lineup.open():
        _score(name, encoder, results, partial(_model_units, shared, task, data), (batch_size, final_period), save)
    save()
    if figures:
        draw(task, results["models"], figures)
    if json_output == "-":
        print_json(results)
        return
    print_scores(task, results["models"])
    print_seeds(task, results["models"])
    if compare:
        print_comparisons(results["models"])


def _check(task: str, compare: bool, figures: Path | None) -> None:
    check_choice("task", task, TASKS)
    if compare and task != "sts":
        raise typer.BadParameter("--compare is for the sts task")
    if figures and task not in ("few-shot", "geometry"):
        raise typer.BadParameter(f"{task} has no figure; few-shot and geometry have")


def _score(
    name: str, encoder: TextEncoder, results: dict[str, Any], units_of: Callable[[TextEncoder], dict[str, Unit]],
    encoding: tuple[int, bool], save: Callable[[], None],
) -> None:  # fmt: skip
    """Complete the record of one encoder in `results`; `save` is called after every unit."""
    from cse.encoder import Encoder
    from cse.evaluation.results import run_units
    from cse.lineup import group, key

    batch_size, final_period = encoding
    label = _label(results["models"], encoder)
    record = results["models"].setdefault(label, {"model": name, "fingerprint": encoder.fingerprint, "scores": {}})
    record |= {"group": group(name, encoder), "key": key(name, encoder)}
    log(f"{label} ({encoder.fingerprint})")
    units = units_of(encoder)
    if not results["protocol"]["points"]:
        units = {unit: partial(_summary, score) for unit, score in units.items()}

    def done(unit: str) -> None:
        scores = record["scores"][unit]
        log(f"  {unit}  " + "  ".join(f"{key} {value}" for key, value in scores.items() if _short(value)))
        save()

    bar = {"show_progress_bar": True} if isinstance(encoder, Encoder) and sys.stderr.isatty() else {}
    encode: Encode = partial(encoder.encode, batch_size=batch_size, **bar)
    encode = _with_period(encode) if final_period else encode
    record["scores"] = run_units(encode, units, record["scores"], done)


def _model_units(shared: dict[str, Unit], task: str, data: Path, encoder: TextEncoder) -> dict[str, Unit]:
    from cse.lineup import token_units

    return {**shared, **token_units(encoder, data)} if task == "geometry" else shared


def _fetched(task: str) -> Path:
    from datasets.config import HF_CACHE_HOME

    from cse.evaluation.hubsets import fetch

    return fetch(task, Path(HF_CACHE_HOME) / "cse")


def _units(task: str, data: Path, details: bool, tokenised: Path | None) -> dict[str, Unit]:
    module = import_module(f"cse.evaluation.{task.replace('-', '')}")
    if task == "sts":
        return module.units(data, tokenised, details=details)
    return module.units(data, _index_search) if task == "retrieval" else module.units(data)


def _summary(unit: Unit, encode: Encode) -> dict[str, Any]:
    return {key: value for key, value in unit(encode).items() if key not in POINTS}


def _with_period(encode: Encode) -> Encode:
    from cse.evaluation.sts import with_final_period

    return lambda texts: encode([with_final_period(text) for text in texts])


def _index_search(corpus: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Rows (q, k) of the corpus nearest to each query, by an exact index of this project in a temporary folder."""
    from index import BuildSettings, VectorIndex

    with tempfile.TemporaryDirectory() as folder:
        names = [str(row) for row in range(len(corpus))]
        built = VectorIndex.build([(names, corpus)], Path(folder) / "index", settings=BuildSettings())
        return built.search(queries, k)[1]


def _label(models: Mapping[str, Any], encoder: TextEncoder) -> str:
    """The encoder's name, with its fingerprint where another encoder has that name."""
    known = models.get(encoder.name)
    taken = known is not None and known["fingerprint"] != encoder.fingerprint
    return f"{encoder.name} {encoder.fingerprint}" if taken else encoder.name


def _short(value: Any) -> bool:
    return not isinstance(value, list | dict)


app = command(main)

if __name__ == "__main__":
    app()
