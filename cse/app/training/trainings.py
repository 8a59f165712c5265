"""The trainings and uploaded models of visitors, by secret key and bounded; one training runs at a time."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any

from cse.app.models.models import free_name, numbered
from cse.app.models.recent import Bounds, Recent, current_client
from cse.app.training.request import CLOSED, MAX_NAME, OPTION, Made, Rules, TrainingRequest
from cse.app.training.training import Training
from cse.app.validation import FieldError, checked_key, sentence
from cse.files.writing import DISK_FULL_ERRORS, named_errors
from cse.models.names import CONFIG

ROOM = 2**29  # bytes that the disk must have left
RUN_FOLDER = "GRADIO_TEMP_DIR"
MAX_UPLOADED = Bounds(8, own=4)  # models of all, and of a client
MAX_FILES = 200  # of an archive
READ = (".json", ".safetensors")
VOCABULARIES = ("vocab.txt", "merges.txt")
OFFERED = "The owner can offer folders with --models-root FOLDER, which Add a model then lists."
FOLDERS_REFUSED = f"Folders are for the owner of this server: open the address that it printed at its start. {OFFERED}"
ARCHIVES_REFUSED = f"Models are taken from the owner of this server, and with its option {OPTION} from everyone."


class Trainings:
    """Trainings and uploaded models in memory, their files in a folder; thread-safe."""

    def __init__(
        self,
        rules: Rules = CLOSED,
        root: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        owner: Rules | None = None,
    ) -> None:
        self.visitors, self.owner = rules, owner or rules
        self._root, self._lock, self._numbers = root, RLock(), count()
        self.folder: Path | None = None  # made when it is first needed
        # The owner's trainings are not counted with those of visitors.
        self._trainings: dict[Rules, Recent[Training]] = {
            those: Recent(
                Bounds(those.all_runs, own=those.runs, seconds=those.kept), clock=clock,
                pinned=lambda training: training.running, dropped=Training.delete,
            )
            for those in (self.visitors, self.owner)
        }  # fmt: skip
        self._uploaded: Recent[tuple[Made, Path]] = Recent(  # with the folder to delete
            MAX_UPLOADED, dropped=lambda model: shutil.rmtree(model[1], ignore_errors=True)
        )

    @property
    def rules(self) -> Rules:
        """The rules of the current request's client; outside of a request a visitor's."""
        client = current_client()
        return self.owner if client and client.owner else self.visitors

    def of(self, key: Any) -> list[Training]:
        """Return the trainings of a key, the newest first."""
        with self._lock:
            known = [(name, store) for store in self._trainings.values() for name, _ in store.entries()]
            own = sorted((item for item in known if item[0][0] == key), key=lambda item: item[0][1])
            trainings = [store.get(name) for name, store in own]
            return [training for training in reversed(trainings) if training is not None]

    def newest(self, key: Any) -> Training | None:
        """Return the newest training of a key, or None."""
        return next(iter(self.of(key)), None)

    def begin(self, key: Any, request: TrainingRequest) -> Training:
        """Start a training, whose model gets a name that no other of the key has.

        Raises ValueError for an invalid key, while another one runs, and without room on the disk.

        Beyond the bounds the visitor's oldest training is deleted, and then the oldest of who has most.
        """
        checked_key(key, "a training")
        with self._lock:
            for store in self._trainings.values():
                for (owner, _), entry in store.entries():
                    if entry.value.running:
                        whose = "Your training" if owner == key else "The training of another visitor"
                        raise ValueError(f"{whose} is running, and this server runs one at a time; wait or stop yours.")
            taken = {training.request.name for training in self.of(key) if training.outcome}
            taken |= {made.name for made, _ in self.models(key)}
            request = replace(request, name=free_name(numbered(request.name), taken))
            folder = self._fresh()
            try:
                with named_errors(Path("The texts"), "server"):
                    training = Training(request, folder)
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            training.begin()
            self._trainings[self.rules].put((key, next(self._numbers)), training)
            return training

    def stop(self, key: Any) -> None:
        """End the newest training of a key soon, with what it has."""
        if (training := self.newest(key)) is not None:
            training.stop()

    def go_on(self, key: Any) -> None:
        """Note that the visitor wants the stage of minutes of the newest training of a key."""
        if (training := self.newest(key)) is not None:
            training.continued = True

    def models(self, key: Any) -> list[tuple[Made, TrainingRequest | None]]:
        """Return the models of a key, the newest first, each with the request that made it; uploaded ones have none."""
        finished = [(training, training.outcome) for training in self.of(key) if training.outcome]
        trained = [(made, training.request) for training, outcome in finished for made in outcome.models]
        uploaded = [entry.value[0] for (owner, _), entry in self._uploaded.entries() if owner == key]
        return [*trained, *((made, None) for made in uploaded)]

    def archive(self, key: Any, name: Any) -> Path:
        """Return a .zip of the model of that name, made by a key's trainings. Raises ValueError without one."""
        for training in self.of(key):
            for made in training.outcome.models if training.outcome else ():
                if made.name == name:
                    return training.archive(made)
        raise ValueError("There is no such model of yours on this server any more; train it again.")

    def unpack(self, key: Any, archive: Path) -> Made:
        """Unpack a visitor's model and delete the archive."""
        try:
            if not self.rules.allowed:
                raise ValueError(ARCHIVES_REFUSED)
            checked_key(key, "a model")
            with named_errors(Path(archive.name), "server", only_full=True):
                unpacked = unpack_model(archive, folder := self._fresh(), self.rules.model_bytes)
        finally:
            archive.unlink(missing_ok=True)
        made = Made(archive.stem.strip()[:MAX_NAME] or "my model", unpacked)
        self._uploaded.put((key, next(self._numbers)), (made, folder))
        return made

    def discard(self, made: Made) -> None:
        """Delete a model that was uploaded and cannot be used."""
        for name, entry in self._uploaded.entries():
            if entry.value[0] is made:
                self._uploaded.pop(name)
                shutil.rmtree(entry.value[1], ignore_errors=True)

    def local_model(self, path: Any) -> Made:
        """Return the model in a folder of the owner's computer. Raises ValueError if it is none, or not the owner's."""
        if not self.rules.own:
            raise ValueError(FOLDERS_REFUSED)
        folder = Path(sentence(path, "The folder")).expanduser()
        if not (folder / CONFIG).is_file():
            raise FieldError("The folder", f"{folder}: no {CONFIG} in it; give the folder of a model.")
        return Made(folder.resolve().name[:MAX_NAME], folder.resolve())

    def close(self) -> None:
        """End all processes and delete all files."""
        with self._lock:
            for store in self._trainings.values():
                for name, entry in store.entries():
                    store.pop(name)
                    entry.value.delete()
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder = None

    def _fresh(self) -> Path:
        """Return a new folder. Raises ValueError if the disk has too little room.

        Its name cannot be guessed, since the server gives files of its run folder to those who know their paths.
        """
        with self._lock:
            if self.folder is None:
                within = self._root or Path(os.environ.get(RUN_FOLDER) or tempfile.gettempdir())
                self.folder = Path(tempfile.mkdtemp(prefix="cse-models-", dir=within))
            if (free := shutil.disk_usage(self.folder).free) < ROOM:
                raise ValueError(f"The server's disk has {free / 1e6:.0f} MB left; a model needs {ROOM / 1e6:.0f} MB.")
            folder = self.folder / secrets.token_hex(16)
            folder.mkdir()
            return folder


def unpack_model(archive: Path, folder: Path, max_bytes: int) -> Path:
    """Unpack the model in a .zip of at most `max_bytes` to an empty folder and return its own folder within.

    Only .json and .safetensors files and vocabularies are read; all others stay in the archive. Raises ValueError for
    a file that is no .zip, that has too many or too large files, or no model; nothing is left then.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            if len(members) > MAX_FILES:
                raise ValueError(f"The archive has {len(members):,} entries; a model has at most {MAX_FILES}.")
            if (total := sum(member.file_size for member in members)) > max_bytes:
                raise ValueError(f"The archive unpacks to {total / 1e9:.1f} GB; give at most {max_bytes / 1e9:.1f} GB.")
            for member in members:
                path = PurePosixPath(member.filename)
                hidden = any(part.startswith((".", "__")) for part in path.parts)  # what systems add; a way out
                if not member.is_dir() and not hidden and (path.suffix in READ or path.name in VOCABULARIES):
                    opened.extract(member, folder)  # a plain file within the folder, no larger than it says
        configs = sorted(folder.rglob(CONFIG), key=lambda path: len(path.parts))
        if not configs:
            raise ValueError(f"The archive has no {CONFIG}; pack the folder of a model.")
        if not list(configs[0].parent.glob("*.safetensors")):
            raise ValueError("The archive has no weights as .safetensors; pickled weights are never opened.")
        return configs[0].parent
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        if type(error) is ValueError or getattr(error, "errno", None) in DISK_FULL_ERRORS:
            raise
        # The libraries that decompress raise errors of any type for a damaged archive.
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise ValueError(f"The file cannot be read as a .zip ({reason}); pack the model's folder again.") from error
