"""A tokenizer read from its files by `tokenizers` alone, with the part of transformers' interface that rows need."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.files.writing import read_json

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

OWN_KEY = "cse"  # in a config.json; transformers keeps it when it saves the model again
NUL = {"type": "Replace", "pattern": {"String": "\x00"}, "content": " "}  # a normalizer
WORD_TABLE = ("word_embeddings.weight", "tok_embeddings.weight")  # ends of its key; the second is ModernBERT's
BY_WORD = re.compile(
    r"(.*\.)?((word|tok)_embeddings\.weight|predictions\.bias|lm_head\.bias|(decoder|vocab_projector)\.(weight|bias))"
)


@dataclass(frozen=True)
class Additions:
    """The number of learned `slots`, and the number of `tokens` that the tokenizer had before they became words."""

    slots: int
    tokens: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Additions | None:
        """Return the additions that a `config.json` counts; None for a folder of another kind."""
        value = config.get(OWN_KEY)
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
        words = next((array for name, array in weights.items() if name.endswith(WORD_TABLE)), None)
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
        if len(ends) < 2:  # a decoder has no prompts, so the file's template is its own
            bare.post_processor = tokenizer.backend_tokenizer.post_processor
        else:
            numbers = [(token, bare.token_to_id(token)) for token in ends]
            bare.post_processor = TemplateProcessing(single=[ends[0], "$A", ends[1]], special_tokens=numbers)
        return PreTrainedTokenizerFast(
            tokenizer_object=bare, truncation_side=tokenizer.truncation_side,
            clean_up_tokenization_spaces=False, **names,
        )  # fmt: skip


ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
NEEDED_ROLES = ("mask", "pad", "cls", "sep")  # of the tokens in the rows of BERT and RoBERTa
BERT_TOKENS = dict(zip(ROLES[2:], ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"), strict=True))
# Without "Fast": classes that read a tokenizer.json as it is.
GENERIC_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend")
ROBERTA_TOKENS = dict(zip(ROLES, ("<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"), strict=True))


@dataclass(frozen=True)
class StoredTokenizer:
    """A `tokenizers.Tokenizer` with the special tokens and the truncation side that its configuration names."""

    backend_tokenizer: Tokenizer
    names: dict[str, str]  # role, such as "mask_token" -> token
    truncation_side: str = "right"
    is_fast: bool = True

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size(with_added_tokens=True)

    def __getattr__(self, name: str) -> Any:
        """Return a special token by its role, such as `mask_token`, or its id, such as `mask_token_id`."""
        role = name.removesuffix("_id")
        if role not in ROLES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        token = self.names.get(role)
        return token if role == name or token is None else self.backend_tokenizer.token_to_id(token)

    @cached_property
    def all_special_ids(self) -> list[int]:
        """The ids of the special tokens, each once."""
        tokens = dict.fromkeys(self.names[role] for role in ROLES if role in self.names)
        return [self.get_vocab()[token] for token in tokens]

    def get_vocab(self) -> dict[str, int]:
        """Return the ids by token, added tokens included."""
        return self.backend_tokenizer.get_vocab(with_added_tokens=True)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return self.backend_tokenizer.decode(list(ids), skip_special_tokens=False)

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]:
        """Return the tokens of ids."""
        return [self.backend_tokenizer.id_to_token(number) for number in ids]


def read_tokenizer(
    tokenizer_file: Path, config_file: Path | None, additions: Additions | None = None
) -> StoredTokenizer | None:
    """Return the tokenizer of a `tokenizer.json`, or None if transformers would read it in another way.

    transformers builds BERT's and RoBERTa's tokenizers from the vocabulary and the settings of
    `tokenizer_config.json`; these must say the same as the file. Any other class, and added words, are left to it.
    With `additions` the file alone decides, as for transformers, and what it adds to a backbone's is left out.
    """
    from tokenizers import Tokenizer

    stored, config = read_json(tokenizer_file), read_json(config_file) if config_file else {}
    text = tokenizer_file.read_text(encoding="utf-8")
    kind = str(config.get("tokenizer_class", "")).removesuffix("Fast")
    defaults = {"BertTokenizer": BERT_TOKENS, "RobertaTokenizer": ROBERTA_TOKENS}.get(kind)
    if additions and kind in GENERIC_CLASSES:
        stored, defaults = additions.bare(stored), {role: config[role] for role in ROLES if config.get(role)}
        text = json.dumps(stored)
    elif defaults is None or not {"BertTokenizer": _is_bert, "RobertaTokenizer": _is_roberta}[kind](stored, config):
        return None
    tokens = {role: config.get(role, name) for role, name in defaults.items()}
    names = {role: str(token["content"] if isinstance(token, dict) else token) for role, token in tokens.items()}
    added = [token["content"] for token in stored.get("added_tokens", ()) if token.get("special")]
    extra = config.get("additional_special_tokens") or config.get("extra_special_tokens")
    if extra or sorted(added) != sorted(set(names.values())) or len(added) != len(stored["added_tokens"]):
        return None
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return StoredTokenizer(tokenizer, names, str(config.get("truncation_side", "right")))


def _is_bert(stored: dict[str, Any], config: dict[str, Any]) -> bool:
    normalizer, model = stored.get("normalizer") or {}, stored["model"]
    return (
        (normalizer.get("type"), model.get("type")) == ("BertNormalizer", "WordPiece")
        and (stored.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        and normalizer.get("clean_text") is True
        and normalizer.get("lowercase") == config.get("do_lower_case", True)
        and normalizer.get("strip_accents") == config.get("strip_accents")
        and normalizer.get("handle_chinese_chars") == config.get("tokenize_chinese_chars", True)
        and (model.get("continuing_subword_prefix"), model.get("max_input_chars_per_word")) == ("##", 100)
    )


def _is_roberta(stored: dict[str, Any], config: dict[str, Any]) -> bool:
    before, model = stored.get("pre_tokenizer") or {}, stored["model"]
    return (
        (before.get("type"), model.get("type"), stored.get("normalizer")) == ("ByteLevel", "BPE", None)
        and before.get("add_prefix_space") == config.get("add_prefix_space", False)
        and before.get("use_regex", True) is True
        and not any(model.get(name) for name in ("dropout", "fuse_unk", "byte_fallback", "ignore_merges"))
        and not any(model.get(name) for name in ("continuing_subword_prefix", "end_of_word_suffix"))
    )
