"""The measurements of `tests.bench app` and `load`: times against numpy's, and a small app in use."""

import os
import random

import pytest
from app_models import GOOD, serving, write_model

from tests.bench import app as app_load
from tests.bench import app_corpus
from tests.bench.app import DEMO, call, measure
from tests.bench.app_corpus import Job
from tests.bench.app_mix import MIX, asked, bear, to_json


def test_visitors_and_many_clients_of_a_small_app_are_answered_and_measured(tmp_path, bert_folder, monkeypatch):
    monkeypatch.setattr(app_load, "POINTS", 120)
    monkeypatch.setattr(app_corpus, "WAIT", 0.1)
    folders = [str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]]
    monkeypatch.setattr(app_corpus, "MODEL", GOOD[0])
    with serving(folders) as address:
        url = address.rstrip("/")
        loads = measure(url, visitors=3, seconds=0.2)
        with pytest.raises(ValueError, match="/similarity answered"):
            call(url, "similarity", ["", "b", *DEMO])
        for kind in MIX:
            asked(url, kind, random.Random(kind), "everything")
        found = bear(url, clients=4, seconds=1.5, process=os.getpid())
        steps = Job(url, 70, os.getpid()).run()
    assert [load.what for load in loads] == ["one visitor", "3 visitors", "one visitor beside a map"]
    assert [load.count >= least for load, least in zip(loads, (1, 3, 1), strict=True)] == [True] * 3
    assert all(0 < load.median <= load.p95 <= load.worst for load in loads)
    assert dict(found.errors) == {}
    assert {"map", "similarity", "search"} <= set(found.took)
    assert found.calls == sum(load.count for load in found.loads) >= 3
    assert all(size > 50 * 2**20 for _, size in found.memory)
    assert 0 < found.computed < os.cpu_count() * (found.seconds + 1)
    assert to_json(found)["calls"] == found.calls
    assert [step.what for step in steps][:2] == ["upload to first search", "first map"]
    assert all(step.seconds > 0 and step.memory_mb > 50 for step in steps)
