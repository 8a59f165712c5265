"""An encoder: from text to vectors and words, with the calls of sentence-transformers.

text -> truncated token ids -> rows of a template -> [an engine: PyTorch, OpenVINO, a table] -> pooled vector, minus
template bias, through the head. The method determines which steps apply. Nothing here needs PyTorch but tensors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from enum import Enum
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cse.encoder.rows import WINDOW, TokenRows, TokenTemplate, lower_case, plain_ids, plan_batches, render, rendered
from cse.files.checksums import array_digest
from cse.methods.method import Head, Method, Pooling, When
from cse.methods.settings import identity
from cse.methods.templates import MEANS, MEANS_ROBERTA, Template
from cse.vectors import PRECISIONS, quantised, unit_rows

if TYPE_CHECKING:
    import torch
    from typing_extensions import Self

    from cse.methods.method import Reading

    Vectors = np.ndarray | torch.Tensor | Sequence[Any]

CALL = TypeVar("CALL", bound=Callable[..., Any])
States = TypeVar("States", "np.ndarray", "torch.Tensor")  # of an engine
QUERY = ("query",)
DOCUMENT = ("document", "passage", "corpus")  # the first of these names that a model has
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
Update = Callable[[int], object]


def also_sentences(encode: CALL) -> CALL:
    """Accept `sentences=` for `inputs`, its name before sentence-transformers 6."""

    @wraps(encode)
    def encode_either(self: Any, *args: Any, **options: Any) -> Any:
        if "sentences" in options and not args:
            options.setdefault("inputs", options.pop("sentences"))
        return encode(self, *args, **options)

    return cast("CALL", encode_either)


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


class Encoder:
    """A model and a method, run by an engine: PyTorch, OpenVINO or a table, which `backend` names.

    `views` are the method's templates, `width` is the dimension of the states and `dim` that of the vectors,
    `first_position` the position id of a row's first token, `row_limit` the maximum row length in tokens by the model's
    positions, and `max_row_length` a lower one. A model that reads `any_length` has the limit that its folder records.
    `backbone` is the name of the backbone and `backbone_fingerprint` its digest before training.
    `prompts` are by name, `default_prompt_name` is used if none is given. `truncate_dim` is the default dimension of
    `encode`. `prompt` is the template whose [MASK] predicts tokens: the method's own, or PromptBERT's if that has no
    [MASK]. `reference` is what an engine other than PyTorch was opened by, and `on_torch` the same model on PyTorch,
    once something has looked inside it.
    """

    backend: str
    name: str
    method: Method
    tokenizer: Any
    width: int
    dim: int
    views: tuple[tuple[TokenTemplate, ...], ...]
    first_position: int
    row_limit: int
    prompts: dict[str, str]
    default_prompt_name: str | None = None
    truncate_dim: int | None = None
    max_row_length: int | None = None
    any_length = False
    freeze_embeddings = False
    reference: Any = None
    on_torch: Any = None
    _similarity = "cosine"

    # -- the engine ---------------------------------------------------------------------------------------------

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return "cpu"

    def to(self, device: Any) -> Any:
        """Move the model to a device. Raises ValueError if it cannot run there."""
        if str(device) != "cpu":
            raise ValueError(
                f"`device` is {str(device)!r}, but OpenVINO runs on the CPU; open the model with `backend` torch"
            )
        return self

    def eval(self) -> Self:
        """Return the encoder, which is never in training mode but with PyTorch."""
        return self

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return the float32 arrays that the method learned and encoding depends on, by the names of a checkpoint.

        They share the memory of the weights on a CPU, until a graph is compiled.
        """
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
        self.freeze_embeddings = freeze_embeddings

    def computing_in(self, precision: str) -> Self:
        """Return the encoder, from now on computing in bf16 or int8; its vectors stay float32.

        Raises ValueError if its engine cannot.
        """
        raise NotImplementedError

    def __copy__(self) -> Self:
        """Return another encoder that shares weights and graphs, with its own method and settings."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__, reference=None, on_torch=None)
        return copied

    @property
    def reading(self) -> Reading:
        """How the vectors are read."""
        return self.method.reading

    def __repr__(self) -> str:
        """Return the name, the dimensions, the engine and where a vector is read."""
        engine = {"torch": "PyTorch", "openvino": "OpenVINO", "static": "a table"}[self.backend]
        token = "[MASK]" if self.reading.template.prompts else "the first token"
        read = f"read at {token}" if self.reading.pooling is Pooling.TOKEN else f"{self.reading.pooling.value} pooling"
        return f"Encoder({self.name!r}, {self.dim} dimensions, {engine}, {read})"

    def _set_reading(self, name: str, backbone: str, backbone_fingerprint: str) -> None:
        """Set what follows from tokenizer, method, width and positions, before anything is allocated.

        Raises ValueError if no position is left for the sentence.
        """
        self.name, self.prompts = name, {"query": "", "document": ""}
        self.backbone, self.backbone_fingerprint = backbone, backbone_fingerprint
        self.views, self.dim = rendered(self.method, self.tokenizer), self.reading.width(self.width)
        if self.reading.lower_case:
            lower_case(self.tokenizer)
        self._set_prompt()
        if self.max_content < 1:
            raise ValueError(
                f"{self.method.name}: template and prefix ({self.reading.prefix}) leave no position for the sentence"
            )

    def _set_prompt(self) -> None:
        self.prompt_template, self.prompt = self.reading.template, self.views[0][0]
        if self.tokenizer.mask_token_id is None:
            return
        if self.views[0][0].mask_index is None:
            self.prompt_template = MEANS_ROBERTA if self.first_position else MEANS
        self.prompt = render(self.prompt_template, self.tokenizer)

    def reading_by(self, reading: Reading) -> Self:
        """Return an encoder of the same weights with another reading of the same prefix."""
        other = copy(self)
        other.method = replace(self.method, reading=reading, further=())
        other.views = rendered(other.method, self.tokenizer)
        if reading.head_when is not When.ALWAYS:
            other.dim = reading.width(self.width)
        other._set_prompt()
        return other

    # -- text to vectors ----------------------------------------------------------------------------------------

    @property
    def max_content(self) -> int:
        """Maximum tokens of a sentence, by the positions that the longest template and the prefix leave.

        The template of `prompt` counts too, unless the row has a maximum length of its own.
        """
        prompts = () if self.max_row_length else ((self.prompt,),)  # a length of its own is kept in full
        around = max(template.length for view in (*self.views, *prompts) for template in view)
        room = self.row_limit - self.reading.prefix - around
        return room if self.max_row_length is None else min(room, self.max_row_length - self.views[0][0].length)

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change with the initial backbone, the method and any learned parameter.

        A reduced `max_seq_length` and a default prompt change them, too. They are the same with every engine.
        """
        before = self.named_prompt(None)
        cut = () if self.max_row_length is None else (str(self.max_row_length),)
        return array_digest(
            self.learned_arrays(), self.backbone_fingerprint, json.dumps(identity(self.method)), *cut,
            *([before] if before else ()),
        )  # fmt: skip

    @property
    def learned_count(self) -> int:
        """The number of parameters that a method trained, without a head that encoding does not use."""
        return 0 if self.method.untrained else sum(array.size for array in self.learned_arrays().values())

    def tokenise(
        self, sentences: Sequence[str], templates: Sequence[TokenTemplate], max_length: int | None = None
    ) -> list[list[int]]:
        """Return the token ids of each sentence without those of its template, truncated to fit.

        "[MASK]" is plain text unless the reading has `typed_specials`.
        """
        if not sentences:
            return []
        room = self.row_limit - self.reading.prefix - max(template.length for template in templates)
        limit = min(room, self.max_content, max_length or self.max_content)
        spaced = [f" {text}" if template.spaced else text for text, template in zip(sentences, templates, strict=True)]
        return plain_ids(self.tokenizer, spaced, self.reading.typed_specials, limit)

    def rows_of(
        self, sentences: Sequence[str], templates: Sequence[TokenTemplate], max_length: int | None = None
    ) -> TokenRows:
        """Return the rows of sentences, each in its template, truncated as by `tokenise`."""
        return TokenRows.of(self.tokenise(sentences, templates, max_length), templates)

    def _encode_all(self, texts: list[str], before: str, batch_size: int | None, progress: bool) -> np.ndarray:
        from tqdm.auto import tqdm

        reader = self
        if before and not self.reading.prompt_pooled:  # the pooling leaves the prompt, and what is before it, out
            reader, template = copy(self), self.views[0][0]
            unread = template.start + len(self.tokenise([before], [template])[0])
            reader.views = ((replace(template, unread=unread),), *self.views[1:])
        vectors = np.empty((len(texts), self.dim), np.float32)
        with tqdm(total=len(texts), desc=self.name, unit="sentence", leave=False, disable=not progress) as bar:
            for start in range(0, len(texts), WINDOW):
                window = [before + text for text in texts[start : start + WINDOW]]
                contents = self.tokenise(window, [self.views[0][0]] * len(window))
                vectors[start : start + len(window)] = reader.encode_ids(contents, batch_size, bar.update)
        return vectors

    def encode_ids(
        self, contents: Sequence[Sequence[int]], batch_size: int | None = None, report: Update = lambda done: None
    ) -> np.ndarray:
        """Return (N, d) float32 vectors of N sentences' token ids from `tokenise`; a sentence may be empty.

        A pass has as many sentences as suit the device, and at most `batch_size`. `report` is called with the number
        of sentences of each pass. Rows are unit if the reading is `normalised`.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; give at least 1")
        rows = TokenRows.of(contents, [self.views[0][0]] * len(contents))
        passes = list(plan_batches(rows.sizes + self.reading.prefix, str(self.device), batch_size))
        vectors = np.empty((len(contents), self.dim), np.float32)
        if passes:
            vectors[np.concatenate(passes)] = self.vectors_of(rows, passes, report)
        return unit_rows(vectors) if self.reading.normalised else vectors

    def _vectors_from(self, states: States, bias: States | None, head: Callable[[States], States] | None) -> States:
        """Return vectors of states (B, d): minus their bias (B, d) and through the head, each if there is one."""
        if head is None:
            return states if bias is None else states - bias
        if bias is not None and self.reading.head is Head.TRANSFORM:
            return head(states) - head(bias)  # PromptBERT's released code subtracts after this head
        return head(states if bias is None else states - bias)

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

    @property
    def query_prompt(self) -> str | None:
        """The prompt of `encode_query`, as `recorded_prompt` returns it."""
        return self.recorded_prompt(next((name for name in QUERY if name in self.prompts), None))

    @property
    def document_prompt(self) -> str | None:
        """The prompt of `encode_document`, as `recorded_prompt` returns it."""
        return self.recorded_prompt(next((name for name in DOCUMENT if name in self.prompts), None))

    @property
    def call_settings(self) -> list[Any]:
        """What decides results beside the fingerprint: dimensions that are cut, and prompts; empty if none is set."""
        values = [self.truncate_dim, self.query_prompt, self.document_prompt]
        return [] if all(value is None for value in values) else values

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
        if prompt_name is None and prompt is None:
            prompt = self.query_prompt
        return self.encode(inputs, prompt_name, prompt, *args, **options)

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
        if prompt_name is None and prompt is None:
            prompt = self.document_prompt
        return self.encode(inputs, prompt_name, prompt, *args, **options)

    @property
    def model_card_data(self) -> SimpleNamespace:
        """The model's identity for `mine_hard_negatives`, whose cache it keys; evaluators return scores to callers."""
        return SimpleNamespace(base_model=f"{self.name} {self.fingerprint}", set_evaluation_metrics=lambda *_: None)

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
        if value == self.max_seq_length:
            return  # else a length that was recorded could become that of the longest template
        self.max_row_length = None
        # Capped, not refused: callers set a length without knowing how many positions the template leaves.
        if value is not None and value < self.max_seq_length:
            self.max_row_length = value

    def get_embedding_dimension(self) -> int:
        """Return the dimension of the vectors."""
        return self.dim if self.truncate_dim is None else min(self.dim, self.truncate_dim)

    get_sentence_embedding_dimension = get_embedding_dimension  # the older name

    @contextmanager
    def truncate_embeddings(self, truncate_dim: int | None) -> Iterator[None]:
        """Set the default dimension of `encode` to `truncate_dim` in the block."""
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        try:
            yield
        finally:
            self.truncate_dim = before

    # -- vectors to words ---------------------------------------------------------------------------------------

    def top_tokens(
        self, sentence: str, k: int = 5, denoise: bool = True, template: Template | None = None
    ) -> list[tuple[str, float]]:
        """Return the k likeliest tokens at [MASK] and their probabilities, denoised by default (PromptBERT, Table 7).

        `template` replaces the prompt; a method without a mask uses `This sentence : "[X]" means [MASK].`.
        Raises ValueError unless 1 <= k <= vocabulary, and for a template without [MASK], with [P] or too long;
        ArtefactError if the model has no masked-language-model head.
        """
        spoken, alone = self.mask_logits(sentence, template)
        return self.likeliest(spoken - alone if denoise else spoken, k)

    def mask_logits(self, sentence: str, template: Template | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return (V,) logits at [MASK] of a sentence in its prompt, and of the prompt alone, as in `top_tokens`.

        PromptBERT does not say at which step tokens are denoised. A difference of logits also removes the output bias,
        which otherwise ranks the most frequent tokens of the corpus first.
        """
        prompt = self.prompt if template is None else self.prompt_of(template)
        room = self.row_limit - self.reading.prefix - prompt.length
        logits = self.word_logits(np.concatenate(self.mask_states(self.rows_of([sentence], [prompt], room))))
        return logits[0], logits[1]

    def likeliest(self, logits: np.ndarray, k: int) -> list[tuple[str, float]]:
        """Return the k likeliest tokens by logits (V,) and their probabilities, best first, without special tokens."""
        special = set(self.tokenizer.all_special_ids)
        if not 1 <= k <= len(self.tokenizer) - len(special):
            raise ValueError(f"k is {k}; choose between 1 and {len(self.tokenizer) - len(special)}")
        shares = np.exp(logits - logits.max())
        probabilities = shares / shares.sum()
        ranked = np.argsort(-logits, kind="stable")[: k + len(special)]  # special tokens may be among the first
        best = [int(i) for i in ranked if int(i) not in special]
        return [(str(self.tokenizer.decode([i])).strip(), float(probabilities[i])) for i in best[:k]]

    def prompt_of(self, template: Template) -> TokenTemplate:
        """Return a template in this model's tokens. Raises ValueError as `top_tokens` does."""
        if template == self.prompt_template:
            return self.prompt
        prompt = render(template, self.tokenizer)
        if prompt.mask_index is None or prompt.slot_ids:
            raise ValueError(
                f"template {template.text!r} needs a [MASK], where words are predicted, and no learned [P]"
            )
        if self.row_limit - self.reading.prefix <= prompt.length:
            raise ValueError(f"a template of {prompt.length} tokens leaves no position for the sentence; shorten it")
        return prompt
