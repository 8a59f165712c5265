"""Encode the texts of a file into a NumPy array or a Parquet table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cse.commands import cli
from cse.encoder.devices import PRECISIONS, bound_kernels, in_precision
from cse.training.tracking import main_process, progress_options

NPY, PARQUET = OUTPUTS = (".npy", ".parquet")
ROWS = ".rows.npy"  # end of the file of an array's row numbers

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from cse.corpus.corpus import Corpus
    from cse.encoder.encoder import Encoder
    from cse.models.names import ModelReference


def main(
    model: str = cli.model_option(default=..., envvar=cli.MODEL_VARIABLE),
    texts: str | None = typer.Argument(None, metavar="INPUT", help="As --input.", show_default=False),
    input: str | None = cli.option(cli.TEXTS),
    output: Path | None = cli.option(
        "The .npy file to write, (N, d) float32, with the row numbers beside it; or a .parquet file of row "
        "numbers, columns and vectors; a folder with --shards. With --json it may be left out."
    ),
    pooling: cli.Pooling = None,
    family: cli.Family = None,
    column: cli.Column = None,
    read: cli.Read = None,
    batch_size: int | None = cli.option("Most sentences per forward pass; default: chosen by length.", min=1),
    precision: str = cli.option(
        "no, bf16, auto (bf16 where the machine is fast at it), or int8 (OpenVINO); vectors differ slightly.",
        default="no",
        **cli.choices("precision", PRECISIONS),
    ),
    backend: cli.Backend = "auto",
    prompt_name: str | None = cli.option("Prompt of the model, such as document for build_index --vectors."),
    normalize: bool = cli.flag("Scale every vector to length 1."),
    shards: int | None = cli.option("Write so many parts to a folder, in bounded memory; also by torchrun.", min=1),
    parquet: bool = cli.flag("With --shards: parts with row numbers, all columns and vectors, in place of arrays."),
    resume: bool = cli.flag("With --shards: continue an interrupted run."),
    json_output: bool = cli.flag("Print a summary as JSON; without --output a list of row, text and vector."),
) -> None:
    """Encode every text of a file; row i of the array is the i-th row that has a text.

    FILE.npy comes with FILE.rows.npy: the number (N,) of each of these rows in the source, counted from 1.

    Example: cse encode --model promptbert --input sentences.txt --output vectors.npy

    Example: cut -f2 table.tsv | cse encode --model promptbert --input - --output vectors.npy

    Example: echo "A man is playing a guitar." | cse encode - --model promptbert --json

    Example: cse encode --model promptbert --input corpus.txt.xz --output vectors --shards 100

    Example: cse encode --model promptbert --input tickets.csv --output vectors --shards 100 --parquet

    Example: torchrun --nproc-per-node 8 -m cse.commands.encode --model simcse --input big.txt --output big --shards 99
    """
    from cse.models.loading import open_model
    from cse.models.names import resolve

    bound_kernels()
    if (texts is None) == (input is None):
        raise typer.BadParameter("give either INPUT or --input, a file of texts")
    source = str(input or texts)
    _check_options(source, output, precision, shards, json_output=json_output)
    if shards is None and (resume or parquet):
        raise typer.BadParameter(f"{'--resume' if resume else '--parquet'} needs --shards")
    reference = resolve(model, pooling, family)
    shown: Any
    if shards is not None:
        parts = Parts(shards, resume, normalize, batch_size, backend, prompt_name, parquet)
        read_texts = partial(cli.read_corpus, source, column, read=read, quiet=not main_process())
        shown = _encode_parts(reference, read_texts, Path(output or ""), parts)
    else:
        encoder = in_precision(open_model(reference, backend=backend), precision)
        corpus = cli.read_corpus(source, column, read=read)
        if not len(corpus):
            raise ValueError(f"{cli.STDIN_NAME if source == cli.STDIN else source}: no text in it")
        if note := encoder.prompt_note("sentences", encoder.recorded_prompt(prompt_name)):
            cli.log(note)
        encode = partial(
            encoder.encode, corpus.sentences, prompt_name, batch_size=batch_size, normalize_embeddings=normalize,
            show_progress_bar=True,
        )  # fmt: skip
        if output is None:
            vectors = encode().tolist()
            rows = zip(corpus.rows.tolist(), corpus.texts, vectors, strict=True)
            shown = [{"row": row, "text": text, "vector": vector} for row, text, vector in rows]
        else:
            _write(output, corpus, encode)
            shown = _summary(encoder, len(corpus), output)
            cli.log(f"{output}: {len(corpus)} x {encoder.get_embedding_dimension()} float32")
    if json_output and main_process():
        cli.print_json(shown)


def _check_options(source: str, output: Path | None, precision: str, shards: int | None, *, json_output: bool) -> None:
    if output is None:
        if shards is not None or not json_output:
            raise typer.BadParameter("give --output, the file to write; only --json without --shards does without")
    elif shards is None:
        if output.suffix not in OUTPUTS or output.is_dir():
            raise ValueError(f"{output}: give --output a file name that ends in {' or '.join(OUTPUTS)}")
        cli.check_outputs(source, output=output, rows=output.with_suffix(ROWS) if output.suffix == NPY else None)
    if shards is not None and source == cli.STDIN:
        raise typer.BadParameter("standard input is text that is read once; leave out --shards")
    if shards is not None and output is not None and output.suffix in OUTPUTS:
        raise typer.BadParameter(f"--output {output}: --shards writes a folder; give a name without {output.suffix}")
    if shards is not None and precision != "no":
        raise typer.BadParameter("--shards writes float32 vectors; leave out --precision or --shards")


def _summary(encoder: Encoder, count: int, output: Path) -> dict[str, Any]:
    return {
        "model": encoder.name, "fingerprint": encoder.fingerprint, "texts": count,
        "dimensions": encoder.get_embedding_dimension(), "output": str(output),
    }  # fmt: skip


def _write(output: Path, corpus: Corpus, encode: Callable[[], np.ndarray]) -> None:
    """Write a table of row numbers, all columns and vectors; or an array, and beside it the numbers of its rows.

    These are replaced at the last moment.
    """
    import numpy as np

    from cse.corpus.output import with_vectors, write_rows
    from cse.files.writing import check_writable, write_file

    if output.suffix == PARQUET:
        check_writable(output)
        write_rows(output, with_vectors(_numbered(corpus), encode()))
        return
    rows = output.with_suffix(ROWS)

    def write(fresh: Path) -> None:
        np.save(fresh, encode())
        write_file(rows, lambda fresh: np.save(fresh, corpus.rows))

    check_writable(output, rows)  # a bad output fails before anything is encoded
    write_file(output, write)
    cli.log(f"{rows}: the numbers of the rows, from 1")


def _numbered(corpus: Corpus) -> pa.Table:
    """Return the rows that have a text: their numbers in the source, and all columns."""
    import pyarrow as pa

    from cse.corpus.output import beside

    return beside({"row": pa.array(corpus.rows)}, corpus.with_text.table)


@dataclass(frozen=True)
class Parts:
    """Options of encoding a corpus in parts."""

    shards: int
    resume: bool
    normalize: bool
    batch_size: int | None
    backend: str
    prompt_name: str | None
    parquet: bool


def _encode_parts(
    reference: ModelReference, read: Callable[[], Corpus], output: Path, options: Parts
) -> dict[str, Any]:
    """Write the parts and return what --json prints."""
    from tqdm.auto import tqdm

    from cse.encoder.processes import together
    from cse.encoder.shards import BLOCK, ShardPlan, columns_digest, count_texts, encode_in_parts
    from cse.models.loading import open_model

    def texts() -> Iterator[str]:
        return (text for block in corpus.blocks(BLOCK) for text in block.sentences)

    with together():  # which sets this process's GPU
        encoder = open_model(reference, backend=options.backend)
        prompt, own = encoder.recorded_prompt(options.prompt_name), encoder.document_prompt
        without = options.prompt_name is None and own is not None
        if main_process() and (note := encoder.prompt_note("sentences", prompt)):
            cli.log(note)
        if main_process() and without:
            cli.log(f"the model's prompt for documents, {own!r}, is not used; for an index give --prompt-name")
        corpus = read()
        count, sha256 = count_texts(texts())
        columns = columns_digest(map(_numbered, corpus.blocks(BLOCK))) if options.parquet else None
    plan = ShardPlan(
        reference.name, reference.pooling, reference.family, encoder.fingerprint, encoder.get_embedding_dimension(),
        options.normalize, count, sha256, options.shards, options.batch_size,
        None if without else encoder.query_prompt, prompt, "parquet" if options.parquet else "npy", columns,
    )  # fmt: skip

    def encode(block: list[str]) -> np.ndarray:
        return encoder.encode(
            block,
            prompt=prompt,
            batch_size=options.batch_size,
            normalize_embeddings=options.normalize,
            show_progress_bar=False,
        )

    with tqdm(desc="encoding", unit=" sentences", total=count, **progress_options()) as bar:
        cells = (lambda rows: _numbered(corpus.take(rows))) if options.parquet else None
        encode_in_parts(output, plan, texts(), encode, options.resume, lambda rows: bar.update(rows), cells)
    if main_process():
        cli.log(f"{output}: {count} x {plan.dimension} float32 in {plan.shards} parts")
    return {**_summary(encoder, count, output), "shards": plan.shards}


app = cli.command(main)

if __name__ == "__main__":
    app()
