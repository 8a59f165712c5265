"""Outcomes of cases, counted by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

FAILED = "failed"


@dataclass(frozen=True)
class Verdict:
    """An `outcome` in a few words; of a failure the `reason`."""

    outcome: str
    reason: str = ""


def failed(reason: str) -> Verdict:
    """A failure."""
    return Verdict(FAILED, reason)


@dataclass(frozen=True)
class Case:
    """Something tried: its `part` of the campaign, `what` exactly, and what came of it."""

    part: str
    what: str
    verdict: Verdict


def counted(cases: Iterable[Case]) -> dict[str, Any]:
    """How many cases of each part were tried, failed and ended how, and every failure."""
    parts: dict[str, Counter[str]] = {}
    failures = []
    for case in cases:
        parts.setdefault(case.part, Counter())[case.verdict.outcome] += 1
        if case.verdict.outcome == FAILED:
            failures.append({"part": case.part, "what": case.what, "reason": case.verdict.reason})
    return {
        "parts": {
            part: {"tried": found.total(), "failed": found[FAILED], "outcomes": dict(sorted(found.items()))}
            for part, found in sorted(parts.items())
        },
        "failures": failures,
    }
