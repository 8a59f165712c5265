"""Devices: the best one that is here is taken, one that is not is refused with those that are."""

from pathlib import Path
from typing import Any

import pytest
import torch

import cse
from cse.encoder.devices import available, best_device, device_of
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine whose accelerator PyTorch calls by a name, None where it has none."""

    def is_here(kind: str | None, count: int = 1) -> None:
        device = None if kind is None else torch.device(kind)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: device)
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: count)

    monkeypatch.delenv("CSE_DEVICE", raising=False)
    return is_here


@pytest.mark.parametrize(("kind", "expected"), [(None, "cpu"), ("cuda", "cuda"), ("mps", "mps")])
def test_a_gpu_that_is_there_is_chosen(
    accelerator: Any, monkeypatch: pytest.MonkeyPatch, bert_folder: Path, kind: str | None, expected: str
) -> None:
    accelerator(kind)
    assert best_device() == torch.device(expected)
    assert available() == ["cpu", *([kind] if kind else [])]
    places = []
    monkeypatch.setattr(TorchEncoder, "to", lambda self, device: places.append(device))
    cse.load(str(bert_folder), backend="torch")
    monkeypatch.setenv("CSE_DEVICE", "cpu")
    cse.load(str(bert_folder), backend="torch")
    assert places == [torch.device(expected), torch.device("cpu")]


def test_a_number_counts_the_gpus_that_are_there(accelerator: Any) -> None:
    accelerator("cuda", 2)
    assert device_of("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"^`device` is 'cuda:2', which is not available; choose from cpu, cuda$"):
        device_of("cuda:2")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps", "gpu", 3])
def test_a_device_that_is_not_there_is_refused_in_a_line(accelerator: Any, bert_folder: Path, device: Any) -> None:
    accelerator(None)
    message = f"^`device` is '{device}', which is not available; choose from cpu$"
    with pytest.raises(ValueError, match=message):
        cse.load(str(bert_folder), device=device, backend="torch")
    with pytest.raises(ValueError, match=message):
        cse.load(str(bert_folder), device="cpu", backend="torch").encode("a dog", device=device)


def test_a_wrong_variable_is_named(accelerator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator(None)
    monkeypatch.setenv("CSE_DEVICE", "tpu9")
    with pytest.raises(ValueError, match=r"^CSE_DEVICE is 'tpu9', which is not available"):
        best_device()


@pytest.mark.parametrize("model", [3, None, ["simcse"], b"simcse"])
def test_what_is_no_name_is_refused_with_the_choices(model: Any) -> None:
    with pytest.raises(ArtefactError, match=r"^model is .*, not a name; choose simcse, .* or a hub id$"):
        cse.load(model, backend="torch")


def test_a_path_is_a_name(bert_folder: Path) -> None:
    assert cse.load(Path(bert_folder), backend="torch").name == cse.load(str(bert_folder), backend="torch").name  # type: ignore[arg-type]
