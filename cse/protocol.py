"""The names and arguments by which sentence-transformers' users call a model: texts in, vectors and cosines out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import numpy as np
import torch
from torch.nn.functional import normalize

from cse.prompted_backbone import PromptedBackbone
from cse.vectors import PRECISIONS, quantised

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import Unpack

    from cse.methods import Method

    Vectors = np.ndarray | torch.Tensor | Sequence[Any]

QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # the first of these names that a model has


class RarerOptions(TypedDict, total=False):
    """Arguments of `SentenceModel.encode` that no other step needs; all may be left out."""

    prompt: str | None
    prompt_name: str | None
    truncate_dim: int | None
    precision: str | None
    device: str | torch.device | None
    output_value: str


class EncodeOptions(RarerOptions, total=False):
    """Arguments of `SentenceModel.encode` that do not change the kind of what comes back; all may be left out."""

    batch_size: int | None
    normalize_embeddings: bool
    show_progress_bar: bool | None


class ModelCardData:
    """Takes the scores that sentence-transformers' evaluators file in a model's card, and keeps none."""

    def set_evaluation_metrics(self, evaluator: Any, metrics: dict[str, float], epoch: int, step: int) -> None:
        """Do nothing: the evaluator returns the same scores to its caller."""


class SentenceModel(PromptedBackbone):
    """A prompted backbone that sentence-transformers' evaluators and tools take for one of their models.

    `prompts` are texts by name that `encode` puts before a sentence where it is told the name, "query" and "document"
    by `encode_query` and `encode_document`. They are part of the sentence, which the method's template surrounds.
    """

    similarity_fn_name = "cosine"
    model_card_data = ModelCardData()

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, method: Method, name: str) -> None:
        super().__init__(model, tokenizer, method)
        self.name = name
        self.prompts: dict[str, str] = {"query": "", "document": ""}

    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int | None = ...,
        normalize_embeddings: bool = ...,
        show_progress_bar: bool | None = ...,
        *,
        convert_to_numpy: Literal[True] = ...,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[RarerOptions],
    ) -> np.ndarray: ...

    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int | None = ...,
        normalize_embeddings: bool = ...,
        show_progress_bar: bool | None = ...,
        *,
        convert_to_numpy: bool = ...,
        convert_to_tensor: Literal[True],
        **options: Unpack[RarerOptions],
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int | None = ...,
        normalize_embeddings: bool = ...,
        show_progress_bar: bool | None = ...,
        *,
        convert_to_numpy: Literal[False],
        convert_to_tensor: bool = ...,
        **options: Unpack[RarerOptions],
    ) -> torch.Tensor: ...

    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int | None = None,
        normalize_embeddings: bool = False,
        show_progress_bar: bool | None = None,
        *,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate_dim: int | None = None,
        precision: str | None = "float32",
        device: str | torch.device | None = None,
        output_value: str = "sentence_embedding",
    ) -> Any:
        """(N, d) float32 vectors of N sentences, (d,) of a single string; rows are unit with `normalize_embeddings`.

        At most `batch_size` sentences are read in one pass; None leaves that to their lengths and the device.
        numpy unless `convert_to_tensor` or not `convert_to_numpy`, on the CPU in either case.
        `prompt`, or that of `prompts` called `prompt_name`, is put before each sentence. `truncate_dim` keeps the first
        numbers, before rows are made unit; `precision` then stores them as `cse.vectors.quantised` does. `device` moves
        the model there, where it stays. Raises ValueError for anything that is not text, for an argument that is not
        supported, and where a number is not finite.
        """
        texts = [sentences] if isinstance(sentences, str) else list(sentences)
        if wrong := [number for number, text in enumerate(texts) if not isinstance(text, str)]:
            raise ValueError(f"sentence {wrong[0]} is {texts[wrong[0]]!r}, not text")
        _check(output_value, precision, truncate_dim, device)
        before = self._named_prompt(prompt_name) if prompt is None else prompt
        if device is not None:
            self.to(device)
        vectors = self._encode_all([before + text for text in texts], batch_size, bool(show_progress_bar))
        if not bool(vectors.isfinite().all()):
            raise ValueError(f"{self.name} gives vectors that are not finite; its weights may be damaged")
        vectors = vectors[:, :truncate_dim].contiguous()
        if normalize_embeddings:
            vectors = normalize(vectors, dim=-1)
        if precision is not None:
            vectors = torch.from_numpy(quantised(vectors.numpy(), precision))
        vectors = vectors[0] if isinstance(sentences, str) else vectors
        return vectors if convert_to_tensor or not convert_to_numpy else vectors.numpy()

    @overload
    def encode_query(
        self,
        sentences: str | Sequence[str],
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[EncodeOptions],
    ) -> np.ndarray: ...

    @overload
    def encode_query(
        self, sentences: str | Sequence[str], *, convert_to_tensor: Literal[True], **options: Unpack[EncodeOptions]
    ) -> torch.Tensor: ...

    def encode_query(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """What `encode` gives, of sentences that search; with the prompt "query" unless one is named."""
        return self.encode(sentences, **self._with_prompt(options, QUERY_PROMPTS))

    @overload
    def encode_document(
        self,
        sentences: str | Sequence[str],
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[EncodeOptions],
    ) -> np.ndarray: ...

    @overload
    def encode_document(
        self, sentences: str | Sequence[str], *, convert_to_tensor: Literal[True], **options: Unpack[EncodeOptions]
    ) -> torch.Tensor: ...

    def encode_document(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """What `encode` gives, of texts that are found; prompts are "document", else "passage", else "corpus"."""
        return self.encode(sentences, **self._with_prompt(options, DOCUMENT_PROMPTS))

    def similarity(self, embeddings1: Vectors, embeddings2: Vectors) -> torch.Tensor:
        """(N, M) cosines of N with M vectors; a vector (d,) counts as one, and 0 is a zero vector's cosine."""
        return _unit(embeddings1) @ _unit(embeddings2).T

    def similarity_pairwise(self, embeddings1: Vectors, embeddings2: Vectors) -> torch.Tensor:
        """(N,) cosines of N vectors with as many others, one by one."""
        return (_unit(embeddings1) * _unit(embeddings2)).sum(-1)

    def get_embedding_dimension(self) -> int:
        """The numbers of a vector."""
        return self.dim

    def get_sentence_embedding_dimension(self) -> int:
        """The same, under its older name."""
        return self.dim

    def _encode_all(self, texts: list[str], batch_size: int | None, progress: bool) -> torch.Tensor:
        """(N, d) float32 vectors on the CPU: the model's own path from text to vector."""
        raise NotImplementedError

    def _named_prompt(self, name: str | None) -> str:
        if name is not None and name not in self.prompts:
            raise ValueError(f"`prompt_name` is {name!r}; `prompts` of this model has {', '.join(self.prompts)}")
        return "" if name is None else self.prompts[name]

    def _with_prompt(self, options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt_name"] = next((name for name in names if name in self.prompts), None)
        return options


def _check(output_value: str, precision: str | None, truncate_dim: int | None, device: Any) -> None:
    if output_value != "sentence_embedding":
        raise ValueError(f"`output_value` is {output_value!r}; only 'sentence_embedding' is given here")
    if precision not in (None, *PRECISIONS):
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    if truncate_dim is not None and truncate_dim < 1:
        raise ValueError(f"`truncate_dim` is {truncate_dim}; give at least 1")
    if isinstance(device, list | tuple):
        raise ValueError(f"`device` is {device!r}; give one")


def _unit(vectors: Vectors) -> torch.Tensor:
    """(N, d) float32 rows of length 1 of an array, a tensor, or a sequence of rows."""
    if isinstance(vectors, list | tuple):
        vectors = torch.stack([torch.as_tensor(row) for row in vectors])
    return normalize(torch.atleast_2d(torch.as_tensor(vectors)).float(), dim=-1)
