"""Files shared by all model exports: weights, configuration, tokenizer, and the record for reading them back."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cse.engines.torch_encoder import TorchEncoder
from cse.methods.method import When
from cse.methods.serialise import to_json
from cse.models.exported import FORMAT
from cse.models.names import EXPORT_RECORD
from cse.publishing.plain import PlainModel
from cse.storage.writing import FolderKind

EXPORT = FolderKind(
    "an export", EXPORT_RECORD, ("format", "to"),
    (
        EXPORT_RECORD, "README.md", "config.json", "model*.safetensors", "model*.safetensors.index.json",
        "tokenizer.json", "tokenizer_config.json", "modules.json", "sentence_bert_config.json",
        "config_sentence_transformers.json", "modeling_prefix.py", "model.onnx", "model.onnx.data",
        "adapter_config.json", "adapter_model.safetensors", "base", "base/*.json", "base/model*.safetensors",
        *(f"{number}_{name}{end}" for number in "123" for name in ("WordWeights", "Pooling", "Dense")
          for end in ("", "/config.json", "/wordweights_config.json", "/model.safetensors")),
        "data-*.arrow", "dataset_info.json", "state.json", "vectors.faiss", "index.parquet", "vectors.tsv",
        "metadata.tsv",
    ),
)  # fmt: skip
SPECIALS = ("cls_token", "sep_token", "mask_token", "pad_token", "unk_token", "bos_token", "eos_token")


def write_json(path: Path, value: object) -> None:
    """Write JSON to a file, creating its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def write_record(target: Path, to: str, encoder: TorchEncoder, **facts: Any) -> None:
    """Write the record that `cse.load` opens the folder with: the method for encoding, and the model exported."""
    method = encoder.method
    kept = When.ALWAYS if method.head_when is When.ALWAYS else When.NEVER
    reading = replace(method, views=method.views[:1], denoise=When.NEVER, head_when=kept)
    record = {
        "format": FORMAT, "version": 1, "to": to, "model": encoder.name, "fingerprint": encoder.fingerprint,
        "method": to_json(reading), "max_length": encoder.max_seq_length, "prompts": encoder.prompts,
        "default_prompt_name": encoder.default_prompt_name,
        "truncate_dim": encoder.truncate_dim, "similarity_fn_name": encoder.similarity_fn_name,
    }  # fmt: skip
    write_json(target / EXPORT_RECORD, {**record, **facts})


def write_tokenizer(target: Path, encoder: TorchEncoder, tokenizer: dict[str, Any]) -> None:
    """Write a tokenizer, with its post-processor, that reads typed special tokens as text and truncates like cse."""
    source = encoder.tokenizer
    specials = {name: str(token) for name in SPECIALS if (token := getattr(source, name, None)) is not None}
    write_json(target / "tokenizer.json", tokenizer)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",  # a model's own class would replace the post-processor
        "split_special_tokens": True, "model_max_length": encoder.max_seq_length, "padding_side": "right",
        "truncation_side": source.truncation_side, "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"], **specials,
    }  # fmt: skip
    write_json(target / "tokenizer_config.json", config)


def write_weights(target: Path, plain: PlainModel, extra: dict[str, torch.Tensor], config: dict[str, Any]) -> None:
    """Write the bare backbone in float32 with `extra` tensors, and its configuration updated with `config`."""
    from huggingface_hub import save_torch_state_dict

    base: Any = plain.encoder.model.base_model
    values = {key: value for key, value in base.config.to_dict().items() if not key.startswith("_")}
    values |= {
        "architectures": [type(base).__name__],
        "dtype": "float32",
        "vocab_size": len(plain.tensors[plain.words]),
    }
    target.mkdir(exist_ok=True)
    write_json(target / "config.json", {**values, **config})
    save_torch_state_dict(plain.tensors | extra, target, max_shard_size="2GB")


def copy_code(target: Path) -> None:
    """Copy `modeling_prefix.py` into an export that needs it."""
    shutil.copyfile(Path(__file__).with_name("modeling_prefix.py"), target / "modeling_prefix.py")
