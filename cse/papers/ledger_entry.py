"""A row of a ledger: the published number, what reproduces it, and what its runs gave beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from cse.evaluation.significance import Sample, margin, over_seeds

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow


@dataclass(frozen=True)
class Comparison:
    """What the runs of a row gave beside what was published.

    `mean` and standard `deviation` (None for one run) of the runs, `difference` of the mean from the published number
    (None where there is none), and the `verdict` on it (None where nothing is known of the noise).
    """

    mean: float
    deviation: float | None = None
    difference: float | None = None
    verdict: str | None = None


COMPARED = tuple(Comparison.__dataclass_fields__)


@dataclass(frozen=True)
class LedgerEntry:
    """One row of a ledger: the published number, the `commands` that reproduce it, and what they gave.

    `published_on` is the paper's backbone, `backbone` the one used here. `runs` are the numbers of `seeds`, or the one
    of what is not trained, None where there is none; then `note` says why and there is no `comparison`, nor is there
    one for a published checkpoint that cannot be had. A `copied` row has no commands and nothing of what follows them.
    """

    row: str
    published: float | None
    published_deviation: float | None
    published_seeds: int
    published_on: str
    task: str
    source: str
    copied: bool
    commands: tuple[str, ...] = ()
    backbone: str | None = None
    seeds: tuple[int, ...] = ()
    runs: tuple[float | None, ...] = ()
    note: str | None = None
    comparison: Comparison | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a row in a ledger file; the comparison's numbers stand beside the others."""
        value = asdict(self)
        comparison = value.pop("comparison") or {}
        if self.note is None:
            del value["note"]
        if self.copied:
            value = {key: item for key, item in value.items() if key not in ("backbone", "seeds", "runs")}
        return value | {key: item for key, item in comparison.items() if item is not None or key == "deviation"}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LedgerEntry:
        """The entry of a row's JSON object. Raises TypeError for one that lacks a key or has an unknown one."""
        items: dict[str, Any] = {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
        compared = {key: items.pop(key) for key in COMPARED if key in items}
        return cls(**items, comparison=Comparison(**compared) if compared else None)


def judged(runs: Sequence[float], row: PublishedRow) -> Comparison:
    """Mean, deviation and difference of runs, and whether no difference lies inside its 95 % interval.

    Where neither side has several runs nothing can be said of noise, and nothing is.
    """
    return compared(Sample(over_seeds(runs)[1], len(runs)), over_seeds(runs)[0], row)


def compared(sample: Sample, mean: float, row: PublishedRow) -> Comparison:
    """`judged` of the mean of a sample of runs."""
    digits = 4 if abs(mean) < 1 else 2  # cosines are not in percent
    found = Comparison(round(mean, digits), None if sample.deviation is None else round(sample.deviation, digits))
    if row.average is None:
        return found
    difference = mean - row.average
    noise = margin(sample, Sample(row.deviation, row.seeds))
    verdict = None if noise is None else "inside the noise" if abs(difference) <= noise else "a difference"
    return replace(found, difference=round(difference, digits), verdict=verdict)
