"""Encode a corpus into a searchable index (a folder or a Milvus collection), or add it to one."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from cse.commands import cli
from cse.errors import command_line
from cse.training.tracking import progress_options
from index.manifest import factory_guidance

if TYPE_CHECKING:
    from tqdm.auto import tqdm

    from cse.corpus.corpus import Corpus
    from cse.encoder.shards import UnfinishedBuild
    from cse.models.names import ModelReference
    from index.manifest import Manifest
    from index.stores import Batches, Index, Location

CORPUS, INDEX, RESULT = "Corpus and model", "Index", "Output"
SMOOTH_HELP = (
    "Mix each vector, and later each query, half and half with its K nearest (0: off). Finds more of the same topic, "
    "but can miss the one exact answer (docs/own-text.md)."
)


def main(
    context: typer.Context,
    corpus: str = typer.Argument(..., help=cli.TEXTS),
    output: str = cli.option(
        "Folder, s3://BUCKET/FOLDER, or milvus://HOST:PORT/COLLECTION.",
        "--output",
        "--store",
        default=...,
        panel=RESULT,
    ),
    model: str | None = cli.model_option(panel=CORPUS, envvar=cli.MODEL_VARIABLE),
    vectors: Path | None = cli.option("Instead of --model: folder of vectors from encode --shards.", panel=CORPUS),
    factory: str | None = cli.option(f"FAISS factory (default Flat). {factory_guidance()}.", panel=INDEX),
    smooth: int = cli.option(SMOOTH_HELP, default=0, panel=INDEX, min=0),
    pooling: str | None = cli.option(cli.POOLING, panel=CORPUS),
    family: str | None = cli.option(cli.FAMILY, panel=CORPUS),
    column: str | None = cli.option(cli.COLUMN, panel=CORPUS),
    read: list[str] | None = cli.option(cli.READ, metavar="KEY=VALUE", panel=CORPUS),
    backend: str = cli.option(cli.BACKEND, default="auto", panel=CORPUS),
    batch_size: int | None = cli.option(
        "Most sentences per forward pass; default: chosen by length.", panel=CORPUS, min=1
    ),
    seed: int = cli.seed_option("Of the IVF clustering and of the queries for recall@10.", default=42, panel=INDEX),
    overwrite: bool = cli.flag("Replace an index at --output.", panel=RESULT),
    append: bool = cli.flag("Add to the index at --output, built by the same model.", panel=RESULT),
    resume: bool = cli.flag("Continue an interrupted build, whose vectors OUTPUT.partial keeps.", panel=RESULT),
    json_output: bool = cli.flag("Print the manifest as JSON.", panel=RESULT),
) -> None:
    """Encode a corpus, index its vectors with FAISS and store its rows with them: texts, other columns, row numbers.

    Example: cse build-index corpus.txt --model promptbert --output indexes/demo

    Example: cse build-index tickets.csv --column body --model promptbert --output indexes/tickets

    Example: cse build-index more.txt --model promptbert --output indexes/demo --append

    Example: cse build-index corpus.txt --vectors vectors --output indexes/large --factory IVF4096,SQ8

    Example: cse build-index corpus.txt --model promptbert --output indexes/large --resume

    Example: cse build-index corpus.txt --model promptbert --store milvus://127.0.0.1:19530/demo
    """
    from cse.encoder.devices import bound_kernels
    from cse.encoder.shards import UnfinishedBuild
    from cse.models.names import resolve_recorded
    from index import BuildSettings
    from index.stores import location_of, manifest_at, store_of

    if vectors is not None and not cli.is_given(context, "model"):
        model = None  # a default for commands that encode
    if (model is None) == (vectors is None):
        raise typer.BadParameter("give either --model, to encode the corpus, or --vectors, if it is encoded")
    _check_used(context)
    bound_kernels()
    location = location_of(output)
    store = store_of(location)
    if smooth and (append or not store.on_disk):
        raise typer.BadParameter("--smooth is for new indexes in folders; leave it out, or build such an index")
    kept = None  # only new indexes in folders have a saved state
    if isinstance(location, Path) and not append:
        kept = UnfinishedBuild(Path(location))
    elif resume:
        line = command_line("encode")
        raise typer.BadParameter(f"--resume is for new folders; otherwise use {line} --shards and --vectors")
    with kept.held(resume=resume and not vectors, overwrite=overwrite) if kept else nullcontext():
        goes_on = bool(kept and resume and kept.begun)  # an interrupted build checked its output at its start
        _check_output(location, factory, overwrite=overwrite or goes_on, append=append)
        texts = cli.read_corpus(corpus, column, read=read)
        corpus = texts.name
        if not len(texts):
            raise ValueError(f"{corpus}: holds no sentence; give a corpus with text in it")
        if vectors is not None:
            source = _encoded(vectors, texts)
        else:
            of_index = manifest_at(location) if append else None
            reference = resolve_recorded(of_index, model, pooling, family)
            source = _encoding(reference, texts, batch_size, kept if resume else None, backend, of_index)
        settings = BuildSettings(factory=factory or "Flat", corpus=corpus, seed=seed, smooth=smooth, **source.model)
        with _progress("indexing") as bar:
            if append:
                index = _extended(location, source, texts, corpus, bar)
            else:
                store.check_factory(settings.factory, source.dimension)
                report = lambda rows: bar.update(rows - bar.n)  # noqa: E731
                index = store.build(source.batches, location, settings=settings, report=report)
    _show(location, index.manifest, json_output)


def _check_used(context: typer.Context) -> None:
    """Raise a usage error for an option that --vectors or --append leaves without a use."""
    for cause, why, options in (
        ("vectors", "--vectors record how they were made", ("pooling", "family", "batch_size", "backend")),
        ("append", "--append keeps the settings of the index", ("seed",)),
    ):
        if context.params[cause]:
            cli.refuse(context, why, *options)


def _show(location: Location, manifest: Manifest, json_output: bool) -> None:
    if json_output:
        cli.print_json(manifest.to_json())
        return
    line = f"{location}: {manifest.count} rows, {manifest.dimension} dimensions, {manifest.factory}"
    if manifest.files:
        line += f", {sum(record['bytes'] for record in manifest.files.values()) / 1e6:.2f} MB"
    typer.echo(line if manifest.recall_at_10 is None else f"{line}, recall@10 {manifest.recall_at_10:.3f}")


class Source(NamedTuple):
    """Texts with vectors of a `dimension`, the displayed name of their model, and its settings in `BuildSettings`."""

    name: str
    dimension: int
    batches: Batches
    model: dict[str, Any]


def _encoding(
    reference: ModelReference,
    texts: Corpus,
    batch_size: int | None,
    kept: UnfinishedBuild | None,
    backend: str,
    of_index: Manifest | None,
) -> Source:
    """The texts encoded as documents: as those of the index that they are added to, else by the model's prompt."""
    from cse.models.loading import open_model
    from index.faiss_index import encoded

    encoder = open_model(reference, backend=backend)
    opened_by = reference.name, reference.pooling, reference.family
    prompts = (of_index or encoder).query_prompt, (of_index or encoder).document_prompt
    if note := encoder.prompt_note("documents", prompts[1]):
        cli.log(note)
    if kept:
        with _progress("encoding") as bar:
            batches = kept.encoded(opened_by, encoder, texts, batch_size, lambda rows: bar.update(rows))
    else:
        batches = encoded(
            texts, partial(encoder.encode, prompt=prompts[1], batch_size=batch_size, show_progress_bar=False)
        )
    model = {
        "model": reference.name, "pooling": reference.pooling, "family": reference.family,
        "fingerprint": encoder.fingerprint, "query_prompt": prompts[0], "document_prompt": prompts[1],
    }  # fmt: skip
    return Source(encoder.name, encoder.get_embedding_dimension(), batches, model)


def _encoded(folder: Path, texts: Corpus) -> Source:
    from cse.encoder.shards import read_plan, with_texts

    plan = read_plan(folder)
    names = ("model", "pooling", "family", "fingerprint", "query_prompt", "document_prompt")
    model = {name: getattr(plan, name) for name in names}
    return Source(Path(plan.model).name, plan.dimension, with_texts(folder, texts), model)


def _extended(location: Location, source: Source, texts: Corpus, corpus: str, bar: tqdm[NoReturn]) -> Index:
    """The index at `location` with the texts added, and saved. Raises ValueError if they were made otherwise."""
    from index.stores import manifest_at, open_at, store_of

    index = open_at(location, source.model["fingerprint"], model=source.name)
    as_opened = index.manifest
    index.check_columns(texts)
    prompts = source.model["document_prompt"], as_opened.document_prompt
    if prompts[0] != prompts[1]:
        theirs, own = ("the default prompt" if prompt is None else f"the prompt {prompt!r}" for prompt in prompts)
        raise ValueError(
            f"{location}: its vectors were made with {own}, and those to add with {theirs}; make them with the same by "
            f"{command_line('encode')} --prompt-name, or build a new index"
        )
    for block, rows in source.batches:
        bar.update(len(index.add(block, rows, corpus=corpus)))
    if store_of(location).on_disk and manifest_at(location) != as_opened:
        raise ValueError(f"{location}: another program changed it during this run; run this command again")
    index.save(location)
    return index


def _check_output(location: Location, factory: str | None, *, overwrite: bool, append: bool) -> None:
    from index.manifest import check_not_smoothed
    from index.stores import manifest_at, store_of

    if append and overwrite:
        raise typer.BadParameter("--append and --overwrite exclude each other; give one")
    if append:
        manifest = manifest_at(location)
        check_not_smoothed(location, manifest)
        if factory not in (None, manifest.factory):
            built = f"{location}: was built with factory {manifest.factory}"
            raise ValueError(f"{built}; leave out --factory or use --overwrite")
        return
    if store_of(location).holds_index(location) and not overwrite:
        raise ValueError(f"{location}: holds an index already; --overwrite replaces it, --append adds to it")


def _progress(what: str) -> tqdm[NoReturn]:
    """A progress bar on stderr, in sentences."""
    from tqdm.auto import tqdm

    return tqdm(desc=what, unit=" sentences", **progress_options())


app = cli.command(main)
