"""The blind votes of visitors, by each visitor's secret key, bounded in number and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from cse.app.models.recent import RecentByClient
from cse.app.state.own_corpora import KEPT
from cse.app.validation import checked_key

if TYPE_CHECKING:
    from cse.analysis.votes import Judgement, Question

MOST_VISITORS, MOST_OF_CLIENT = 64, 8
MOST_ASKED = 120  # questions of a ballot
TEXT = 300  # characters kept of a text: a ballot takes at most 400 kB


@dataclass
class Ballot:
    """Questions on two models with the votes so far; `texts` are those of the questions and lists, by row.

    `differing` is the share of the compared texts whose neighbours differ; `ended` is true if the visitor asked for the
    verdict before the last vote.
    """

    judgement: Judgement
    questions: tuple[Question, ...]
    texts: Mapping[int, str]
    differing: float
    ended: bool = False

    @property
    def question(self) -> Question | None:
        """The next question; None if the votes wanted are given, if there is no other, or if the visitor has ended."""
        if self.ended or self.judgement.counted >= self.judgement.target:
            return None
        return next(self.judgement.open(self.questions, self.texts), None)


class Ballots(RecentByClient[Ballot]):
    """A ballot per visitor key; the least recently used are dropped, and those unused for `KEPT` seconds.

    `lock` is held to change a ballot.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST_VISITORS) -> None:
        """`clock` returns seconds."""
        super().__init__(most, MOST_OF_CLIENT, seconds=KEPT, clock=clock)
        self.lock = Lock()

    def put(self, key: Any, result: Ballot) -> None:
        """Keep the ballot of a key in place of an earlier one. Raises FieldError for an invalid key."""
        super().put(checked_key(key, "votes"), result)
