"""Export prefix models as peft adapters (prefix tuning for feature extraction)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cse.engines.torch_encoder import TorchEncoder
from cse.models.exported import ADAPTER, BASE, PROMPTS
from cse.models.names import location
from cse.models.pipeline_writer import write_json, write_tokenizer, write_weights
from cse.models.plain import plain_model
from cse.publishing.export_files import write_record
from cse.storage.hub import split_revision

NAME = "peft"


def fill(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError unless it is a prefix on a frozen backbone."""
    from safetensors.torch import save_file

    method = encoder.method
    if encoder.prefix is None or not method.reading.frozen:
        raise ValueError(f"{encoder.name} is not a prefix on a frozen backbone, as `to` peft requires; "
                         "give `to` sentence-transformers")  # fmt: skip
    plain = plain_model(encoder)
    if plain.head is not None:
        raise ValueError(f"{encoder.name} has a head, which peft cannot store; give `to` sentence-transformers")
    base, revision = base_of(encoder)
    if base == BASE:
        write_weights(target / BASE, plain, plain.tensors)
        write_tokenizer(target / BASE, encoder, plain.tokenizer)
    config: Any = encoder.model.config
    write_json(target / "adapter_config.json", {
        "peft_type": "PREFIX_TUNING", "task_type": "FEATURE_EXTRACTION", "base_model_name_or_path": base,
        "revision": revision, "inference_mode": True, "num_virtual_tokens": method.reading.prefix,
        "num_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
        "token_dim": encoder.dim, "encoder_hidden_size": encoder.dim, "num_transformer_submodules": 1,
        "prefix_projection": False,
    })  # fmt: skip
    save_file({PROMPTS: encoder.prefix.detach().float().cpu().contiguous()}, target / ADAPTER)
    write_tokenizer(target, encoder, plain.tokenizer)
    write_record(target, NAME, encoder, base=base, revision=revision)


def base_of(encoder: TorchEncoder) -> tuple[str, str | None]:
    """The hub id and commit of a backbone that transformers opens by its id; `BASE` and None for any other."""
    place = location(encoder.backbone)
    if Path(place).is_dir():
        return BASE, None
    repository, pinned = split_revision(place)
    return repository, getattr(encoder.model.config, "_commit_hash", None) or pinned
