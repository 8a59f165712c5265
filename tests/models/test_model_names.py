"""The same name opens the same encoder everywhere; a wrong value in its files is a line, before anything is made."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path

import pytest
from conftest import SENTENCES
from transformers import BertModel

import cse
from cse.errors import ArtefactError


def with_config(source: Path, target: Path, **changes: object) -> Path:
    shutil.copytree(source, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **changes}))
    return target


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 3}, "asks for 3 layers, its weights have 2"),
        ({"vocab_size": 10**9}, "its vocab_size is 1,000,000,000"),
        ({"hidden_size": 142, "num_attention_heads": 1}, r"asks for [\d,]+ numbers, its weights have [\d,]+"),
    ],
    ids=str,
)
def test_sizes_beyond_the_weights_are_refused_before_a_module_is_built(
    bert_folder, tmp_path, monkeypatch, changes, message
):
    folder = with_config(bert_folder, tmp_path / "model", **changes)

    def built(*arguments: object, **options: object) -> None:
        raise AssertionError("a model of these sizes was made in memory")

    monkeypatch.setattr(BertModel, "from_pretrained", built)
    monkeypatch.setattr("transformers.BertForMaskedLM.from_pretrained", built)
    with pytest.raises(ArtefactError, match=message) as caught:
        cse.load(str(folder))
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


WRONG = (None, -1, 10**30, "abc", {"a": 1}, "DEEP")
DEEP = "[" * 100_000 + "]" * 100_000
KEYS = {  # in each file those of which some wrong value once ended in a traceback
    "config.json": ("num_attention_heads", "hidden_size", "layer_norm_eps", "cse", "model_type"),
    "tokenizer.json": ("added_tokens", "normalizer", "version", "model"),
    "tokenizer_config.json": ("tokenizer_class", "sep_token", "model_max_length"),
    "cse_checkpoint.json": ("backbone", "settings", "sha256", "format"),
    "cse_checkpoint.json method": ("views", "prefix", "pooling"),
}


@pytest.fixture(scope="module")
def checkpoint(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with every kind of file, without the checksums that would notice a change first."""
    folder = tmp_path_factory.mktemp("run") / "promptbert"
    cse.train(
        "promptbert", SENTENCES, output=folder, backbone=str(bert_folder), batch_size=2, max_steps=1, progress=False
    )
    record = json.loads((folder / "cse_checkpoint.json").read_text())
    kept = {key: value for key, value in record.items() if key not in ("sha256", "digest")}
    (folder / "cse_checkpoint.json").write_text(json.dumps(kept))
    return folder


@pytest.mark.parametrize("backend", ["torch", "auto"])
@pytest.mark.parametrize("section", KEYS)
def test_a_wrong_value_in_a_models_json_is_its_vectors_or_a_line(checkpoint, tmp_path, section, backend):
    """Any other error than these two would end a command in a traceback."""
    name, *inside = section.split()
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    text = (folder / name).read_text()
    for key, wrong in product(KEYS[section], WRONG):
        value = json.loads(text)
        within = value
        for step in inside:
            within = within[step]
        within[key] = wrong
        (folder / name).write_text(json.dumps(value).replace('"DEEP"', DEEP))
        try:
            assert cse.load(str(folder), backend=backend).encode("a man").shape == (32,)
        except (ValueError, OSError) as error:
            line = str(error)
            assert ("model" in line or "promptbert" in line, "\n" in line, len(line) < 900) == (True, False, True), line
