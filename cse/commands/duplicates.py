"""Remove near-duplicates from the texts of a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from cse.commands.cli import (
    MODEL,
    Family,
    Pooling,
    check_choice,
    check_outputs,
    command,
    log,
    option,
    print_json,
    seed_option,
)
from cse.training.tracking import progress_options

if TYPE_CHECKING:
    import numpy as np

    from cse import Encoder
    from cse.analysis.duplicates import Member
    from index import VectorIndex
    from index.building import Batches

KEPT_ROWS = ("first", "longest", "central")
LARGE_GROUP_SHARE = 0.05  # share of all rows in one group that is reported


def main(
    file: Annotated[str, typer.Argument(help="Your texts: a text file, table or hub id.")],
    model: Annotated[str, option(MODEL)],
    output: Annotated[Path, option("The .csv file to write: the rows that are kept, with all columns.")],
    groups: Annotated[Path | None, option("A .csv file of every group: its rows, which one is kept, and why.")] = None,
    percentile: Annotated[
        float | None,
        option("Of the cosines of random pairs of the text; default 99.999, more above 10,000 texts.", min=0, max=100),
    ] = None,
    keep: Annotated[str, option(f"Row of a group that is kept: {', '.join(KEPT_ROWS)}.")] = "first",
    column: Annotated[str | None, option("Column of the texts: a name, or a number without header.")] = None,
    factory: Annotated[str, option("FAISS factory; Flat finds every pair, others most, but faster.")] = "Flat",
    seed: Annotated[int, seed_option("Of the random pairs.")] = 42,
    pooling: Pooling = None,
    family: Family = None,
    json_output: Annotated[bool, option("Print the summary as JSON.", "--json")] = False,
) -> None:
    """Join texts whose cosine is above a percentile of random pairs into groups, and keep one row of each.

    Example: cse duplicates sentences.txt --model promptbert --output unique.csv --groups groups.csv
    """
    import cse
    from cse.analysis.duplicates import GROUP_COLUMNS, group_rows
    from cse.corpus.labelled import check_texts, labelled_texts, left_out, write_table
    from cse.corpus.tables import csv_text

    check_choice("row to keep", keep, KEPT_ROWS)
    if percentile == 100:
        raise typer.BadParameter("--percentile 100: no cosine is above it; give less")
    for path in (output, groups):
        if path is not None and (path.suffix != ".csv" or path.is_dir()):
            raise ValueError(f"{path}: give --{'output' if path is output else 'groups'} a file name that ends in .csv")
    check_outputs(file, output=output, groups=groups)
    read = labelled_texts(file, column)
    rows, texts = [], []
    for row in read.rows:
        rows.append(row.row)
        texts.append(row.text)
    check_texts(file, texts, 1, "a search for duplicates")
    if len(texts) == 1:
        raise ValueError(f"{file}: only 1 text in it; duplicates need at least 2")
    if read.without_text:
        log(f"{left_out(read.without_text)} of the comparison; the table keeps them")
    encoder = cse.load(model, pooling, family=family)
    with tempfile.TemporaryDirectory() as folder:
        options = Options(percentile, keep, factory, seed)
        grouped, percentile, least = _near_duplicates(texts, encoder, Path(folder), options)
    dropped = {rows[member.row] for group in grouped for member in group if not member.kept}
    count = len(rows) + read.without_text
    summary = {
        "model": encoder.name,
        "fingerprint": encoder.fingerprint,
        "rows": count,
        "kept": count - len(dropped),
        "groups": len(grouped),
        "largest": max(map(len, grouped), default=1),
        "percentile": percentile,
        "cosine": round(least, 4),
    }
    if groups is not None:
        table_of_groups = csv_text(GROUP_COLUMNS, group_rows(grouped, texts, rows))
        _write(groups, lambda opened: opened.write(table_of_groups))
    table = labelled_texts(file, column)
    kept = (row.cells for row in table.every if row.row not in dropped)
    _write(output, lambda opened: write_table(opened, table.columns, kept))
    _report(summary, json_output)


@dataclass(frozen=True)
class Options:
    """Options of the search for duplicates; a percentile of None is the default for so many texts."""

    percentile: float | None
    keep: str
    factory: str
    seed: int


def _near_duplicates(
    texts: list[str], encoder: Encoder, folder: Path, options: Options
) -> tuple[list[list[Member]], float, float]:
    """The groups of two rows or more, the percentile and its cosine; vectors and index are written to `folder`."""
    import numpy as np

    from cse.analysis.duplicates import default_percentile, groups_of, members, numbered, strongest_links, threshold

    distinct, rows = numbered(texts)
    percentile = default_percentile(len(distinct)) if options.percentile is None else options.percentile
    vectors, index = _indexed(distinct, encoder, folder, options)
    least = threshold(vectors, percentile, options.seed)
    log(f"near-duplicates: cosine {least:.3f} or more (percentile {percentile:.7g} of random pairs)")
    groups = strongest_links(vectors, index.search, least).copied(rows).groups(least)
    lengths = np.array([len(text) for text in texts])
    grouped = [members(group, vectors[rows[group]], lengths[group], least, options.keep) for group in groups_of(groups)]
    return grouped, percentile, least


def _indexed(distinct: list[str], encoder: Encoder, folder: Path, options: Options) -> tuple[np.ndarray, VectorIndex]:
    """Vectors (N, d) of the texts, memory-mapped, and their index; both are written a block at a time."""
    import numpy as np
    from tqdm import tqdm

    from index import BuildSettings, VectorIndex
    from index.building import encoded

    def encode(block: list[str]) -> np.ndarray:
        return encoder.encode(block, normalize_embeddings=True, show_progress_bar=False)

    def kept(batches: Batches) -> Batches:
        start = 0
        for block, vectors in batches:
            written[start : start + len(block)] = vectors
            start += len(block)
            bar.update(len(block))
            yield block, vectors

    shape = (len(distinct), encode([]).shape[1])
    written = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=shape)
    with tqdm(desc="encoding", unit=" texts", total=len(distinct), **progress_options()) as bar:
        settings = BuildSettings(factory=options.factory, seed=options.seed)
        index = VectorIndex.build(kept(encoded(distinct, encode)), folder / "index", settings=settings)
    return written, index


def _write(path: Path, fill: Callable[[TextIO], object]) -> None:
    from cse.files.writing import write_file

    def write(fresh: Path) -> None:
        with fresh.open("w", encoding="utf-8", newline="") as opened:
            fill(opened)

    write_file(path, write)
    log(f"wrote {path}")


def _report(summary: dict[str, Any], json_output: bool) -> None:
    if summary["largest"] > max(10, LARGE_GROUP_SHARE * summary["rows"]):
        share = 100 * summary["largest"] / summary["rows"]
        log(f"one group has {summary['largest']:,} rows, {share:.0f} % of all; a higher --percentile may split it")
    if json_output:
        print_json(summary)
        return
    typer.echo(
        f"kept {summary['kept']:,} of {summary['rows']:,} rows; {summary['groups']:,} groups of near-duplicates, "
        f"the largest of {summary['largest']:,} rows"
    )


app = command(main)

if __name__ == "__main__":
    app()
