"""Released checkpoints in odd states and in use: by hub id without a network, by every command, in the app."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import ran, refused, run
from conftest import SENTENCES
from huggingface_hub import constants
from released import into_cache, linear, noise, release, trainer_keys, write
from transformers import AutoModelForMaskedLM

import cse
from cse.app.corpus.corpora import index_columns
from cse.app.models.models import Failure, Models
from cse.errors import ArtefactError
from cse.models.names import PUBLISHED_IDS, Kind, resolve
from index.manifest import read_manifest

Tensors = dict[str, torch.Tensor]
WIDTH = 32


def changed(**new: torch.Tensor | None) -> Callable[[Tensors], Tensors]:
    """A change of tensors by key, `__` for a dot; None takes one away."""
    named = {key.replace("__", "."): value for key, value in new.items()}

    def change(tensors: Tensors) -> Tensors:
        return {key: value for key, value in {**tensors, **named}.items() if value is not None}

    return change


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("promcse", changed(prefix_encoder__embedding__weight=None), "no prefix_encoder.embedding.weight"),
        ("promcse-supervised", changed(mlp__dense__weight=None), "its head lacks mlp.dense.weight"),
        ("simcse", changed(bert__encoder__layer__1__output__dense__weight=None), "lacks weights.*layer.1"),
        ("simcse", changed(adapter__weight=noise(1, 2)), "unknown weight 'adapter.weight'"),
        ("conpvp", changed(endp=noise(1, 4, 8)), r"endp is \(4, 8\), not \(4, 32\)"),
    ],
)
def test_tensors_that_are_missing_misshapen_or_unknown_are_refused_by_name(
    family, change, message, bert_folder, tmp_path
):
    folder = write(tmp_path / "model", bert_folder, change(trainer_keys(bert_folder, family)))
    with pytest.raises(ArtefactError, match=message):
        cse.load(str(folder), family=family, backend="torch")


def test_keys_decide_and_what_contradicts_them_is_refused(bert_folder, tmp_path):
    for family in ("conpvp", "optiprompt", "esimcse", "promptbert-supervised"):
        reference = resolve(str(release(tmp_path / family, bert_folder, family)))
        assert (reference.kind, reference.family, reference.pooling) == (Kind.PUBLISHED, family, None)
    promcse = str(release(tmp_path / "promcse", bert_folder, "promcse"))
    with pytest.raises(ValueError, match=r"only promcse or promcse-supervised has prefix_encoder.*, not simcse"):
        resolve(promcse, family="simcse")
    with pytest.raises(ArtefactError, match="may be of promcse or promcse-supervised; give one of them as `family`"):
        resolve(promcse)
    with pytest.raises(ValueError, match=r"is a promcse checkpoint .*leave out `pooling`"):
        resolve(promcse, "mean")


@pytest.mark.parametrize("converted", [False, True])
def test_a_head_that_nothing_explains_asks_for_the_family(bert_folder, tmp_path, converted):
    folder = str(release(tmp_path / "model", bert_folder, "simcse", converted=converted))
    with pytest.raises(ArtefactError, match=r"its (mlp|pooler)\.dense\.bias may be a trained head.*give `family`"):
        cse.load(folder, backend="torch")
    mean = cse.load(folder, "mean", backend="torch").encode(SENTENCES)
    np.testing.assert_allclose(mean, cse.load(str(bert_folder), backend="torch").encode(SENTENCES), atol=1e-6)


def test_a_plain_backbone_is_one_whatever_pretraining_left_in_it(bert_folder, tmp_path):
    """BERT's own files: its pooler, the next-sentence head, a buffer of positions."""
    tensors = dict(AutoModelForMaskedLM.from_pretrained(bert_folder).state_dict())
    tensors |= linear("bert.pooler", WIDTH, 3) | {"cls.seq_relationship.weight": noise(4, 2, WIDTH)}
    tensors |= {"bert.embeddings.position_ids": torch.arange(80)[None]}
    expected = cse.load(str(bert_folder), backend="torch").encode(SENTENCES)
    for binary in (False, True):
        encoder = cse.load(
            str(write(tmp_path / f"plain-{binary}", bert_folder, tensors, binary=binary)), backend="torch"
        )
        assert encoder.method.name == "mean"
        np.testing.assert_array_equal(encoder.encode(SENTENCES), expected)


class Harmful:
    def __reduce__(self) -> tuple:
        return (print, ("this ran",))


def test_files_that_could_run_code_or_hold_no_tensors_are_refused(bert_folder, tmp_path, capsys):
    folder = write(tmp_path / "model", bert_folder, {}, binary=True)
    file = folder / "pytorch_model.bin"
    for content, message in ((Harmful(), "holds more than tensors"), ([torch.zeros(2)], "something other than named")):
        torch.save(content, file)
        with pytest.raises(ArtefactError, match=message):
            cse.load(str(folder), family="simcse", backend="torch")
    file.write_bytes(pickle.dumps(Harmful(), protocol=2))  # as files were before torch 1.6
    with pytest.raises(ArtefactError, match="holds more than tensors"):
        cse.load(str(folder), family="simcse", backend="torch")
    assert "this ran" not in capsys.readouterr().out
    file.write_bytes(b"cut off")
    with pytest.raises(ArtefactError, match=r"pytorch_model\.bin: (damaged|holds more)"):
        cse.load(str(folder), family="simcse", backend="torch")


Cached = Callable[[Path, str], None]


@pytest.fixture
def cached() -> Iterator[Cached]:
    """Puts folders into the cache of the hub's client, which is the tests' own, and takes them out again."""
    cache = Path(constants.HF_HUB_CACHE)
    assert "cse-tests-" in str(cache)
    yield lambda folder, model: into_cache(folder, cache, model)
    shutil.rmtree(cache, ignore_errors=True)


def test_every_command_and_the_app_read_a_folder_alike(bert_folder, sts, tmp_path):
    family = "promcse"
    folder = str(release(tmp_path / "model", bert_folder, family))
    vectors = cse.load(folder, family=family).encode(SENTENCES)
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    named = ("--model", folder, "--family", family)
    ran("encode", *named, "--input", tmp_path / "text.txt", "--output", tmp_path / "x.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), vectors)
    results = tmp_path / "results.json"
    ran("evaluate", "sts", *named, "--model", "promptbert", "--data", sts, "--json", results)
    record = json.loads(results.read_text())["models"]["model"]
    assert (record["family"], record["key"]) == (family, f"{folder} {family}")
    ran("build_index", tmp_path / "text.txt", *named, "--output", tmp_path / "index")
    assert json.loads((tmp_path / "index" / "manifest.json").read_text())["family"] == family
    result = run("search", tmp_path / "index", SENTENCES[2], "-k", 1)  # opened again as it was recorded
    assert SENTENCES[2] in result.stdout, result.output
    refused(run("tokens", *named, "the dog"), 4, "no masked-language-model head")

    models = Models(["simcse", folder], family)
    assert index_columns({tmp_path / "index": read_manifest(tmp_path / "index")}, models).keys() == {models.columns[1]}
    answers = models.apply(lambda column, encoder: encoder.encode(SENTENCES))
    assert not [answer for answer in answers.values() if isinstance(answer, Failure)]
    np.testing.assert_array_equal(answers["model"], vectors)


def test_published_stands_for_every_id_and_says_what_is_missing(bert_folder, sts, tmp_path, cached, monkeypatch):
    missing = run("evaluate", "sts", "--model", "published", "--data", sts)
    refused(missing, 4, "hub, which cannot be reached", "19 of its 19", "royokong/sup-PromptBERT")
    names = ("princeton-nlp/unsup-simcse-bert-base-uncased", "princeton-nlp/sup-simcse-bert-base-uncased")
    for name in names:
        family = PUBLISHED_IDS[name].name
        cached(release(tmp_path / family, bert_folder, family, converted=True, binary=True), name)
    monkeypatch.setattr("cse.evaluation.harness.PUBLISHED_IDS", {name: PUBLISHED_IDS[name] for name in names})
    done = ran("evaluate", "sts", "--model", "published", "--data", sts)
    lines = [line.split() for line in done.stdout.splitlines()]
    labels = [name.partition("/")[2] for name in names]
    assert [line[0] for line in lines[1:]] == [labels[0], "published", labels[1], "published"]
    assert (lines[2][-1], lines[4][-1]) == ("76.25", "81.58")


def test_a_released_simcse_is_a_backbone_to_train(bert_folder, tmp_path):
    folder = release(tmp_path / "model", bert_folder, "simcse", converted=True, binary=True)
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    common = ("--data", tmp_path / "text.txt", "--max-steps", 1, "--precision", "no")
    ran("train", "simcse", "--backbone", folder, "--output", tmp_path / "out", *common)
    assert cse.load(str(tmp_path / "out")).encode("a dog").shape == (32,)
    promcse = release(tmp_path / "promcse", bert_folder, "promcse")
    refused(run("train", "simcse", "--backbone", promcse, "--output", tmp_path / "no", *common), 4, "prefix_encoder")
