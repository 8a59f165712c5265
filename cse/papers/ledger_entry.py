"""A row of a ledger: the published number, the commands that reproduce it, and the numbers of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from cse.evaluation.significance import Sample, margin, over_seeds

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow


@dataclass(frozen=True)
class Comparison:
    """The runs of a row compared with the published number.

    `mean` and standard `deviation` (None for one run) of the runs, `difference` of the mean from the published number
    (None if there is none), and the `verdict` on it (None if the noise is unknown).
    """

    mean: float
    deviation: float | None = None
    difference: float | None = None
    verdict: str | None = None


COMPARED = tuple(Comparison.__dataclass_fields__)


@dataclass(frozen=True)
class LedgerEntry:
    """One row of a ledger: the published number, the `commands` that reproduce it, and their results.

    `published_on` is the paper's backbone, `backbone` the one used here. `runs` are the numbers by seed, or the single
    number of an untrained row; None where there is no number, then `note` says why and there is no `comparison`, as for
    a published checkpoint that is not available. A `copied` row has neither commands nor results.
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
        """The JSON object of a row in a ledger file, with the comparison's numbers at the top level."""
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
    """Compare runs with a published row: mean, deviation, difference, and a verdict from its 95 % interval.

    Without several runs on either side the noise is unknown, and there is no verdict.
    """
    return compared(Sample(over_seeds(runs)[1], len(runs)), over_seeds(runs)[0], row)


def compared(sample: Sample, mean: float, row: PublishedRow) -> Comparison:
    """As `judged`, from the mean of a sample of runs."""
    digits = 4 if abs(mean) < 1 else 2  # cosines are not percentages
    found = Comparison(round(mean, digits), None if sample.deviation is None else round(sample.deviation, digits))
    if row.average is None:
        return found
    difference = mean - row.average
    noise = margin(sample, Sample(row.deviation, row.seeds))
    verdict = None if noise is None else "inside the noise" if abs(difference) <= noise else "a difference"
    return replace(found, difference=round(difference, digits), verdict=verdict)
