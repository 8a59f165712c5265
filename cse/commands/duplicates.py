"""Remove near-duplicates from the texts of a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cse.commands import cli
from cse.training.tracking import progress_options

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from cse import Encoder
    from cse.analysis.duplicates import Member
    from cse.corpus.corpus import Corpus
    from index import BuildSettings, VectorIndex
    from index.stores import Batches

KEPT_ROWS = ("first", "longest", "central")
LARGE_GROUP_SHARE = 0.05  # share of all rows in one group that is reported


def main(
    file: str = typer.Argument(..., help=cli.TEXTS),
    model: str = cli.model_option(default=..., envvar=cli.MODEL_VARIABLE),
    output: Path = cli.option(
        "File of the rows that are kept, with all columns: .csv, .tsv, .jsonl or .parquet.", default=...
    ),
    groups: Path | None = cli.option("Such a file of every group: its rows, which one is kept, and why."),
    percentile: float | None = cli.option(
        "Of random pairs' cosines; by default so high that of a hundred merges one is of a random pair.",
        min=0,
        max=100,
    ),
    keep: str = cli.option(
        f"Row of a group that is kept: {', '.join(KEPT_ROWS)}.",
        default="first",
        **cli.choices("row to keep", KEPT_ROWS),
    ),
    column: cli.Column = None,
    read: cli.Read = None,
    for_spreadsheets: bool = cli.flag(cli.FOR_SPREADSHEETS),
    factory: str = cli.option("FAISS factory; Flat finds every pair, others most, but faster.", default="Flat"),
    seed: int = cli.seed_option("Of the random pairs.", default=42),
    pooling: cli.Pooling = None,
    family: cli.Family = None,
    json_output: bool = cli.flag("Print the summary as JSON."),
) -> None:
    """Join texts whose cosine is above a percentile of random pairs into groups, and keep one row of each.

    Example: cse duplicates sentences.txt --model promptbert --output unique.csv --groups groups.csv
    """
    import numpy as np

    import cse
    from cse.analysis.duplicates import (
        MIN_TEXTS,
        groups_of,
        members,
        near_duplicates,
        strongest_links,
        thresholds,
    )
    from cse.corpus.output import check_guarded, check_output, write_rows
    from cse.evaluation.metrics import numbered
    from cse.files.writing import check_writable
    from index import BuildSettings

    if percentile == 100:
        raise typer.BadParameter("--percentile 100: no cosine is above it; give less")
    check_output(output, "--output")
    if groups is not None:
        check_output(groups, "--groups")
    cli.check_outputs(file, output=output, groups=groups)
    check_guarded(for_spreadsheets, output, groups)
    corpus = cli.read_corpus(file, column, read=read).check(1, "a search for duplicates")
    if len(corpus) == 1:
        raise ValueError(f"{corpus.name}: only 1 text in it; duplicates need at least 2")
    check_writable(output, groups)  # a bad output fails before anything is encoded
    encoder = cse.load(model, pooling, family=family)
    distinct, rows = numbered(corpus.sentences)
    with tempfile.TemporaryDirectory() as folder:
        vectors, index = _indexed(distinct, encoder, Path(folder), BuildSettings(factory=factory, seed=seed))
        if percentile is None:
            near = near_duplicates(vectors, index.search, rows, seed)
            forest, percentile, least = near.forest, near.advised.percentile, near.advised.cosine
        else:
            (least,) = thresholds(vectors, [percentile], seed)
            forest = strongest_links(vectors, index.search, least).copied(rows)
        basis = f"percentile {percentile:.10g} of random pairs"
        if len(distinct) < MIN_TEXTS:
            basis = f"fewer than {MIN_TEXTS} different texts: only equal vectors, whatever the percentile"
        cli.log(f"near-duplicates: cosine {least:.3f} or more ({basis})")
        groups_of_rows = groups_of(forest.groups(least))
        lengths = np.array([len(text) for text in corpus.sentences])
        grouped = [members(group, vectors[rows[group]], lengths[group], least, keep) for group in groups_of_rows]
    dropped = [member.row for group in grouped for member in group if not member.kept]
    kept = np.ones(corpus.table.num_rows, bool)  # rows without a text stay
    kept[corpus.positions[dropped]] = False
    summary = {
        "model": encoder.name,
        "fingerprint": encoder.fingerprint,
        "rows": len(kept),
        "kept": int(kept.sum()),
        "groups": len(grouped),
        "largest": max(map(len, grouped), default=1),
        "percentile": percentile,
        "cosine": round(least, 4),
    }
    if groups is not None:
        write_rows(groups, _group_table(corpus, grouped), for_spreadsheets)
        cli.log(f"wrote {groups}")
    write_rows(output, corpus.source_table.filter(kept), for_spreadsheets)
    cli.log(f"wrote {output}")
    _report(summary, json_output)


def _indexed(
    distinct: list[str], encoder: Encoder, folder: Path, settings: BuildSettings
) -> tuple[np.ndarray, VectorIndex]:
    """Vectors (N, d) of the texts, memory-mapped, and their index; both are written a block at a time."""
    import numpy as np
    from tqdm.auto import tqdm

    from index import VectorIndex
    from index.faiss_index import encoded

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
        index = VectorIndex.build(kept(encoded(distinct, encode)), folder / "index", settings=settings)
    return written, index


def _group_table(corpus: Corpus, groups: list[list[Member]]) -> pa.Table:
    """Return a row for each member of each group: its number in the source, what became of it, and all its columns."""
    import pyarrow as pa

    from cse.corpus.output import beside

    numbered = [(number, member) for number, group in enumerate(groups, start=1) for member in group]
    rows = corpus.take([member.row for _, member in numbered])
    added = {
        "group": pa.array([number for number, _ in numbered], pa.int64()),
        "row": pa.array(rows.numbers),
        "kept": pa.array(["yes" if member.kept else "no" for _, member in numbered], pa.string()),
        "cosine": pa.array([member.cosine for _, member in numbered], pa.float64()),
        "reason": pa.array([member.reason for _, member in numbered], pa.string()),
    }
    return beside(added, rows.table)


def _report(summary: dict[str, Any], json_output: bool) -> None:
    if summary["largest"] > max(10, LARGE_GROUP_SHARE * summary["rows"]):
        share = 100 * summary["largest"] / summary["rows"]
        cli.log(f"one group has {summary['largest']:,} rows, {share:.0f} % of all; a higher --percentile may split it")
    if json_output:
        cli.print_json(summary)
        return
    typer.echo(
        f"kept {summary['kept']:,} of {summary['rows']:,} rows; {summary['groups']:,} groups of near-duplicates, "
        f"the largest of {summary['largest']:,} rows"
    )


app = cli.command(main)
