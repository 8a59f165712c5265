"""Tables of results: the papers' average is over the papers' sets, or there is none."""

import pytest

from cse.benchmark.tables import average
from cse.evaluation import transfer


def test_the_average_is_over_the_papers_sets_alone() -> None:
    scores = {name: {"accuracy": 10.0 * place} for place, name in enumerate(transfer.SETS)}
    assert average("transfer", {**scores, "other": {"accuracy": 99.0}}) == pytest.approx(30.0)
    assert average("transfer", {name: scores[name] for name in list(scores)[1:]}) is None
    assert average("geometry", {"anisotropy": {"anisotropy": 0.5}}) is None
