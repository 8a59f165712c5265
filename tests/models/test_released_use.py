"""Released checkpoints in use: by hub id without a network, by every command, in the app, and in the ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run
from conftest import SENTENCES
from huggingface_hub import constants
from released import into_cache, release

import cse
from cse.app.models.models import Failure, Models
from cse.app.state.corpora import index_columns
from cse.errors import ArtefactError
from cse.models.names import PUBLISHED_IDS, Kind, resolve

Cached = Callable[[Path, str], None]


@pytest.fixture
def cached() -> Iterator[Cached]:
    """Puts folders into the cache of the hub's client, which is the tests' own, and takes them out again."""
    cache = Path(constants.HF_HUB_CACHE)
    assert "cse-tests-" in str(cache)
    yield lambda folder, model: into_cache(folder, cache, model)
    shutil.rmtree(cache, ignore_errors=True)


def test_a_published_id_in_the_cache_opens_without_a_network(
    bert_folder: Path, roberta_folder: Path, tmp_path: Path, cached: Cached
) -> None:
    for name, backbone, converted in (
        ("princeton-nlp/sup-simcse-bert-base-uncased", bert_folder, True),
        ("royokong/unsup-PromptRoBERTa", roberta_folder, False),
        ("YuxinJiang/unsup-promcse-bert-base-uncased", bert_folder, False),
    ):
        family = PUBLISHED_IDS[name].name
        folder = release(tmp_path / family, backbone, family, converted=converted, binary=True)
        cached(folder, name)
        reference = resolve(name)
        assert (reference.kind, reference.name, reference.family) == (Kind.PUBLISHED, name, family)
        assert reference.label == name.partition("/")[2]
        opened, expected = cse.load(name), cse.load(str(folder), family=family)
        np.testing.assert_array_equal(opened.encode(SENTENCES), expected.encode(SENTENCES))
        assert opened.fingerprint == expected.fingerprint
    with pytest.raises(ValueError, match="is published as simcse-supervised, not as promptbert; leave out `family`"):
        resolve("princeton-nlp/sup-simcse-bert-base-uncased", family="promptbert")
    cached(release(tmp_path / "mine", bert_folder, "simcse"), "someone/my-simcse")
    with pytest.raises(ArtefactError, match="give `family`"):
        resolve("someone/my-simcse")
    assert resolve("someone/my-simcse", family="simcse").family == "simcse"


def test_every_command_and_the_app_read_a_folder_alike(bert_folder: Path, sts: Path, tmp_path: Path) -> None:
    family = "promcse"
    folder = str(release(tmp_path / "model", bert_folder, family))
    vectors = cse.load(folder, family=family).encode(SENTENCES)
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    named = ("--model", folder, "--family", family)
    done = run("encode", *named, "--input", tmp_path / "text.txt", "--output", tmp_path / "x.npy")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), vectors)
    results = tmp_path / "results.json"
    done = run("evaluate", "sts", *named, "--model", "promptbert", "--data", sts, "--json", results)
    assert done.exit_code == 0, done.output
    record = json.loads(results.read_text())["models"]["model"]
    assert (record["family"], record["key"]) == (family, f"{folder} {family}")
    done = run("build_index", tmp_path / "text.txt", *named, "--output", tmp_path / "index")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "index" / "manifest.json").read_text())["family"] == family
    result = run("search", tmp_path / "index", SENTENCES[2], "-k", 1)  # opened again as it was recorded
    assert SENTENCES[2] in result.stdout, result.output
    assert (
        run(
            "build_index", tmp_path / "text.txt", "--model", folder, "--output", tmp_path / "index", "--append"
        ).exit_code
        == 0
    )
    refused(run("tokens", *named, "the dog"), 4, "no masked-language-model head")
    from index.manifest import read_manifest

    models = Models(["simcse", folder], family)
    assert index_columns({tmp_path / "index": read_manifest(tmp_path / "index")}, models).keys() == {models.columns[1]}
    answers = models.apply(lambda column, encoder: encoder.encode(SENTENCES))
    assert not [answer for answer in answers.values() if isinstance(answer, Failure)]
    np.testing.assert_array_equal(answers["model"], vectors)


def test_published_stands_for_every_id_and_says_what_is_missing(
    bert_folder: Path, sts: Path, tmp_path: Path, cached: Cached, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run("evaluate", "sts", "--model", "published", "--data", sts)
    refused(missing, 4, "hub, which cannot be reached", "19 of its 19", "royokong/sup-PromptBERT")
    names = ("princeton-nlp/unsup-simcse-bert-base-uncased", "princeton-nlp/sup-simcse-bert-base-uncased")
    for name in names:
        family = PUBLISHED_IDS[name].name
        cached(release(tmp_path / family, bert_folder, family, converted=True, binary=True), name)
    monkeypatch.setattr("cse.evaluation.evaluated_models.PUBLISHED_IDS", {name: PUBLISHED_IDS[name] for name in names})
    done = run("evaluate", "sts", "--model", "published", "--data", sts)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    labels = [name.partition("/")[2] for name in names]
    assert [line[0] for line in lines[1:]] == [labels[0], "published", labels[1], "published"]
    assert (lines[2][-1], lines[4][-1]) == ("76.25", "81.58")
    options = ("published", "sts", "--data", sts.parent, "--output", tmp_path / "out", "--only", "simcse-bert-base")
    dry = run("reproduce", *options, "--dry-run")
    assert f"scripts.evaluate sts --model {names[0]} --data" in dry.stdout.splitlines()[0]
    ledger = run(
        "reproduce", "published", "sts", "--data", sts.parent, "--output", tmp_path / "out", "--only", "royokong"
    )
    assert ledger.exit_code == 0, ledger.output
    assert ledger.stdout.count("needs the model hub, or the checkpoint in its cache") == 4
    assert "78.87" in ledger.stdout


def test_a_pooling_reads_what_may_be_a_checkpoint_and_a_wrong_family_is_refused(
    bert_folder: Path, sts: Path, tmp_path: Path, cached: Cached
) -> None:
    folder = release(tmp_path / "model", bert_folder, "simcse", converted=True)
    name = "princeton-nlp/unsup-simcse-bert-base-uncased"
    cached(folder, name)
    common = ("evaluate", "sts", "--data", sts, "--model")
    done = run(*common, folder, "--pooling", "mean", "--pooling", "pooler", "--model", name)
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()[1:4]] == [
        "model-mean", "model-pooler", "unsup-simcse-bert-base-uncased",
    ]  # fmt: skip
    refused(run(*common, folder), 4, "give --family", "--pooling")
    refused(run(*common, name, "--family", "simcse-supervised"), 3, "is published as simcse", "leave out --family")
    refused(run(*common, folder, "--family", "promptBERT"), 3, "unknown family 'promptBERT'; choose from simcse")


def test_a_released_simcse_is_a_backbone_to_train(bert_folder: Path, tmp_path: Path) -> None:
    folder = release(tmp_path / "model", bert_folder, "simcse", converted=True, binary=True)
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    common = ("--data", tmp_path / "text.txt", "--max-steps", 1, "--precision", "no")
    done = run("train", "simcse", "--backbone", folder, "--output", tmp_path / "out", *common)
    assert done.exit_code == 0, done.output
    assert cse.load(str(tmp_path / "out")).encode("a dog").shape == (32,)
    (tmp_path / "dev.tsv").write_text("".join(f"{i}\t{SENTENCES[i]}\t{SENTENCES[-i]}\n" for i in range(5)))
    outputs = [
        run("search_templates", "--model", model, "--dev", tmp_path / "dev.tsv", *more).stdout
        for model, *more in ((bert_folder,), (folder,), (folder, "--family", "simcse"))
    ]
    assert "[X] means [MASK] ." in outputs[0]
    assert outputs[0] == outputs[1] == outputs[2]  # the layers are the same
    promcse = release(tmp_path / "promcse", bert_folder, "promcse")
    refused(run("train", "simcse", "--backbone", promcse, "--output", tmp_path / "no", *common), 4, "prefix_encoder")
