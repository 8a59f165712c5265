"""The trainings of all visitors, by each one's secret key: one runs at a time, and their number and age are bounded."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from cse.app.models.visitors import current_client, first_to_go
from cse.app.training.opened import OpenedModels, Workplace
from cse.app.training.request import Made, TrainingRequest
from cse.app.training.rules import CLOSED, Rules
from cse.app.training.training import Training
from cse.app.validation import checked_key
from cse.files.writing import named_errors


class Trainings:
    """Trainings in memory, their files in a folder; thread-safe. `opened` are the models that visitors sent."""

    def __init__(
        self,
        rules: Rules = CLOSED,
        root: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        owner: Rules | None = None,
    ) -> None:
        """`rules` are those of visitors, `owner` those of the server's owner, by default the same.

        `root` is where their folder is made; by default the server's run folder.
        """
        self.visitors, self.owner = rules, owner or rules
        self._clock, self._place, self._lock = clock, Workplace(root), Lock()
        self._owned: dict[str, list[Training]] = {}  # oldest first
        self.opened = OpenedModels(lambda: self.rules, self._place)

    @property
    def rules(self) -> Rules:
        """The rules of the current request's client; outside of a request a visitor's."""
        client = current_client()
        return self.owner if client and client.owner else self.visitors

    def of(self, key: Any) -> list[Training]:
        """Return the trainings of a key, the newest first."""
        with self._lock:
            self._sweep()
            found = self._owned.get(key, []) if isinstance(key, str) else []
            for training in found:
                training.used = self._clock()
            return found[::-1]

    def newest(self, key: Any) -> Training | None:
        """Return the newest training of a key, or None."""
        return next(iter(self.of(key)), None)

    def begin(self, key: Any, request: TrainingRequest) -> Training:
        """Start a training. Raises ValueError for an invalid key, while another one runs, and without room on the disk.

        Beyond the bounds the visitor's oldest training is deleted, and then the oldest of all.
        """
        checked_key(key, "a training")
        with self._lock:
            self._sweep()
            self._check_idle(key)
            self._make_room(key)
            training = self._written(request)
            training.begin()
            self._owned.setdefault(key, []).append(training)
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
        """Return the models of a key, the newest first, each with the request that made it; own files have none."""
        finished = [(training, training.outcome) for training in self.of(key) if training.outcome]
        trained = [(made, training.request) for training, outcome in finished for made in outcome.models]
        return [*trained, *((made, None) for made in self.opened.of(key))]

    def archive(self, key: Any, name: Any) -> Path:
        """Return a .zip of the model of that name, made by a key's trainings. Raises ValueError without one."""
        for training in self.of(key):
            for made in training.outcome.models if training.outcome else ():
                if made.name == name:
                    return training.archive(made)
        raise ValueError("There is no such model of yours on this server any more; train it again.")

    def close(self) -> None:
        """End all processes and delete all files."""
        with self._lock:
            for key in list(self._owned):
                for training in self._owned.pop(key):
                    training.delete()
            self._place.close()

    def _all(self) -> list[tuple[str, Training]]:
        """Return the trainings that do not run, the least recently used first."""
        found = [(key, each) for key, own in self._owned.items() for each in own if not each.running]
        return sorted(found, key=lambda item: item[1].used)

    def _check_idle(self, key: str) -> None:
        for owner, own in self._owned.items():
            for training in own:
                if training.running:
                    whose = "Your training" if owner == key else "The training of another visitor"
                    raise ValueError(f"{whose} is running, and this server runs one at a time; wait or stop yours.")

    def _make_room(self, key: str) -> None:
        """Delete the oldest trainings of a visitor beyond its bound, then of who has most beyond that of all.

        The owner's trainings are not counted with those of visitors.
        """
        rules, client = self.rules, current_client()
        alike = [(owner, each) for owner, each in self._all() if each.rules == rules]
        own = [item for item in alike if item[0] == key or (client and item[1].client == client)]
        for item in own[: max(0, len(own) - rules.runs + 1)]:
            self._delete(*item)
            alike.remove(item)
        while len(alike) >= rules.all_runs:
            self._delete(*alike.pop(first_to_go([each.client for _, each in alike])))

    def _delete(self, key: str, training: Training) -> None:
        training.delete()
        self._owned[key].remove(training)
        if not self._owned[key]:
            del self._owned[key]

    def _sweep(self) -> None:
        for key, training in self._all():
            if self._clock() - training.used > training.rules.kept:
                self._delete(key, training)

    def _written(self, request: TrainingRequest) -> Training:
        """Return a training whose texts are written. Raises OSError, and leaves nothing, if they cannot be."""
        folder = self._place.fresh()
        try:
            with named_errors(Path("The texts"), "server"):
                training = Training(request, folder, self.rules.run_bytes)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        training.used, training.rules, training.client = self._clock(), self.rules, current_client()
        return training
