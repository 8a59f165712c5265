"""An adaptation from texts to a model and its report: scores, choice, resumption, escaping, bad input."""

import errno
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import refused, run
from conftest import WORDS

import cse
from cse.adaptation import adapt as adapting
from cse.adaptation import candidates, workspace
from cse.adaptation.adapt import AdaptRequest, adapt
from cse.adaptation.candidates import Trial
from cse.adaptation.choice import other_reading
from cse.adaptation.facts import split
from cse.adaptation.projection import fit_projection
from cse.adaptation.report import lines
from cse.corpus import Corpus
from cse.evaluation.clustering import same_label_neighbours

TYPED = ["[MASK]", "the dog [MASK] runs", "[CLS] [SEP]", "[PAD] the dog"]
TOPICS = {"animals": WORDS[4:14], "<b>&rest": WORDS[24:40]}


def texts(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Rows (label, text): most words of a text are its topic's."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(count):
        label = list(TOPICS)[number % 2]
        rows.append((label, " ".join([*rng.choice(TOPICS[label], 5), *rng.choice(WORDS, 3)])))
    return rows


@pytest.fixture(autouse=True, scope="module")
def short_training() -> Iterator[None]:
    """Training of four batches of 16, an evaluation every second one."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {"BATCH_SIZE": 16, "MAX_STEPS": 4, "EVAL_EVERY": 2}.items():
            patched.setattr(candidates, name, value)
        settings = {**candidates.TRAINING_SETTINGS, "batch_size": 16, "eval_every": 2}
        patched.setattr(candidates, "TRAINING_SETTINGS", settings)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("texts") / "texts.tsv"
    file.write_text("".join(f"{label}\t{text}\n" for label, text in texts(400)))
    return file


@pytest.fixture(scope="module")
def whole(table: Path, bert_folder: Path, short_training: None) -> dict[str, Any]:
    """The report of a run with labels, in `whole` beside the table."""
    return adapt(request(table, bert_folder), table.with_name("whole"))


def request(table: Path, backbone: Path, label: bool = True, **changes: Any) -> AdaptRequest:
    return AdaptRequest(
        str(table), str(backbone), column="2", label="1" if label else None, seed=7, **{"minutes": None, **changes}
    )


def plain(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs between two equal runs."""
    text = json.dumps({**report, "run": "", "commands": {}, "seconds": 0})
    return json.loads(re.sub(r'"(seconds|texts_per_second)": [0-9.]+', r'"\1": 0', text))


def test_with_labels_the_scores_are_those_of_held_out_texts_and_the_best_is_written(
    table: Path, bert_folder: Path, whole: dict[str, Any]
) -> None:
    stages = whole["stages"]
    assert set(stages) >= {"start", "projection", "training"}
    held, fit = split(Corpus.read(table, "2", "1").distinct_sample(10_000, 7), 7)
    gold = np.unique(held.labels, return_inverse=True)[1]
    mean, cls = (cse.load(str(bert_folder), pooling) for pooling in ("mean", "cls"))
    vectors = {"start": mean.encode(held.sentences), "reading": cls.encode(held.sentences)}
    better = other_reading(stages)
    base, name = (cls, "reading") if better else (mean, "start")
    vectors["projection"] = fit_projection(base.encode(fit.sentences), 16)(vectors[name])
    points = {name: stage["labels"]["neighbours"] for name, stage in stages.items() if "labels" in stage}
    for name, rows in vectors.items():
        assert points[name] == pytest.approx(100 * same_label_neighbours(rows, gold), abs=0.02)
    best = max(points, key=lambda name: points[name])
    wins = points[best] > points["start"] + 0.3
    assert whole["decision"] == (best if wins else "start")
    kept = {path.name for path in table.with_name("whole").iterdir()}
    assert {"report.html", "report.json"} <= kept
    assert ("model.safetensors" in kept) == wins
    assert json.loads((table.with_name("whole") / "report.json").read_text()) == whole
    assert not list(table.parent.glob("*.partial"))


def test_what_follows_begins_with_the_pooling_that_the_labels_prefer(
    table: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preferring(self: Trial, name: str, encoder: cse.Encoder, vectors: Any = None) -> dict[str, Any]:
        result = scores(self, name, encoder, vectors)
        return {**result, "labels": {"neighbours": 60.0 if name == "start" else 80.0, "nmi": 1.0}}

    scores = Trial.scores
    monkeypatch.setattr(Trial, "scores", preferring)
    report = adapt(request(table, bert_folder), tmp_path / "out")
    held = split(Corpus.read(table, "2", "1").distinct_sample(10_000, 7), 7)[0].sentences
    np.testing.assert_allclose(
        cse.load(str(tmp_path / "out")).encode(held), cse.load(str(bert_folder), "cls").encode(held), atol=1e-5
    )
    assert (report["decision"], report["stages"]["reading"]["pooling"]) == ("reading", "cls")  # the cheapest of equals
    assert report["sentence"].startswith(
        "Groups by your labels better; finding was not measured. Your model read by cls has 20.0 points more"
    )
    assert any(line.startswith("projection read by cls ") for line in lines(report))
    assert report["stages"].get("training", {}).get("record", {"pooling": "cls"})["pooling"] == "cls"


def test_without_labels_the_projection_is_the_result_and_the_trained_model_stands_beside_it(
    table: Path, bert_folder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    start = shutil.copytree(bert_folder, tmp_path / "start")
    report = adapt(request(table, start, label=False), tmp_path / "out")
    shutil.rmtree(start)
    assert report["decision"] == "projection"
    sample = [*(text for _, text in texts(20, seed=5)), *TYPED]
    places = [tmp_path / "out", *([tmp_path / "out" / "candidate"] if report["candidate"] else [])]
    for folder in places:
        expected = SentenceTransformer(str(folder), device="cpu").encode(sample)
        np.testing.assert_allclose(cse.load(str(folder), backend="openvino").encode(sample), expected, atol=1e-5)
    assert (report["candidate"] is not None) == ("guard" in report["stages"]["training"])
    assert (
        f"python -m scripts.judge {start} {tmp_path / 'out'} --data {table}" in report["commands"]["judge the result"]
    )
    changed = report["changed"]
    assert 0 < len(changed) <= 10
    assert all(len(row["before"]) == len(row["after"]) == 5 for row in changed)
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    for row in changed:
        assert {other["row"] for other in row["before"]} != {other["row"] for other in row["after"]}
        for named in (row, *row["before"], *row["after"]):
            assert [named["fields"]["1"], named["text"]] == lines[named["row"] - 1]


def test_many_texts_are_trained_towards_their_neighbours_and_the_result_has_no_head(
    table: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder, sample = cse.load(str(bert_folder), "cls"), [text for _, text in texts(300, seed=3)]
    pairs = candidates.neighbour_pairs(encoder, sample, 7)
    assert [first for first, _ in pairs] == sample
    vectors = encoder.encode(sample)
    unit = (projected := fit_projection(vectors)(vectors)) / np.linalg.norm(projected, axis=1, keepdims=True)
    cosines = unit @ unit.T - 2 * np.eye(300)
    ranks = [int((row > row[sample.index(other)]).sum()) for row, (_, other) in zip(cosines, pairs, strict=True)]
    assert max(ranks) < 5
    assert len(set(ranks)) > 1
    monkeypatch.setattr(candidates, "MIN_TEXTS_WITH_NEIGHBOURS", 256)
    report = adapt(request(table, bert_folder, label=False, pooling="cls"), tmp_path / "out")
    assert report["stages"]["training"]["record"]["head"] is False
    folder = str(tmp_path / "out" / "candidate")
    sample = [*sample[:20], *TYPED]
    expected = SentenceTransformer(folder, device="cpu").encode(sample)
    np.testing.assert_allclose(cse.load(folder).encode(sample), expected, atol=1e-5)


def test_a_backbone_learns_the_words_of_many_unlabelled_texts_before_the_projection(
    table: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    monkeypatch.setattr(candidates, "MIN_TEXTS_WITH_NEIGHBOURS", 256)
    monkeypatch.setattr(Trial, "training", lambda self: candidates.left_out("not tried"))

    scores = Trial.scores

    def killed(self: Trial, name: str, *args: Any) -> dict[str, Any]:
        if name == "language":
            raise KeyboardInterrupt
        return scores(self, name, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Trial, "scores", killed)
        with pytest.raises(KeyboardInterrupt):
            adapt(request(table, bert_folder, label=False, pooling="cls"), tmp_path / "out")
    learned = tmp_path / "out.partial" / "language" / "model"
    before, after = (AutoModelForMaskedLM.from_pretrained(path) for path in (bert_folder, learned))
    assert not before.get_input_embeddings().weight.equal(after.get_input_embeddings().weight)
    sample = [text for _, text in texts(20, seed=5)]
    held, fit = split(Corpus.read(table, "2").distinct_sample(10_000, 7), 7)
    encoder = cse.load(str(learned), "cls")
    expected = fit_projection(encoder.encode(fit.sentences))(encoder.encode(sample))
    report = adapt(request(table, bert_folder, label=False, pooling="cls"), tmp_path / "out", resume=True)
    tokens = np.mean([len(ids) for ids in AutoTokenizer.from_pretrained(bert_folder)(
        held.sentences, add_special_tokens=False)["input_ids"]])  # fmt: skip
    five_passes = int(5 * len(fit) * tokens / 1024)
    assert (report["decision"], report["stages"]["language"]["steps"]) == ("language", five_passes)
    result = str(tmp_path / "out")
    np.testing.assert_allclose(cse.load(result).encode(sample), expected, atol=1e-4)
    theirs = SentenceTransformer(result, device="cpu").encode(TYPED)
    np.testing.assert_allclose(cse.load(result).encode(TYPED), theirs, atol=1e-5)
    for name, other in {"labelled": {"pooling": "cls"}, "mean": {"label": False}}.items():
        assert "language" not in adapt(request(table, bert_folder, **other), tmp_path / name)["stages"]


def test_the_page_escapes_texts_and_has_no_script(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "training", lambda self: candidates.left_out("not tried"))
    rows = [(label, f"<script>alert({number})</script> {text}") for number, (label, text) in enumerate(texts(400))]
    file = tmp_path / "texts.tsv"
    file.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    adapt(request(file, bert_folder, label=False), tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;script&gt;alert(" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page)


@pytest.mark.parametrize("killed", ["projection", "trained_projection"])
def test_a_run_killed_between_stages_continues_to_the_same_report(
    table: Path, bert_folder: Path, tmp_path: Path, killed: str, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any]
) -> None:

    def kill(self: Trial) -> dict[str, Any]:
        raise KeyboardInterrupt

    def again(self: Trial) -> dict[str, Any]:
        raise AssertionError("made twice")

    if killed == "trained_projection" and "trained-projection" not in whole["stages"]:
        pytest.skip("nothing was trained")
    with monkeypatch.context() as patched:
        patched.setattr(Trial, killed, kill)
        with pytest.raises(KeyboardInterrupt):
            adapt(request(table, bert_folder), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="holds an unfinished adaptation; pass `resume`"):
        adapt(request(table, bert_folder), tmp_path / "out")
    with pytest.raises(ValueError, match="begun with other label, texts"):
        adapt(request(table, bert_folder, label=False), tmp_path / "out", resume=True)
    monkeypatch.setattr(Trial, "start", again)
    resumed = adapt(request(table, bert_folder), tmp_path / "out", resume=True)
    assert plain(resumed) == plain(whole)
    assert not list(tmp_path.glob("*.partial"))


def test_a_run_killed_in_training_continues_from_its_state(
    table: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any]
) -> None:
    steps = []

    def killing(self: Any) -> float:
        if (tmp_path / "out.partial" / "training.partial").is_dir():
            steps.append(1)
            if len(steps) == 3:
                raise KeyboardInterrupt
        return float("inf")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.Workspace, "left", property(killing))
        with pytest.raises(KeyboardInterrupt):
            adapt(request(table, bert_folder), tmp_path / "out")
    assert (tmp_path / "out.partial" / "training.partial" / "state").is_dir()
    more = request(table, bert_folder, minutes=60.0)  # than was left before the kill
    assert plain(adapt(more, tmp_path / "out", resume=True)) == plain(whole)


def test_what_does_not_fit_in_the_time_is_left_out_and_said(table: Path, bert_folder: Path, tmp_path: Path) -> None:
    report = adapt(request(table, bert_folder, minutes=1e-6), tmp_path / "out")
    assert report["decision"] == "start"
    assert "do not fit in the time" in report["stages"]["training"]["left_out"]
    assert "does not fit in the time" in report["stages"]["projection"]["left_out"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.html", "report.json"}


def test_a_trained_start_is_projected_and_not_trained_again(table: Path, bert_folder: Path, tmp_path: Path) -> None:
    cse.train("simcse", [text for _, text in texts(40)], backbone=bert_folder, output=tmp_path / "start", max_steps=1,
              progress=False, precision="no")  # fmt: skip
    report = adapt(request(table, tmp_path / "start", label=False), tmp_path / "out")
    shutil.rmtree(tmp_path / "start")
    assert "is a trained model" in report["stages"]["training"]["left_out"]
    assert report["decision"] == "projection"
    assert cse.load(str(tmp_path / "out")).encode(["the dog"]).shape == (1, 16)


def test_a_full_disk_ends_in_one_line_and_leaves_no_output(
    table: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*values: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    done = run("adapt", table, "--column", "2", "--backbone", bert_folder, "--output", tmp_path / "out")
    refused(done, 3, "cannot be written", "free some space")
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_short_form_or_json(table: Path, bert_folder: Path, tmp_path: Path) -> None:
    words = (table, "--column", 2, "--label", 1, "--backbone", bert_folder, "--output", tmp_path / "out", "--minutes")
    done = run("adapt", *words, 0.0001)
    assert done.exit_code == 0, done.output
    assert "Neither grouping nor finding was measured. Keep your model: no candidate could be used." in done.stdout
    assert "400 texts" in done.stdout
    refused(run("adapt", *words, 0.0001), 3, "already holds something")
    again = run("adapt", *words, 0.0001, "--overwrite", "--json")
    assert json.loads(again.stdout)["decision"] == "start"
    (tmp_path / "out" / "mine.txt").write_text("keep")
    refused(run("adapt", *words, 0.0001, "--overwrite"), 3, "mine.txt")


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("", (), "no text in it"),
        ("one text\n", (), "only 1 text in it"),
        ("the same\n" * 500, (), "all its texts are the same"),
        ("".join(f"text number {number}\n" for number in range(10)), (), "needs at least 320 different texts"),
        ("sport\nworld\n" * 300, (), "look like labels"),
        ("".join(f"{number}\t{text}\n" for number, (_, text) in enumerate(texts(400))), (2, 1), "are all different"),
        ("".join(f"a\t{text}\n" for _, text in texts(400)), (2, 1), "are all the same"),
    ],
)
def test_texts_that_cannot_be_adapted_to_are_refused_in_one_line(
    bert_folder: Path, tmp_path: Path, content: str, words: tuple, message: str
) -> None:
    file = tmp_path / ("texts.tsv" if words else "texts.txt")
    file.write_text(content)
    columns = ("--column", words[0], "--label", words[1]) if words else ()
    done = run("adapt", file, *columns, "--backbone", bert_folder, "--output", tmp_path / "out")
    refused(done, 3, message)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf"])
def test_minutes_that_no_run_can_take_are_refused_as_the_help_says(table: Path, tmp_path: Path, minutes: str) -> None:
    done = run("adapt", table, "--column", 2, "--output", tmp_path / "out", "--minutes", minutes)
    refused(done, 3, f"--minutes is {float(minutes)}; give a number above 0")
    assert not (tmp_path / "out").exists()
    words = " ".join(run("adapt", "--help").stdout.split())
    assert "--minutes <float> Most minutes, above 0; what does not fit is left out. [default: 30]" in words


def test_a_pooling_without_a_form_and_a_start_that_is_missing_are_refused(
    table: Path, bert_folder: Path, tmp_path: Path
) -> None:
    common = ("adapt", table, "--column", 2, "--output", tmp_path / "out", "--backbone")
    refused(run(*common, bert_folder, "--pooling", "first-last"), 3, "no pooling first-last")
    refused(run(*common, tmp_path / "absent"), 4, "absent")
    refused(run("adapt", table, "--output", tmp_path / "out", "--resume"), 4, "nothing to resume")
    assert adapting.MIN_TEXTS == 320
