"""What `scripts.bench app` measures: times against numpy's, and a small app in use."""

import numpy as np
import pytest
from app_models import GOOD, serving, write_model

from cse.benchmark import app_load
from cse.benchmark.app_load import Load, call, measure

# Gradio 6.31.0's own statistics use what pandas 3 is about to drop.
pytestmark = pytest.mark.filterwarnings(
    "ignore:'future.no_silent_downcasting' is deprecated", "ignore:The copy keyword is deprecated"
)


@pytest.mark.parametrize("count", [1, 2, 19, 20, 101])
def test_a_load_has_the_nearest_rank_percentiles(count: int) -> None:
    seconds = np.random.default_rng(count).gamma(2, size=count).tolist()
    found = Load.of("x", seconds)
    wanted = np.percentile(seconds, [50, 95, 100], method="inverted_cdf")
    assert (found.median, found.p95, found.worst) == pytest.approx(tuple(wanted))
    with pytest.raises(ValueError, match="nothing was measured"):
        Load.of("x", [])


def test_visitors_of_a_small_app_are_measured_alone_together_and_beside_a_map(tmp_path, bert_folder, monkeypatch):
    monkeypatch.setattr(app_load, "PER_TOPIC", 10)
    folders = [str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]]
    with serving(folders) as url:
        loads = measure(url.rstrip("/"), visitors=3, seconds=0.2)
        with pytest.raises(ValueError, match="/similarity answered"):
            call(url.rstrip("/"), "similarity", ["", "b"])
    assert [load.what for load in loads] == ["one visitor", "3 visitors", "one visitor beside a map"]
    assert [load.count >= least for load, least in zip(loads, (1, 3, 1), strict=True)] == [True] * 3
    assert all(0 < load.median <= load.p95 <= load.worst for load in loads)
