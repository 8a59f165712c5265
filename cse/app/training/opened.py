"""Models of a visitor's own files: a folder of one's own computer, or a .zip that is unpacked here."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Lock
from typing import Any

from cse.app.state.own_corpora import checked_key
from cse.app.training.archive import unpack_model
from cse.app.training.outcome import Made
from cse.app.training.request import LONGEST_NAME
from cse.app.training.rules import OPTION, Rules
from cse.app.training.workplace import Workplace
from cse.app.validation import FieldError, sentence
from cse.models.names import CONFIG
from cse.storage.writing import named_errors

MOST = 4, 8  # archives of a visitor, and of all
FOLDERS_REFUSED = (
    "This server opens no folders of its visitors. Its owner can offer folders with --models-root FOLDER, which + "
    "model then lists; on your own computer, start the app without --host and --share."
)
ARCHIVES_REFUSED = f"This server takes no models. Its owner can allow it with the option {OPTION}."


class OpenedModels:
    """The models that visitors unpacked, each with its visitor's key; beyond `MOST` the oldest is deleted."""

    def __init__(self, rules: Rules, place: Workplace) -> None:
        self._rules, self._place, self._lock = rules, place, Lock()
        self._kept: list[tuple[str, Made, Path]] = []  # with the folder to delete; oldest first

    def of(self, key: Any) -> list[Made]:
        """Return the unpacked models of a key."""
        with self._lock:
            return [made for owner, made, _ in self._kept if owner == key]

    def unpack(self, key: Any, archive: Path, name: str) -> Made:
        """Unpack an archive. Raises ValueError if the server takes none, for an invalid key and a bad archive."""
        if not self._rules.allowed:
            raise ValueError(ARCHIVES_REFUSED)
        checked_key(key, "a model")
        with named_errors(Path(archive.name), "server", only_full=True):
            model = unpack_model(archive, folder := self._place.fresh(), self._rules.run_bytes)
        made = Made(name.strip()[:LONGEST_NAME] or "my model", model)
        with self._lock:
            self._kept.append((key, made, folder))
            own = [each for each in self._kept if each[0] == key]
            for old in {id(each): each for each in (*own[: -MOST[0]], *self._kept[: -MOST[1]])}.values():
                self._kept.remove(old)
                shutil.rmtree(old[2], ignore_errors=True)
        return made

    def folder(self, path: Any) -> Made:
        """Return the model in a folder of the owner's computer. Raises ValueError if it is none, or not the owner's."""
        if not self._rules.own:
            raise ValueError(FOLDERS_REFUSED)
        place = Path(sentence(path, "The folder")).expanduser()
        if not (place / CONFIG).is_file():
            raise FieldError("The folder", f"{place}: no {CONFIG} in it; give the folder of a model.")
        return Made(place.resolve().name[:LONGEST_NAME], place.resolve())
