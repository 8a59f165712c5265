"""An adaptation from texts to a model and its report: scores, choice, resumption, escaping, bad input."""

import errno
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ran, refused, run
from conftest import WORDS
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from sklearn.decomposition import PCA
from transformers import AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.adaptation import candidates
from cse.adaptation.adapt import AdaptRequest, adapt
from cse.adaptation.candidates import Trial
from cse.adaptation.choice import candidates as candidates_of
from cse.adaptation.choice import choose
from cse.adaptation.facts import split
from cse.adaptation.projection import fit_joined, fit_projection
from cse.adaptation.report import explained
from cse.adaptation.workspace import Workspace, check_output
from cse.corpus import Corpus
from cse.errors import ArtefactError
from cse.evaluation.clustering import neighbour_values
from cse.methods.method import Pooling as Pooled
from cse.models.fitted_texts import fitted_count, write_fitted_texts
from cse.vectors import unit_rows

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


def test_with_labels_the_scores_are_those_of_held_out_texts_and_the_best_is_written(table, bert_folder, whole):
    stages = whole["stages"]
    assert set(stages) >= {"start", "projection", "training"}
    held, fit = split(Corpus.read(table, "2", "1").distinct_sample(10_000, 7), 7)
    gold = np.unique(held.labels, return_inverse=True)[1]
    forms = [" ".join(text.split()[::2]) for text in held.sentences]
    scored = candidates_of(stages)
    mean, both = (cse.load(str(bert_folder), pooling).encode for pooling in ("mean", "cls-mean"))
    lengths = np.linalg.norm(both(fit.sentences).reshape(len(fit), 2, -1), axis=2).mean(axis=0)

    def joined(texts: list[str]) -> np.ndarray:
        return (both(texts).reshape(len(texts), 2, -1) / lengths[:, None]).reshape(len(texts), -1)

    pca = PCA(42, svd_solver="full").fit(joined(fit.sentences).astype(np.float64))
    weights = (pca.singular_values_ / pca.singular_values_[0]) ** 0.5
    for name, encode in {
        "start": mean, "projection 0": lambda texts: pca.transform(joined(texts)),
        "projection 0.5": lambda texts: pca.transform(joined(texts)) * weights,
    }.items():  # fmt: skip
        rows = encode(held.sentences)
        unit, asked = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (rows, encode(forms)))
        others = encode(fit.sentences)
        texts = np.concatenate([unit, others / np.linalg.norm(others, axis=1, keepdims=True)])
        cosines = asked @ texts.T
        ranks = (cosines >= np.diag(cosines)[:, None] - 1e-6).sum(axis=1)
        scores = {"neighbours": neighbour_values(rows, gold).mean(), "recall@1": (ranks == 1).mean(),
                  "mrr": (1 / ranks).mean()}  # fmt: skip
        assert scored[name]["scores"] == pytest.approx({key: 100 * value for key, value in scores.items()}, abs=0.7)
    assert whole["decision"] == whole["chosen"] == choose(stages).result
    assert whole["verdict"] == choose(stages).sentence
    for axis, measure in (("grouping", "neighbours"), ("finding", "recall@1")):
        sides = {side: scored[name]["scores"][measure] for side, name in (("start", "start"),
                                                                          ("result", whole["chosen"]))}  # fmt: skip
        assert whole[axis] == sides
    wins = whole["decision"] != "start"
    kept = {path.name for path in table.with_name("whole").iterdir()}
    assert {"report.html", "report.json"} <= kept
    assert ("model.safetensors" in kept) == wins
    said = {"report.html", *(["README.md"] if wins else [])}
    assert all(whole["verdict"] in (table.with_name("whole") / name).read_text() for name in said)
    assert json.loads((table.with_name("whole") / "report.json").read_text()) == whole
    assert not list(table.parent.glob("*.partial"))


class Killed(BaseException):
    """Ends a run as a kill does."""


def scoring(monkeypatch: pytest.MonkeyPatch, gains: dict[str, dict[str, float]]) -> None:
    """Replace what candidates gain: by name `gains` in points on each axis, others lose both."""
    scores = Trial.scores

    def scored(self: Trial, name: str, vectors: Any) -> dict[str, Any]:
        result = scores(self, name, vectors)
        points = gains.get(name, dict.fromkeys(result.get("gains", {}), -9.0))
        made = {axis: (points.get(axis, 0.0),) * 3 for axis in result.get("gains", {})}
        return {**result, **({"gains": made} if "gains" in result else {})}

    monkeypatch.setattr(Trial, "scores", scored)


def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "training", lambda self: candidates.left_out("not tried"))


VARIANTS: dict[str, dict[str, Any]] = {
    "0": {}, "neighbours -0.25": {"neighbours": 5, "exponent": -0.25}, "labels -0.25": {"exponent": -0.25},
}  # fmt: skip


@pytest.mark.parametrize(
    ("start", "variant"), [("backbone", "neighbours -0.25"), ("simcse", "0"), ("normalised", "labels -0.25")]
)
def test_joined_readings_open_with_the_same_vectors_here_and_in_sentence_transformers(
    table, bert_folder, tmp_path, monkeypatch, start, variant
):
    monkeypatch.setattr(candidates, "MIN_TEXTS_WITH_NEIGHBOURS", 256)
    labelled = variant.startswith("labels")
    scoring(monkeypatch, {f"projection {variant}": {"grouping": 5.0, "finding": 1.0}})
    untrained(monkeypatch)
    folder = shutil.copytree(bert_folder, tmp_path / "start")
    if start == "simcse":
        shutil.rmtree(folder)
        cse.train("simcse", [text for _, text in texts(40)], backbone=bert_folder, output=folder, max_steps=1,
                  progress=False, precision="no")  # fmt: skip
    elif start == "normalised":
        modules = [Transformer(str(bert_folder), max_seq_length=9), Pooling(32, "mean"), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    report = adapt(request(table, folder, label=labelled), tmp_path / "out")
    encoder = cse.load(str(folder))
    held, fit = split(Corpus.read(table, "2", "1").distinct_sample(10_000, 7), 7)
    read = encoder.reading_by(replace(encoder.reading, normalised=False, pooling=Pooled.CLS_MEAN)).encode
    lengths = np.linalg.norm(read(fit.sentences).reshape(len(fit), 2, -1), axis=2).mean(axis=0)

    def joined(sample: list[str]) -> np.ndarray:
        return (read(sample).reshape(len(sample), 2, -1) / lengths[:, None]).reshape(len(sample), -1)

    options = VARIANTS[variant] | ({"labels": fit.labels} if labelled else {})
    sample = [*held.sentences[:20], *TYPED] if start != "simcse" else held.sentences[:20]
    expected = fit_projection(joined(fit.sentences), **options)(joined(sample))
    if start == "normalised":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    shutil.rmtree(folder)
    assert report["decision"] == f"projection {variant}"
    assert (report["grouping"] is None) != labelled
    result = str(tmp_path / "out")
    size = np.abs(expected).max()
    for backend in ("openvino", "torch"):
        np.testing.assert_allclose(cse.load(result, backend=backend).encode(sample), expected, atol=1e-5 * size + 1e-5)
    theirs = SentenceTransformer(result, device="cpu").encode(sample)
    np.testing.assert_allclose(cse.load(result).encode(sample), theirs, atol=1e-5)
    check_output(tmp_path / "out", resume=False, overwrite=True)  # raises for a file that it does not know
    expected = fit_projection(joined(fit.sentences), **(options | {"exponent": 0.25}))(joined(sample))
    if start == "normalised":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    turned = str(tmp_path / "turned")
    for dial in (-0.5, 0.25):  # the second replaces the first
        ran("adapt", result, "--dial", dial, "--output", turned, "--overwrite")
    np.testing.assert_allclose(cse.load(turned).encode(sample), expected, atol=1e-5 * size + 1e-5)
    np.testing.assert_allclose(SentenceTransformer(turned, device="cpu").encode(sample), expected,
                               atol=1e-5 * size + 1e-5)  # fmt: skip
    assert "report.json" not in {path.name for path in Path(turned).iterdir()}  # that of another model


def test_a_dial_turns_what_an_adaptation_made_and_nothing_else(bert_folder, tmp_path):
    words = ("--output", tmp_path / "out", "--dial")
    refused(run("adapt", bert_folder, *words, 0.25), 3, "no adapted model whose dial can be turned")
    refused(run("adapt", bert_folder, *words, 1.5), 3, "from -1 (finding) to 1")
    refused(run("adapt", bert_folder, *words, 0.25, "--for", "search"), 2, "leave out --for")
    assert not (tmp_path / "out").exists()


def test_without_labels_the_verdict_is_about_finding_and_a_trained_model_is_left_to_judge(
    table, bert_folder, tmp_path, monkeypatch
):
    scoring(monkeypatch, {"projection 0": {"finding": 0.0}})
    report = adapt(request(table, bert_folder, label=False), tmp_path / "out")
    assert (report["decision"], report["candidate"], report["grouping"]) == ("start", "projection 0", None)
    assert report["verdict"].endswith("Grouping was not measured, as there are no labels: only you can judge it.")
    assert (
        f"python -m scripts.judge {bert_folder} {tmp_path / 'out' / 'candidate'} --data {table}"
        in report["commands"]["judge the candidate"]
    )
    assert cse.load(str(tmp_path / "out" / "candidate")).encode(["the dog"]).shape == (1, 42)
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    assert report["changed"]
    for row in report["changed"]:
        assert {other["row"] for other in row["before"]} != {other["row"] for other in row["after"]}
        for named in (row, *row["before"], *row["after"]):
            assert [named["fields"]["1"], named["text"]] == lines[named["row"] - 1]
    refused(run("adapt", table, "--column", 2, "--backbone", bert_folder, "--output", tmp_path / "groups", "--for",
                "groups"), 3, "which only labels can measure")  # fmt: skip


def test_a_start_that_training_cannot_read_is_adapted_without(table, bert_folder, tmp_path, monkeypatch):
    modules = [Transformer(str(bert_folder)), Pooling(32, "max")]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "start"))
    report = adapt(request(table, tmp_path / "start"), tmp_path / "out")
    assert report["stages"]["training"]["left_out"] == "start-max is read by max, and training by cls or mean"

    def refused(self: Trial, steps: int) -> None:
        raise ArtefactError("its tokenizer keeps capitals")

    monkeypatch.setattr(Trial, "_train", refused)
    report = adapt(request(table, bert_folder), tmp_path / "other")
    assert report["stages"]["training"]["left_out"] == "its tokenizer keeps capitals"


def test_held_out_texts_that_the_start_was_fitted_on_are_said(table, bert_folder, tmp_path, monkeypatch):
    untrained(monkeypatch)
    held = [line.split("\t")[1] for line in table.read_text().splitlines()][:200]
    shutil.copytree(bert_folder, tmp_path / "start")
    write_fitted_texts(tmp_path / "start", held, "")
    report = adapt(request(table, tmp_path / "start"), tmp_path / "out")
    count = fitted_count(str(tmp_path / "start"), split(Corpus.read(table, "2").distinct_sample(10_000, 7), 7)[0])
    assert f"The start was fitted on {count} of the held-out texts" in report["verdict"]
    assert "on texts that nothing but the start was fitted on" in explained(report)
    folder = tmp_path / "out" if report["decision"] != "start" else tmp_path / "out" / "candidate"
    assert fitted_count(str(folder), held) == 200


def test_texts_are_found_by_their_titles_where_a_column_is_named(bert_folder, tmp_path, monkeypatch):
    untrained(monkeypatch)
    file, rows = tmp_path / "texts.tsv", [text for _, text in texts(400)]
    file.write_text("body\ttitle\n" + "".join(f"{text}\t{text.split()[-1]}\n" for text in rows))
    common = AdaptRequest(str(file), str(bert_folder), column="body", seed=7, minutes=None)
    known = [adapt(replace(common, titles=titles), tmp_path / str(titles)) for titles in (None, "title")]
    found = [report["stages"]["start"]["scores"]["recall@1"] for report in known]
    assert found[1] < found[0] / 2  # of eight words one finds less than four
    with monkeypatch.context() as patched:
        patched.setattr(Trial, "projected", None)
        with pytest.raises(TypeError):
            adapt(replace(common, titles="title"), tmp_path / "killed")
    file.write_text(file.read_text().replace("\t", "\tthe ").replace("the title", "title"))
    with pytest.raises(ValueError, match="begun with other short forms"):
        adapt(replace(common, titles="title"), tmp_path / "killed", resume=True)


def test_a_text_is_paired_with_one_of_its_five_nearest_others(bert_folder):
    encoder, sample = cse.load(str(bert_folder), "cls"), [text for _, text in texts(300, seed=3)]
    pairs = candidates.neighbour_pairs(encoder, sample, 7)
    assert [first for first, _ in pairs] == sample
    vectors = encoder.encode(sample)
    unit = unit_rows(fit_projection(vectors, neighbours=5)(vectors))
    cosines = unit @ unit.T - 2 * np.eye(300)
    ranks = [int((row > row[sample.index(other)]).sum()) for row, (_, other) in zip(cosines, pairs, strict=True)]
    assert max(ranks) < 5
    assert len(set(ranks)) > 1


def test_a_backbone_learns_the_words_of_many_unlabelled_texts_before_the_projection(
    table, bert_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(candidates, "MIN_TEXTS_WITH_NEIGHBOURS", 256)
    untrained(monkeypatch)
    scoring(monkeypatch, {"language 0": {"finding": 0.5}})
    scores = Trial.scores

    def killed(self: Trial, name: str, vectors: Any) -> dict[str, Any]:
        if name == "language 0":
            raise Killed
        return scores(self, name, vectors)

    with monkeypatch.context() as patched:
        patched.setattr(Trial, "scores", killed)
        with pytest.raises(Killed):
            adapt(request(table, bert_folder, label=False, pooling="cls"), tmp_path / "out")
    learned = tmp_path / "out.partial" / "language" / "model"
    before, after = (AutoModelForMaskedLM.from_pretrained(path) for path in (bert_folder, learned))
    assert not before.get_input_embeddings().weight.equal(after.get_input_embeddings().weight)
    sample = [text for _, text in texts(20, seed=5)]
    held, fit = split(Corpus.read(table, "2").distinct_sample(10_000, 7), 7)
    encoder = cse.load(str(learned), "cls-mean")
    expected = fit_joined(encoder.encode(fit.sentences), 2)(encoder.encode(sample))
    report = adapt(request(table, bert_folder, label=False, pooling="cls"), tmp_path / "out", resume=True)
    tokens = np.mean([len(ids) for ids in AutoTokenizer.from_pretrained(bert_folder)(
        held.sentences, add_special_tokens=False)["input_ids"]])  # fmt: skip
    five_passes = int(5 * len(fit) * tokens / 1024)
    assert (report["decision"], report["stages"]["language"]["steps"]) == ("language 0", five_passes)
    result = str(tmp_path / "out")
    np.testing.assert_allclose(cse.load(result).encode(sample), expected, atol=1e-4)
    theirs = SentenceTransformer(result, device="cpu").encode(TYPED)
    np.testing.assert_allclose(cse.load(result).encode(TYPED), theirs, atol=1e-5)


def test_the_page_escapes_texts_and_has_no_script(bert_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Trial, "training", lambda self: candidates.left_out("not tried"))
    rows = [(label, f"<script>alert({number})</script> {text}") for number, (label, text) in enumerate(texts(400))]
    file = tmp_path / "texts.tsv"
    file.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    adapt(request(file, bert_folder, label=False), tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;script&gt;alert(" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page)


def test_a_run_killed_between_stages_continues_to_the_same_report(table, bert_folder, tmp_path, monkeypatch, whole):
    def kill(self: Trial, name: str, stage: str) -> dict[str, Any]:
        raise Killed

    def again(self: Trial) -> dict[str, Any]:
        raise AssertionError("made twice")

    with monkeypatch.context() as patched:
        patched.setattr(Trial, "projected", kill)
        with pytest.raises(Killed):
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


@pytest.mark.parametrize("finished", [False, True])
def test_a_run_killed_in_its_training_trains_again_to_the_same_report(
    table, bert_folder, tmp_path, monkeypatch, whole, finished
):
    def kill(*_: object) -> None:
        raise Killed

    begun = "training" if finished else "training.partial"
    with monkeypatch.context() as patched:
        if finished:
            patched.setattr(candidates, "load", kill)
        else:
            left = property(lambda self: kill() if (self.work / begun).is_dir() else float("inf"))
            patched.setattr(Workspace, "left", left)
        with pytest.raises(Killed):
            adapt(request(table, bert_folder), tmp_path / "out")
    assert (tmp_path / "out.partial" / begun).is_dir()
    assert plain(adapt(request(table, bert_folder), tmp_path / "out", resume=True)) == plain(whole)
    assert not list(tmp_path.glob("*.partial"))


def test_a_full_disk_ends_in_one_line_and_leaves_no_output(table, bert_folder, tmp_path, monkeypatch):
    def full(*values: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    done = run("adapt", table, "--column", "2", "--backbone", bert_folder, "--output", tmp_path / "out")
    refused(done, 3, "cannot be written", "free some space")
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_short_form_or_json(table, bert_folder, tmp_path):
    words = (table, "--column", 2, "--label", 1, "--backbone", bert_folder, "--output", tmp_path / "out", "--minutes")
    done = ran("adapt", *words, 0.0001)
    assert "400 texts" in done.stdout
    again = run("adapt", *words, 0.0001, "--overwrite", "--json")
    assert json.loads(again.stdout)["chosen"] == "start"
    (tmp_path / "out" / "mine.txt").write_text("keep")
    refused(run("adapt", *words, 0.0001, "--overwrite"), 3, "mine.txt")


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("", (), "no text in it"),
        ("".join(f"text number {number}\n" for number in range(10)), (), "needs at least 320 different texts"),
        ("".join(f"{number}\t{text}\n" for number, (_, text) in enumerate(texts(400))), (2, 1), "are all different"),
        ("".join(f"thing {number}\n" for number in range(400)), (), "nothing can be measured on texts of one or two"),
    ],
)
def test_texts_that_cannot_be_adapted_to_are_refused_in_one_line(bert_folder, tmp_path, content, words, message):
    file = tmp_path / ("texts.tsv" if words else "texts.txt")
    file.write_text(content)
    columns = ("--column", words[0], "--labels", words[1]) if words else ()
    done = run("adapt", file, *columns, "--backbone", bert_folder, "--output", tmp_path / "out")
    refused(done, 3, message)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("minutes", ["0", "nan"])
def test_minutes_that_no_run_can_take_are_refused(table, tmp_path, minutes):
    done = run("adapt", table, "--column", 2, "--output", tmp_path / "out", "--minutes", minutes)
    refused(done, 3, f"--minutes is {float(minutes)}; give a number above 0")
    assert not (tmp_path / "out").exists()
