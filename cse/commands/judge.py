"""Compare two models by blind votes on your own text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cse.commands import cli

if TYPE_CHECKING:
    import numpy as np

    from cse import Encoder
    from cse.analysis.votes import Judged, Judgement, Question, Setup
    from cse.corpus.corpus import Corpus

SHOWN_CHARACTERS = 160  # of a text
OWN_POOLING = "own"  # the pooling that a model records


def main(
    start: str = typer.Argument(..., help="The model to compare with: a bundled name, folder or hub id."),
    result: str = typer.Argument(..., help="The model that may be better."),
    data: str = cli.option(cli.SOURCE, default=...),
    votes: int = cli.option("Votes to give; 20 to 40 are useful, 0 prints scores only.", default=30, min=0),
    column: cli.Column = None,
    labels: str | None = cli.option(
        "Column of labels; prints how well both models agree with them.", "--labels", "--label"
    ),
    json_output: Path | None = cli.option(
        "File that keeps the votes; default: RESULT.judge-ID.json of a run.", "--json"
    ),
    seed: int = cli.seed_option("Of the sample, the order, and which list is A.", default=42),
    pooling: list[str] | None = cli.option(f"{cli.POOLING} Given twice: of START, then of RESULT; own: its own."),
    family: cli.Family = None,
    read: cli.Read = None,
    simulate: str | None = cli.option("The labels in this column vote, instead of you.", metavar="COLUMN"),
    overwrite: bool = cli.flag("Drop the votes in the file of --json for new ones."),
) -> None:
    """Show texts whose nearest neighbours differ most, blind, and count which model's neighbours you prefer.

    Answer A, B, same (s), skip (k) or quit (q). Votes are saved one by one; the same command continues.

    Example: cse judge bundled runs/mine --data sentences.txt

    Example: cse judge simcse promptbert --data table.csv --labels topic --votes 0
    """
    import cse.analysis.votes as judging
    from cse.analysis.votes import LEAST_TEXTS, MOST_TEXTS
    from cse.files.writing import check_regular
    from cse.models.fitted_texts import fitted_count, fitted_note

    _check_options(data, votes, labels, simulate, pooling)
    cli.check_outputs(data, json_output=json_output)
    label_column = simulate or labels
    corpus = cli.read_corpus(data, column, label_column, read).check(LEAST_TEXTS, "a comparison")
    labelled = zip(corpus.sentences, corpus.labels, strict=True)
    digest = judging.texts_digest(f"{text}\0{label}" if simulate else text for text, label in labelled)
    corpus = corpus.distinct_sample(MOST_TEXTS, seed)
    encoders, (first, second) = _open(start, result, pooling or [], family)
    setup = judging.Setup(first, second, data, column, label_column, digest, len(corpus), seed)
    path = json_output or (None if simulate or not votes else _beside(result, setup))
    if path is not None and path.exists():
        check_regular(path)
    fresh = judging.Judgement(setup, votes, path, simulated=simulate is not None)
    judgement = judging.continued(fresh, overwrite)
    for side, name in (("start", start), ("result", result)):
        judgement.fitted[side] = fitted_count(name, corpus.sentences)
        if judgement.fitted[side]:
            cli.log(f"{side.upper()} was {fitted_note(judgement.fitted[side], len(corpus))}: it may do worse on others")
    count = _compare(judgement, encoders, corpus)
    if votes and not count:
        if path is not None and not path.exists():
            judgement.save()
        typer.echo(f"not distinguishable: both models have the same neighbours for all {len(corpus):,} texts")
    elif votes:
        if judgement.counted < judgement.target:
            more = "; the same command continues" if path else ""
            none = "; no other text has different neighbours"
            cli.log(
                f"{judgement.counted} of {judgement.target} votes{none if len(judgement.answers) >= count else more}"
            )
        if not judgement.answers:
            raise ValueError("no vote was given; answer A, B or same")
        typer.echo(judgement.verdict.sentence())
        if judgement.verdict.decided:
            typer.echo(judgement.verdict.details())


def _compare(judgement: Judgement, encoders: Sequence[Encoder], corpus: Corpus) -> int:
    """Print the scores of labels, ask for missing votes and save each; return the number of questions."""
    from cse.analysis.votes import questions, vote_by_label
    from cse.files.writing import check_writable

    texts, labels, rows, setup = corpus.texts, corpus.labels, corpus.rows.tolist(), judgement.setup
    total = judgement.target
    finished = judgement.counted >= total
    if finished and not setup.labels:
        return judgement.counted
    vectors = []
    for encoder in encoders:
        cli.log(f"encoding {len(texts):,} texts with {encoder.name}")
        vectors.append(encoder.encode(corpus.sentences, show_progress_bar=sys.stderr.isatty()))
    if setup.labels:
        judgement.scores = _scores(setup, vectors, labels, judgement.fitted)
    if finished:
        judgement.save()
        return judgement.counted
    if judgement.path is not None:
        check_writable(judgement.path)  # before a vote is given; only a vote changes the file
    differing = questions(vectors[0], vectors[1], setup.seed)
    if judgement.simulated:
        known = [question for question in differing if labels[question.row]]
        judgement.collect(known, texts, lambda question, _: vote_by_label(question, labels), rows)
        return len(known)
    cli.log(f"{len(differing):,} of {len(texts):,} texts have different neighbours; the most different ones are shown")
    if judgement.path is None:
        cli.log("votes are not kept; --json FILE keeps them")
    else:
        cli.log(f"votes are kept in {judgement.path}" + (f", {judgement.counted} so far" * bool(judgement.answers)))
    judgement.collect(differing, texts, lambda question, count: _ask(question, texts, f"{count + 1} of {total}"), rows)
    return len(differing)


def _ask(question: Question, texts: Sequence[str], progress: str) -> str | None:
    """The answer of the person to a question: a vote, or None to stop."""
    from cse.analysis.votes import SAME, SKIP

    cli.log(f"\n{progress}   {cli.shortened(texts[question.row], SHOWN_CHARACTERS)}\n")
    for name, rows in zip("AB", question.lists, strict=True):
        for number, row in enumerate(rows):
            cli.log(f"  {' ' if number else name}  {cli.shortened(texts[row], SHOWN_CHARACTERS)}")
        cli.log("")
    while True:
        typer.echo("Which texts are closer to it? A, B, same (s), skip (k), quit (q): ", nl=False, err=True)
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if not line or answer in ("q", "quit"):
            cli.log("")
            return None
        if answer in ("a", "b"):
            return question.chosen(second=answer == "b")
        if answer in ("s", "same", "k", "skip"):
            return SAME if answer.startswith("sa") or answer == "s" else SKIP
        cli.log(f"{answer!r} is no answer")


def _scores(
    setup: Setup, vectors: Sequence[np.ndarray], labels: Sequence[str], fitted: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    """Print and return the scores of both models on the labelled texts; those on `fitted` texts are marked."""
    from cse.evaluation.clustering import label_scores
    from cse.models.fitted_texts import fitted_note

    try:
        scores = {side: label_scores(rows, labels) for side, rows in zip(("start", "result"), vectors, strict=True)}
    except ValueError as error:
        raise ValueError(f"{setup.data}: column {setup.labels!r}: {error}") from error
    known = sum(map(bool, labels))
    typer.echo("\t".join(["model", *scores["start"], f"({known:,} labelled texts, x 100)"]))
    for side, judged in (("start", setup.start), ("result", setup.result)):
        cells = [f"{side.upper()} {judged.name}", *(f"{value:.2f}" for value in scores[side].values())]
        typer.echo("\t".join(filter(None, [*cells, fitted_note(fitted[side], len(labels))])))
    return scores


def _check_options(
    data: str, votes: int, labels: str | None, simulate: str | None, pooling: Sequence[str] | None
) -> None:
    if len(pooling or ()) > 2:
        raise typer.BadParameter("--pooling: give it once, or twice: of START, then of RESULT")
    if simulate and labels:
        raise typer.BadParameter("--simulate names the column of labels; leave out --labels")
    if not votes and not (labels or simulate):
        raise typer.BadParameter("--votes 0 prints only scores of labels; give --labels, or votes")
    if data == cli.STDIN and votes:
        raise typer.BadParameter("--data - leaves no standard input for votes; give a file, or --votes 0")


def _open(
    start: str, result: str, pooling: Sequence[str], family: str | None
) -> tuple[tuple[Encoder, ...], tuple[Judged, ...]]:
    """Both encoders, and what is recorded of them; `pooling` applies to plain backbones only."""
    from cse.analysis.votes import Judged
    from cse.models.loading import open_model
    from cse.models.names import Kind, resolve

    named = [None if name == OWN_POOLING else name for name in pooling]
    poolings = (named[0], named[-1]) if named else (None, None)
    references = [
        resolve(name, pooling, family, lenient=True) for name, pooling in zip((start, result), poolings, strict=True)
    ]
    models = zip((start, result), poolings, references, strict=True)
    unread = [name for name, pooling, reference in models if pooling and reference.kind is not Kind.BACKBONE]
    if len(unread) == 2 or (unread and len(named) == 2):  # one pooling is for those of both models that take it
        raise ValueError(f"{unread[0]} has its own pooling; leave out `pooling`, or give {OWN_POOLING} for it")
    if family and not any(reference.family for reference in references):
        raise ValueError(f"neither {start} nor {result} is read as a `family`; leave it out")
    encoders = tuple(open_model(reference) for reference in references)
    judged = (
        Judged(encoder.name, reference.pooling, encoder.fingerprint)
        for encoder, reference in zip(encoders, references, strict=True)
    )
    return encoders, tuple(judged)


def _beside(result: str, setup: Setup) -> Path | None:
    """The file of the votes on a run, next to its folder; None for a model that is no folder of the user's."""
    from cse.models.names import BUNDLED

    folder = Path(result).absolute()
    if not folder.is_dir() or BUNDLED in folder.resolve().parents:
        return None
    return folder.with_name(f"{folder.name}.judge-{setup.digest()}.json")


app = cli.command(main)
