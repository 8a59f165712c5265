"""Columns of models."""

from app_models import write_model

from cse.app.models.models import Column, Failure, Models, columns, free_name


def test_a_model_that_appears_later_is_found_on_the_next_try(tmp_path, bert_folder):
    models = Models([str(tmp_path / "later")])
    call = {"function": lambda column, encoder: encoder.dim}
    (reason,) = models.apply(**call).values()
    assert isinstance(reason, Failure)
    write_model(tmp_path / "later", bert_folder, "simcse")
    assert models.apply(**call) == {"later": 32}


def test_repeated_models_share_a_column_and_names_are_told_apart(tmp_path, monkeypatch):
    for name in ("a/run", "b/run"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = columns(["simcse", "a/run", str(tmp_path / "a" / "run"), "b/run", "simcse"])
    assert found == (
        Column("simcse", "simcse"),
        Column("run", str(tmp_path / "a" / "run")),
        Column(str(tmp_path / "b" / "run"), str(tmp_path / "b" / "run")),
    )
    assert free_name(("", "a", "b"), {"a"}) == "b"
