"""Backbones: loading of masked language models by transformers, and their properties."""

from __future__ import annotations

import copy
import inspect
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from cse.encoder.stored_backbone import EPS, FAMILIES, UNUSED_WEIGHT, check_fit, check_sizes, no_words
from cse.encoder.stored_tokenizer import NEEDED_ROLES, OWN_KEY, Additions
from cse.errors import ArtefactError, first_line
from cse.files import hub
from cse.files.checksums import CHECKSUM_CURE, backbone_digest, check_checksums
from cse.files.weights import find_weights, read_arrays

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

OPENING = threading.Lock()
CAPTURING = "transformers.utils.output_capturing"
HEADS = ("cls", "lm_head")  # BERT's and RoBERTa's masked-language-model head
MAX_POSITIONS = 512  # of a model that states no number


@contextmanager
def _alone() -> Iterator[None]:
    """Let one thread open a backbone.

    transformers puts another module in its place while it is imported, and changes functions of PyTorch while it opens
    a model: what two threads open is wrong from then on.
    """
    with OPENING:
        yield


@_alone()
def load_backbone(
    name: str | Path, revision: str | None = None, weights: Mapping[str, np.ndarray] | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Open the model (float32, eval mode) and the tokenizer of a folder or hub id, of any architecture of transformers.

    Half-precision files are converted to float32. `revision` is a hub commit and overrides one after an "@" in the id;
    `opened_commit` returns the commit that was opened.
    `weights` replace the stored ones. The files of a folder must match its checksums, if it has any.
    A model saved without its complete masked-language-model head, as by sentence-transformers, or of an architecture
    that has none, opens without one.
    Raises ArtefactError if there is no such model, if it is damaged, or if it holds weights that nothing reads.
    """
    from transformers import AutoConfig, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    check_checksums(Path(name), CHECKSUM_CURE)
    offline = not Path(name).is_dir() and not hub.reachable()
    repository, pinned = hub.split_revision(str(name))
    try:
        commit = hub.commit_of(str(name), revision)  # once, so that all files are from one commit
        revision = commit or revision or pinned or "main"
        source: dict[str, Any] = {"revision": revision, "local_files_only": offline, "trust_remote_code": False}
        stored = read_arrays(find_weights(str(name), revision=revision)) if weights is None else weights
        if (file := hub.cached_file(str(name), "config.json", revision)) is not None:
            check_sizes(file, stored)  # before transformers reads it
        config = AutoConfig.from_pretrained(repository, **source)
        if added := Additions.of({OWN_KEY: getattr(config, OWN_KEY, None)}):
            stored, config.vocab_size = added.without(stored), config.vocab_size - added.slots
        check_fit(str(name), config, _classes(config)[0], stored)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(repository, **source)
        if added:
            tokenizer = added.bare_tokenizer(tokenizer)
        config._commit_hash = commit  # transformers does not keep it
        model, info = _with_weights(config, stored)
    except ArtefactError:
        raise
    except Exception as error:  # a foreign folder may cause any error; the user's cure is the same
        reason = "no such folder, and the model hub cannot be reached" if offline else first_line(error)
        raise ArtefactError(
            f"cannot open backbone {str(name)!r}: {reason}; copy it again, or give another model"
        ) from error
    _check(str(name), model.eval(), tokenizer, info)
    return model, tokenizer


def _check(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, info: Mapping[str, Any]) -> None:
    """Raise ArtefactError for weights, by their loading report, or a tokenizer that are not those of the model."""
    if lacking := sorted(map(str, [*info["missing_keys"], *info["mismatched_keys"]])):
        raise ArtefactError(f"backbone {name!r} lacks weights of a masked language model, first {lacking[0]!r}")
    if unknown := sorted(key for key in info["unexpected_keys"] if not UNUSED_WEIGHT.fullmatch(key)):
        raise ArtefactError(f"{name}: unknown weight {unknown[0]!r}, which may be part of the model")
    if set(tokenizer.get_vocab().values()) <= set(tokenizer.all_special_ids):  # as without tokenizer files
        raise ArtefactError(f"{name}: no vocabulary in it (tokenizer.json, vocab.txt, vocab.json); copy its tokenizer")
    needed = NEEDED_ROLES if reads_positions(model) else ()
    if absent := next((role for role in needed if getattr(tokenizer, f"{role}_token_id") is None), None):
        raise ArtefactError(f"backbone {name!r} has no {absent} token in its tokenizer")
    if tokenizer.pad_token is None:  # beside the tokens of a row, where nothing reads it
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    piece, last = max(tokenizer.get_vocab().items(), key=lambda item: item[1])
    embeddings: Any = model.get_input_embeddings()
    if last >= (rows := len(embeddings.weight)):
        raise ArtefactError(f"{name}: its tokenizer gives {piece!r} the number {last}, its model has {rows} embeddings")
    if not reads_positions(model):
        _check_word_vectors(name, model, rows // 2)


@torch.inference_mode()
def _check_word_vectors(name: str, model: PreTrainedModel, token: int) -> None:
    """Raise ArtefactError unless a model gives the same for its word vectors as for tokens: texts reach it as vectors.

    ESM's leaves its positions and its normalisation out; others raise errors of any kind.
    """
    ids = torch.tensor([[token, token + 1, token]])
    asked = {"attention_mask": torch.ones_like(ids)}
    try:
        of_tokens = model.base_model(input_ids=ids, **asked)[0]
        of_vectors = model.base_model(inputs_embeds=model.get_input_embeddings()(ids), **asked)[0]
        if not torch.allclose(of_tokens, of_vectors, rtol=1e-3, atol=1e-4):
            raise ValueError("what it gives differs")
    except Exception as error:
        raise ArtefactError(
            f"{name}: a model of type {model.config.model_type} does not read word vectors as it reads tokens; give "
            "another model"
        ) from error


def _with_weights(config: Any, weights: Mapping[str, np.ndarray]) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Return a model of `config` with `weights`, with its masked-language-model head if complete; the loading report.

    transformers accepts the keys of the bare model and of one with a head, and unties a decoder that differs.
    """
    whole, bare = _classes(config)
    if config.model_type == "bert":  # PromCSE's BERT has RoBERTa's name for the head
        weights = {re.sub("^lm_head[.]", "cls.predictions.", key): tensor for key, tensor in weights.items()}
    options: dict[str, Any] = {
        "config": config, "state_dict": {key: torch.from_numpy(array) for key, array in weights.items()},
        "dtype": torch.float32, "output_loading_info": True,
    }  # fmt: skip
    if whole is not bare:
        model, info = whole.from_pretrained(None, **options)
        start = f"{model.base_model_prefix}."
        if not info["missing_keys"] or any(key.startswith(start) for key in info["missing_keys"]):
            return model, info
    pooled = "add_pooling_layer" in inspect.signature(bare).parameters
    return bare.from_pretrained(None, **({"add_pooling_layer": False} if pooled else {}), **options)


def _classes(config: Any) -> tuple[Any, Any]:
    """Return transformers' class of a masked language model of `config`, and that of the model without its head."""
    from transformers import MODEL_FOR_MASKED_LM_MAPPING, MODEL_FOR_TEXT_ENCODING_MAPPING, MODEL_MAPPING

    encoders: Any = MODEL_FOR_TEXT_ENCODING_MAPPING  # such as that of T5, without its decoder
    models: Any = MODEL_MAPPING
    whole: Any = MODEL_FOR_MASKED_LM_MAPPING
    kind = type(config)
    bare = encoders.get(kind, None) or models[kind]
    return whole.get(kind, bare), bare


def set_dropout(model: PreTrainedModel, rate: float) -> None:
    """Set the rate of every dropout of a model, and of its config, from which copies are made."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = rate
        elif isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = rate
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = rate


def has_dropout(model: PreTrainedModel) -> bool:
    """True if a model computes otherwise in training, as SimCSE's views of a sentence do."""
    return any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules())


def reads_positions(model: PreTrainedModel) -> bool:
    """True if the blocks are BERT's or RoBERTa's, which take positions and a prefix; others get tokens in columns."""
    return model.config.model_type in FAMILIES


def norm_eps(config: Any) -> float:
    """Return the number that a model's layer normalisation adds to the variance."""
    return float(getattr(config, "layer_norm_eps", None) or getattr(config, "norm_eps", None) or EPS)


def mlm_head(model: PreTrainedModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what maps hidden states (..., d) to vocabulary logits (..., V), bias included.

    Raises ArtefactError if the model was saved without one.
    """
    if reads_positions(model):
        for name in HEADS:
            if isinstance(getattr(model, name, None), torch.nn.Module):
                return getattr(model, name)
    elif model.base_model is not model and model.get_output_embeddings() is not None:
        return partial(_logits, model)
    raise no_words(model.config.model_type)


def _logits(model: PreTrainedModel, states: torch.Tensor) -> torch.Tensor:
    """Return the logits of states by a copy of a whole model that gets these from its base: heads have many names."""
    from transformers.modeling_outputs import BaseModelOutput

    whole, base = copy.copy(model), copy.copy(model.base_model)
    base.forward = lambda *_, **__: BaseModelOutput(last_hidden_state=states[None])
    whole._modules = {**model._modules, model.base_model_prefix: base}
    return whole(inputs_embeds=states[None]).logits[0]


def opened_commit(model: PreTrainedModel) -> str | None:
    """Return the hub commit that `load_backbone` opened; None for a folder."""
    return getattr(model.config, "_commit_hash", None)


def run_block(
    block: Any, hidden: torch.Tensor, mask: torch.Tensor | None = None, *args: Any,
    read_at: torch.Tensor | None = None, **options: Any,
) -> torch.Tensor:  # fmt: skip
    """Run the own forward of a block of BERT or RoBERTa or, with `read_at` (B,), only one token of each row, (B, 1, d).

    The other tokens are needed for keys and values.
    """
    if read_at is None:
        return type(block).forward(block, hidden, mask, *args, **options)
    from transformers import Cache

    own = block.attention.self
    read = hidden[torch.arange(len(hidden), device=hidden.device), read_at][:, None]  # (B, 1, d)
    queries, keys, values = (
        states.unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)  # (B, heads, 1 or L, d / heads)
        for states in (own.query(read), own.key(hidden), own.value(hidden))
    )
    for option in (*args, *options.values()):
        if isinstance(option, Cache):  # transformers 5.24 renamed it
            keys, values = option.update(keys, values, own.layer_idx)
    if mask is not None:  # (B, 1, L, P + L), boolean or additive, equal for all L queries
        mask = mask[:, :, :1] if mask.dtype is torch.bool else mask[:, :, :1].to(queries.dtype)
    dropout = own.dropout.p if block.training else 0.0
    context = scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout)
    return block.feed_forward_chunk(block.attention.output(context.transpose(1, 2).flatten(2), read))


def picklable(model: PreTrainedModel) -> PreTrainedModel:
    """Copy a model's modules, sharing its tensors, without the hooks that transformers leaves in them.

    A pass that returns the states of all layers installs them. They are local functions, which cannot be pickled, and
    are installed again when needed.
    """
    tensors: dict[int, Any] = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    copied = copy.deepcopy(model, tensors)
    for module in copied.modules():
        for number, hook in list(module._forward_hooks.items()):
            if getattr(hook, "__module__", "") == CAPTURING:
                del module._forward_hooks[number]
        if hasattr(module, "_output_capturing_hooks_installed"):
            setattr(module, "_output_capturing_hooks_installed", False)  # noqa: B010  a type checker sees a module
    return copied


def first_position(model: PreTrainedModel) -> int:
    """Return the position id of a row's first token: 0 in BERT, one past the padding id in RoBERTa."""
    padding = getattr(getattr(model.base_model, "embeddings", None), "padding_idx", None)
    return 0 if padding is None else padding + 1


def row_limit(model: PreTrainedModel) -> int:
    """Return the maximum row length in tokens, by the model's positions."""
    return (stated_positions(model) or MAX_POSITIONS) - first_position(model)


def stated_positions(model: PreTrainedModel) -> int:
    """Return the number of positions that a model's configuration states; 0 if it reads rows of any length, as T5."""
    return max(0, int(getattr(model.config, "max_position_embeddings", None) or 0))


def on_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on `device`; the host does not wait for the copy to a GPU."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda" and type(tensor) is torch.Tensor:  # fake tensors, in tests, cannot be pinned
        return tensor.pin_memory().to(device, non_blocking=True)  # of other memory the host waits for the copy
    return tensor.to(device)


def run_behind(base: Any, prefix: torch.Tensor | None, mask: torch.Tensor | None, **inputs: Any) -> Any:
    """Return the output of a bare model whose layers read each row's `prefix` (B, P, layers * 2 * d) before its tokens.

    Row layout of the published checkpoints: layer 0 keys, layer 0 values, layer 1 keys, ... `mask` (B, L) is that of
    the tokens.
    """
    if prefix is None:
        return base(attention_mask=mask, **inputs)
    from transformers import DynamicCache

    layers, heads = base.config.num_hidden_layers, base.config.num_attention_heads
    parts = prefix.unflatten(2, (layers, 2, heads, -1)).permute(2, 3, 0, 4, 1, 5)  # (layers, 2, B, heads, P, d / heads)
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(parts):
        cache.update(keys, values, layer)
    # transformers 5.24 renamed the argument. Blocks ignore an unknown one, and then the mask does not fit.
    name = "cache" if "cache" in inspect.signature(type(base).forward).parameters else "past_key_values"
    mask = None if mask is None else torch.cat([mask.new_ones(prefix.shape[:2]), mask], 1)
    return base(attention_mask=mask, **{name: cache}, **inputs)


BACKEND = "inductor"  # of torch.compile
log = logging.getLogger("cse.encoder")


def compiled_run(*, dynamic: bool, required: bool) -> Callable[..., Any]:
    """Return `run_behind`, compiled when it is called: once for all sizes of its inputs if `dynamic`, else for each.

    If it cannot be compiled, it raises ValueError if `required`, and otherwise logs a line and runs uncompiled.
    """
    from torch._dynamo.exc import TorchDynamoException  # half a second

    run: Callable[..., Any] = torch.compile(run_behind, dynamic=dynamic, backend=BACKEND)

    def run_compiled(*arguments: Any, **inputs: Any) -> Any:
        nonlocal run
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The .grad attribute", UserWarning)  # which the compiler reads
                return run(*arguments, **inputs)
        except TorchDynamoException as error:  # before anything is computed
            reason = " ".join(str(error).split()).partition(" Set TORCHDYNAMO_VERBOSE")[0][:160]
            if required:
                raise ValueError(f"torch.compile fails here ({reason}); give `compile` no") from error
            log.warning("passes are not compiled, as torch.compile fails here (%s)", reason)
            run = run_behind
        return run(*arguments, **inputs)

    return run_compiled


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """Return the digest of a loaded backbone's weights and vocabulary."""
    named = list(model.named_parameters(remove_duplicate=False))
    named.sort(key=lambda pair: not pair[0].startswith(f"{model.base_model_prefix}."))
    names = {tensor: name for name, tensor in reversed(named)}  # tied ones by the name in the backbone, not in its head
    return backbone_digest(as_arrays({name: tensor for tensor, name in names.items()}), tokenizer.get_vocab())


def as_arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Return tensors as float32 arrays on the CPU, which share the memory of float32 tensors there."""
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in tensors.items()}


def backbone_tensors(model: PreTrainedModel) -> dict[str, torch.nn.Parameter]:
    """Return the parameters of a backbone without its masked-LM head, by their names in `Encoder.learned`."""
    return {f"backbone.{name}": tensor for name, tensor in model.base_model.named_parameters()}


def describe(model: PreTrainedModel) -> dict[str, Any]:
    """Return family, layers, width, vocabulary and parameter count of a backbone, for logs and model cards."""
    config = model.config
    return {
        "model_type": config.model_type,
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "vocabulary": config.vocab_size,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
