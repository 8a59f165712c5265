"""The output folder of a pretraining run: who may write there, and the model folder with its record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cse.encoding.backbone import set_dropout
from cse.models.names import location
from cse.pretraining.config import MODEL_FOLDER
from cse.storage.checksums import write_checksums
from cse.storage.parts import save_parts
from cse.storage.replace import sweep
from cse.storage.weights import SINGLE, read_tensors
from cse.storage.writing import read_json, write_folder, write_json
from cse.training.state import STATE_FOLDER, check_folder, check_resume

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from cse.pretraining.config import PretrainRequest
    from cse.pretraining.records import PretrainingRecord, Report

RECORD, SOURCE = "pretraining.json", "source.json"
PARTS = (MODEL_FOLDER, STATE_FOLDER, SOURCE, "tokenizer", "corpus")
LEFT = tuple(f".{name}." for name in PARTS)
MEGABYTE = 10**6  # bytes
DROPOUT = 0.1  # BERT's; contrastive training needs the noise
OF_THIS_OPENING = ("is_local", "local_files_only")  # what transformers notes in a tokenizer that it read from a folder


def reserve_output(request: PretrainRequest, report: Report) -> bool:
    """Make `request.output` a folder of this text and vocabulary; whether the run goes on from a saved state.

    Raises ValueError where the folder holds something else, a finished run that is resumed, or a run that is neither
    resumed nor overwritten, and ArtefactError where a run is resumed that was never begun.
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
        shutil.rmtree(output / STATE_FOLDER, ignore_errors=True)  # or a later `resume` would go on with the old run
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / SOURCE, source)
    return saved


@contextmanager
def nothing_left_of_a_refusal(output: Path) -> Iterator[None]:
    """Remove what a run that is refused meanwhile wrote to a folder where nothing was made before."""
    fresh = all(path.name == SOURCE for path in _made(output))
    try:
        yield
    except ValueError:
        if fresh:
            shutil.rmtree(output, ignore_errors=True)
        raise


def _made(output: Path) -> list[Path]:
    """What lies in the folder, without what a killed write left, which the next one removes."""
    return [path for path in output.iterdir() if not path.name.startswith(LEFT)]


def _check_reusable(request: PretrainRequest, source: dict[str, object]) -> None:
    """Raise ValueError unless the output folder is of the same `source` and its run may be continued or replaced."""
    output, record = request.output, request.output / SOURCE
    earlier = read_json(record) if record.is_file() else {}
    if earlier.keys() != source.keys():
        raise ValueError(f"{output} already holds something else; give another `output`")
    if all(path == record for path in _made(output)):
        return  # a run that made nothing, of a mistaken text, say
    if earlier != source:
        raise ValueError(f"{output} was begun with other text, `vocabulary` or `init`; give another `output`")
    if request.resume and _finished(request):
        raise ValueError(f"{output} is already finished; there is nothing to resume")
    made = (output / MODEL_FOLDER).exists() or (output / STATE_FOLDER).exists()
    if made and not (request.resume or request.overwrite):
        raise ValueError(f"{output} already holds a run; pass `resume` to go on or `overwrite` to begin anew")


def _finished(request: PretrainRequest) -> bool:
    """Whether the model of this recipe's last step has been written."""
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
    """Write the model in float16, its tokenizer and the record to `output / "model"`, in place of an earlier one.

    Raises ValueError where a row of the model is longer than the largest file asked for.
    """
    set_dropout(model, DROPOUT)
    tokenizer.model_max_length = model.config.max_position_embeddings
    for key in OF_THIS_OPENING:  # or a resumed run, which reads its tokenizer again, would save another file
        tokenizer.init_kwargs.pop(key, None)

    def fill(folder: Path) -> None:
        model.half().save_pretrained(folder)
        if request.file_size is not None:
            whole = folder / SINGLE
            save_parts(read_tensors([whole]), folder, request.file_size * MEGABYTE)
            whole.unlink()
        tokenizer.save_pretrained(folder)
        (folder / RECORD).write_text(json.dumps(record, indent=1))
        write_checksums(folder)

    write_folder(request.output / MODEL_FOLDER, fill)
