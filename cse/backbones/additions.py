"""Additions to a backbone in a folder that other tools open: words for learned slots, and a template in the tokenizer.

A trained model's folder is also one of transformers and sentence-transformers. Its tokenizer adds the template and
reads NUL as a space; a learned slot is a word, with the last rows of the tables of words. Its `config.json` counts
these under the key `cse`, and this module takes them away again, so that what remains is the backbone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedTokenizerBase

KEY = "cse"  # in a config.json; transformers keeps it when it saves the model again
NUL = {"type": "Replace", "pattern": {"String": "\x00"}, "content": " "}  # a normalizer
WORDS = "word_embeddings.weight"
BY_WORD = re.compile(rf"(.*\.)?({re.escape(WORDS)}|predictions\.bias|lm_head\.bias|decoder\.(weight|bias))")
ROLES = ("cls_token", "sep_token", "mask_token", "pad_token", "unk_token", "bos_token", "eos_token")


@dataclass(frozen=True)
class Additions:
    """The number of learned `slots`, and the number of `tokens` that the tokenizer had before they became words."""

    slots: int
    tokens: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Additions | None:
        """Return the additions that a `config.json` counts; None for a folder of another kind."""
        value = config.get(KEY)
        if not isinstance(value, dict):
            return None
        slots, tokens = value.get("slots"), value.get("tokens")
        if type(slots) is not int or type(tokens) is not int or slots < 0:
            return None
        return cls(slots, tokens)

    def without(self, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return weights by name without the rows of the slots."""
        if not self.slots:
            return dict(weights)
        return {name: array[: -self.slots] if BY_WORD.fullmatch(name) else array for name, array in weights.items()}

    def rows(self, weights: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the (S, d) rows of the slots in weights by name; None if there are no slots."""
        words = next((array for name, array in weights.items() if name.endswith(WORDS)), None)
        return None if words is None or not self.slots else words[-self.slots :]

    def bare(self, tokenizer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of a `tokenizer.json` without template, slots and the reading of NUL."""
        normalizer = tokenizer.get("normalizer") or {}
        if normalizer.get("type") == "Sequence" and normalizer["normalizers"][:1] == [NUL]:
            (normalizer,) = normalizer["normalizers"][1:] or [None]
        kept = [token for token in tokenizer["added_tokens"] if token["id"] < self.tokens]
        return {
            **tokenizer, "normalizer": normalizer or None, "added_tokens": kept, "post_processor": None,
            "truncation": None, "padding": None,
        }  # fmt: skip

    def bare_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
        """Return a tokenizer of transformers that reads `bare` files and adds the first and the last token."""
        from tokenizers import Tokenizer
        from tokenizers.processors import TemplateProcessing
        from transformers import PreTrainedTokenizerFast

        bare = Tokenizer.from_str(json.dumps(self.bare(json.loads(tokenizer.backend_tokenizer.to_str()))))
        names = {role: str(token) for role in ROLES if (token := getattr(tokenizer, role, None)) is not None}
        ends = [names[role] for role in ("cls_token", "sep_token") if role in names]
        if len(ends) == 2:
            numbers = [(token, bare.token_to_id(token)) for token in ends]
            bare.post_processor = TemplateProcessing(single=[ends[0], "$A", ends[1]], special_tokens=numbers)
        return PreTrainedTokenizerFast(
            tokenizer_object=bare, truncation_side=tokenizer.truncation_side,
            clean_up_tokenization_spaces=False, **names,
        )  # fmt: skip
