"""The output folder of a pretraining run: who may write there, and the model folder with its record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cse.backbone import describe, set_dropout
from cse.files import write_folder
from cse.model_names import location
from cse.training_state import STATE_FOLDER, check_folder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RECORD, SOURCE = "pretraining.json", "source.json"


def claim(output: Path, source: dict[str, Any], resume: bool, overwrite: bool) -> None:
    """Make `output` a folder for this text and vocabulary, or raise ValueError where it holds something else."""
    record = output / SOURCE
    check_folder(output)
    if output.is_dir() and any(path != record for path in output.iterdir()):  # alone it is of a run that made nothing
        if not record.is_file():
            raise ValueError(f"{output} already holds something else; give another `output`")
        if json.loads(record.read_text()) != source:
            raise ValueError(f"{output} was begun with other text, `vocabulary` or `init`; give another `output`")
        if not (resume or overwrite) and ((output / "model").exists() or (output / STATE_FOLDER).exists()):
            raise ValueError(f"{output} already holds a run; pass `resume` to go on or `overwrite` to begin anew")
    if overwrite:
        shutil.rmtree(output / STATE_FOLDER, ignore_errors=True)  # or a later `resume` would go on with the old run
    output.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(source))


def read_record(init: str | None) -> dict[str, Any] | None:
    """What is known of the pretraining that a run went on from."""
    path = Path(location(init or "")) / RECORD
    return json.loads(path.read_text()) if init and path.is_file() else None


def finish(
    output: Path, model: Any, tokenizer: PreTrainedTokenizerBase, meta: dict[str, Any], device: str
) -> dict[str, Any]:
    """Write the model folder with the record of its pretraining, which comes back."""
    set_dropout(model, 0.1)  # contrastive training needs the noise
    result = {**meta, "device": device, "model": describe(model), "torch": torch.__version__}
    tokenizer.model_max_length = model.config.max_position_embeddings

    def fill(folder: Path) -> None:
        model.half().save_pretrained(folder, max_shard_size="9MB")
        tokenizer.save_pretrained(folder)
        (folder / RECORD).write_text(json.dumps(result, indent=1))

    write_folder(output / "model", fill)
    return result
