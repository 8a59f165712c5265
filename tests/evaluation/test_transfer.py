"""Transfer and few-shot against slow loops, hand-worked features, separable toys; refusals; real files if present."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from cse.evaluation import classification, few_shot, transfer
from cse.evaluation.classification import STRENGTHS, features, labelled_rows, labels
from cse.evaluation.tasks import TaskData

Rows = list[tuple[str, ...]]


def write(folder: Path, name: str, **files: Rows) -> Path:
    (folder / name).mkdir(exist_ok=True)
    for file, rows in files.items():
        (folder / name / f"{file}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return folder


def numbers(texts: Sequence[str]) -> np.ndarray:
    """Vectors for texts that are numbers with blanks between."""
    return np.array([[float(word) for word in text.split()] for text in texts], np.float32)


def noisy(seed: int, count: int, texts: int = 1, size: int = 6) -> Rows:
    """Rows of "0" and "1" whose numbers hint at the label but overlap, with each dimension at its own scale."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        vectors = (rng.normal(size=(texts, size)) + 0.5 * (number % 2)) * np.logspace(-1, 1, size)
        rows.append((str(number % 2), *(" ".join(f"{x:.4f}" for x in vector) for vector in vectors)))
    return rows


def separable(count: int, names: str = "ab", texts: int = 1) -> Rows:
    """Rows whose first text points along the label's own axis; a second text is the origin, so |u - v| does too."""
    rows = []
    for number in range(count):
        label = number % len(names)
        axis = " ".join("10" if n == label else str(number % 7 / 7) for n in range(len(names)))
        rows.append((names[label], axis, " ".join("0" * len(names)))[: 1 + texts])
    return rows


def arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return numbers([row[1] for row in rows]), np.array([row[0] for row in rows])


def slow(train: tuple, test: tuple, strength: float) -> float:
    """Accuracy on `test` of a regression on `train`, both standardised by the mean and deviation of `train`."""
    (x, y), (z, gold) = train, test
    mean, deviation = x.mean(0), x.std(0)
    model = LogisticRegression(C=strength, max_iter=1000).fit((x - mean) / deviation, y)
    return float(np.mean(model.predict((z - mean) / deviation) == gold))


def slow_choice(x: np.ndarray, y: np.ndarray, folds: int) -> float:
    """The strength with the best mean accuracy over stratified folds, the first of equals."""
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=1111).split(x, y))
    means = [np.mean([slow((x[a], y[a]), (x[b], y[b]), c) for a, b in splits]) for c in STRENGTHS]
    return STRENGTHS[int(np.argmax(means))]


def test_one_text_is_its_vector_and_two_are_difference_and_product_each_distinct_text_encoded_once() -> None:
    seen: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.append(texts)
        return numbers(texts)

    np.testing.assert_array_equal(
        features(encode, [("a", "1 2"), ("b", "3 -1"), ("a", "1 2")]), [[1, 2], [3, -1], [1, 2]]
    )
    pairs = features(encode, [("0", "1 2", "3 -1"), ("1", "3 -1", "3 -1")])
    np.testing.assert_array_equal(pairs, [[2, 3, 3, -2], [0, 0, 9, 1]])  # |u - v|, then u * v
    assert seen == [["1 2", "3 -1"], ["1 2", "3 -1"]]


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
    ("name", "test", "expected"),
    [
        ("CR", [], {"accuracy": 100.0}),
        ("SST2", separable(12), {"accuracy": 100.0}),
        ("TREC", separable(18, "abc"), {"accuracy": 100.0}),
        ("MRPC", separable(9, "01", texts=2), {"accuracy": 100.0, "f1": 100.0}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_separable_set_scores_100_with_one_call_of_encode(
    tmp_path: Path, name: str, test: Rows, expected: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"TREC": "abc", "MRPC": "01"}.get(name, "ab")
    files = {"train": separable(60, names, texts=1 + (name == "MRPC")), "test": test}
    if name == "CR":
        files = {"all": files["train"]}
    if name == "SST2":
        files["dev"] = separable(10)
    monkeypatch.setattr(transfer, "FOLDS", 2)
    monkeypatch.setattr(transfer, "INNER_FOLDS", 2)
    calls: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return numbers(texts)

    units = transfer.units(TaskData(write(tmp_path, name, **files)))
    assert list(units) == [name]
    assert units[name](encode) == expected
    assert len(calls) == 1
    assert sorted(calls[0]) == sorted({text for rows in files.values() for row in rows for text in row[1:]})


def test_the_classifier_is_the_minimum_of_the_penalised_loss() -> None:
    x, y = arrays(noisy(31, 50))
    fitted = classification.classifier(0.3).fit(x, y)
    weights = fitted[-1].coef_[0].astype(float)
    inputs = (x - x.mean(0)) / x.std(0)
    surplus = 1 / (1 + np.exp(-(inputs @ weights + fitted[-1].intercept_[0]))) - (y == "1")
    np.testing.assert_allclose(weights, -0.3 * inputs.T @ surplus, atol=5e-3)  # the gradient is zero there
    assert abs(surplus.sum()) < 5e-3


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


def test_rows_are_read_as_written_and_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_bytes("pos\t a “b” \r\n\r\nneg\tc\r\n".encode())
    rows = labelled_rows(tmp_path / "rows.tsv")
    assert rows == [("pos", "a “b”"), ("neg", "c")]
    assert labels(rows).tolist() == ["pos", "neg"]
    with pytest.raises(ValueError, match=r"gone.tsv: no such file"):
        labelled_rows(tmp_path / "gone.tsv")


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
