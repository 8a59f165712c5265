"""The measurements of `bench shapes`."""

import os

import pytest

import cse
from cse.encoder.devices import bound_kernels
from tests.bench.shapes import measure_growth


def test_memory_is_measured_before_the_first_call_and_after_each_sixth() -> None:
    growth = measure_growth(cse.load("dcpcse"), calls=6)
    assert len(growth.megabytes) == 7
    assert growth.seconds > 0


def test_the_number_of_kernels_that_the_environment_sets_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    bound_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    bound_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "64"
