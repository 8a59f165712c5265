"""Encode a corpus and store it as a searchable index folder, or add it to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.factories import factory_guidance
from scripts.cli import FAMILY, POOLING, command, print_json, progress_options

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder import Encoder
    from cse.model_names import ModelReference
    from index.manifest import Manifest
    from index.store import VectorIndex

BLOCK = 1024  # sentences encoded and stored at a time

Batches = Iterator[tuple[list[str], "np.ndarray"]]


def main(
    corpus: Annotated[str, typer.Argument(help="Text file (.gz, .xz too), table or hub id.")],
    model: Annotated[str, typer.Option(help="simcse, promptbert, dcpcse, conpvp, a checkpoint folder, or a backbone.")],
    output: Annotated[Path, typer.Option(help="Folder for the index.")],
    factory: Annotated[str | None, typer.Option(help=f"FAISS factory (default Flat). {factory_guidance()}.")] = None,
    pooling: Annotated[str | None, typer.Option(help=POOLING)] = None,
    family: Annotated[str | None, typer.Option(help=FAMILY)] = None,
    column: Annotated[str | None, typer.Option(help="Column of a table that holds the sentences.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences in one pass of the model.")] = 64,
    seed: Annotated[
        int, typer.Option(min=0, help="Seeds the training of IVF lists and the sample for recall@10.")
    ] = 42,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index at --output.")] = False,
    append: Annotated[bool, typer.Option("--append", help="Add to the index at --output, of the same model.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Encode a corpus, index it with FAISS and keep the sentences beside it.

    Example: python -m scripts.build_index corpus.txt --model promptbert --output indexes/demo

    Example: python -m scripts.build_index more.txt --model promptbert --output indexes/demo --append
    """
    from cse.loading import open_model
    from cse.model_names import resolve
    from index import BuildSettings, VectorIndex

    _check_output(output, factory, overwrite=overwrite, append=append)
    stream = _sentences(corpus, column)
    reference = _reference(output, model, pooling, family) if append else resolve(model, pooling, family)
    encoder = open_model(reference)
    with _progress() as report:
        batches = _batches(stream, encoder, batch_size)
        if append:
            index = VectorIndex.load(output, encoder.fingerprint, model=encoder.name, device="cpu")
            _append(index, batches, corpus=corpus, report=report)
            index.save(output)
        else:
            settings = BuildSettings(
                factory=factory or "Flat", model=reference.name, pooling=reference.pooling, family=reference.family,
                fingerprint=encoder.fingerprint, corpus=corpus, seed=seed,
            )  # fmt: skip
            index = VectorIndex.build(batches, output, settings=settings, report=report)
    if json_output:
        print_json(index.manifest.to_json())
    else:
        typer.echo(_summary(output, index.manifest))


def _reference(output: Path, model: str, pooling: str | None, family: str | None) -> ModelReference:
    """What `model` is where it adds to an index: the index knows the pooling and the family of its own model."""
    from cse.model_names import RecordedModel, resolve_again
    from index.manifest import read_manifest

    manifest = read_manifest(output)
    return resolve_again(RecordedModel(manifest.model, manifest.pooling, manifest.family), model, pooling, family)


def _check_output(output: Path, factory: str | None, *, overwrite: bool, append: bool) -> None:
    from index.folder import check_replaceable
    from index.manifest import read_manifest

    if append and overwrite:
        raise typer.BadParameter("--append and --overwrite exclude each other; give one")
    if append:
        built = read_manifest(output).factory
        if factory not in (None, built):
            raise ValueError(f"{output}: was built with factory {built}; leave out --factory or use --overwrite")
        return
    check_replaceable(output)
    if output.exists() and any(output.iterdir()) and not overwrite:
        raise ValueError(f"{output}: holds an index already; --overwrite replaces it, --append adds to it")


def _sentences(corpus: str, column: str | None) -> Iterator[str]:
    from cse.data import sentences

    stream = iter(sentences(corpus, column))
    first = next(stream, None)
    if first is None:
        raise ValueError(f"{corpus}: holds no sentence; give a corpus with text in it")
    return chain([first], stream)


def _batches(stream: Iterator[str], encoder: Encoder, batch_size: int) -> Batches:
    while block := list(islice(stream, BLOCK)):
        yield block, encoder.encode(block, batch_size=batch_size, normalize_embeddings=False, show_progress_bar=False)


def _append(index: VectorIndex, batches: Batches, *, corpus: str, report: Callable[[int], None]) -> None:
    added = 0
    for texts, vectors in batches:
        added += len(index.add(texts, vectors, corpus=corpus))
        report(added)


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A bar on stderr with sentences per second, moved by the number of rows so far."""
    from tqdm import tqdm

    with tqdm(desc="indexing", unit=" sentences", **progress_options()) as bar:
        yield lambda rows: bar.update(rows - bar.n)


def _summary(output: Path, manifest: Manifest) -> str:
    megabytes = sum(record["bytes"] for record in manifest.files.values()) / 1e6
    line = f"{output}: {manifest.count} rows, {manifest.dimension} dimensions, {manifest.factory}, {megabytes:.2f} MB"
    return line if manifest.recall_at_10 is None else f"{line}, recall@10 {manifest.recall_at_10:.3f}"


app = command(main)

if __name__ == "__main__":
    app()
