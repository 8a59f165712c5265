"""`scripts.train --recipe`: the settings of a checkpoint, overridden by options one by one; help in sections."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run, unboxed
from conftest import SENTENCES

from cse.models.checkpoint import read_checkpoint_config
from cse.training.recipe import read_recipe


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(SENTENCES))
    return path


def train(*words: object, code: int = 0) -> str:
    done = run("train", *words)
    assert done.exit_code == code, done.output
    error = unboxed(done.stderr) if code == 2 else done.stderr
    return error if code else done.stdout


def test_a_recipe_repeats_a_checkpoint_to_the_byte(text, tmp_path, bert_folder):
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    settings = ["--learning-rate", 0.007, "--batch-size", 3, "--prefix", 3, "--mlm-weight", 0.05, "--seed", 7]
    begun = ["dcpcse", "--backbone", bert_folder, *settings, "--temperature", 0.08, "--storage", "float16"]
    train(*begun, "--data", text, "--output", first)
    train("--recipe", first, "--data", text, "--output", again)
    assert (again / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()
    assert read_checkpoint_config(again) == read_checkpoint_config(first)
    train("dcpcse", "--recipe", first / "config.json", "--seed", 8, "--prefix", 2, "--data", text, "--output", other)
    changed, before = read_checkpoint_config(other), read_checkpoint_config(first)
    assert changed.method.reading.prefix == 2
    kept = {name: value for name, value in before.training["settings"].items() if name not in ("seed",)}
    assert changed.training["settings"] == {**kept, "seed": 8}


def test_a_dry_run_shows_the_resolved_settings(text, tmp_path, bert_folder):
    recipe = tmp_path / "recipe.json"
    value = {"method": "promptbert", "backbone": str(bert_folder), "settings": {"temperature": 0.09}}
    recipe.write_text(json.dumps(value))
    options = ["--recipe", recipe, "--data", text, "--output", tmp_path / "out", "--epochs", 2, "--dry-run"]
    shown = json.loads(train(*options, "--json"))["settings"]
    assert (shown["temperature"], shown["epochs"], shown["learning_rate"]) == (0.09, 2, 1e-4)  # the last the preset's
    assert shown["backbone"] == str(bert_folder)
    words = ("--recipe", "promptbert", "--data", text, "--output", tmp_path / "out", "--dry-run", "--json")
    bundled = json.loads(train(*words))["settings"]
    assert (bundled["max_steps"], bundled["eval_every"], bundled["freeze_embeddings"]) == (75, 75, True)


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ({"method": "promptbert", "settings": {"temprature": 0.1}}, 3, "unknown temprature; a recipe has batch_size,"),
        ({"method": "promptbert", "settings": {"epochs": "two"}}, 3, "epochs is 'two'; give a whole number"),
        ({"method": "nosuch"}, 3, "unknown method 'nosuch'; choose from"),
        (None, 4, "no recipe"),
        (b"method: !!python/object/apply:os.getcwd []", 4, "cannot be read as YAML (could not determine a constructor"),
    ],
)  # fmt: skip
def test_a_recipe_that_is_none_is_refused(value, code, message, text, tmp_path, bert_folder):
    recipe = tmp_path / ("recipe.yaml" if isinstance(value, bytes) else "recipe.json")
    if value is not None:
        recipe.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    options = ["--backbone", bert_folder, "--data", text, "--output", tmp_path / "out", "--dry-run"]
    error = train("--recipe", recipe, *options, code=code)
    assert message in error
    assert error.count("\n") == 1


def test_a_recorded_method_that_means_something_else_now_is_refused(text, tmp_path, bert_folder):
    options = ["--backbone", bert_folder, "--data", text, "--max-steps", 1]
    train("promptbert", *options, "--output", tmp_path / "first")
    config = json.loads((tmp_path / "first" / "cse_checkpoint.json").read_text())
    config["method"]["denoise"] = "never"
    (tmp_path / "old.json").write_text(json.dumps(config))
    error = train("--recipe", tmp_path / "old.json", *options, "--output", tmp_path / "again", code=3)
    assert "its promptbert differs from that of this version or backbone in denoise" in error


def test_a_yaml_recipe_is_that_of_json_with_the_same_values(tmp_path):
    value = {
        "method": "dcpcse", "supervised": False, "backbone": "bundled", "storage": "float16",
        "settings": {"learning_rate": 1e-4, "temperature": 0.05, "epochs": 2, "prefix": 3, "precision": "no",
                     "compile": "yes", "freeze_embeddings": True, "max_steps": None, "mlm_weight": 5e-2},
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(value))
    lines = """
    # a comment
    method: dcpcse
    supervised: no
    backbone: bundled
    storage: float16
    settings:
      learning_rate: 1e-4
      temperature: 0.05
      epochs: 2
      prefix: 3
      precision: no
      compile: yes
      freeze_embeddings: true
      max_steps:
      mlm_weight: 5.0E-2
    """
    for name in ("a.yaml", "b.YML"):
        (tmp_path / name).write_text(lines)
        expected = replace(read_recipe(str(tmp_path / "a.json")), source=str(tmp_path / name))
        assert read_recipe(str(tmp_path / name)) == expected
