"""Devices and precisions: what is there is taken, what is not is refused, and how near bfloat16 is."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from bf16 import openvino_has_bf16
from command_line import refused, run
from conftest import SENTENCES
from encoders import DISTINCT, make

import cse
from cse.encoder import devices
from cse.encoder.devices import available, best_device, computes_in_bf16, device_of, in_precision
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.training.resume import start_accelerator


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
def test_a_gpu_that_is_there_is_chosen(accelerator, monkeypatch, bert_folder, kind, expected):
    accelerator(kind)
    assert best_device() == torch.device(expected)
    assert available() == ["cpu", *([kind] if kind else [])]
    places = []
    monkeypatch.setattr(TorchEncoder, "to", lambda self, device: places.append(device))
    cse.load(str(bert_folder), backend="torch")
    monkeypatch.setenv("CSE_DEVICE", "cpu")
    cse.load(str(bert_folder), backend="torch")
    assert places == [torch.device(expected), torch.device("cpu")]


def test_a_number_counts_the_gpus_that_are_there(accelerator):
    accelerator("cuda", 2)
    assert device_of("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"^`device` is 'cuda:2', which is not available; choose from cpu, cuda$"):
        device_of("cuda:2")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps", "gpu", 3])
def test_a_device_that_is_not_there_is_refused_in_a_line(accelerator, bert_folder, device):
    accelerator(None)
    message = f"^`device` is '{device}', which is not available; choose from cpu$"
    with pytest.raises(ValueError, match=message):
        cse.load(str(bert_folder), device=device, backend="torch")
    with pytest.raises(ValueError, match=message):
        cse.load(str(bert_folder), device="cpu", backend="torch").encode("a dog", device=device)


def test_a_wrong_variable_is_named(accelerator, monkeypatch):
    accelerator(None)
    monkeypatch.setenv("CSE_DEVICE", "tpu9")
    with pytest.raises(ValueError, match=r"^CSE_DEVICE is 'tpu9', which is not available"):
        best_device()


@pytest.mark.parametrize("model", [3, None, ["simcse"], b"simcse"])
def test_what_is_no_name_is_refused_with_the_choices(model):
    with pytest.raises(ArtefactError, match=r"^model is .*, not a name; choose simcse, .* or a hub id$"):
        cse.load(model, backend="torch")


def test_a_path_is_a_name(bert_folder):
    assert cse.load(Path(bert_folder), backend="torch").name == cse.load(str(bert_folder), backend="torch").name  # type: ignore[arg-type]


CPU = "cpu"


def test_auto_is_bf16_where_the_processor_is_fast_at_it(monkeypatch):
    for names, fast in ((["AVX2"], False), (["AVX2", "AVX512-BF16"], True), (["AMX"], True), ([], False)):
        monkeypatch.setattr(devices, "extensions", lambda names=names: names)
        assert [computes_in_bf16(word, CPU) for word in ("auto", "no", "bf16")] == [fast, False, True]
    with pytest.raises(ValueError, match="`precision` is 'half'; choose from auto, no, bf16, int8"):
        computes_in_bf16("half", CPU)


@pytest.mark.parametrize(("generation", "fast"), [(7, False), (8, True)])  # a T4 emulates bfloat16, an A100 has it
def test_auto_is_bf16_on_a_gpu_that_has_it_and_not_on_one_that_emulates_it(generation, fast, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(major=generation))
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    monkeypatch.setattr("accelerate.Accelerator", SimpleNamespace)
    device = "cuda:0"
    assert [computes_in_bf16(word, device) for word in ("auto", "no", "bf16")] == [fast, False, True]
    chosen = [start_accelerator(word).mixed_precision for word in ("auto", "no", "bf16")]
    assert chosen == ["bf16" if fast else "no", "no", "bf16"]


@pytest.mark.parametrize(("name", "supervised"), DISTINCT)
def test_every_method_encodes_in_bf16_and_gives_float32_that_are_near(bert_folder, name, supervised):
    encoder = make(str(bert_folder), name, supervised)
    exact = encoder.encode(SENTENCES)
    assert in_precision(encoder, "no") is encoder
    vectors = in_precision(encoder, "bf16").encode(SENTENCES)
    assert vectors.dtype == np.float32
    cosines = (vectors * exact).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(exact, axis=1)
    assert cosines.min() > 0.99
    assert not np.array_equal(vectors, exact)


def test_the_command_encodes_exactly_unless_it_is_asked(bert_folder, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    options = ("--model", bert_folder, "--input", tmp_path / "text.txt", "--output", tmp_path / "v.npy")
    by_option = {}
    for words in ((), ("--precision", "no"), ("--precision", "bf16")):
        assert run("encode", *options, *words).exit_code == 0
        by_option[words[-1:]] = np.load(tmp_path / "v.npy")
    np.testing.assert_array_equal(by_option[()], by_option["no",])
    assert np.abs(by_option[()] - by_option["bf16",]).max() < 0.1
    assert not (openvino_has_bf16() and np.array_equal(by_option[()], by_option["bf16",]))
    refused(run("encode", *options, "--precision", "fp8"), 2, "unknown precision", "bf16")
