"""Group the texts of a file, with the words and typical texts of each group."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cse.commands import cli

if TYPE_CHECKING:
    import numpy as np

    from cse.corpus.corpus import Corpus

MIN_TEXTS = 4  # unless a number of groups is asked for
STDOUT = "-"
WORDS_OF_GROUP, TYPICAL_TEXTS = 8, 3  # of each group
SHOWN_CHARACTERS = 100  # of a text


def main(
    file: str = typer.Argument(..., help=cli.TEXTS),
    model: str = cli.model_option(default=..., envvar=cli.MODEL_VARIABLE),
    groups: int | None = cli.option("Number of groups; default: the square root of half the texts, 2 to 100.", min=2),
    column: cli.Column = None,
    labels: str | None = cli.option("Column of labels; prints purity and NMI of the groups."),
    json_output: str | None = cli.option("File of groups, words, rows and typical texts; - prints it.", "--json"),
    csv_output: Path | None = cli.option("File of rows, groups and columns: .csv, .tsv, .jsonl or .parquet.", "--csv"),
    for_spreadsheets: bool = cli.flag(cli.FOR_SPREADSHEETS),
    read: cli.Read = None,
    seed: int = cli.seed_option("Of k-means.", default=42),
    pooling: cli.Pooling = None,
    family: cli.Family = None,
) -> None:
    """Group texts by k-means on their vectors; print each group's size, words and typical texts.

    Example: cse topics sentences.txt --model promptbert --groups 8

    Example: cse topics table.csv --model promptbert --labels topic --json topics.json --csv topics.csv
    """
    import cse
    from cse.corpus.output import check_guarded, check_output
    from cse.files.writing import check_writable, write_json
    from cse.models.fitted_texts import fitted_count, fitted_note

    json_file = None if json_output in (None, STDOUT) else Path(json_output)
    cli.check_outputs(file, json_output=json_file, csv_output=csv_output)
    if csv_output is not None:
        check_output(csv_output, "--csv")
    check_guarded(for_spreadsheets, csv_output)
    corpus = cli.read_corpus(file, column, labels, read)
    corpus.check(groups or MIN_TEXTS, f"grouping into {groups}" if groups else "grouping")
    check_writable(csv_output, json_file)  # a bad output fails before anything is encoded
    encoder = cse.load(model, pooling, family=family)
    summary, numbers = _topics(corpus, encoder, groups, seed)
    if "scores" in summary and (count := fitted_count(model, corpus.sentences)):
        summary["scores"]["fitted"] = count
        summary["notes"].append(f"{encoder.name} was {fitted_note(count, len(set(corpus.sentences)))}")
    document = {
        "model": encoder.name, "fingerprint": encoder.fingerprint, "data": corpus.name, "texts": len(corpus), **summary
    }  # fmt: skip
    if csv_output is not None:
        _write_table(csv_output, corpus, numbers, summary["groups"], for_spreadsheets)
    if json_output == STDOUT:
        cli.print_json(document)
        return
    if json_file is not None:
        write_json(json_file, document)
    _print(summary)


def _topics(corpus: Corpus, encoder: Any, count: int | None, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """The groups and their scores as JSON values, and the group of each text (N,); equal texts are encoded once."""
    import numpy as np

    from cse.analysis.topics import default_groups, group_names, grouped, majority, typical
    from cse.corpus.words import word_notes

    sentences, rows, labels = corpus.sentences, corpus.rows, corpus.labels
    texts = list(dict.fromkeys(sentences))
    cli.log(f"encoding {len(texts):,} texts with {encoder.name}")
    vectors = encoder.encode(texts, normalize_embeddings=True, show_progress_bar=sys.stderr.isatty())
    number_of = {text: number for number, text in enumerate(texts)}
    distinct = [number_of[text] for text in sentences]
    numbers = grouped(vectors[distinct], count or default_groups(len(texts)), seed, sentences)
    of_text = numbers[np.unique(distinct, return_index=True)[1]]  # (distinct texts,)
    names = group_names(sentences, numbers, WORDS_OF_GROUP, vectors[distinct], encoder.encode)
    notes = [*word_notes(texts, chain.from_iterable(names.words)), *names.notes(WORDS_OF_GROUP)]
    scores = _scores(labels, numbers)
    if corpus.label and not scores:
        kinds = "only one label" if any(labels) else "no label"
        notes.append(f"`{corpus.label}` holds {kinds}: purity and NMI need at least two")
    central = typical(vectors, of_text, TYPICAL_TEXTS)
    first_of = {text: row for row, text in reversed(list(enumerate(sentences)))}
    groups = [
        {
            "group": number + 1,
            "size": int((numbers == number).sum()),
            "words": [{"word": word, "score": round(score, 5)} for word, score in names.scores[number]],
            "typical": [corpus.row(first_of[texts[row]]) for row in central[number]],
            "rows": rows[numbers == number].tolist(),
        }
        for number in range(len(central))
    ]
    for number, group in enumerate(groups):
        if label := majority([labels[row] for row in np.flatnonzero(numbers == number)]):
            group |= {"label": label[0], "share": round(label[1], 4)}
    return {"groups": groups, "left_out": names.left_out, "notes": notes, **scores}, numbers


def _scores(labels: list[str], numbers: np.ndarray) -> dict[str, Any]:
    """Purity and NMI, x 100, of the texts that have a label; empty if there are fewer than two labels."""
    import numpy as np

    from cse.evaluation.clustering import nmi, purity

    known = [row for row, label in enumerate(labels) if label]
    if len({labels[row] for row in known}) < 2:
        return {}
    gold = np.unique([labels[row] for row in known], return_inverse=True)[1]
    scores = {"purity": purity(gold, numbers[known]), "nmi": nmi(gold, numbers[known])}
    return {"scores": {**{name: round(100 * value, 2) for name, value in scores.items()}, "labelled": len(known)}}


def _write_table(
    path: Path, corpus: Corpus, numbers: np.ndarray, groups: list[dict[str, Any]], for_spreadsheets: bool
) -> None:
    """Write each row that has a text: its number, group and words, and all its columns."""
    import pyarrow as pa

    from cse.corpus.output import beside, write_rows

    words = [" ".join(entry["word"] for entry in group["words"]) for group in groups]
    of_rows = pa.array([words[group] for group in numbers])
    added = {"row": pa.array(corpus.rows), "group": pa.array(numbers + 1), "words": of_rows}
    write_rows(path, beside(added, corpus.with_text.table), for_spreadsheets)
    cli.log(f"{path}: {len(corpus):,} rows")


def _print(summary: dict[str, Any]) -> None:
    for group in summary["groups"]:
        label = f"  [{group['label']} {100 * group['share']:.0f} %]" if "label" in group else ""
        typer.echo(
            f"{group['group']:>3}  {group['size']:>6}  {' '.join(entry['word'] for entry in group['words'])}{label}"
        )
        for text in group["typical"]:
            typer.echo(f"{'':>13}{cli.shortened(text['text'], SHOWN_CHARACTERS)}")
    for note in summary["notes"]:
        typer.echo(note)
    if scores := summary.get("scores"):
        typer.echo(
            f"purity {scores['purity']:.2f}, NMI {scores['nmi']:.2f} ({scores['labelled']:,} labelled texts, x 100)"
        )


app = cli.command(main)
