"""The interface of an engine, which computes vectors, and that of sentence-transformers, on top of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cse.vectors import PRECISIONS, quantised, unit_rows

if TYPE_CHECKING:
    import torch
    from typing_extensions import Self

    from cse.encoder.rows import TokenRows, TokenTemplate
    from cse.methods.method import Method, Reading

    Vectors = np.ndarray | torch.Tensor | Sequence[Any]

METHOD = TypeVar("METHOD", bound=Callable[..., Any])
QUERY = ("query",)
DOCUMENT = ("document", "passage", "corpus")  # the first of these names that a model has


SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
Update = Callable[[int], object]


def also_sentences(encode: METHOD) -> METHOD:
    """Accept `sentences=` for `inputs`, its name before sentence-transformers 6."""

    @wraps(encode)
    def encode_either(self: Any, *args: Any, **options: Any) -> Any:
        if "sentences" in options and not args:
            options.setdefault("inputs", options.pop("sentences"))
        return encode(self, *args, **options)

    return cast("METHOD", encode_either)


def check_options(
    output_value: str, precision: str | None, truncate_dim: int | None, device: Any, pool: Any, others: dict[str, Any]
) -> None:
    """Raise ValueError, with the cure, for an argument that `encode` does not support."""
    if output_value != "sentence_embedding":
        raise ValueError(f"`output_value` is {output_value!r}; only 'sentence_embedding' is supported")
    if precision not in (None, *PRECISIONS):
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    if truncate_dim is not None and truncate_dim < 1:
        raise ValueError(f"`truncate_dim` is {truncate_dim}; give at least 1")
    if isinstance(device, list | tuple):
        raise ValueError(f"`device` is {device!r}; give one")
    if pool is not None:
        raise ValueError("`pool` is given, but texts are encoded in this process; leave it out")
    if unknown := sorted(others.keys() - {"task"}):  # a task selects a part of a model; here there is one
        raise ValueError(f"`encode` has no argument `{unknown[0]}` here; leave it out")


class SentenceModel:
    """What an engine computes, and on it the calls of sentence-transformers; PyTorch is needed only for tensors.

    `views` are the method's templates, `dim` is the vectors' dimension, `first_position` the position id of a row's
    first token, `row_limit` the maximum row length in tokens by the model's positions.
    `prompts` are by name, `default_prompt_name` is used if none is given. `truncate_dim` is the default dimension of
    `encode`. `max_row_length` is the maximum row length in tokens, if it is less than the model's positions.
    """

    backend: str
    name: str
    method: Method
    tokenizer: Any
    device: Any
    dim: int
    views: tuple[tuple[TokenTemplate, ...], ...]
    first_position: int
    row_limit: int
    prompts: dict[str, str]
    default_prompt_name: str | None = None
    truncate_dim: int | None = None
    max_row_length: int | None = None
    _similarity = "cosine"

    # -- the engine ---------------------------------------------------------------------------------------------

    @property
    def reading(self) -> Reading:
        """How the vectors are read."""
        return self.method.reading

    @property
    def fingerprint(self) -> str:
        """Hex digits that change with every setting and parameter that vectors depend on."""
        raise NotImplementedError

    @property
    def max_content(self) -> int:
        """Maximum tokens of a sentence, without its template."""
        raise NotImplementedError

    def to(self, device: Any) -> Any:
        """Move the model to a device. Raises ValueError if it cannot run there."""
        raise NotImplementedError

    def eval(self) -> Self:
        """Return the encoder, which is never in training mode but with PyTorch."""
        return self

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return the float32 arrays that the method learned, by the names of a checkpoint."""
        raise NotImplementedError

    def word_embeddings(self) -> np.ndarray:
        """Return the (V, d) float32 word embeddings."""
        raise NotImplementedError

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        """Return (N, d) float32 vectors of rows, in the order of `passes`, their numbers."""
        raise NotImplementedError

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        """Return (B, d) states at the mask of rows, and of their templates alone."""
        raise NotImplementedError

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        """Return (B, V) vocabulary logits of states (B, d). Raises ArtefactError for a model without that head."""
        raise NotImplementedError

    @property
    def parameter_count(self) -> int:
        """The number of parameters that encoding and predicting tokens depend on."""
        raise NotImplementedError

    @classmethod
    def open(
        cls,
        source: str | Path,
        method: Method,
        *,
        name: str,
        backbone: str,
        revision: str | None = None,
        weights: Mapping[str, np.ndarray] | None = None,
        head: Mapping[str, np.ndarray] | None = None,
    ) -> Self:
        """Open the backbone in a folder or on the hub; `weights` and `head` replace the stored and the new ones.

        OpenVINO raises UnsupportedError for a model that needs PyTorch.
        """
        raise NotImplementedError

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Choose what the method learned; with `freeze_embeddings` the word embeddings do not belong to it."""
        raise NotImplementedError

    def bfloat16(self) -> Self:
        """Return the encoder, from now on computing in bfloat16; its vectors stay float32."""
        raise NotImplementedError

    def int8(self) -> Self:
        """Return the encoder, from now on computing with 8-bit integers. Raises ValueError if its engine cannot."""
        raise ValueError(f"{self.name}: `precision` int8 needs OpenVINO; open the model with `backend` openvino")

    def forget_biases(self) -> None:
        """Clear the cached template biases, but not those of a shallow copy of this encoder."""
        raise NotImplementedError

    # -- sentence-transformers ----------------------------------------------------------------------------------

    def named_prompt(self, name: str | None) -> str:
        """Return the prompt of this name, else the default one, else "".

        Raises ValueError, with the names there are, for another name.
        """
        argument, name = (
            ("prompt_name", name) if name is not None else ("default_prompt_name", self.default_prompt_name)
        )
        if name is not None and name not in self.prompts:
            raise ValueError(f"`{argument}` is {name!r}; `prompts` of this model has {', '.join(self.prompts)}")
        return "" if name is None else self.prompts[name]

    def own_prompt(self, name: str | None, prompt: str | None, names: Sequence[str]) -> str | None:
        """Return `name` or, if neither `name` nor `prompt` is given, the first of `names` in `prompts`."""
        if name is not None or prompt is not None:
            return name
        return next((own for own in names if own in self.prompts), None)

    @property
    def query_prompt(self) -> str | None:
        """The prompt of `encode_query`, as `recorded_prompt` returns it."""
        return self.recorded_prompt(self.own_prompt(None, None, QUERY))

    @property
    def document_prompt(self) -> str | None:
        """The prompt of `encode_document`, as `recorded_prompt` returns it."""
        return self.recorded_prompt(self.own_prompt(None, None, DOCUMENT))

    def recorded_prompt(self, name: str | None) -> str | None:
        """Return the prompt of this name as an index records it, and as `encode` takes it for `prompt`.

        None stands for the default prompt, which the fingerprint covers: indexes without a record were made with it.
        """
        prompt = self.named_prompt(name)
        return None if prompt == self.named_prompt(None) else prompt

    def prompt_note(self, texts: str, prompt: str | None) -> str:
        """Return a line that says which prompt `texts`, such as "queries", get by a record; empty if they get none."""
        before = self.named_prompt(None) if prompt is None else prompt
        return f"{texts} are encoded with the model's prompt {before!r}" if before else ""

    @property
    def similarity_fn_name(self) -> str:
        """The name of the function used by `similarity` and `similarity_pairwise`: one of `SIMILARITIES`.

        Setting it raises ValueError for any other name; None means cosine.
        """
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, value: str | Enum | None) -> None:
        name = value.value if isinstance(value, Enum) else value  # sentence-transformers has an enum of names
        if name is not None and name not in SIMILARITIES:
            raise ValueError(f"`similarity_fn_name` is {name!r}; choose from {', '.join(SIMILARITIES)}")
        self._similarity = name or "cosine"

    def similarity(self, embeddings1: Vectors, embeddings2: Vectors) -> torch.Tensor:
        """Return (N, M) similarities of N with M vectors; a vector (d,) counts as one, and distances are negated."""
        import torch

        first, second = self._rows(embeddings1), self._rows(embeddings2)
        if self._similarity in ("euclidean", "manhattan"):
            return -torch.cdist(first, second, p=2 if self._similarity == "euclidean" else 1)
        return first @ second.T

    def similarity_pairwise(self, embeddings1: Vectors, embeddings2: Vectors) -> torch.Tensor:
        """Return (N,) similarities of N vectors with as many others, row by row."""
        first, second = self._rows(embeddings1), self._rows(embeddings2)
        if self._similarity == "euclidean":
            return -(first - second).square().sum(-1).sqrt()
        return -(first - second).abs().sum(-1) if self._similarity == "manhattan" else (first * second).sum(-1)

    def _rows(self, vectors: Vectors) -> torch.Tensor:
        """Return (N, d) float32 rows of an array, a tensor, or a sequence of rows; of length 1 for the cosine, or 0."""
        import torch

        if isinstance(vectors, list | tuple):
            vectors = torch.stack([torch.as_tensor(row) for row in vectors])
        rows = torch.atleast_2d(torch.as_tensor(vectors)).float()
        return torch.nn.functional.normalize(rows, dim=-1) if self._similarity == "cosine" else rows

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
        Texts are cleaned by `cse.encoder.rows.readable`: NUL becomes a space, half of a surrogate pair "?".
        Raises ValueError for anything that is not text, for an unsupported argument, and if a vector is not finite.
        """
        single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        if wrong := [number for number, text in enumerate(texts) if not isinstance(text, str)]:
            raise ValueError(f"sentence {wrong[0]} is {texts[wrong[0]]!r}, not text")
        dimensions = self.truncate_dim if truncate_dim is None else truncate_dim
        check_options(output_value, precision, dimensions, device, pool, others)
        before = self.named_prompt(prompt_name) if prompt is None else prompt
        if device is not None:
            self.to(device)
        vectors = self._encode_all(texts, before, batch_size, bool(show_progress_bar))
        if not np.isfinite(vectors).all():
            raise ValueError(f"{self.name} gives vectors that are not finite; its weights may be damaged")
        vectors = np.ascontiguousarray(vectors[:, :dimensions])
        if normalize_embeddings:
            vectors = unit_rows(vectors)
        if precision is not None:
            vectors = quantised(vectors, precision)
        rows: Any = vectors
        if convert_to_tensor or not convert_to_numpy:
            import torch

            rows = torch.from_numpy(vectors)
        if single:
            return rows[0]
        listed: Any = list(rows)
        return rows if convert_to_numpy or convert_to_tensor else listed

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
        # Capped, not refused: callers set a length without knowing how many positions the template leaves.
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
