"""The path from text to vector, shared by training, evaluation, the index and the app.

text -> truncated token ids -> rows of a template -> word embeddings with learned slots -> backbone with prefix ->
pooled vector -> minus template bias -> head. The method and the module's mode determine which steps apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from cse.encoding.backbone import backbone_tensors, fingerprint, first_position, mlm_head, row_limit, tensor_digest
from cse.encoding.batches import MOST_TOKENS, TOKENS, WINDOW, plan_batches, plan_packed
from cse.encoding.heads import tanh_head, transform_head
from cse.encoding.long_texts import beginning
from cse.encoding.overlap import beside
from cse.encoding.packed import is_packed
from cse.encoding.protocol import SentenceModel
from cse.encoding.rows import HARD, Row, TokenTemplate, render
from cse.encoding.tokenising import plain_ids, readable
from cse.methods.method import Head, Method, When
from cse.methods.serialise import encoding_json
from cse.methods.templates import MEANS, MEANS_ROBERTA, Template

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class Encoder(SentenceModel):
    """A backbone and a method. Train mode applies the method's training steps, eval mode those of encoding.

    `prompt` is the template whose [MASK] predicts tokens: the method's own, or PromptBERT's if that has no [MASK].
    `head` replaces a newly initialised head.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        method: Method,
        *,
        name: str,
        backbone: str = "",
        head: nn.Module | None = None,
    ) -> None:
        super().__init__(model, tokenizer, method, name)
        self.backbone = backbone
        self.backbone_fingerprint = fingerprint(model, tokenizer)  # before training
        self.freeze_embeddings = False
        self.prompt_template = method.template
        if self.views[0][0].mask_index is None:
            self.prompt_template = MEANS_ROBERTA if first_position(model) else MEANS
        self.prompt = render(self.prompt_template, tokenizer)
        if self.max_content < 1:
            raise ValueError(f"{method.name}: template and prefix ({method.prefix}) leave no position for the sentence")
        self.head = head
        if head is None and method.head_when is not When.NEVER:
            self.head = tanh_head(self.dim) if method.head is Head.TANH else transform_head(model)
        self.select_learned()
        self.eval()

    @property
    def max_content(self) -> int:
        """Maximum tokens of a sentence, by the positions that the longest template and the prefix leave."""
        around = max(template.length for view in (*self.views, (self.prompt,)) for template in view)
        room = row_limit(self.model) - self.method.prefix - around
        return room if self.max_row_length is None else min(room, self.max_row_length - self.views[0][0].length)

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change with the initial backbone, the method and any learned parameter.

        A reduced `max_seq_length` and a default prompt change them, too.
        """
        before = self.named_prompt(None)
        cut = () if self.max_row_length is None else (str(self.max_row_length),)
        tensors = self.learned() | (self._head_parameters() if self.method.head_when is When.ALWAYS else {})
        return tensor_digest(
            tensors, self.backbone_fingerprint, encoding_json(self.method), *cut, *([before] if before else ())
        )

    # -- learned parameters -------------------------------------------------------------------------------------

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Enable gradients for the parameters that the method learns, and for no others."""
        self.freeze_embeddings = freeze_embeddings
        learned = {id(tensor) for tensor in self.learned(training=True).values()}
        for tensor in self.parameters():
            tensor.requires_grad_(id(tensor) in learned)

    def learned(self, training: bool = False) -> dict[str, nn.Parameter]:
        """Return the method's parameters by name: those of a checkpoint; if `training`, also a training-only head."""
        found: dict[str, nn.Parameter] = {}
        if not (self.method.frozen or self.method.untrained):
            words = self.model.get_input_embeddings().weight
            for name, tensor in backbone_tensors(self.model).items():
                if not (self.freeze_embeddings and tensor is words):
                    found[name] = tensor
        found |= {name: tensor for name in ("prefix", "slots") if (tensor := getattr(self, name)) is not None}
        if not self.method.untrained and (training or self.method.head_when is When.ALWAYS):
            found |= self._head_parameters()
        return found

    def _head_parameters(self) -> dict[str, nn.Parameter]:
        return {} if self.head is None else dict(self.head.named_parameters(prefix="head"))

    # -- text to vectors ----------------------------------------------------------------------------------------

    def tokenise(
        self, sentences: Sequence[str], templates: Sequence[TokenTemplate], max_length: int | None = None
    ) -> list[list[int]]:
        """Return the token ids of each sentence without special ones, truncated to fit; "[MASK]" is plain text."""
        if not sentences:
            return []
        limit = min(self.max_content, max_length or self.max_content)
        clean = map(readable, sentences)  # before `beginning`, which cuts where the tokenizer sees a space
        spaced = [f" {text}" if template.spaced else text for text, template in zip(clean, templates, strict=True)]
        read = plain_ids(self.tokenizer, [beginning(text, self.tokenizer, limit) for text in spaced])["input_ids"]
        keeps_end = self.tokenizer.truncation_side == "left"
        return [ids[-limit:] if keeps_end else ids[:limit] for ids in read]

    def forward(
        self,
        contents: Sequence[Sequence[int]],
        templates: Sequence[TokenTemplate],
        rows: Sequence[Row] | None = None,
    ) -> torch.Tensor:
        """Return (B, d) float32 vectors of token ids (B lists), each in its own template.

        `rows` (B) replace those of the templates, for training that augments them.
        """
        hidden = self.pool(rows or [template.row(ids) for ids, template in zip(contents, templates, strict=True)])
        bias = self.bias(templates, list(map(len, contents))) if self._applies(self.method.denoise) else None
        if self.head is None or not self._applies(self.method.head_when):
            return hidden if bias is None else hidden - bias
        if self.method.head is Head.TRANSFORM:  # PromptBERT's released code subtracts after this head
            return self._headed(hidden) if bias is None else self._headed(hidden) - self._headed(bias)
        return self._headed(hidden if bias is None else hidden - bias)

    def _headed(self, hidden: torch.Tensor) -> torch.Tensor:
        head: Any = self.head
        return head(hidden.to(next(head.parameters()).dtype)).float()

    def _applies(self, when: When) -> bool:
        return when is When.ALWAYS or (when is When.TRAINING and self.training)

    def _encode_all(self, texts: list[str], batch_size: int | None, progress: bool) -> torch.Tensor:
        from tqdm import tqdm

        windows = (texts[start : start + WINDOW] for start in range(0, len(texts), WINDOW))
        tokenised = (self.tokenise(window, [self.views[0][0]] * len(window)) for window in windows)
        vectors, start = torch.empty(len(texts), self.dim), 0
        with tqdm(total=len(texts), desc=self.name, unit="sentence", leave=False, disable=not progress) as bar:
            for contents in beside(self.device, tokenised):
                vectors[start : start + len(contents)] = self.encode_ids(contents, batch_size, bar.update)
                start += len(contents)
        return vectors

    def encode_ids(
        self,
        contents: Sequence[Sequence[int]],
        batch_size: int | None = None,
        report: Callable[[int], object] = lambda done: None,
    ) -> torch.Tensor:
        """Return (N, d) float32 vectors on the CPU of N sentences' token ids from `tokenise`; a sentence may be empty.

        A pass has as many sentences as `cse.encoding.batches` plans for the device, and at most `batch_size`.
        `report` is called with the number of sentences of each pass.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; give at least 1")
        template, tokens = self.views[0][0], TOKENS.get(self.device.type, MOST_TOKENS)
        around = template.length + self.method.prefix
        plan = plan_packed if is_packed(self.model) else plan_batches
        passes, found = list(plan([around + len(ids) for ids in contents], tokens, batch_size)), []
        with self.inference():
            for chosen in passes:
                # The class's forward: during training, accelerate wraps the instance's in mixed precision.
                found.append(Encoder.forward(self, [contents[i] for i in chosen], [template] * len(chosen)).float())
                report(len(chosen))
        vectors = torch.empty(len(contents), self.dim)
        if passes:  # copied at the end: a copy after each pass would make a GPU wait while the next is collated
            vectors[np.concatenate(passes)] = torch.cat(found).cpu()
        return vectors

    # -- vectors to words ---------------------------------------------------------------------------------------

    def token_logits(
        self, contents: Sequence[Sequence[int]], denoise: bool, prompt: TokenTemplate | None = None
    ) -> torch.Tensor:
        """Return (B, V) logits at [MASK] of B token id lists in a `prompt`; if `denoise`, minus those of the prompt.

        PromptBERT does not say at which step tokens are denoised. A difference of logits also removes the output bias,
        which otherwise ranks the most frequent tokens of the corpus first.
        """
        template, head = prompt or self.prompt, mlm_head(self.model)
        logits = head(self.read([template.row(ids) for ids in contents]))
        return logits - head(self.bias([template] * len(contents), list(map(len, contents)))) if denoise else logits

    def top_tokens(
        self, sentence: str, k: int = 5, denoise: bool = True, template: Template | None = None
    ) -> list[tuple[str, float]]:
        """Return the k likeliest tokens at [MASK] and their probabilities, denoised by default (PromptBERT, Table 7).

        `template` replaces the prompt; a method without a mask uses `This sentence : "[X]" means [MASK].`.
        Raises ValueError unless 1 <= k <= vocabulary, and for a template without [MASK], with [P] or too long.
        """
        spoken, alone = self.mask_logits(sentence, template)
        return self.likeliest(spoken - alone if denoise else spoken, k)

    def mask_logits(self, sentence: str, template: Template | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (V,) logits at [MASK] of a sentence in its prompt, and of the prompt alone, as in `top_tokens`."""
        prompt = self.prompt if template is None else self.prompt_of(template)
        room = row_limit(self.model) - self.method.prefix - prompt.length
        contents = self.tokenise([sentence], [prompt], room)
        with self.inference():
            spoken = self.token_logits(contents, False, prompt)[0]
            alone = mlm_head(self.model)(self.bias([prompt], [len(contents[0])]))[0]
        return spoken, alone

    def likeliest(self, logits: torch.Tensor, k: int) -> list[tuple[str, float]]:
        """Return the k likeliest tokens by logits (V,) and their probabilities, best first, without special tokens."""
        special = set(self.tokenizer.all_special_ids)
        if not 1 <= k <= len(self.tokenizer) - len(special):
            raise ValueError(f"k is {k}; choose between 1 and {len(self.tokenizer) - len(special)}")
        probabilities = logits.softmax(-1)
        best = [int(i) for i in probabilities.argsort(descending=True)[: k + len(special)] if int(i) not in special]
        return [(str(self.tokenizer.decode([i])).strip(), float(probabilities[i])) for i in best[:k]]

    def prompt_of(self, template: Template) -> TokenTemplate:
        """Return a template in this model's tokens. Raises ValueError as `top_tokens` does."""
        if template == self.prompt_template:
            return self.prompt
        prompt = render(template, self.tokenizer)
        if prompt.mask_index is None or any(slot != HARD for slot in (*prompt.before_slots, *prompt.after_slots)):
            raise ValueError(
                f"template {template.text!r} needs a [MASK], where words are predicted, and no learned [P]"
            )
        if row_limit(self.model) - self.method.prefix <= prompt.length:
            raise ValueError(f"a template of {prompt.length} tokens leaves no position for the sentence; shorten it")
        return prompt
