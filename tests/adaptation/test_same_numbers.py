"""The same number from every command on one corpus, and marks on texts that a model was fitted on."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ran
from conftest import WORDS
from given_corpus import GivenCorpus

import cse
from cse.adaptation.adapt import AdaptRequest, adapt
from cse.adaptation.candidates import Trial, left_out
from cse.adaptation.facts import split
from cse.app.results.map import Map
from cse.app.show import answer
from cse.app.state import Session, open_state
from cse.corpus import Corpus
from cse.evaluation.clustering import label_scores


@dataclass(frozen=True)
class Adapted:
    """A corpus, the texts of it that were held out, its adaptation in `output`, and the report of that."""

    file: Path
    held: Path
    output: Path
    report: dict[str, Any]


@pytest.fixture(scope="module")
def adapted(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Adapted:
    folder, rng = tmp_path_factory.mktemp("numbers"), np.random.default_rng(5)
    topics = {"animals": WORDS[4:14], "rest": WORDS[24:40], "both": WORDS[8:30]}
    rows = [(name, " ".join([*rng.choice(topics[name], 5), *rng.choice(WORDS, 3)])) for name in [*topics] * 140]
    file, held = folder / "corpus.tsv", folder / "held.tsv"
    file.write_text("".join(f"{label}\t{text}\n" for text, label in {text: label for label, text in rows}.items()))
    scores = Trial.scores

    def scored(self: Trial, name: str, vectors: Any) -> dict[str, Any]:
        gains = {"grouping": [5.0, 4.0, 6.0], "finding": [0.0, -1.0, 1.0]} if name == "projection 0.25" else {}
        return {**scores(self, name, vectors), "gains": gains}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trial, "scores", scored)
        patched.setattr(Trial, "training", lambda self: left_out("not tried"))
        report = adapt(AdaptRequest(str(file), str(bert_folder), column="2", label="1"), folder / "adapted")
    seed = AdaptRequest("").seed
    kept = split(Corpus.read(file, "2", "1").distinct_sample(10_000, seed), seed)[0]
    held.write_text("".join(f"{label}\t{text}\n" for label, text in zip(kept.labels, kept.sentences, strict=True)))
    return Adapted(file, held, folder / "adapted", report)


def judged(models: tuple[Path, Path], file: Path) -> tuple[list[str], list[dict[str, float]], list[str]]:
    """The marks and scores that `judge` prints of two models on labelled texts, and its notes."""
    done = ran("judge", *models, "--data", file, "--column", 2, "--labels", 1, "--votes", 0)
    header, *lines = (line.split("\t") for line in done.stdout.splitlines())
    scores = [dict(zip(header[1:5], map(float, line[1:5]), strict=True)) for line in lines]
    return ["".join(line[5:]) for line in lines], scores, done.stderr.splitlines()


def evaluated(models: tuple[Path, Path], file: Path, output: Path) -> tuple[list[dict[str, float]], str]:
    """The scores of `evaluate clustering` of two models, and its output."""
    named = [word for model in models for word in ("--model", model)]
    done = ran("evaluate", "clustering", *named, "--data", file, "--json", output)
    scores = {one["model"]: one["scores"][file.stem] for one in json.loads(output.read_text())["models"].values()}
    return [scores[str(model)] for model in models], done.output


def test_every_command_and_the_library_compute_the_same_numbers(adapted, bert_folder, tmp_path):
    models = (bert_folder, adapted.output)
    rows = [line.split("\t") for line in adapted.held.read_text().splitlines()]
    labels, texts = zip(*rows, strict=True)
    expected = [
        label_scores(cse.load(str(model), pooling).encode(list(texts)), labels)
        for model, pooling in zip(models, ("mean", None), strict=True)
    ]
    assert expected[0] != expected[1]
    marks, scores, _ = judged(models, adapted.held)
    assert (marks, scores) == (["", ""], expected)
    others, _ = evaluated(models, adapted.held, tmp_path / "scores.json")
    for ours, other in zip(expected, others, strict=True):
        assert (other["neighbours"], other["nmi"]) == (ours["neighbours"], ours["nmi"])
        assert "fitted_texts" not in other
    assert adapted.report["grouping"] == {
        side: ours["neighbours"] for side, ours in zip(("start", "result"), expected, strict=True)
    }


def texts_and_labels(file: Path) -> tuple[list[str], list[str]]:
    """The columns of a table of label and text."""
    labels, texts = zip(*(line.split("\t") for line in file.read_text().splitlines()), strict=True)
    return list(texts), list(labels)


def test_scores_on_texts_that_a_model_was_fitted_on_are_marked(adapted, bert_folder, tmp_path):
    count = len(adapted.file.read_text().splitlines())
    mark = f"fitted on {count - count // 5} of these {count} texts"
    models = (bert_folder, adapted.output)
    marks, _, notes = judged(models, adapted.file)
    assert marks == ["", mark]
    assert any(note.startswith(f"RESULT was {mark}") for note in notes)
    (_, scores), output = evaluated(models, adapted.file, tmp_path / "scores.json")
    assert (scores["fitted_texts"], scores["texts"]) == (count - count // 5, count)
    assert mark in output
    grouped = ran("topics", adapted.file, "--column", 2, "--labels", 1, "--model", adapted.output)
    assert mark in grouped.stdout
    state, read = open_state([str(bert_folder), str(adapted.output)], ()), texts_and_labels(adapted.file)
    drawn = answer(Map(), Session(state, corpus := GivenCorpus(*read), corpus, state.models.columns))
    (note,) = (note for note in drawn.notes if "was fitted" in note)
    marked = mark.replace(" texts", " different texts")
    assert f"adapted was {marked}, so its label neighbours are too good here" in note


def test_a_run_of_train_is_marked_on_the_texts_that_it_read(adapted, bert_folder, tmp_path):
    texts = [line.split("\t")[1] for line in adapted.held.read_text().splitlines()]
    cse.train(
        "simcse", texts[:40], backbone=bert_folder, output=tmp_path / "run", batch_size=8, max_steps=3, progress=False,
        precision="no",
    )  # fmt: skip
    marks, _, _ = judged((bert_folder, tmp_path / "run"), adapted.held)
    assert marks == ["", f"fitted on 24 of these {len(texts)} texts"]
    cse.train(
        "simcse", texts[40:], backbone=tmp_path / "run", output=tmp_path / "next", batch_size=8, max_steps=1,
        progress=False, precision="no",
    )  # fmt: skip
    marks, _, _ = judged((bert_folder, tmp_path / "next"), adapted.held)
    assert marks == ["", f"fitted on 32 of these {len(texts)} texts"]
