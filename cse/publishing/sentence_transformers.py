"""Export encoders as sentence-transformers folders, which contain code only for prefix models."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from cse.engines.torch_encoder import TorchEncoder
from cse.models.pipeline import NAME
from cse.models.pipeline_writer import write_pipeline
from cse.publishing.export_files import write_record

CODE = "modeling_prefix.py"
PREFIXED = {"bert": "PrefixBertModel", "roberta": "PrefixRobertaModel"}


def fill(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError for an unsupported encoder."""
    config: dict[str, Any] = {}
    if encoder.prefix is not None:
        kind = prefixed_class(encoder)
        config = {
            "architectures": [kind], "auto_map": {"AutoModel": f"{Path(CODE).stem}.{kind}"},
            "prefix_length": encoder.reading.prefix,
        }  # fmt: skip
    plain = write_pipeline(encoder, target, **config)
    if config:
        shutil.copyfile(Path(__file__).with_name(CODE), target / CODE)
    write_record(target, NAME, encoder, slots=plain.slots)


def prefixed_class(encoder: TorchEncoder) -> str:
    """The class in `modeling_prefix.py` for an encoder's family. Raises ValueError for an unsupported family."""
    family = encoder.model.config.model_type
    if family not in PREFIXED:
        raise ValueError(f"{encoder.name}: prefixes are exported for {' and '.join(PREFIXED)}, not for {family}")
    return PREFIXED[family]
