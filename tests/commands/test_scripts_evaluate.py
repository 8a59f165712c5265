"""`scripts.evaluate` on small sets: tables, results files that are gone on with, comparisons, and one-line errors."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from app_models import write_model
from command_line import ran, refused, run
from conftest import SENTENCES
from encoders import make
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

import cse
from cse.corpus.supervised import scored_pairs
from cse.evaluation.metrics import spearman
from cse.evaluation.retrieval import score
from cse.evaluation.sts import SETS
from cse.files.checksums import with_digest
from cse.files.writing import read_json, write_json
from cse.models.checkpoint import save
from cse.vectors import smoothed


def test_sts_prints_what_the_library_computes_and_the_average(bert_folder, sts):
    done = ran("evaluate", "sts", "--model", bert_folder, "--data", sts)
    head, line = done.stdout.splitlines()
    assert head.split() == [*SETS, "average"]
    encode = cse.load(str(bert_folder)).encode
    files = [sts / pattern.replace("*", "part") for pattern in SETS.values()]
    expected = [round(spearman(encode, scored_pairs(path)), 2) for path in files]
    *scores, average = map(float, line.split()[1:])
    assert scores == pytest.approx(expected, abs=0.006)
    assert average == pytest.approx(np.mean(expected), abs=0.006)
    ended = run("evaluate", "sts", "--model", bert_folder, "--data", sts, "--final-period").stdout.splitlines()[1]
    stopped = [round(spearman(lambda texts: encode([f"{text}." for text in texts]), scored_pairs(f)), 2) for f in files]
    assert list(map(float, ended.split()[1:-1])) == pytest.approx(stopped, abs=0.006)


def test_a_bare_checkpoint_is_the_vector_before_denoising_and_head(bert_folder, sts, tmp_path):
    encoder = make(str(bert_folder), "promptbert", True)
    save(encoder, tmp_path / "supervised", {})
    template = encoder.views[0][0]

    def raw(texts: list[str]) -> np.ndarray:
        return encoder.read(encoder.rows_of(texts, [template] * len(texts))).detach().numpy()

    encoder.eval()
    scores = {}
    for options in ([], ["--bare"]):
        done = ran("evaluate", "sts", "--model", tmp_path / "supervised", "--data", sts, "--json", "-", *options)
        (record,) = json.loads(done.stdout)["models"].values()
        scores[bool(options)] = record["scores"]["STS-B"]["spearman"]
    pairs = scored_pairs(sts / "STSB" / "test.tsv")
    assert scores[True] == pytest.approx(spearman(raw, pairs), abs=0.006)
    assert scores[False] == pytest.approx(spearman(encoder.encode, pairs), abs=0.006)
    assert scores[True] != scores[False]


def test_poolings_multiply_plain_backbones_and_leave_checkpoints_alone(roberta_folder, sts, tmp_path):
    mine = write_model(tmp_path / "mine", roberta_folder, "simcse")
    done = ran(
        "evaluate", "sts", "--model", roberta_folder, "--model", mine, "--pooling", "cls", "--pooling", "top-tokens",
        "--data", sts, "--json", "-",
    )  # fmt: skip
    assert list(json.loads(done.stdout)["models"]) == ["roberta-cls", "roberta-prompt+top200", "mine"]


def test_a_results_file_is_gone_on_with_and_kept_for_another_protocol(bert_folder, sts, tmp_path):
    path = tmp_path / "results.json"
    options = ("--model", bert_folder, "--data", sts, "--json", path)
    assert run("evaluate", "sts", *options).exit_code == 0
    whole = json.loads(path.read_text())
    assert whole["models"]["bert-mean"]["versions"].keys() >= {"torch", "transformers"}
    cut = json.loads(path.read_text())
    cut["models"]["bert-mean"]["scores"] = {"STS12": {"spearman": 12.34, "pairs": 10}}  # as an interruption leaves it
    path.write_text(json.dumps(cut))
    refused(run("evaluate", "sts", *options), 3, f"{path}: damaged or edited", "overwrite")
    path.write_text(json.dumps(with_digest(cut)))
    again = run("evaluate", "sts", *options)
    assert "STS12  spearman" not in again.stderr
    assert "STS13  spearman" in again.stderr
    scores = json.loads(path.read_text())["models"]["bert-mean"]["scores"]
    assert scores == {**whole["models"]["bert-mean"]["scores"], "STS12": {"spearman": 12.34, "pairs": 10}}
    refused(run("evaluate", "sts", *options, "--final-period"), 3, "holds sts under", "overwrite")
    assert run("evaluate", "sts", *options, "--final-period", "--overwrite").exit_code == 0


def test_a_changed_text_of_the_same_name_is_another_protocol(bert_folder, sts, tmp_path):
    text, path = tmp_path / "wiki.txt", tmp_path / "results.json"
    text.write_text("\n".join(f"{a} and {b}" for a in SENTENCES for b in SENTENCES))
    call = ("evaluate", "geometry", "--model", bert_folder, "--data", sts, "--json", path, "--sentences", text)
    assert run(*call).exit_code == 0
    protocol = json.loads(path.read_text())["protocol"]
    assert protocol["sentences"] == f"wiki.txt {hashlib.sha256(text.read_bytes()).hexdigest()[:12]}"
    assert run(*call).exit_code == 0
    text.write_text("\n".join(reversed(text.read_text().splitlines()[1:])))
    refused(run(*call), 3, "holds geometry under", "wiki.txt", "overwrite")


def test_the_same_name_with_other_weights_is_scored_anew(bert_folder, roberta_folder, sts, tmp_path):
    path = tmp_path / "results.json"
    for source in (bert_folder, roberta_folder):
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        shutil.copytree(source, tmp_path / "model")
        assert run("evaluate", "sts", "--model", tmp_path / "model", "--data", sts, "--json", path).exit_code == 0
    first, second = json.loads(path.read_text())["models"].items()
    assert first[0] == "model-mean"
    assert second[0] == f"model-mean {second[1]['fingerprint']}"
    assert first[1]["scores"] != second[1]["scores"]


def test_a_model_with_another_prompt_or_dimension_is_scored_anew(bert_folder, tmp_path):
    data, path = tmp_path / "toy", tmp_path / "results.json"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text("".join(
        f"{json.dumps({'_id': f'd{number}', 'text': text})}\n" for number, text in enumerate(SENTENCES)
    ))  # fmt: skip
    (data / "queries.jsonl").write_text('{"_id": "q0", "text": "a cheese sandwich"}\n')
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td3\t1\n")
    modules = [Transformer(str(bert_folder)), Pooling(32, "mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "m"))
    calls = tmp_path / "m" / "config_sentence_transformers.json"
    for changes in ({}, {"prompts": {"query": "the dog of music "}}, {"truncate_dim": 2}):
        write_json(calls, {**read_json(calls), **changes})
        words = ("evaluate", "retrieval", "--model", tmp_path / "m", "--data", data)
        ran(*words, "--json", path)
        (expected,) = json.loads(ran(*words, "--json", "-").stdout)["models"].values()
        assert [*json.loads(path.read_text())["models"].values()][-1]["scores"] == expected["scores"]
    assert len(json.loads(path.read_text())["models"]) == 3
    (data / "queries.jsonl").write_text('{"_id": "q0", "text": "the old river"}\n')
    refused(run(*words, "--json", path), 3, "holds retrieval under", "overwrite")


def test_a_checkpoint_stands_beside_its_own_start_and_is_compared_with_it(bert_folder, sts, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    ran(
        "train", "simcse", "--backbone", bert_folder, "--data", tmp_path / "text.txt", "--output",
        tmp_path / "mine", "--learning-rate", 0.01, "--max-steps", 1,
    )  # fmt: skip
    done = ran(
        "evaluate", "sts", "--model", tmp_path / "mine", "--model", bert_folder, "--pooling", "cls", "--data", sts,
        "--start", "--compare", "--json", tmp_path / "r.json",
    )  # fmt: skip
    _, mine, start, untrained, *compared = done.stdout.splitlines()
    assert (mine.split()[0], start[:32].strip()) == ("mine", "before training (mine-start)")
    assert start.split()[3:] == untrained.split()[1:] != mine.split()[1:]  # SimCSE's start is the untrained [CLS]
    assert [line.partition(",")[0] for line in compared] == ["mine minus bert-cls", "mine minus mine-start"]
    models = json.loads((tmp_path / "r.json").read_text())["models"]
    assert [record.get("start", False) for record in models.values()] == [False, True, False]


def test_geometry_shows_its_numbers_cumulative_removal_and_draws(bert_folder, sts, tmp_path):
    done = ran("evaluate", "geometry", "--model", bert_folder, "--data", sts, "--figures", tmp_path / "figures")
    head, line, _, rungs, removal = done.stdout.splitlines()
    assert head.split() == ["anisotropy", "alignment", "uniformity", "separation", "K=0", "K=100"]
    assert line.split()[0] == "bert-mean"
    assert rungs.split()[2:] == ["static", "-Freq", "-Freq&Sub", "-Freq&Sub&Case", "-Freq&Sub&Case&Pun"]
    assert len(removal.split()) == 6
    drawn = sorted((tmp_path / "figures").iterdir())
    names = ["pairs.png", "removal.png", "similarity.png", "static-embeddings-bert-mean.png"]
    assert [path.name for path in drawn] == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_runs_that_differ_in_the_seed_get_mean_and_deviation(bert_folder, sts, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    for seed in (1, 2):
        ran(
            "train", "simcse", "--backbone", bert_folder, "--data", tmp_path / "text.txt", "--output",
            tmp_path / f"s{seed}", "--seed", seed, "--learning-rate", 0.01,
        )  # fmt: skip
    done = run("evaluate", "sts", "--model", tmp_path / "s1", "--model", tmp_path / "s2", "--data", sts)
    averages = [float(line.split()[-1]) for line in done.stdout.splitlines()[1:3]]
    twice = run("evaluate", "sts", "--model", tmp_path / "s1", "--model", tmp_path / "s1", "--data", sts)
    assert "seeds" not in twice.stdout
    mean, deviation = np.mean(averages), np.std(averages, ddof=1)
    assert done.stdout.splitlines()[3] == f"over 2 seeds: {mean:.2f} +- {deviation:.2f}  (s1, s2)"


def test_a_whitened_model_is_a_row_of_its_own(bert_folder, sts, tmp_path):
    (tmp_path / "fit.txt").write_text("\n".join(f"{a} and {b}" for a in SENTENCES for b in SENTENCES))
    words = ("--postprocess", "whitening", "--fit", tmp_path / "fit.txt", "--json", "-")
    done = ran("evaluate", "sts", "--model", bert_folder, "--data", sts, *words)
    assert list(json.loads(done.stdout)["models"]) == ["bert-mean+whitening"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--model", "simcsee"], 4, "no model 'simcsee' (did you mean simcse?); choose simcse"),
        (["--postprocess", "whitening", "--fit", "nowhere.txt"], 3, "nowhere.txt: no such file"),
        (["--model", "promptbert", "--pooling", "median"], 3, "unknown 'median'"),
        (["--bare"], 3, "read without head and denoising anyway; leave out --bare"),
    ],
)
def test_a_wrong_name_or_option_is_refused_before_the_first_model_is_scored(
    bert_folder, sts, tmp_path, monkeypatch, words, code, message
):
    monkeypatch.setattr("cse.encoder.encoder.Encoder.encode", lambda *arguments, **options: pytest.fail("was scored"))
    path = tmp_path / "results.json"
    done = run("evaluate", "sts", "--model", bert_folder, *words, "--data", sts, "--json", path)
    refused(done, code, message)
    assert not path.exists()


def test_a_model_that_fails_loses_no_row_of_the_others(bert_folder, roberta_folder, sts, tmp_path):
    shutil.copytree(bert_folder, tmp_path / "broken")
    weights = load_file(tmp_path / "broken" / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] = float("nan")
    save_file(weights, tmp_path / "broken" / "model.safetensors", {"format": "pt"})
    models = [word for folder in (bert_folder, tmp_path / "broken", roberta_folder) for word in ("--model", folder)]
    table, written = (run("evaluate", "sts", *models, "--data", sts, *words) for words in ([], ["--json", "-"]))
    for done in (table, written):
        refused(done, 3, "broken-mean gives vectors that are not finite")
        assert "failed: broken-mean; everything else is scored" in done.stderr
    assert [line.split()[0] for line in table.stdout.splitlines()] == ["STS12", "bert-mean", "roberta-mean"]
    scores = {name: len(record["scores"]) for name, record in json.loads(written.stdout)["models"].items()}
    assert scores == {"bert-mean": 7, "roberta-mean": 7}


def test_retrieval_smooths_documents_and_expands_queries(bert_folder, tmp_path):
    """Rankings by hand: documents smoothed, then each query mixed with its nearest of them."""
    data, path = tmp_path / "toy", tmp_path / "results.json"
    data.mkdir()
    (data / "corpus.tsv").write_text("".join(f"d{i}\t{text}\n" for i, text in enumerate(SENTENCES)))
    (data / "queries.tsv").write_text("q0\ta cheese sandwich\nq1\tthe old river\nq2\tmusic at night\n")
    (data / "qrels.tsv").write_text("q0\td0\t1\nq1\td3\t2\nq2\td5\t1\nq2\td1\t1\n")

    def scored(smooth: int, expand: int) -> dict[str, float]:
        def search(corpus: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
            stored = smoothed(corpus, smooth)
            mixed = []
            for query in queries / np.linalg.norm(queries, axis=1, keepdims=True):
                near = sorted(stored.tolist(), key=lambda one, query=query: -query @ one)[:expand]
                mixed.append(query + np.average(near, axis=0, weights=(near @ query) ** 3) if expand else query)
            return np.argsort(-np.array(mixed) @ stored.T, axis=1)[:, :k]

        return score(cse.load(bert_folder, "mean").encode, data, search)

    scores = []
    for options, smooth, expand in (
        (["--smooth", 2], 2, 2),
        (["--expand", 3], 0, 3),
    ):
        arguments = ["retrieval", "--model", bert_folder, "--pooling", "mean", "--data", data, "--json", path, *options]
        assert run("evaluate", *arguments, "--overwrite").exit_code == 0
        saved = json.loads(path.read_text())
        scores.append(next(iter(saved["models"].values()))["scores"]["toy"])
        assert scores[-1] == scored(smooth, expand)
        assert [saved["protocol"].get(name, 0) for name in ("smooth", "expand")] == [smooth, expand]
    assert scores[0] != scores[1]
    refused(run("evaluate", *arguments[:-2]), 3, "'expand': 3", "holds retrieval under")
