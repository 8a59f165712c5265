"""Tasks are values: found by name, with the papers' sets, options that match what they can do, and figures."""

import pytest

from cse.corpus.supervised import scored_pairs
from cse.evaluation import sts
from cse.evaluation.tasks import HUB_SETS, TaskData, fetch, find_task


def test_the_average_is_over_the_papers_sets_alone():
    task = find_task("transfer")
    scores = {name: {"accuracy": 10.0 * number} for number, name in enumerate(task.sets)}
    assert task.average({**scores, "other": {"accuracy": 99.0}}) == pytest.approx(30.0)
    assert task.average({name: scores[name] for name in list(scores)[1:]}) is None
    assert find_task("geometry").average({"anisotropy": {"anisotropy": 0.5}}) is None


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """`load_dataset` giving rows of the right number; the list of the sets and splits that were loaded."""
    loaded: list[tuple[str, str]] = []
    sizes = {(one.source, one.splits): one.rows for sets in HUB_SETS.values() for one in sets.values()}

    def load(source: str, split: str) -> list[dict]:
        loaded.append((source, split))
        whole = next(rows for (name, splits), rows in sizes.items() if name == source and split in splits)
        parts = next(splits for name, splits in sizes if name == source and split in splits)
        count = whole // len(parts) + (whole % len(parts) if split == parts[0] else 0)
        row = {"sentence1": " a\tb ", "sentence2": "c\n", "text": "d", "label": 1, "label_coarse": 2}
        return [{**row, "score": number % 5} for number in range(count)]

    monkeypatch.setattr("datasets.load_dataset", load)
    monkeypatch.setattr("cse.files.hub.reachable", lambda: True)
    return loaded


def test_sets_are_written_once_in_the_layout_of_the_task(hub, tmp_path):
    folder = fetch("sts", tmp_path)
    assert list(sts.units(TaskData(folder))) == ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B"]
    assert scored_pairs(folder / "STS16" / "all.tsv")[1] == (1.0, "a b", "c")
    assert len(hub) == 7
    fetch("sts", tmp_path)
    assert len(hub) == 7
    fetch("transfer", tmp_path)
    assert (tmp_path / "transfer" / "TREC" / "test.tsv").read_text().splitlines() == ["2\td"] * 500


def test_a_set_of_another_size_or_no_hub_is_refused_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("cse.files.hub.reachable", lambda: False)
    with pytest.raises(ValueError, match="mteb/sts12-sts: the data hub cannot be reached; give a folder as `data`"):
        fetch("sts", tmp_path)
    monkeypatch.setattr("cse.files.hub.reachable", lambda: True)
    monkeypatch.setattr("datasets.load_dataset", lambda source, split: [{}] * 3)
    with pytest.raises(ValueError, match="mteb/sts12-sts: 3 rows, expected 3108; give a folder as `data`"):
        fetch("sts", tmp_path)

    assert not list(tmp_path.rglob("*.tsv"))
