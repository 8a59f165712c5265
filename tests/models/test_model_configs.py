"""A config.json that asks for more than its weights hold is refused before anything of that size is made."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import BertModel

import cse
from cse.backbones.backbone import load_backbone
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
        ({"num_hidden_layers": 1_000_000}, "its num_hidden_layers is 1,000,000, and no weights are larger than"),
        ({"vocab_size": 10**9}, "its vocab_size is 1,000,000,000"),
        ({"intermediate_size": 10**9}, "its intermediate_size is 1,000,000,000"),
        ({"max_position_embeddings": 1e12}, "its max_position_embeddings is 1,000,000,000,000"),
        ({"num_labels": 10**9}, "its num_labels is 1,000,000,000"),
        ({"hidden_size": 142, "num_attention_heads": 1}, r"asks for [\d,]+ numbers, its weights have [\d,]+"),
    ],
    ids=str,
)
def test_sizes_beyond_the_weights_are_refused_before_a_module_is_built(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict, message: str
) -> None:
    folder = with_config(bert_folder, tmp_path / "model", **changes)

    def built(*arguments: object, **options: object) -> None:
        raise AssertionError("a model of these sizes was made in memory")

    monkeypatch.setattr(BertModel, "from_pretrained", built)
    monkeypatch.setattr("transformers.BertForMaskedLM.from_pretrained", built)
    with pytest.raises(ArtefactError, match=message) as caught:
        cse.load(str(folder))
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_family_that_is_not_read_is_refused_before_a_module_is_built(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_config(bert_folder, tmp_path / "model", model_type="distilbert")
    monkeypatch.setattr("transformers.DistilBertForMaskedLM.__init__", lambda *arguments: pytest.fail("built"))
    with pytest.raises(ArtefactError, match="distilbert model is not supported"):
        load_backbone(folder)


@pytest.mark.parametrize("name", ["config.json", "modules.json", "config_sentence_transformers.json"])
def test_json_nested_without_end_is_damage(bert_folder: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(bert_folder, tmp_path / "model")
    if name.startswith("config_"):
        (tmp_path / "model" / "1_Pooling").mkdir()
        (tmp_path / "model" / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
        kinds = {"Transformer": "", "Pooling": "1_Pooling"}
        modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds.items()]
        (tmp_path / "model" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "model" / name).write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(ArtefactError, match=f"{name}.*damaged") as caught:
        cse.load(str(tmp_path / "model"))
    assert "\n" not in str(caught.value)
