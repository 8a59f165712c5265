"""The record of a vote between two models: all that its verdict shows, without texts; it fits into a link."""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cse.analysis.votes import RESULT, SAME, START, VOTES, Verdict, verdict
from cse.app.models.naming import title
from cse.app.state.ballots import Ballot, Facts

LONGEST, NAME = 1900, 120  # characters of a code, which the address holds, and of a name in it
MOST, MOST_COUNTED, MOST_SCORES = 10**9, 10**5, 8  # the largest number, count and number of scores
UNREADABLE = "This link holds no verdict; copy it again from the page that made it."


@dataclass(frozen=True)
class Record:
    """The models, the `counts` of each vote, and what was measured; `scores` are those of labels by side, if any."""

    models: tuple[Facts, Facts]
    counts: Mapping[str, int]
    corpus: str
    compared: int
    differing: float
    scores: Mapping[str, Mapping[str, float]] | None = None
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the counts."""
        return verdict(vote for vote in (START, RESULT, SAME) for _ in range(self.counts[vote]))

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, with the models' names."""
        return self.verdict.sentence(*(title(facts.name) for facts in self.models))


def record_of(ballot: Ballot) -> Record:
    """Return the record of a ballot."""
    judgement = ballot.judgement
    given = [answer.vote for answer in judgement.answers]
    counts = {vote: given.count(vote) for vote in VOTES}
    setup = judgement.setup
    return Record(
        ballot.models, counts, setup.data, setup.compared, round(ballot.differing, 4), judgement.scores, ballot.note
    )


def record_json(ballot: Ballot) -> str:
    """Return the votes with both lists, the verdict and all that was measured, as JSON."""
    measured = {"models": [asdict(facts) for facts in ballot.models], "differing": ballot.differing}
    return json.dumps({**ballot.judgement.to_json(), **measured}, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def code_of(record: Record) -> str:
    """Return a record as a code of letters for an address; it is empty if it would be too long."""
    packed = zlib.compress(json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":")).encode(), 9)
    code = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return code if len(code) <= LONGEST else ""


def record_from(code: str) -> Record:
    """Return the record of a code. Raises ValueError for anything that `code_of` does not make."""
    try:
        if len(code) > LONGEST:
            raise ValueError(UNREADABLE)
        packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
        opened = zlib.decompressobj()
        found = json.loads(opened.decompress(packed, 20 * LONGEST))
        return _checked(found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error, binascii.Error) as error:
        raise ValueError(UNREADABLE) from error


def _checked(found: Any) -> Record:
    """The record of JSON values, each checked; of a longer name its beginning."""
    if set(found) != {each.name for each in fields(Record)} or set(found["counts"]) != set(VOTES):
        raise ValueError(UNREADABLE)
    one, other = map(_facts, found["models"])
    scores = found["scores"]
    if scores is not None and (set(scores) != {START, RESULT} or set(scores[START]) != set(scores[RESULT])):
        raise ValueError(UNREADABLE)
    return Record(
        (one, other),
        {vote: _count(found["counts"][vote]) for vote in VOTES},
        _text(found["corpus"]),
        _count(found["compared"]),
        _number(found["differing"]),
        None if scores is None else {side: _scores(scores[side]) for side in (START, RESULT)},
        _text(found["note"]),
    )


def _facts(found: Mapping[str, Any]) -> Facts:
    guard = found["found"]
    return Facts(
        _text(found["name"]), _text(found["fingerprint"]), _number(found["milliseconds"]), _number(found["megabytes"]),
        None if guard is None else _number(guard),
    )  # fmt: skip


def _scores(found: Mapping[str, Any]) -> dict[str, float]:
    if len(found) > MOST_SCORES:
        raise ValueError(UNREADABLE)
    return {_text(name): _number(value) for name, value in found.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(UNREADABLE)
    return value[:NAME]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > MOST:
        raise ValueError(UNREADABLE)
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNTED:
        raise ValueError(UNREADABLE)
    return value
