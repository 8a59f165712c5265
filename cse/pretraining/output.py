"""The output folder of a pretraining run: checks before it starts, and the model folder with its record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from cse.backbones.backbone import set_dropout
from cse.models.names import location
from cse.pretraining.config import MODEL_FOLDER
from cse.storage.checksums import write_checksums
from cse.storage.replace import sweep
from cse.storage.reservation import check_folder
from cse.storage.writing import read_json, write_folder, write_json
from cse.training.records import STATE_FOLDER
from cse.training.state import check_resume

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from cse.pretraining.config import LogWriter, PretrainingRecord, PretrainRequest

RECORD, SOURCE = "pretraining.json", "source.json"
PARTS = (MODEL_FOLDER, STATE_FOLDER, SOURCE, "tokenizer", "corpus")
LEFT = tuple(f".{name}." for name in PARTS)
DROPOUT = 0.1  # BERT's; contrastive training needs the noise
OF_THIS_OPENING = ("is_local", "local_files_only")  # set by transformers in a tokenizer read from a folder


def reserve_output(request: PretrainRequest, report: LogWriter) -> bool:
    """Prepare `request.output` for this text and vocabulary; True if the run continues from a saved state.

    Raises ValueError if the folder holds something else, a finished run to resume, or a run that is neither resumed nor
    overwritten, and ArtefactError if there is no run to resume.
    """
    output, source = request.output, request.source()
    check_folder(output)
    for name in PARTS:
        sweep(output / name)
    begun = output.is_dir() and any(_made(output))
    if begun:
        _check_reusable(request, source)
    saved = request.resume and check_resume(output, begun, lambda line: report({"step": 0, "note": line}))
    if request.overwrite and not saved:
        shutil.rmtree(output / STATE_FOLDER, ignore_errors=True)  # or a later `resume` would continue the old run
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / SOURCE, source)
    return saved


@contextmanager
def removed_if_refused(output: Path) -> Iterator[None]:
    """Remove files left by a run that was refused before it wrote a checkpoint."""
    fresh = all(path.name == SOURCE for path in _made(output))
    try:
        yield
    except ValueError:
        if fresh:
            shutil.rmtree(output, ignore_errors=True)
        raise


def _made(output: Path) -> list[Path]:
    """The entries of the folder, without those left by a killed write, which the next one removes."""
    return [path for path in output.iterdir() if not path.name.startswith(LEFT)]


def _check_reusable(request: PretrainRequest, source: dict[str, object]) -> None:
    """Raise ValueError unless the output folder has the same `source` and its run may be resumed or replaced."""
    output, record = request.output, request.output / SOURCE
    earlier = read_json(record) if record.is_file() else {}
    if earlier.keys() != source.keys():
        raise ValueError(f"{output} already holds something else; give another `output`")
    if all(path == record for path in _made(output)):
        return  # a run that was refused, such as for a wrong text
    if earlier != source:
        raise ValueError(f"{output} was begun with other text, `vocabulary` or `init`; give another `output`")
    if request.resume and _finished(request):
        raise ValueError(f"{output} is already finished; there is nothing to resume")
    made = (output / MODEL_FOLDER).exists() or (output / STATE_FOLDER).exists()
    if made and not (request.resume or request.overwrite):
        raise ValueError(f"{output} already holds a run; pass `resume` to go on or `overwrite` to start again")


def _finished(request: PretrainRequest) -> bool:
    """True if the model of this recipe's last step was written."""
    record, state = request.output / MODEL_FOLDER / RECORD, request.output / STATE_FOLDER / "meta.json"
    if not (record.is_file() and state.is_file()):
        return False
    saved = read_json(state)
    same = saved.get("recipe") == request.recipe() == read_json(record).get("recipe")
    return same and saved.get("step") == request.config.steps


def read_record(init: str | None) -> PretrainingRecord | None:
    """The record of the pretraining that made the model `init`, None where there is none."""
    path = Path(location(init or "")) / RECORD
    return cast("PretrainingRecord", read_json(path)) if init and path.is_file() else None


def save_model(
    request: PretrainRequest, model: Any, tokenizer: PreTrainedTokenizerBase, record: PretrainingRecord
) -> None:
    """Write the model in float16, its tokenizer and the record to `output / "model"`, replacing an earlier one.

    Raises ValueError, and keeps the earlier one, for a weight that is not finite.
    """
    half = model.half()
    if odd := next((name for name, tensor in half.named_parameters() if not tensor.isfinite().all()), None):
        raise ValueError(f"{odd} holds a number that is not finite in float16; lower `learning_rate` and start again")
    set_dropout(model, DROPOUT)
    tokenizer.model_max_length = model.config.max_position_embeddings
    for key in OF_THIS_OPENING:  # a resumed run reads its tokenizer from a folder, and would save another file
        tokenizer.init_kwargs.pop(key, None)

    def fill(folder: Path) -> None:
        half.save_pretrained(folder)
        model.config.dtype = torch.float32  # in which other tools then compute, as this project does
        model.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / RECORD).write_text(json.dumps(record, indent=1))
        write_checksums(folder)

    write_folder(request.output / MODEL_FOLDER, fill)
