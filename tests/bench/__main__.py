"""Measure how fast the project is on this machine: `bench WHAT`, each function one; what it measures has its own file.

Works that are compared run in turn and every result names the machine (`tests.bench.timing`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cse.commands.cli import PRECISIONS, Command, Pooling, check_choice, command, log, print_json

ROOT = Path(__file__).resolve().parents[2]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Rounds = Annotated[int, typer.Option(min=1, help="How often the works take their turn.")]
CpuTime = Annotated[bool, typer.Option("--cpu-time", help="Count processor time, of all threads.")]
Texts = Annotated[str | None, typer.Option("--input", help="Text file, table or hub id; else the demo corpus.")]
Labelled = Annotated[list[Path], typer.Option(help="A file of label<TAB>text lines; repeatable.")]
Models = Annotated[list[str], typer.Option(help="A model's folder; FOLDER:POOLING for a pooling; repeatable.")]
Pairs = Annotated[Path | None, typer.Option(help="Graded pairs, such as STS-B's dev set.")]
Scored = Annotated[int, typer.Option(min=20, help="Other texts, to score.")]
Trials = Annotated[Path, typer.Argument(help="JSON lines of trials; what is there is not repeated.")]
Seeds = Annotated[int, typer.Option(min=1)]


def bench_encode(
    model: Annotated[str, typer.Option(help="A bundled name, a checkpoint folder, or a backbone.")] = "simcse",
    pooling: Pooling = None,
    texts: Texts = None,
    sentences: Annotated[int, typer.Option(min=1, help="The most of them.")] = 4096,
    against: Annotated[
        list[str] | None, typer.Option(help="Peers: sentence-transformers, openvino, onnxruntime; repeatable.")
    ] = None,
    precision: Annotated[str, typer.Option(help="bf16 (or auto, where it is fast) measures a copy in it too.")] = "no",
    rounds: Rounds = 5,
    cpu_time: CpuTime = False,
    json_output: Json = False,
) -> None:
    """Encode sentences again and again: rate, share of the machine's matrix rate, peak memory of all that is compared.

    Example: python -m tests.bench encode --model simcse --against sentence-transformers
    """
    import time
    from dataclasses import asdict

    import cse
    from tests.bench.encode import PEERS, measure_encoding, texts_of

    check_choice("precision", precision, PRECISIONS)
    for peer in against or ():
        check_choice("against", peer, PEERS)
    speed = measure_encoding(
        cse.load(model, pooling), texts_of(texts, sentences), against=against or (), precision=precision,
        rounds=rounds, clock=time.process_time if cpu_time else time.perf_counter,
    )  # fmt: skip
    _print(json_output, asdict(speed))


def bench_app(
    visitors: Annotated[int, typer.Option(min=1, max=64, help="Visitors at once.")] = 16,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of each measurement.")] = 20.0,
    json_output: Json = False,
) -> None:
    """Start the app and measure it: its first page, and comparisons of four models by one visitor, many, beside a map.

    Example: python -m tests.bench app --visitors 16
    """
    from dataclasses import asdict

    from tests.bench.app import measure, started_app

    with started_app(ROOT) as (url, page, _):
        log(f"first page after {page:.1f} s")
        loads = measure(url, visitors, seconds)
    _print(json_output, {"first_page": round(page, 2), "loads": list(map(asdict, loads))})


def bench_page(
    rounds: Rounds = 5,
    pictures: Annotated[
        Path | None, typer.Option(help="Write those of README and docs to this folder instead.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Start the app and open it in Chromium: kilobytes of a first visit, milliseconds to a paint and of a place.

    Example: python -m tests.bench page --rounds 5

    Example: python -m tests.bench page --pictures docs
    """
    from tests.bench.app import started_app
    from tests.bench.page import measure_page, take_pictures

    with started_app(ROOT) as (url, *_):
        if pictures:
            for path in take_pictures(url, pictures):
                log(f"wrote {path}")
            return
        found = measure_page(url, rounds)
    _print(json_output, found)


def bench_load(
    clients: Annotated[int, typer.Option(min=1, max=256, help="Clients at once.")] = 32,
    seconds: Annotated[float, typer.Option(min=1, help="How long they ask.")] = 300.0,
    warm_up: Annotated[float, typer.Option(min=0, help="Seconds of the same before the clock.")] = 0.0,
    json_output: Json = False,
) -> None:
    """Start the app and let many clients ask for everything at once, while maps are drawn: times, errors and memory.

    Each asks again as soon as it has its answer; some leave before, some ask wrongly. Exit code 1 for any other error.

    Example: python -m tests.bench load --clients 8 --seconds 20
    """
    from tests.bench.app import started_app
    from tests.bench.app_mix import bear, to_json

    with started_app(ROOT) as (url, page, process):
        log(f"first page after {page:.1f} s; {clients} clients for {seconds:g} s")
        found = bear(url, clients, seconds, process, warm_up=warm_up)
    _print(json_output, {"clients": clients, "warm_up": warm_up, **to_json(found)})
    if found.errors:
        raise typer.Exit(1)


def bench_corpus(
    texts: Annotated[int, typer.Option(min=2, max=50_000, help="Texts of the visitor.")] = 2000,
    json_output: Json = False,
) -> None:
    """Start the app and upload, search, map and clean texts as one visitor: seconds of each step, memory after it.

    Steps run one after the other, with the models that are not ready beside them.

    Example: python -m tests.bench corpus --texts 20000
    """
    from dataclasses import asdict

    from tests.bench.app import started_app
    from tests.bench.app_corpus import Job

    with started_app(ROOT) as (url, _, process):
        steps = Job(url, texts, process, log).run()
    _print(json_output, {"texts": texts, "steps": list(map(asdict, steps))})


def bench_train(
    data: Annotated[str, typer.Option(help="Sentences: a text file, table or hub id.")],
    method: Annotated[list[str] | None, typer.Option(help="Methods, the four bundled ones unless named.")] = None,
    backbone: Annotated[str, typer.Option(help="Folder or hub id of a masked language model.")] = "bundled",
    batch_size: Annotated[int, typer.Option(min=2)] = 64,
    chunk: Annotated[int | None, typer.Option(min=1, help="Rows at a time, computed twice.")] = None,
    against: Annotated[str | None, typer.Option(help="sentence-transformers: steps of its trainer too.")] = None,
    precision: Annotated[str, typer.Option(help="auto, no or bf16.")] = "no",
    rounds: Rounds = 5,
    json_output: Json = False,
) -> None:
    """Take training steps in turn: rate, share of the machine's matrix rate, peak memory.

    Example: python -m tests.bench train --data sentences.txt --against sentence-transformers
    """
    from dataclasses import asdict

    from cse.training.run import TrainRequest
    from tests.bench.train import PEER, measure_training

    check_choice("precision", precision, PRECISIONS)
    check_choice("against", against, (PEER,))
    settings = {"batch_size": batch_size, "max_length": 32, "chunk": chunk}
    methods = method or ["simcse", "promptbert", "dcpcse", "conpvp"]
    requests = [TrainRequest(each, data, backbone, settings=settings) for each in methods]
    speed = measure_training(requests, precision, against, rounds)
    _print(json_output, asdict(speed))


def bench_pretrain(
    corpus: Annotated[Path, typer.Argument(help="Text file, a sentence a line; some MB are enough.")],
    init: Annotated[str, typer.Option(help="The model continued from.")] = "bundled",
    batch_tokens: Annotated[int, typer.Option(min=16)] = 1024,
    frozen_layers: Annotated[int, typer.Option(min=0, help="As in scripts.pretrain.")] = 0,
    precision: Annotated[str, typer.Option(help="auto, no or bf16.")] = "no",
    steps: Annotated[int, typer.Option(min=1, help="The first steps of a run, taken in every round.")] = 8,
    rounds: Rounds = 5,
    json_output: Json = False,
) -> None:
    """Take pretraining steps again and again: tokens a second, share of the machine's matrix rate, peak memory.

    Example: python -m tests.bench pretrain corpus.txt --precision bf16
    """
    import tempfile

    from cse.training.pretraining_data import PretrainConfig, PretrainRequest
    from tests.bench.pretrain import measure_pretraining

    check_choice("precision", precision, PRECISIONS)
    config = PretrainConfig(tokens=steps * batch_tokens, batch_tokens=batch_tokens, frozen_layers=frozen_layers)
    with tempfile.TemporaryDirectory() as folder:
        request = PretrainRequest([corpus], Path(folder), config, init=init, precision=precision)
        speed = measure_pretraining(request, steps, rounds)
    _print(json_output, speed)


def bench_host(
    model: Annotated[str, typer.Option(help="Folder or hub id of a masked language model.")] = "bundled",
    method: Annotated[list[str] | None, typer.Option(help="Methods of the steps, by default PromptBERT's.")] = None,
    texts: Texts = None,
    sentences: Annotated[int, typer.Option(min=2, help="The most of them.")] = 4096,
    batch_size: Annotated[int, typer.Option(min=2, help="Sentences of a step.")] = 256,
    rounds: Rounds = 5,
    cpu_time: CpuTime = False,
    json_output: Json = False,
) -> None:
    """Measure the host's microseconds for a sentence, encoded or in a training step, beside the tokenizer's own.

    For one thread set OMP_NUM_THREADS=1 and TOKENIZERS_PARALLELISM=false.

    Example: python -m tests.bench host --method simcse --cpu-time
    """
    import time

    from tests.bench.encode import texts_of
    from tests.bench.host import measure_host

    sample = texts_of(texts, sentences)
    clock = time.process_time if cpu_time else time.perf_counter
    works = measure_host(sample, model, method or ["promptbert"], batch_size, rounds, clock)
    _print(json_output, {"sentences": len(sample), "batch_size": batch_size, "works": works})


def bench_search(
    rows: Annotated[int, typer.Option(min=10, help="Random vectors of 384 dimensions.")] = 100_000,
    factory: Annotated[str, typer.Option(help="A FAISS factory.")] = "Flat",
    rounds: Rounds = 5,
    cpu_time: CpuTime = False,
    json_output: Json = False,
) -> None:
    """Search an index for 200 queries, again and again: by FAISS alone, by `search`, by `hits`, which gives the texts.

    Example: python -m tests.bench search --factory HNSW32,Flat --rows 20000
    """
    import tempfile
    import time

    import numpy as np

    from tests.bench.index import DIMENSION, QUERIES, directions, random_index, searches
    from tests.bench.timing import beside_first

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "index"
        opened = random_index(rows, factory, place)
        asked = directions(np.random.default_rng(), QUERIES, DIMENSION)
        clock = time.process_time if cpu_time else time.perf_counter
        figures = beside_first(searches(opened, place, asked), QUERIES, rounds, clock)
    _print(json_output, {"factory": factory, "sentences": rows, "works": figures})


def bench_index(
    store: Annotated[str | None, typer.Option(help="milvus://HOST:PORT/COLLECTION beside a folder; deleted.")] = None,
    model: Annotated[str | None, typer.Option(help="Index sentences, beside encoding them alone.")] = None,
    texts: Texts = None,
    rows: Annotated[int, typer.Option(min=1, help="Random vectors, or the most sentences, to index.")] = 20_000,
    factory: Annotated[list[str] | None, typer.Option(help="FAISS factories, Flat unless named.")] = None,
    rounds: Rounds = 3,
    json_output: Json = False,
) -> None:
    """Build, open and search an index of vectors, the last 200 of them the queries, in a folder and on a Milvus server.

    Example: python -m tests.bench index --rows 5000 --factory Flat --factory HNSW32,Flat
    """
    from dataclasses import asdict

    import numpy as np

    from tests.bench.index import DIMENSION, QUERIES, directions, encoding_works, measure

    factories = factory or ["Flat"]
    if model is not None:
        import cse
        from tests.bench.encode import texts_of
        from tests.bench.timing import beside_first

        sample = texts_of(texts, rows)
        figures = beside_first(encoding_works(sample, cse.load(model).encode, factories), len(sample), rounds)
        _print(json_output, {"sentences": len(sample), "works": figures})
        return
    vectors = directions(np.random.default_rng(0), rows + QUERIES, DIMENSION)
    found = [speed for each in factories for speed in measure(vectors, each, store, rounds)]
    _print(json_output, {"speeds": [asdict(speed) for speed in found]})


def bench_memory(
    rows: Annotated[list[int] | None, typer.Option(min=1, help="Texts to index; repeatable.")] = None,
    json_output: Json = False,
) -> None:
    """Build IVF1024,SQ8 of texts, encoded by a table of static embeddings: the most memory that a build held.

    Example: python -m tests.bench memory --rows 50000 --rows 200000
    """
    import tempfile
    from dataclasses import asdict

    from tests.bench.memory import measure

    peaks = []
    for count in rows or [50_000, 200_000]:
        with tempfile.TemporaryDirectory() as folder:
            peaks.append(asdict(measure(Path(folder), count)))
            log(str(peaks[-1]))
    _print(json_output, {"builds": peaks})


def bench_adapt(
    data: Labelled,
    model: Models,
    pairs: Pairs = None,
    fit: Annotated[int, typer.Option(min=256, help="Texts that the layers are fitted on.")] = 3800,
    scored: Scored = 1200,
    seeds: Seeds = 2,
    trainings: Annotated[
        bool, typer.Option("--trainings", help="Train backbones in ways that `adapt` does not offer, too.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Fit the cheap candidates of `scripts.adapt` on some texts of a labelled set and score them on others.

    Example: python -m tests.bench adapt --model bundled:cls --data clustering/agnews.tsv
    """
    import cse
    from tests.bench.adapt import measure, summary

    trials = []
    for each in model:
        name, _, pooling = each.partition(":")
        encoder = cse.load(name, pooling or None)
        for file in data:
            for seed in range(seeds):
                scores = measure(file, encoder, fit=fit, scored=scored, seed=seed, pairs=pairs, trainings=trainings)
                trials.append({"texts": file.stem, "model": Path(each).name, "seed": seed, "scores": scores})
                log(f"{file.stem}, {Path(each).name}, seed {seed}: {scores}")
    by_model = {each: [trial for trial in trials if trial["model"] == Path(each).name] for each in model}
    means = {Path(each).name: summary(rows) for each, rows in by_model.items()}
    _print(json_output, {"trials": trials, "mean gains": {**means, "all": summary(trials)}})


def bench_recipes(
    output: Trials,
    data: Labelled,
    model: Models,
    fit: Annotated[int, typer.Option(min=300, help="Texts that each recipe sees.")] = 3800,
    scored: Scored = 1200,
    seconds: Annotated[float, typer.Option(min=1, help="Processor time of each training.")] = 30,
    way: Annotated[list[str] | None, typer.Option(help="Ways to measure, by default all; repeatable.")] = None,
    seeds: Seeds = 3,
    json_output: Json = False,
) -> None:
    """Compare what `adapt` does with SimCSE and TSDAE as sentence-transformers' examples train them, and other ways.

    Example: python -m tests.bench recipes trials.jsonl --model cse/bundled/backbone:cls --data clustering/agnews.tsv
    """
    from tests.bench.recipes import MEASURES, WAYS, Trial, measure, rows_of, summary

    for name in way or ():
        check_choice("way", name, WAYS)
    chosen = {name: made for name, made in WAYS.items() if not way or name in way}
    for seed in range(seeds):
        for file in data:
            for each in model:
                start, _, pooling = each.partition(":")
                trial = Trial(start, pooling or None, seconds, seed)
                row = measure(file, trial, chosen, output, fit=fit, scored=scored)
                log(f"{row['texts']}, {row['start']}, seed {seed}: {row['scores']}")
    rows = rows_of(output)
    _print(json_output, {"trials": len(rows)} | {name: summary(rows, name) for name in MEASURES})


def bench_finding(
    output: Trials,
    data: Annotated[list[Path], typer.Option(help="A folder of a retrieval set; repeatable.")],
    model: Models,
    cheap: Annotated[bool, typer.Option("--cheap", help="Leave out the candidates that take minutes.")] = False,
    json_output: Json = False,
) -> None:
    """Try all of `adapt` on the documents of retrieval sets: do known items order its candidates as nDCG@10 does?

    Example: python -m tests.bench finding trials.jsonl --model cse/bundled/backbone:mean --data retrieval/cranfield
    """
    from tests.bench.finding import measure, summary

    rows = [measure(folder, start, 0, output, log, cheap) for folder in data for start in model]
    _print(json_output, {"trials": rows, "known items": summary(rows)})


def bench_plain(
    data: Annotated[Path, typer.Option(help="A folder of sts, transfer, clustering, corpus and plain_backbone.")],
    results: Annotated[Path, typer.Option(help="The JSON file of all records.")] = ROOT / "docs/plain-text.json",
    backbone: Annotated[
        Path | None, typer.Option(help="A masked language model; default: data/plain_backbone.")
    ] = None,
    work: Annotated[Path, typer.Option(help="Folder of texts and checkpoints.")] = ROOT / "runs/plain",
    only: Annotated[list[str] | None, typer.Option(help="A row of the tables; repeatable. Default: all.")] = None,
    seeds: Seeds = 1,
    sentences: Annotated[int, typer.Option(min=2, help="Training sentences that are drawn.")] = 20_000,
    steps: Annotated[int, typer.Option(min=1, help="Batches of 64 of a training.")] = 60,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,…", help="Train the rows with other settings, too; repeatable."),
    ] = None,
    trials: Annotated[
        bool, typer.Option("--trials", help="First try every setting of the grids on STS-B dev.")
    ] = False,
    more: Annotated[bool, typer.Option("--more", help="Score transfer and clustering too.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Write the page beside the results, and run nothing.")] = False,
) -> None:
    """Train and score the papers' methods on a backbone that has seen no sentence pair; what is there is not repeated.

    Example: python -m tests.bench plain --data ../shared/data --only simcse --only promptbert --seeds 3
    """
    from cse.files.writing import read_json
    from tests.bench.plain import CONFIGURATIONS, FIXED, Plan, run, variation
    from tests.bench.plain_page import write_page

    if page:
        log("\n".join(map(str, write_page(read_json(results), results.with_suffix(".md")))))
        return
    for name in only or ():
        check_choice("only", name, CONFIGURATIONS)
    fixed, variations = FIXED | {"max_steps": steps}, [variation(text) for text in vary or ()]
    plan = Plan(data, backbone or data / "plain_backbone", work, results, fixed, sentences, variations)
    run(plan, [CONFIGURATIONS[name] for name in only or CONFIGURATIONS], log, seeds=seeds, trials=trials, more=more)


def _print(json_output: bool, figures: Mapping[str, Any]) -> None:
    from tests.bench.timing import describe_machine

    found = {"machine": describe_machine(), **figures}
    if json_output:
        print_json(found)
        return
    import yaml

    rounded = json.loads(json.dumps(found), parse_float=lambda figure: float(f"{float(figure):.4g}"))
    typer.echo(yaml.safe_dump(rounded, sort_keys=False, allow_unicode=True))


app = typer.Typer(
    help="Measure how fast the project is on this machine.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
for function in (
    bench_encode, bench_host, bench_train, bench_pretrain, bench_index, bench_memory, bench_search, bench_app,
    bench_load, bench_corpus, bench_page, bench_adapt, bench_recipes, bench_finding, bench_plain,
):  # fmt: skip
    (made,) = command(function).registered_commands
    assert made.callback
    app.command(function.__name__.removeprefix("bench_"), cls=Command)(made.callback)

if __name__ == "__main__":
    app()
