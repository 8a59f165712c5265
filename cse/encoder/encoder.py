"""The path from text to vector, shared by training, evaluation, the index and the app.

text -> truncated token ids -> rows of a template -> [an engine: PyTorch or OpenVINO] -> pooled vector, minus template
bias, through the head. The method determines which steps apply. Nothing here needs PyTorch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cse.encoder.protocol import SentenceModel, Update
from cse.encoder.rows import WINDOW, TokenRows, TokenTemplate, lower_case, plain_ids, plan_batches, render, rendered
from cse.files.checksums import array_digest
from cse.methods.method import Head, Pooling, When
from cse.methods.settings import identity
from cse.methods.templates import MEANS, MEANS_ROBERTA, Template
from cse.vectors import unit_rows

if TYPE_CHECKING:
    import torch
    from typing_extensions import Self

    from cse.methods.method import Reading

States = TypeVar("States", "np.ndarray", "torch.Tensor")  # of an engine


class Encoder(SentenceModel):
    """A model and a method, run by an engine: `backend` is "torch" (`TorchEncoder`) or "openvino" (`OpenVinoEncoder`).

    `prompt` is the template whose [MASK] predicts tokens: the method's own, or PromptBERT's if that has no [MASK].
    `backbone` is the name of the backbone and `backbone_fingerprint` its digest before training; `width` is that of
    its states.
    """

    width: int
    reference: Any = None  # what opened it, but on PyTorch
    on_torch: Any = None  # the same model on PyTorch, where something has looked inside it

    def __repr__(self) -> str:
        """Return the name, the dimensions, the engine and where a vector is read."""
        engine = {"torch": "PyTorch", "openvino": "OpenVINO"}[self.backend]
        token = "[MASK]" if self.reading.template.prompts else "the first token"
        read = f"read at {token}" if self.reading.pooling is Pooling.TOKEN else f"{self.reading.pooling.value} pooling"
        return f"Encoder({self.name!r}, {self.dim} dimensions, {engine}, {read})"

    def _set_reading(self, name: str, backbone: str, backbone_fingerprint: str) -> None:
        """Set what the engine does not know. Raises ValueError if no position is left for the sentence."""
        self.name, self.prompts = name, {"query": "", "document": ""}
        self.backbone, self.backbone_fingerprint = backbone, backbone_fingerprint
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
        other.forget_biases()  # otherwise the encoder's cache would grow with every reading
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
