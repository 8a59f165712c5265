"""Push checkpoints to the hub, self-contained and with a model card."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from cse.errors import ArtefactError, command_line
from cse.models.card import CardFacts, model_card
from cse.models.checkpoint import CHECKPOINT, LOG
from cse.models.names import record_file
from cse.publishing.copying import copy_checkpoint
from cse.publishing.upload import Repository, Uploaded, upload
from cse.storage.writing import read_json


def stage_checkpoint(source: Path, target: Path, facts: CardFacts) -> None:
    """Write a checkpoint that opens on any machine to `target`, with its training log and card.

    Raises ArtefactError if `source` is damaged or no checkpoint, or its backbone is missing or has changed.
    """
    _check_is_checkpoint(source)
    config = copy_checkpoint(source, target)
    if (source / LOG).is_file():
        shutil.copyfile(source / LOG, target / LOG)
    (target / "README.md").write_text(model_card(config, facts), encoding="utf-8")


def _check_is_checkpoint(source: Path) -> None:
    if "method" in read_json(record_file(source)):
        return
    opens_elsewhere = (source / "modules.json").is_file()
    cure = f'SentenceTransformer("{source}").push_to_hub("OWNER/NAME")' if opens_elsewhere else "`hf upload`"
    raise ArtefactError(f"{source}: is no checkpoint of {command_line('train')} and no index; upload it by {cure}")


def push_checkpoint(source: Path, repository: Repository, facts: CardFacts) -> Uploaded:
    """Upload a checkpoint, including a local backbone folder. Raises as `stage_checkpoint` and `upload` do."""
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / "checkpoint"
        stage_checkpoint(source, staged, replace(facts, name=repository.name))
        return upload(staged, repository, f"Push the checkpoint {source.resolve().name}", owned=CHECKPOINT.files)
