"""Columns of models."""

from cse.app.models.models import Column, columns, free_name


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
