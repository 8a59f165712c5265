"""Group the texts of a file, with the words and typical texts of each group."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse.commands.cli import (
    MODEL,
    Family,
    Pooling,
    check_outputs,
    command,
    log,
    option,
    print_json,
    seed_option,
    shortened,
)

if TYPE_CHECKING:
    import numpy as np

    from cse.corpus.labelled import LabelledText

MIN_TEXTS = 4
STDOUT = "-"
WORDS_OF_GROUP, TYPICAL_TEXTS = 8, 3  # of each group
SHOWN_CHARACTERS = 100  # of a text
CSV_COLUMNS = ("row", "group", "words", "text", "label")


def main(
    file: Annotated[str, typer.Argument(help="Your texts: a text file, table or hub id.")],
    model: Annotated[str, option(MODEL)],
    groups: Annotated[
        int | None, option("Number of groups; default: the square root of half the texts, 2 to 100.", min=2)
    ] = None,
    column: Annotated[str | None, option("Column of the texts: a name, or a number without header.")] = None,
    labels: Annotated[str | None, option("Column of labels; prints purity and NMI of the groups.")] = None,
    json_output: Annotated[
        str | None, option("File of all groups, words, typical texts; - prints it.", "--json")
    ] = None,
    csv_output: Annotated[Path | None, option("File of all rows with their groups.", "--csv")] = None,
    seed: Annotated[int, seed_option("Of k-means.")] = 42,
    pooling: Pooling = None,
    family: Family = None,
) -> None:
    """Group texts by k-means on their vectors; print each group's size, words by c-TF-IDF and typical texts.

    Example: cse topics sentences.txt --model promptbert --groups 8

    Example: cse topics table.csv --model promptbert --labels topic --json topics.json --csv topics.csv
    """
    import cse
    from cse.corpus.labelled import check_texts, labelled_texts, left_out
    from cse.files.writing import write_json

    json_file = None if json_output in (None, STDOUT) else Path(json_output)
    check_outputs(file, json_output=json_file, csv_output=csv_output)
    read = labelled_texts(file, column, labels)
    rows = list(read.rows)
    check_texts(
        file,
        [row.text for row in rows],
        max(groups or 0, MIN_TEXTS),
        f"grouping into {groups}" if groups else "grouping",
    )
    if read.without_text:
        log(left_out(read.without_text))
    encoder = cse.load(model, pooling, family=family)
    summary, numbers = _topics(rows, encoder, groups, seed)
    document = {"model": encoder.name, "fingerprint": encoder.fingerprint, "data": file, "texts": len(rows), **summary}
    if csv_output is not None:
        _write_csv(csv_output, rows, numbers, summary["groups"])
    if json_output == STDOUT:
        print_json(document)
        return
    if json_file is not None:
        write_json(json_file, document)
    _print(summary)


def _topics(
    rows: Sequence[LabelledText], encoder: Any, count: int | None, seed: int
) -> tuple[dict[str, Any], np.ndarray]:
    """The groups and their scores as JSON values, and the group of each row (N,); equal texts are encoded once."""
    import numpy as np

    from cse.analysis.topics import class_words, default_groups, grouped, typical
    from cse.corpus.words import word_notes

    texts = list(dict.fromkeys(row.text for row in rows))
    log(f"encoding {len(texts):,} texts with {encoder.name}")
    vectors = encoder.encode(texts, normalize_embeddings=True, show_progress_bar=sys.stderr.isatty())
    of_text = grouped(vectors, count or default_groups(len(texts)), seed)  # (distinct texts,)
    number_of = {text: number for number, text in enumerate(texts)}
    numbers = of_text[[number_of[row.text] for row in rows]]
    words = class_words([row.text for row in rows], numbers, WORDS_OF_GROUP)
    notes = word_notes(texts, (word for ranked in words for word, _ in ranked))
    central = typical(vectors, of_text, TYPICAL_TEXTS)
    groups = [
        {
            "group": number + 1,
            "size": int((numbers == number).sum()),
            "words": [{"word": word, "score": round(score, 5)} for word, score in words[number]],
            "typical": [texts[row] for row in central[number]],
            **_label(rows, np.flatnonzero(numbers == number)),
        }
        for number in range(len(central))
    ]
    return {"groups": groups, "notes": notes, **_scores(rows, numbers)}, numbers


def _label(rows: Sequence[LabelledText], members: np.ndarray) -> dict[str, Any]:
    """The most frequent label of a group and its share of the labelled members; empty without labels."""
    from cse.analysis.topics import majority

    label_and_share = majority([rows[row].label or "" for row in members.tolist()])
    return {"label": label_and_share[0], "share": round(label_and_share[1], 4)} if label_and_share else {}


def _scores(rows: Sequence[LabelledText], numbers: np.ndarray) -> dict[str, Any]:
    """Purity and NMI, x 100, of the rows that have a label; empty if there is none."""
    import numpy as np

    from cse.evaluation.clustering import nmi, purity

    known = [row for row, labelled in enumerate(rows) if labelled.label]
    if not known:
        return {}
    gold = np.unique([rows[row].label for row in known], return_inverse=True)[1]
    scores = {"purity": purity(gold, numbers[known]), "nmi": nmi(gold, numbers[known])}
    return {"scores": {**{name: round(100 * value, 2) for name, value in scores.items()}, "labelled": len(known)}}


def _write_csv(path: Path, rows: Sequence[LabelledText], numbers: np.ndarray, groups: Sequence[dict[str, Any]]) -> None:
    from cse.corpus.tables import csv_text
    from cse.files.writing import write_file

    words = [" ".join(entry["word"] for entry in group["words"]) for group in groups]
    columns = CSV_COLUMNS if any(row.label for row in rows) else CSV_COLUMNS[:-1]
    lines = (
        (row.row, int(group) + 1, words[group], row.text, row.label)[: len(columns)]
        for row, group in zip(rows, numbers, strict=True)
    )
    text = csv_text(columns, lines)
    write_file(path, lambda fresh: fresh.write_text(text, encoding="utf-8", newline=""))
    log(f"{path}: {len(rows):,} rows")


def _print(summary: dict[str, Any]) -> None:
    for group in summary["groups"]:
        label = f"  [{group['label']} {100 * group['share']:.0f} %]" if "label" in group else ""
        typer.echo(
            f"{group['group']:>3}  {group['size']:>6}  {' '.join(entry['word'] for entry in group['words'])}{label}"
        )
        for text in group["typical"]:
            typer.echo(f"{'':>13}{shortened(text, SHOWN_CHARACTERS)}")
    for note in summary["notes"]:
        typer.echo(note)
    if scores := summary.get("scores"):
        typer.echo(
            f"purity {scores['purity']:.2f}, NMI {scores['nmi']:.2f} ({scores['labelled']:,} labelled texts, x 100)"
        )


app = command(main)

if __name__ == "__main__":
    app()
