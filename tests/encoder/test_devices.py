"""Devices and precisions: what is there is taken, what is not is refused, and how near bfloat16 is."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from bf16 import openvino_has_bf16
from command_line import run
from conftest import SENTENCES
from encoders import DISTINCT, make

import cse
from cse.encoder import devices
from cse.encoder.devices import available, best_device, computes_in_bf16, device_of, in_precision
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.models import loading


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


@pytest.mark.parametrize("device", ["cuda:0", "gpu"])
def test_a_device_that_is_not_there_is_refused_in_a_line(accelerator, bert_folder, device):
    accelerator(None)
    with pytest.raises(ValueError, match=f"^`device` is '{device}', which is not available; choose from cpu$"):
        cse.load(str(bert_folder), device=device, backend="torch")


def test_a_variable_of_the_environment_is_named_where_it_is_wrong(accelerator, monkeypatch, bert_folder):
    accelerator(None)
    for name in ("CSE_DEVICE", "CSE_BACKEND"):
        with monkeypatch.context() as changed:
            changed.setenv(name, "tpu")
            with pytest.raises(ValueError, match=f"^{name} is 'tpu'"):
                cse.load(str(bert_folder))


def test_a_driver_without_pytorch_is_no_gpu(monkeypatch, bert_folder):
    monkeypatch.setattr(loading, "gpu_is_possible", lambda: True)
    monkeypatch.setattr(loading, "find_spec", lambda name: None if name == "torch" else find_spec(name))
    monkeypatch.setattr(loading, "best_device", lambda: pytest.fail("PyTorch was asked"))
    assert cse.load(str(bert_folder)).backend == "openvino"


def test_what_is_no_name_is_refused_with_the_choices():
    with pytest.raises(ArtefactError, match=r"^model is None, not a name; choose simcse, "):
        cse.load(None, backend="torch")  # type: ignore[arg-type]


def test_auto_is_bf16_where_the_processor_is_fast_at_it(monkeypatch):
    for names, fast in ((["AVX2"], False), (["AVX2", "AVX512-BF16"], True), (["AMX"], True), ([], False)):
        monkeypatch.setattr(devices, "extensions", lambda names=names: names)
        assert [computes_in_bf16(word, "cpu") for word in ("auto", "no", "bf16")] == [fast, False, True]
    with pytest.raises(ValueError, match="`precision` is 'half'; choose from auto, no, bf16, int8"):
        computes_in_bf16("half", "cpu")


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
    vectors = []
    for words in ((), ("--precision", "bf16")):
        assert run("encode", *options, *words).exit_code == 0
        vectors.append(np.load(tmp_path / "v.npy"))
    np.testing.assert_array_equal(vectors[0], cse.load(str(bert_folder)).encode(SENTENCES))
    assert np.abs(vectors[0] - vectors[1]).max() < 0.1
    assert not (openvino_has_bf16() and np.array_equal(*vectors))
