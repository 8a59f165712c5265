"""One training step and one encoding of the released methods, written with transformers and torch alone.

Sentences go through the backbone one at a time, without padding, so nothing here can be wrong in the way a batch can.
`check` sets a step of the project (dropout off, the same templates drawn) against it: token rows, vectors, loss, the
gradient of one tensor, and what `encode` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from conftest import SENTENCES
from encoders import make
from torch.nn.functional import cosine_similarity, gelu, layer_norm
from training_runs import CONFIG, OneProcess
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.encoder.torch_encoder import TorchEncoder
from cse.training.step import contrast, step_data

TEXTS = [SENTENCES[0], "dog " * 40, SENTENCES[5]]
COLUMNS = {"0": TEXTS, "1": SENTENCES[1:4], "2": [SENTENCES[4], "the cat", SENTENCES[6]]}
QUERY = "encoder.layer.0.attention.self.query.weight"
Vector = Callable[["Reference", str, str, bool], torch.Tensor]  # of a template, a sentence, in training or not


class Reference:
    """A backbone opened by transformers alone, without dropout, and copies of the parts an encoder learns beside it."""

    def __init__(self, folder: str, encoder: TorchEncoder) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        self.model = AutoModelForMaskedLM.from_pretrained(folder, **no_dropout)
        self.limit: int | None = None  # tokens kept of a sentence
        self.roberta = self.model.config.model_type == "roberta"
        own = [(name, tensor) for name, tensor in encoder.named_parameters() if not name.startswith("model.")]
        self.parts = {name: tensor.detach().clone().requires_grad_() for name, tensor in own}

    @property
    def words(self) -> torch.Tensor:
        """(V, d) word embeddings."""
        return self.model.get_input_embeddings().weight

    def around(self, template: str) -> tuple[list[int], list[int]]:
        """Ids before and after the sentence, each with its special token; no space before the mask, as released."""
        before, after = template.split("[X]")
        after = after.replace(" [MASK]", self.tokenizer.mask_token)
        if "[P]" in after:  # ConPVP's anchor, which a byte-level tokenizer would fill with lone spaces
            pads, rest = [self.tokenizer.pad_token_id] * after.count("[P]"), self.tokenizer(" .")["input_ids"][1:]
            return [self.tokenizer.cls_token_id], [*pads, self.tokenizer.mask_token_id, *rest]
        return self.tokenizer(before.strip())["input_ids"][:-1], self.tokenizer(after)["input_ids"][1:]

    def row(self, template: str, sentence: str) -> list[int]:
        """The ids of a sentence, at most `limit` of its own, in a template."""
        before, after = self.around(template)
        spaced = f" {sentence}" if template.split("[X]")[0].endswith(" ") else sentence
        return [*before, *self.tokenizer(spaced, add_special_tokens=False)["input_ids"][: self.limit], *after]

    def at_mask(self, ids: Sequence[int]) -> int:
        """Where the vector is read: the last mask, or the first token where there is none."""
        masks = [place for place, token in enumerate(ids) if token == self.tokenizer.mask_token_id]
        return masks[-1] if masks else 0

    def read(
        self,
        ids: Sequence[int],
        *,
        positions: Sequence[int] | None = None,
        seen: Sequence[int] | None = None,
        embedded: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(d,) last hidden state where a row is read; `seen`: attention mask, `embedded`: (L, d) embeddings."""
        first = 2 if self.roberta else 0
        places = torch.tensor([list(positions or range(len(ids)))]) + first
        states = self.model.base_model(
            inputs_embeds=(self.words[list(ids)] if embedded is None else embedded)[None],
            attention_mask=torch.tensor([list(seen or [1] * len(ids))]),
            position_ids=places,
        ).last_hidden_state
        return states[0, self.at_mask(ids)]

    def mlp(self, hidden: torch.Tensor) -> torch.Tensor:
        """SimCSE's head: a fresh linear layer and tanh."""
        return torch.tanh(self.parts["head.0.weight"] @ hidden + self.parts["head.0.bias"])

    def transform(self, hidden: torch.Tensor) -> torch.Tensor:
        """The masked language model's transform, trained along: dense, GELU, LayerNorm."""
        dense = gelu(self.parts["head.dense.weight"] @ hidden + self.parts["head.dense.bias"])
        norm = self.parts["head.norm.weight"], self.parts["head.norm.bias"]
        return layer_norm(dense, dense.shape, *norm, eps=self.model.config.layer_norm_eps)


def info_nce(views: Sequence[torch.Tensor]) -> torch.Tensor:
    """SimCSE's loss, hard negatives or ConPVP's prototypes beside the positives, sentence by sentence."""
    anchors, *others = views
    terms = []
    for number, anchor in enumerate(anchors):
        logits = torch.stack([cosine_similarity(anchor, vector, dim=0) / 0.05 for view in others for vector in view])
        terms.append(logits.logsumexp(0) - logits[number])
    return torch.stack(terms).mean()


def pair(folder: str, name: str, supervised: bool = False) -> tuple[TorchEncoder, Reference]:
    """An encoder of the project without dropout, its learned parts far from where they start, and its reference."""
    encoder = make(folder, name, supervised)
    torch.manual_seed(11)
    with torch.no_grad():
        for part, tensor in encoder.named_parameters():
            if not part.startswith("model."):
                tensor += torch.randn_like(tensor) * 0.3
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return encoder, Reference(folder, encoder)


def check(
    folder: str, name: str, views: Sequence[Sequence[str]], vector: Vector, learned: str = QUERY, draw: int = 0
) -> None:
    """Assert that a step and an encoding of a method are what `vector` gives under the released templates `views`.

    `learned` names the tensor whose gradient is compared, one of the backbone's or of the encoder's own. Supervised
    methods are those with three views of one template.
    """
    supervised = len(views) == 3 and all(len(view) == 1 for view in views)
    encoder, reference = pair(folder, name, supervised)
    batch = COLUMNS if supervised else {"0": TEXTS}
    encoder.train()
    data = step_data(encoder, batch, replace(CONFIG, batch_size=3, max_length=32), draw)
    assert data.views == len(views)
    rows, expected = [], []
    for number, kinds in enumerate(np.split(data.rows.kinds, len(views))):
        chosen = [data.rows.templates[kind] for kind in kinds]
        texts = batch[str(number)] if supervised else TEXTS
        known = dict(zip(encoder.views[number], encoder.method.views[number], strict=True))
        drawn = [known[template].text for template in chosen]
        assert {*drawn} <= {*views[number]}
        assert len(known) == len(views[number])
        reference.limit = 30 if drawn[0] == "[X]" else 32  # without a prompt its two special tokens count
        rows += [reference.row(*each) for each in zip(drawn, texts, strict=True)]
        expected.append(torch.stack([vector(reference, *each, True) for each in zip(drawn, texts, strict=True)]))
    assert [ids.tolist() for ids in np.split(data.rows.ids, data.rows.offsets[1:-1])] == rows

    vectors = encoder(data.rows)
    torch.testing.assert_close(vectors, torch.cat(expected), atol=2e-5, rtol=0)
    loss, slow = contrast(vectors, len(views), CONFIG, OneProcess()), info_nce(expected)
    torch.testing.assert_close(loss, slow, atol=2e-4, rtol=1e-4)  # cosines are divided by 0.05
    loss.backward()
    slow.backward()
    own = dict(encoder.named_parameters())
    found = own.get(learned, dict(encoder.model.base_model.named_parameters()).get(learned)).grad
    wanted = reference.parts.get(learned, dict(reference.model.base_model.named_parameters()).get(learned)).grad
    assert float(wanted.abs().max()) > 1e-4
    torch.testing.assert_close(found, wanted, atol=1e-3 * float(wanted.abs().max()), rtol=0)
    reference.limit = None
    with torch.no_grad():
        whole = torch.stack([vector(reference, views[0][0], text, False) for text in SENTENCES])
    np.testing.assert_allclose(encoder.encode(SENTENCES), whole, atol=2e-5)
