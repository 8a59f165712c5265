"""The files of an export, and the record for reading it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cse.encoder.torch_encoder import TorchEncoder
from cse.files.writing import FolderKind
from cse.methods.settings import to_json
from cse.models.exported import FORMAT
from cse.models.names import EXPORT_RECORD
from cse.models.pipeline import PIPELINE_FILES
from cse.models.pipeline_writer import write_json

EXPORT = FolderKind(
    "an export", EXPORT_RECORD, ("format", "to"),
    (
        EXPORT_RECORD, "README.md", *PIPELINE_FILES, "modeling_prefix.py", "model.onnx", "model.onnx.data",
        "adapter_config.json", "adapter_model.safetensors", "base", "base/*.json", "base/model*.safetensors",
        "data-*.arrow", "dataset_info.json", "state.json", "vectors.faiss", "index.parquet", "vectors.tsv",
        "metadata.tsv",
    ),
)  # fmt: skip


def write_record(target: Path, to: str, encoder: TorchEncoder, **facts: Any) -> None:
    """Write the record that `cse.load` opens the folder with: the method for encoding, and the model exported."""
    record = {
        "format": FORMAT, "version": 1, "to": to, "model": encoder.name, "fingerprint": encoder.fingerprint,
        "method": to_json(encoder.method.in_encoding), "max_length": encoder.max_seq_length, "prompts": encoder.prompts,
        "default_prompt_name": encoder.default_prompt_name,
        "truncate_dim": encoder.truncate_dim, "similarity_fn_name": encoder.similarity_fn_name,
    }  # fmt: skip
    write_json(target / EXPORT_RECORD, {**record, **facts})
