"""ESimCSE and ConSERT: the rows as training changes them, vectors, loss and a gradient, and what encoding reads."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from conftest import SENTENCES
from reference import QUERY, TEXTS, Reference, info_nce, pair
from torch.nn.functional import cosine_similarity
from training_runs import CONFIG, OneProcess

from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import Contrast
from cse.training.step import contrast, step_data

Row = tuple[list[int], list[int], list[int]]  # ids, positions, and the dimensions that are cut


def step(encoder: TorchEncoder, reference: Reference) -> tuple[list[list[Row]], torch.Tensor]:
    """The rows of both views and their vectors; the rows are those of the tokenizer but for what a method changes."""
    encoder.train()
    rows = step_data(encoder, {"0": TEXTS}, replace(CONFIG, batch_size=3, max_length=32), 0).rows
    reference.limit = 30
    single = [rows[[number]] for number in range(6)]
    for row, text in zip(single, TEXTS * 2, strict=True):
        assert holds_once_or_twice(row.ids.tolist(), reference.row("[X]", text))
    cut = [[] if row.cut is None else np.flatnonzero(row.cut[0]).tolist() for row in single]
    lists = [(row.ids.tolist(), row.tokens[2].tolist(), of_row) for row, of_row in zip(single, cut, strict=True)]
    return [lists[:3], lists[3:]], encoder(rows)


def holds_once_or_twice(ids: Sequence[int], plain: Sequence[int]) -> bool:
    """Whether `ids` are the tokens of `plain` in order, some of them twice in place and nothing else."""
    place = 0
    for number, token in enumerate(plain):
        if place == len(ids) or ids[place] != token:
            return False
        more = len(ids) - place > len(plain) - number  # so some token from here on is repeated
        place += 2 if more and ids[place + 1] == token else 1
    return place == len(ids)


def same_gradient(encoder: TorchEncoder, reference: Reference, loss: torch.Tensor, slow: torch.Tensor) -> None:
    torch.testing.assert_close(loss, slow, atol=2e-4, rtol=1e-4)
    loss.backward()
    slow.backward()
    found, wanted = (
        dict(model.base_model.named_parameters())[QUERY].grad for model in (encoder.model, reference.model)
    )
    assert float(wanted.abs().max()) > 1e-4
    torch.testing.assert_close(found, wanted, atol=1e-3 * float(wanted.abs().max()), rtol=0)


def test_esimcse_is_the_released_one(backbone):
    encoder, reference = pair(backbone, "esimcse")
    rows, vectors = step(encoder, reference)
    assert len(rows[1][1][0]) > len(rows[0][1][0]) == 32  # of thirty tokens some are repeated
    views = [torch.stack([reference.mlp(reference.read(ids)) for ids, _, _ in view]) for view in rows]
    torch.testing.assert_close(vectors, torch.cat(views), atol=2e-5, rtol=0)
    queue = torch.randn(4, encoder.dim, generator=torch.Generator().manual_seed(1))
    same_gradient(
        encoder, reference, contrast(vectors, 2, CONFIG, OneProcess(), queue=queue), info_nce([*views, queue])
    )
    reference.limit = None
    with torch.no_grad():
        expected = torch.stack([reference.read(reference.row("[X]", text)) for text in SENTENCES])
    np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=2e-5)


def layers(reference: Reference, row: Row) -> list[torch.Tensor]:
    """(L, d) hidden states of every layer, from an embedding layer's output that is zero where the row is cut."""
    model = reference.model.base_model
    ids, numbers, cut = row
    positions = torch.tensor([numbers]) + (2 if reference.roberta else 0)
    hidden = model.embeddings(input_ids=torch.tensor([ids]), position_ids=positions)
    kept = torch.ones(hidden.shape[2])
    kept[cut] = 0
    states = [hidden * kept]
    for layer in model.encoder.layer:
        output = layer(states[-1])
        states.append(output[0] if isinstance(output, tuple) else output)
    return [state[0] for state in states]


def nt_xent(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Each vector's other view among all vectors but itself, at temperature 0.1; both directions, each a mean."""
    vectors, count = torch.cat([first, second]), len(first)
    terms = []
    for number, vector in enumerate(vectors):
        others = [other for other in range(2 * count) if other != number]
        logits = torch.stack([cosine_similarity(vector, vectors[other], dim=0) / 0.1 for other in others])
        terms.append(logits.logsumexp(0) - logits[others.index((number + count) % (2 * count))])
    return torch.stack(terms).sum() / count


def test_consert_is_the_released_one(backbone):
    encoder, reference = pair(backbone, "consert")
    rows, vectors = step(encoder, reference)
    assert {len(cut) for _, _, cut in rows[0]} == {encoder.dim // 5}
    assert all(sorted(positions) == list(range(len(ids))) for ids, positions, _ in rows[1])
    assert any(positions != sorted(positions) for _, positions, _ in rows[1])
    views = [torch.stack([layers(reference, row)[-1].mean(0) for row in view]) for view in rows]
    torch.testing.assert_close(vectors, torch.cat(views), atol=2e-5, rtol=0)
    config = replace(CONFIG, temperature=0.1)
    loss = contrast(vectors, 2, config, OneProcess(), kind=Contrast.NT_XENT) * encoder.method.loss_weight
    same_gradient(encoder, reference, loss, 0.15 * nt_xent(*views))
    reference.limit = None
    with torch.no_grad():
        states = [layers(reference, plain(reference, text)) for text in SENTENCES]
    expected = torch.stack([(each[-1] + each[-2]).mean(0) / 2 for each in states])
    np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=2e-5)


def plain(reference: Reference, text: str) -> Row:
    ids = reference.row("[X]", text)
    return ids, list(range(len(ids))), []
