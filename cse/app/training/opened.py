"""Models of a visitor's own files, a folder of one's own computer or a .zip; and the folder in which models lie."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from cse.app.models.visitors import Client, current_client, first_to_go
from cse.app.training.archive import unpack_model
from cse.app.training.request import LONGEST_NAME, Made
from cse.app.training.rules import OPTION, Rules
from cse.app.validation import FieldError, checked_key, sentence
from cse.files.writing import named_errors
from cse.models.names import CONFIG

ROOM = 2**29  # bytes that the disk must have left
RUN_FOLDER = "GRADIO_TEMP_DIR"
MOST = 4, 8  # archives of a visitor, and of all
OFFERED = "The owner can offer folders with --models-root FOLDER, which Add a model then lists."
FOLDERS_REFUSED = f"Folders are for the owner of this server: open the address that it printed at its start. {OFFERED}"
UNOWNED = f"This server takes no models. Its owner can allow it with the option {OPTION}. {OFFERED}"
ARCHIVES_REFUSED = f"Models are taken from the owner of this server, and with its option {OPTION} from everyone."


class Unpacked(NamedTuple):
    """An unpacked model, the key and the client that sent it, and the folder to delete with it."""

    key: str
    client: Client | None
    made: Made
    folder: Path


class OpenedModels:
    """The models that visitors unpacked, each with its visitor's key; `MOST` of a visitor and of all are kept.

    `rules` returns those of the current request.
    """

    def __init__(self, rules: Callable[[], Rules], place: Workplace) -> None:
        self._rules, self._place, self._lock = rules, place, Lock()
        self._kept: list[Unpacked] = []  # oldest first

    def of(self, key: Any) -> list[Made]:
        """Return the unpacked models of a key."""
        with self._lock:
            return [model.made for model in self._kept if model.key == key]

    def unpack(self, key: Any, archive: Path, name: str) -> Made:
        """Unpack an archive. Raises ValueError if the server takes none, for an invalid key and a bad archive."""
        rules, client = self._rules(), current_client()
        if not rules.allowed:
            raise ValueError(ARCHIVES_REFUSED)
        checked_key(key, "a model")
        with named_errors(Path(archive.name), "server", only_full=True):
            opened = unpack_model(archive, folder := self._place.fresh(), rules.run_bytes)
        made = Made(name.strip()[:LONGEST_NAME] or "my model", opened)
        with self._lock:
            self._kept.append(Unpacked(key, client, made, folder))
            own = [model for model in self._kept if model.key == key or (client and model.client == client)]
            surplus = own[: -MOST[0]]
            others = [model for model in self._kept if model not in surplus]
            while len(others) > MOST[1]:
                surplus.append(others.pop(first_to_go([model.client for model in others])))
            self._kept = others
        for model in surplus:
            shutil.rmtree(model.folder, ignore_errors=True)
        return made

    def folder(self, path: Any) -> Made:
        """Return the model in a folder of the owner's computer. Raises ValueError if it is none, or not the owner's."""
        if not self._rules().own:
            raise ValueError(FOLDERS_REFUSED)
        place = Path(sentence(path, "The folder")).expanduser()
        if not (place / CONFIG).is_file():
            raise FieldError("The folder", f"{place}: no {CONFIG} in it; give the folder of a model.")
        return Made(place.resolve().name[:LONGEST_NAME], place.resolve())


class Workplace:
    """A folder, made when it is first needed; `close` deletes it."""

    def __init__(self, within: Path | None = None) -> None:
        """It is made `within` a folder, by default the server's run folder."""
        self._within, self._lock = within, Lock()
        self._folder: Path | None = None

    def fresh(self) -> Path:
        """Return a new folder. Raises ValueError if the disk has too little room.

        Its name cannot be guessed, since the server gives files of its run folder to those who know their paths.
        """
        with self._lock:
            if self._folder is None:
                within = self._within or Path(os.environ.get(RUN_FOLDER) or tempfile.gettempdir())
                self._folder = Path(tempfile.mkdtemp(prefix="cse-models-", dir=within))
            place = self._folder
        if (free := shutil.disk_usage(place).free) < ROOM:
            raise ValueError(f"The server's disk has {free / 1e6:.0f} MB left; a model needs {ROOM / 1e6:.0f} MB.")
        folder = place / secrets.token_hex(16)
        folder.mkdir()
        return folder

    def close(self) -> None:
        """Delete the folder."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None
