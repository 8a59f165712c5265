"""The folder in which visitors' trainings and models lie, within the server's run folder."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path
from threading import Lock

ROOM = 2**29  # bytes that the disk must have left
RUN_FOLDER = "GRADIO_TEMP_DIR"


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
