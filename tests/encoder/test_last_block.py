"""The last block at one token: the states and gradients of the whole block there."""

from collections.abc import Callable

import pytest
import torch
from conftest import SENTENCES
from test_encoder import make

from cse.encoder.torch_encoder import TorchEncoder


def states(encoder: TorchEncoder, how: Callable) -> tuple[torch.Tensor, list[torch.Tensor]]:
    template = encoder.views[0][0]
    contents = encoder.tokenise(SENTENCES, [template] * len(SENTENCES))
    rows = [template.row(ids) for ids in contents]
    read = how(rows)
    encoder.zero_grad()
    (read * torch.randn(read.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    gradients = [tensor.grad.clone() for tensor in encoder.parameters() if tensor.grad is not None]
    return read.detach(), gradients


@pytest.mark.parametrize("name", ["simcse", "dcpcse", "optiprompt", "conpvp"])
def test_the_token_that_is_read_is_as_if_all_were(backbone: str, name: str) -> None:
    encoder = make(backbone, name)

    def whole(rows: list) -> torch.Tensor:
        return torch.stack([encoder.hidden([row])[0, row.pool_at] for row in rows])

    read, gradients = states(encoder, encoder.read)
    expected, others = states(encoder, whole)
    torch.testing.assert_close(read, expected, atol=1e-5, rtol=1e-5)
    assert len(gradients) == len(others) > 0
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)
