"""Weights cut into files below a size: the same numbers, and a clear refusal where rows are missing."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from pretraining_runs import CONFIG, run_pretraining, write_corpus
from transformers import AutoModelForMaskedLM

from cse.backbones.backbone import load_backbone
from cse.errors import ArtefactError
from cse.storage import parts
from cse.storage.weights import find_weights, read_arrays, stored_keys

TENSORS = {"table": torch.arange(70.0).reshape(10, 7), "bias": torch.arange(7.0), "none": torch.zeros(0, 7)}
LIMIT = 3 * 7 * 4  # bytes of three rows


def write(folder: Path) -> Path:
    folder.mkdir()
    parts.save_parts(TENSORS, folder, LIMIT)
    return folder


def test_parts_hold_whole_rows_in_files_below_the_limit_and_join_to_the_same_tensors(tmp_path: Path) -> None:
    cut = parts.split(TENSORS, LIMIT)
    assert {name: len(part) for name, part in cut.items()} == {
        "table.rows0": 3, "table.rows3": 3, "table.rows6": 3, "table.rows9": 1, "bias": 7, "none": 0,
    }  # fmt: skip
    files = find_weights(str(write(tmp_path / "model")))
    assert len(files) > 3
    assert all(sum(tensor.nbytes for tensor in load(file).values()) <= LIMIT for file in files)
    assert stored_keys(files) == TENSORS.keys()
    joined = read_arrays(files)
    assert joined.keys() == TENSORS.keys()
    assert all(np.array_equal(joined[name], tensor) for name, tensor in TENSORS.items())


def load(file: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(file)


def test_missing_rows_and_missing_files_are_refused(tmp_path: Path) -> None:
    cut = parts.split(TENSORS, LIMIT)
    with pytest.raises(ArtefactError, match="table: rows 3 to 6 are missing; copy or train it again"):
        parts.join({name: part for name, part in cut.items() if name != "table.rows3"})
    folder = write(tmp_path / "model")
    find_weights(str(folder))[0].unlink()
    with pytest.raises(ArtefactError, match=r"no parts-0000.*safetensors; copy or train it again"):
        find_weights(str(folder))
    with pytest.raises(ValueError, match="a row of table has more than 20 bytes; give a larger `file_size`"):
        parts.split(TENSORS, 20)


def test_a_pretrained_model_in_parts_opens_as_the_whole_one_and_transformers_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open with rows of chance in place of missing ones would be the worst answer."""
    corpus = write_corpus(tmp_path)
    run_pretraining(corpus, tmp_path / "whole", CONFIG)
    assert AutoModelForMaskedLM.from_pretrained(tmp_path / "whole" / "model").config.hidden_size == CONFIG.hidden
    shutil.copytree(tmp_path / "whole", tmp_path / "parts")
    monkeypatch.setattr("cse.pretraining.output.MEGABYTE", 1000)
    shutil.rmtree(tmp_path / "parts" / "model")  # the state is of the last step, so nothing is trained again
    run_pretraining(corpus, tmp_path / "parts", CONFIG, resume=True, file_size=2)
    files = find_weights(str(tmp_path / "parts" / "model"))
    assert len(files) > 2
    assert max(sum(tensor.nbytes for tensor in load(file).values()) for file in files) <= 2000
    whole, whole_tokenizer = load_backbone(tmp_path / "whole" / "model")
    opened, tokenizer = load_backbone(tmp_path / "parts" / "model")
    assert tokenizer.get_vocab() == whole_tokenizer.get_vocab()
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), opened.parameters(), strict=True))
    with pytest.raises(OSError, match="no file named"):
        AutoModelForMaskedLM.from_pretrained(tmp_path / "parts" / "model")
