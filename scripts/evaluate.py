"""Score models on evaluation tasks."""

from __future__ import annotations

import shlex
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
from scripts.tables import TASKS, comparisons, print_scores, print_seeds

if TYPE_CHECKING:
    import numpy as np

    from cse.benchmark.models import Entry
    from cse.benchmark.representations import TextEncoder
    from cse.benchmark.results import ModelRecord, Results
    from cse.evaluation import Encode, Unit

POINTS = ("cosines", "grades", "points", "picture")  # only what --compare and --figures draw from


def main(
    task: Annotated[str, typer.Argument(help=f"{', '.join(TASKS)}.")],
    model: Annotated[list[str], typer.Option(help="A model or a file of word vectors; repeat for several.")],
    data: Annotated[
        Path, typer.Option(help="The task's folder (docs/evaluation.md); hub downloads STS or transfer sets.")
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
    sentences: Annotated[
        Path | None, typer.Option(help="geometry: sentences for the anisotropy instead of STS-B test's.")
    ] = None,
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
    from cse.benchmark.models import Lineup
    from cse.benchmark.results import Protocol, Results, name_and_checksum, open_results, save_results
    from cse.files import file_digest

    _check(task, {"--compare": compare, "--details": details, "--tokenised": tokenised}, figures, final_period)
    path = Path(json_output) if json_output not in (None, "-") else None
    data = _fetched(task) if str(data) == "hub" and not data.exists() else data
    lineup = Lineup(model, pooling or (), postprocess, fit)
    shared = _units(task, data, tokenised, details, sentences)
    protocol = Protocol(
        file_digest(data), file_digest(tokenised) if tokenised else None, details, final_period,
        name_and_checksum(sentences), name_and_checksum(fit), points=compare or figures is not None,
    )  # fmt: skip
    results = Results(task, protocol, shlex.join(["python", "-m", "scripts.evaluate", *sys.argv[1:]]))
    results = results if overwrite else open_results(path, results)

    def save() -> None:
        if path:
            save_results(path, results)

    save()  # a place that cannot be written is said before the work
    units_of = partial(_model_units, shared, task, data, batch_size)
    shown = [_score(entry, results, units_of, (batch_size, final_period), save) for entry in lineup.open()]
    models = {label: results.models[label] for label in shown}
    if compare and len(models) > 1:
        results.comparisons = comparisons(models)
    save()
    if json_output == "-":
        print_json(results.to_json())
    else:
        print_scores(task, models)
        print_seeds(task, models)
        for line in results.comparisons:
            typer.echo(line)
    if figures:
        draw(task, models, figures)


def _check(task: str, of_sts: Mapping[str, Any], figures: Path | None, final_period: bool) -> None:
    check_choice("task", task, TASKS)
    if task != "sts" and (given := [option for option, value in of_sts.items() if value]):
        raise typer.BadParameter(f"{', '.join(given)}: only for the sts task")
    if figures and task not in ("few-shot", "geometry"):
        raise typer.BadParameter(f"{task} has no figure; few-shot and geometry have")
    if final_period and task == "geometry":
        raise typer.BadParameter("--final-period does not reach the tokens that geometry counts; leave it out")


def _score(
    entry: Entry, results: Results, units_of: Callable[[TextEncoder], dict[str, Unit]],
    encoding: tuple[int, bool], save: Callable[[], None],
) -> str:  # fmt: skip
    """Complete the record of one encoder in `results`, whose label there comes back; `save` runs after every unit."""
    from cse.benchmark.results import ModelRecord, provenance, run_units
    from cse.encoder import Encoder

    batch_size, final_period = encoding
    encoder, label = entry.encoder, _label(results.models, entry.encoder)
    record = results.models.setdefault(label, ModelRecord(entry.model, encoder.fingerprint, **provenance()))
    record.group, record.seed, record.key = entry.group, entry.seed, entry.key
    log(f"{label} ({encoder.fingerprint})")
    units = units_of(encoder)
    if not results.protocol.points:
        units = {unit: partial(_summary, score) for unit, score in units.items()}

    def done(unit: str) -> None:
        scores = record.scores[unit]
        log(f"  {unit}  " + "  ".join(f"{key} {value}" for key, value in scores.items() if _short(value)))
        save()

    bar: dict[str, Any] = {"show_progress_bar": True} if isinstance(encoder, Encoder) and sys.stderr.isatty() else {}
    encode: Encode = partial(encoder.encode, batch_size=batch_size, **bar)
    record.scores = run_units(_with_period(encode) if final_period else encode, units, record.scores, done)
    return label


def _model_units(
    shared: dict[str, Unit], task: str, data: Path, batch_size: int, encoder: TextEncoder
) -> dict[str, Unit]:
    from cse.benchmark.models import token_units

    if task != "geometry":
        return shared
    more = token_units(encoder, data, batch_size)
    if not more:
        log("  removal and static-bias need an encoder with tokens and all seven STS tasks: left out")
    return {**shared, **more}


def _fetched(task: str) -> Path:
    from datasets.config import HF_CACHE_HOME

    from cse.benchmark.hub_data import fetch

    return fetch(task, Path(HF_CACHE_HOME) / "cse")


def _units(task: str, data: Path, tokenised: Path | None, details: bool, sentences: Path | None) -> dict[str, Unit]:
    module = import_module(f"cse.evaluation.{task.replace('-', '_')}")
    if task == "sts":
        return module.units(data, tokenised, details=details)
    if task == "geometry":
        from cse.evaluation.pair_map import pair_map

        return {**module.units(data, sentences=sentences), "map": partial(pair_map, path=data / module.PAIRS)}
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


def _label(models: Mapping[str, ModelRecord], encoder: TextEncoder) -> str:
    """The encoder's name, with its fingerprint where another encoder has that name."""
    known = models.get(encoder.name)
    taken = known is not None and known.fingerprint != encoder.fingerprint
    return f"{encoder.name} {encoder.fingerprint}" if taken else encoder.name


def _short(value: Any) -> bool:
    return not isinstance(value, list | dict)


app = command(main)

if __name__ == "__main__":
    app()
