"""The learning-rate schedule and the command's defaults."""

import inspect
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

from cse.commands.pretrain import main
from cse.training.pretraining_data import PretrainConfig, PretrainRequest, learning_rate


def test_the_rate_warms_up_and_decays_to_nothing() -> None:
    config = PretrainConfig(tokens=100 * 4096, warmup=0.1, learning_rate=1.0)
    rates = [learning_rate(config, step) for step in range(config.steps)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(rates[10])
    assert rates[-1] == pytest.approx(1 / 90)


def test_a_recipe_knows_models_and_texts_by_name_wherever_they_lie(tmp_path: Path) -> None:
    request = PretrainRequest([tmp_path / "text.txt"], tmp_path / "out", init=str(tmp_path / "start"))
    assert (request.recipe()["init"], request.recipe()["corpora"]) == ("start", ["text.txt"])
    assert replace(request, init=str(tmp_path / "english" / "model")).recipe()["init"] == "english/model"
    assert replace(request, init="google/bert").recipe()["init"] == "google/bert"
    assert replace(request, init=None).recipe()["init"] is None


def test_the_commands_options_default_to_the_recipe() -> None:
    options = {name: parameter.default for name, parameter in inspect.signature(main).parameters.items()}
    settings = [*fields(PretrainConfig), *fields(PretrainRequest)]
    optional = [field for field in settings if field.default is not MISSING]
    shared = {field.name: field.default for field in optional if field.name in options}
    assert len(shared) >= 15
    shared["blend_share"] = str(shared["blend_share"])  # or several, by commas
    assert {name: options[name] for name in shared} == shared
