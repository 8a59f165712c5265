"""Transfer and few-shot against slow loops, hand-worked features, separable toys; refusals; real files if present."""

import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA
from sklearn.model_selection import StratifiedKFold
from transfer_rows import Rows, arrays, noisy, numbers, separable, slow, write

from cse.evaluation import classification, few_shot, transfer
from cse.evaluation.classification import STRENGTHS, labelled_rows, labels
from cse.evaluation.tasks import TaskData


def slow_choice(x: np.ndarray, y: np.ndarray, folds: int) -> float:
    """The strength with the best mean accuracy over stratified folds, the first of equals."""
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=1111).split(x, y))
    means = [np.mean([slow((x[a], y[a]), (x[b], y[b]), c) for a, b in splits]) for c in STRENGTHS]
    return STRENGTHS[int(np.argmax(means))]


def test_nested_folds_are_the_slow_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "FOLDS", 3)
    monkeypatch.setattr(transfer, "INNER_FOLDS", 2)
    rows = noisy(14, 80)  # inner folds of another number choose others, with another score
    x, y = arrays(rows)
    scores, chosen = [], []
    for a, b in StratifiedKFold(3, shuffle=True, random_state=1111).split(x, y):
        chosen.append(slow_choice(x[a], y[a], 2))
        scores.append(slow((x[a], y[a]), (x[b], y[b]), chosen[-1]))
    assert len(set(chosen)) > 1  # the folds disagree, so the choice is seen
    unit = transfer.units(TaskData(write(tmp_path, "MR", all=rows)))["MR"]
    assert unit(numbers) == {"accuracy": round(100 * statistics.mean(scores), 2)}


def test_dev_chooses_the_strength_and_test_is_scored(tmp_path: Path) -> None:
    train, dev, test = noisy(126, 30), noisy(226, 60), noisy(326, 90)
    on_dev = [slow(arrays(train), arrays(dev), c) for c in STRENGTHS]
    on_test = [slow(arrays(train), arrays(test), c) for c in STRENGTHS]
    best = int(np.argmax(on_dev))
    assert on_test[best] not in (
        on_test[0],
        on_test[-1],
        max(on_test),
    )  # a fixed strength or a look at test would differ
    unit = transfer.units(TaskData(write(tmp_path, "SST2", train=train, dev=dev, test=test)))["SST2"]
    assert unit(numbers) == {"accuracy": round(100 * on_test[best], 2)}


def test_folds_of_train_choose_where_there_is_no_dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "FOLDS", 4)
    train, test = noisy(120, 60), noisy(320, 90)
    chosen = slow_choice(*arrays(train), 4)
    expected = slow(arrays(train), arrays(test), chosen)
    assert expected not in [slow(arrays(train), arrays(test), c) for c in STRENGTHS if c != chosen]
    unit = transfer.units(TaskData(write(tmp_path, "TREC", train=train, test=test)))["TREC"]
    assert unit(numbers) == {"accuracy": round(100 * expected, 2)}


def test_mrpc_counts_accuracy_and_the_f1_of_paraphrases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predicted = np.array(["1", "1", "1", "0", "0", "1"])
    monkeypatch.setattr(classification, "chosen_by_folds", lambda train, test, folds: predicted)
    test = [(label, f"{n} 1", "2 2") for n, label in enumerate("110011")]
    unit = transfer.units(TaskData(write(tmp_path, "MRPC", train=separable(20, "01", 2), test=test)))["MRPC"]
    # gold 1 1 0 0 1 1: three true and one false positive, one missed: 4 of 6 right; 2 * 3 / (2 * 3 + 1 + 1)
    assert unit(numbers) == {"accuracy": 66.67, "f1": 75.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tx\n\nb\ty\tz\n", r"rows.tsv: line 3 has 3 columns; give label<TAB>text"),
        ("a\tx\n\ty\n", r"rows.tsv: line 2 has an empty label"),
        ("a\tx\nb\t \n", r"rows.tsv: line 2 has an empty text"),
        ("a\tx\na\ty\n", r"rows.tsv: only label 'a' in it"),
        ("\n", r"rows.tsv: no row in it"),
    ],
)
def test_a_malformed_file_is_refused_by_name_and_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "rows.tsv").write_text(content)
    with pytest.raises(ValueError, match=message):
        labelled_rows(tmp_path / "rows.tsv")


@pytest.mark.parametrize("units", [transfer.units, few_shot.units])
def test_a_folder_without_sets_or_with_half_a_set_is_refused(tmp_path: Path, units: Callable) -> None:
    with pytest.raises(ValueError, match=r"no transfer set in it.*MR/\{all.tsv\}.*MRPC/\{train.tsv,test.tsv\}"):
        units(TaskData(tmp_path))
    with pytest.raises(ValueError, match=r"SST2: no dev.tsv, test.tsv; SST2 needs train.tsv, dev.tsv, test.tsv"):
        units(TaskData(write(tmp_path, "SST2", train=separable(20))))


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        (
            "MR",
            {"all": [("label", "1 1"), *separable(40)]},
            r"all.tsv: label 'label' has 1 of 12 required rows.*header",
        ),
        ("TREC", {"train": separable(19), "test": separable(4)}, r"train.tsv: label 'b' has 9 of 10 required rows"),
        (
            "TREC",
            {"train": separable(20), "test": separable(4, "ax")},
            r"test.tsv: label 'x' is not in the training data \(a, b\)",
        ),
        (
            "MRPC",
            {"train": separable(40, "ab", 2), "test": separable(4, "ab", 2)},
            r"train.tsv: label 'a'; MRPC has 0 and",
        ),
        ("MRPC", {"train": separable(40), "test": separable(4)}, r"line 1 has 2 columns; give label<TAB>text<TAB>text"),
    ],
)
def test_a_set_that_cannot_be_scored_is_refused_before_anything_is_encoded(
    tmp_path: Path, name: str, files: dict[str, Rows], message: str
) -> None:
    def refuse(texts: list[str]) -> np.ndarray:
        raise AssertionError("encoded")

    with pytest.raises(ValueError, match=message):
        transfer.units(TaskData(write(tmp_path, name, **files)))[name](refuse)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real transfer sets beside the project (2026-11)")
def test_the_real_sets_have_the_published_counts() -> None:
    sets = transfer.found_sets(DATA / "transfer")
    assert list(sets) == ["MR", "CR", "SST2", "TREC", "MRPC"]
    counts = {name: [len(transfer.read_set(name, path)) for path in paths[-2:]] for name, paths in sets.items()}
    assert counts == {"MR": [10662], "CR": [3771], "SST2": [872, 1821], "TREC": [5452, 500], "MRPC": [4076, 1725]}
    assert Counter(labels(transfer.read_set("MRPC", sets["MRPC"][1]))) == {"1": 1147, "0": 578}
