"""The interface of sentence-transformers: from texts to vectors and similarities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.encoding.encode_options import DOCUMENT, QUERY, Prompts, also_sentences, check_options
from cse.encoding.engine import Engine
from cse.encoding.similarity import Similarities
from cse.vectors import quantised, unit_rows

if TYPE_CHECKING:
    import torch


class SentenceModel(Prompts, Similarities, Engine):
    """The interface that sentence-transformers' evaluators and tools use; PyTorch is needed only for tensors.

    `truncate_dim` is the default dimension of `encode`. `max_row_length` is the maximum row length in tokens, if it is
    less than the model's positions.
    """

    def _set_calls(self, name: str) -> None:
        """Set the name, and the defaults of `encode`."""
        self.name = name
        self.prompts: dict[str, str] = {"query": "", "document": ""}
        self.truncate_dim: int | None = None
        self.max_row_length: int | None = None

    @also_sentences
    def encode(
        self,
        inputs: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: str = "sentence_embedding",
        precision: str | None = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | torch.device | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        chunk_size: int | None = None,
        **others: Any,
    ) -> np.ndarray:
        """Return (N, d) float32 vectors of N sentences, (d,) of a string; rows are unit with `normalize_embeddings`.

        Arguments are those of sentence-transformers 6, in its order; `sentences` is an alias of `inputs`.
        `prompt`, else that of `prompts` called `prompt_name`, is put before each sentence. A pass has at most
        `batch_size` sentences; None: by their lengths and the device. `truncate_dim` keeps the first dimensions, before
        normalisation; `precision` then quantises by `cse.vectors.quantised`. `device` moves the model for good.
        Returns a numpy array, or a tensor with `convert_to_tensor`, or a list of tensors (d,) with neither, always on
        the CPU; the type of the result names the array alone.
        Texts are cleaned by `cse.encoding.tokenising.readable`: NUL becomes a space, half of a surrogate pair "?".
        Raises ValueError for anything that is not text, for an unsupported argument, and if a vector is not finite.
        """
        single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        if wrong := [number for number, text in enumerate(texts) if not isinstance(text, str)]:
            raise ValueError(f"sentence {wrong[0]} is {texts[wrong[0]]!r}, not text")
        kept = self.truncate_dim if truncate_dim is None else truncate_dim
        check_options(output_value, precision, kept, device, pool, others)
        before = self.named_prompt(prompt_name) if prompt is None else prompt
        if device is not None:
            self.to(device)
        vectors = self._encode_all(texts, before, batch_size, bool(show_progress_bar))
        if not np.isfinite(vectors).all():
            raise ValueError(f"{self.name} gives vectors that are not finite; its weights may be damaged")
        vectors = np.ascontiguousarray(vectors[:, :kept])
        if normalize_embeddings:
            vectors = unit_rows(vectors)
        if precision is not None:
            vectors = quantised(vectors, precision)
        found: Any = vectors if convert_to_numpy and not convert_to_tensor else _tensor(vectors)
        if single:
            return found[0]
        each: Any = list(found)
        return found if convert_to_numpy or convert_to_tensor else each

    @also_sentences
    def encode_query(
        self,
        inputs: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *args: Any,
        **options: Any,
    ) -> np.ndarray:
        """Encode queries with `encode`, by default with the prompt "query"."""
        own = self.own_prompt(prompt_name, prompt, QUERY)
        encode: Any = self.encode
        return encode(inputs, own, prompt, *args, task="query", **options)

    @also_sentences
    def encode_document(
        self,
        inputs: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *args: Any,
        **options: Any,
    ) -> np.ndarray:
        """Encode documents with `encode`, by default with the prompt "document", else "passage" or "corpus"."""
        own = self.own_prompt(prompt_name, prompt, DOCUMENT)
        encode: Any = self.encode
        return encode(inputs, own, prompt, *args, task="document", **options)

    @property
    def model_card_data(self) -> ModelCardData:
        """A substitute for sentence-transformers' model card."""
        return ModelCardData(self)

    @property
    def max_seq_length(self) -> int:
        """Maximum length of a sentence in tokens, its template and special tokens included.

        Longer sentences are truncated. A value above the model's maximum, or None, sets that maximum. Setting it raises
        ValueError if no token of a sentence would be left.
        """
        return self.max_content + self.views[0][0].length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        fewest = self.views[0][0].length + 1
        if value is not None and value < fewest:
            raise ValueError(f"`max_seq_length` is {value}; give at least {fewest}, for the template and a token")
        self.max_row_length = None
        if value is not None and value < self.max_seq_length:
            self.max_row_length = value

    def get_embedding_dimension(self) -> int:
        """Return the dimension of the vectors."""
        return self.dim if self.truncate_dim is None else min(self.dim, self.truncate_dim)

    def get_sentence_embedding_dimension(self) -> int:
        """Return `get_embedding_dimension()`, of which this is the older name."""
        return self.get_embedding_dimension()

    @contextmanager
    def truncate_embeddings(self, truncate_dim: int | None) -> Iterator[None]:
        """Set the default dimension of `encode` to `truncate_dim` in the block."""
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        try:
            yield
        finally:
            self.truncate_dim = before

    def _encode_all(self, texts: list[str], before: str, batch_size: int | None, progress: bool) -> np.ndarray:
        """Return (N, d) float32 vectors of texts after a prompt, by the model's own path from text to vector."""
        raise NotImplementedError


def _tensor(vectors: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(vectors)


class ModelCardData:
    """The model's name, for tools of sentence-transformers that store it. Scores that evaluators add are dropped."""

    def __init__(self, model: SentenceModel) -> None:
        self._model = model

    @property
    def base_model(self) -> str:
        """Return name and fingerprint of the model: `mine_hard_negatives` uses them as a key of its cache."""
        return f"{self._model.name} {self._model.fingerprint}"

    def set_evaluation_metrics(self, evaluator: Any, metrics: dict[str, float], epoch: int, step: int) -> None:
        """Do nothing: the evaluator returns the same scores to its caller."""
