"""Methods, losses and training steps on a GPU that is not there: a tensor that stays on the CPU raises.

Fake tensors have a shape, a dtype and a device but no values, so a pass over them needs no GPU. Mixing devices raises
as it does on a GPU. Values cannot be read and a backward pass does not run, so a training step ends where that begins.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from encoders import IN_FAMILIES, make
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from training_runs import run_of

from cse.encoder.torch_encoder import TorchEncoder
from cse.training import pretraining as pretraining
from cse.training import step
from cse.training.loop import TrainingLoop
from cse.training.losses import MomentumQueue

GPU = torch.device("cuda:0")
GUARDS, CUDA, META = "_ZN3c104impl26device_guard_impl_registryE", 1, 14  # c10's registry by device type
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the registry has another name there")


@pytest.fixture
def mode() -> Iterator[FakeTensorMode]:
    """A mode in which tensors can be made on `GPU`, to be entered for what a GPU is to compute.

    A CPU build of PyTorch has no guard that switches between GPUs, without which a tensor on one cannot be indexed;
    that of the meta device switches nothing.
    """
    guards = (ctypes.c_void_p * (META + 1)).in_dll(ctypes.CDLL(torch._C.__file__), GUARDS)
    before = guards[CUDA]
    guards[CUDA] = before or guards[META]
    yield FakeTensorMode()
    guards[CUDA] = before


def on_gpu(module: Any, mode: FakeTensorMode) -> Any:
    """The module with its parameters and buffers on `GPU`, tied ones still tied."""
    moved: dict[int, torch.Tensor] = {}

    def move(tensor: torch.Tensor) -> torch.Tensor:
        with unset_fake_temporarily():
            fake = mode.from_tensor(tensor.detach())
        with mode:
            fake = fake.to(GPU)
        return nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake

    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and tensor.device != GPU:
                    if id(tensor) not in moved:
                        moved[id(tensor)] = move(tensor)
                    tensors[name] = moved[id(tensor)]
    return module


class BackwardPass(Exception):
    """A step has reached its backward pass, with this loss."""


def backward(loss: torch.Tensor) -> None:
    raise BackwardPass(loss)


def accelerator(mode: FakeTensorMode) -> Any:
    """One process on `GPU`, as a training loop sees it."""
    return SimpleNamespace(
        device=GPU, num_processes=1, process_index=0, mixed_precision="no", autocast=nullcontext, backward=backward,
        gather=lambda tensor: tensor, unwrap_model=lambda model: model,
        prepare=lambda model, optimizer: (on_gpu(model, mode), optimizer),
    )  # fmt: skip


@pytest.fixture
def step_loss(monkeypatch: pytest.MonkeyPatch, mode: FakeTensorMode) -> Callable[..., torch.Tensor]:
    """The loss that the backward pass of an encoder's first training step gets.

    A step reads values where it masks tokens, which it does on the CPU, and to see how full the momentum queue is.
    """
    masked_rows = step.masked_rows

    def masked_outside(*arguments: Any) -> Any:
        with unset_fake_temporarily():
            return masked_rows(*arguments)

    monkeypatch.setattr(step, "masked_rows", masked_outside)
    monkeypatch.setattr(MomentumQueue, "negatives", lambda queue: queue.vectors.clone())
    monkeypatch.setattr(TorchEncoder, "to", lambda encoder, device: on_gpu(encoder, mode))

    def loss(encoder: TorchEncoder, **settings: Any) -> torch.Tensor:
        with mode:
            loop = TrainingLoop.start(encoder, run_of(encoder, **settings), Path(), accelerator(mode))
        data = loop.data(0)
        with mode, pytest.raises(BackwardPass) as reached:
            loop.step(0, data)
        return reached.value.args[0]

    return loss


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_every_method_takes_a_training_step(open_backbone, family, name, supervised, step_loss):
    loss = step_loss(make(open_backbone(family), name, supervised))
    assert (loss.device, loss.shape, loss.requires_grad) == (GPU, (), True)
