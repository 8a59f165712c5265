"""Encode the lines of a file into a NumPy array."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse.commands.cli import Backend, Family, Model, Pooling, check_choice, command, log, option
from cse.training.tracking import main_process, progress_options

STDIN = "-"

if TYPE_CHECKING:
    import numpy as np

    from cse.models.names import ModelReference


def main(
    model: Model,
    input: Annotated[str, option("Text file (.gz, .xz too), table or hub id; - reads standard input.")],
    output: Annotated[Path, option("The .npy file to write, (N, d) float32; a folder with --shards.")],
    pooling: Pooling = None,
    family: Family = None,
    column: Annotated[str | None, option("Column of a table that holds the sentences.")] = None,
    batch_size: Annotated[
        int | None, option("Most sentences per forward pass; default: chosen by length.", min=1)
    ] = None,
    precision: Annotated[
        str,
        option("no, bf16, auto (bf16 where the machine is fast at it), or int8 (OpenVINO); vectors differ slightly."),
    ] = "no",
    backend: Backend = "auto",
    prompt_name: Annotated[
        str | None,
        option("Prompt of the model, such as document for build_index --vectors. Default: its default prompt or none."),
    ] = None,
    normalize: Annotated[bool, option("Scale every vector to length 1.", "--normalize")] = False,
    shards: Annotated[
        int | None, option("Write this many parts to a folder, in bounded memory; works with torchrun.", min=1)
    ] = None,
    resume: Annotated[bool, option("With --shards: continue an interrupted run.", "--resume")] = False,
) -> None:
    """Encode every non-empty line of a file; row i of the array is the i-th such line.

    Example: cse encode --model promptbert --input sentences.txt --output vectors.npy

    Example: cut -f2 table.tsv | cse encode --model promptbert --input - --output vectors.npy

    Example: cse encode --model promptbert --input corpus.txt.xz --output vectors --shards 100

    Example: torchrun --nproc-per-node 8 -m cse.commands.encode --model simcse --input big.txt --output big --shards 99
    """
    import numpy as np

    from cse.corpus.sentences import sentences
    from cse.encoder.devices import PRECISIONS, bound_kernels, in_precision
    from cse.files.writing import write_file
    from cse.models.loading import open_model
    from cse.models.names import resolve

    check_choice("precision", precision, PRECISIONS)
    bound_kernels()
    reference = resolve(model, pooling, family)
    if input == STDIN and (shards is not None or column is not None):
        raise typer.BadParameter(
            f"--input - is text that is read once; leave out {'--shards' if shards else '--column'}"
        )
    if shards is not None:
        if precision != "no":
            raise typer.BadParameter("--shards writes float32 vectors; leave out --precision or --shards")
        _encode_parts(
            reference,
            partial(sentences, input, column),
            output,
            Parts(shards, resume, normalize, batch_size, backend, prompt_name),
        )
        return
    if resume:
        raise typer.BadParameter("--resume needs --shards")
    if output.suffix != ".npy" or output.is_dir():
        raise ValueError(f"{output}: give --output a file name that ends in .npy")
    encoder = in_precision(open_model(reference, backend=backend), precision)
    texts = _sentences_of_stdin() if input == STDIN else list(sentences(input, column))
    if not texts:
        raise ValueError(f"{'standard input' if input == STDIN else input}: no sentence in it")
    if note := encoder.prompt_note("sentences", encoder.recorded_prompt(prompt_name)):
        log(note)
    encode = partial(encoder.encode, texts, prompt_name, batch_size=batch_size, normalize_embeddings=normalize)
    write_file(output, lambda fresh: np.save(fresh, encode(show_progress_bar=True)))  # a bad output fails at once
    log(f"{output}: {len(texts)} x {encoder.dim} float32")


def _sentences_of_stdin() -> list[str]:
    from cse.corpus.files import stream_lines

    stripped = (line.strip() for line in stream_lines(sys.stdin.buffer, "standard input"))
    return [line for line in stripped if line]


@dataclass(frozen=True)
class Parts:
    """Options of encoding a corpus in parts."""

    shards: int
    resume: bool
    normalize: bool
    batch_size: int | None
    backend: str
    prompt_name: str | None


def _encode_parts(reference: ModelReference, texts: Callable[[], Iterator[str]], output: Path, options: Parts) -> None:
    from tqdm import tqdm

    from cse.encoder.processes import together
    from cse.encoder.shards import ShardPlan, count_texts, encode_in_parts
    from cse.models.loading import open_model

    with together():  # which sets this process's GPU
        encoder = open_model(reference, backend=options.backend)
        prompt, own = encoder.recorded_prompt(options.prompt_name), encoder.document_prompt
        without = options.prompt_name is None and own is not None
        if main_process() and (note := encoder.prompt_note("sentences", prompt)):
            log(note)
        if main_process() and without:
            log(f"the model's prompt for documents, {own!r}, is not used; for an index give --prompt-name")
        count, sha256 = count_texts(texts())
    plan = ShardPlan(
        reference.name, reference.pooling, reference.family, encoder.fingerprint, encoder.dim, options.normalize,
        count, sha256, options.shards, options.batch_size, None if without else encoder.query_prompt, prompt,
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
        encode_in_parts(output, plan, texts(), encode, options.resume, lambda rows: bar.update(rows))
    if main_process():
        log(f"{output}: {count} x {encoder.dim} float32 in {plan.shards} parts")


app = command(main)

if __name__ == "__main__":
    app()
