"""Transfer and few-shot against slow loops, SentEval's layer against PyTorch's Adam; refusals."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import ran, refused, run
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from cse.evaluation import transfer
from cse.evaluation.tasks import TaskData
from cse.evaluation.transfer import Logistic, Part, SentEval, labelled_rows

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
    means = [np.mean([slow((x[a], y[a]), (x[b], y[b]), c) for a, b in splits]) for c in Logistic.strengths]
    return Logistic.strengths[int(np.argmax(means))]


def test_nested_folds_are_the_slow_loop(tmp_path, monkeypatch):
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


def test_dev_chooses_the_strength_and_test_is_scored(tmp_path):
    train, dev, test = noisy(126, 30), noisy(226, 60), noisy(326, 90)
    on_dev = [slow(arrays(train), arrays(dev), c) for c in Logistic.strengths]
    on_test = [slow(arrays(train), arrays(test), c) for c in Logistic.strengths]
    best = int(np.argmax(on_dev))
    assert on_test[best] not in (
        on_test[0],
        on_test[-1],
        max(on_test),
    )  # a fixed strength or a look at test would differ
    unit = transfer.units(TaskData(write(tmp_path, "SST2", train=train, dev=dev, test=test)))["SST2"]
    assert unit(numbers) == {"accuracy": round(100 * on_test[best], 2)}


def test_mrpc_counts_accuracy_and_the_f1_of_paraphrases(tmp_path, monkeypatch):
    predicted = np.array(["1", "1", "1", "0", "0", "1"])
    monkeypatch.setattr(Logistic, "by_folds", lambda self, train, test, folds: predicted)
    test = [(label, f"{n} 1", "2 2") for n, label in enumerate("110011")]
    unit = transfer.units(TaskData(write(tmp_path, "MRPC", train=separable(20, "01", 2), test=test)))["MRPC"]
    # gold 1 1 0 0 1 1: three true and one false positive, one missed: 4 of 6 right; 2 * 3 / (2 * 3 + 1 + 1)
    assert unit(numbers) == {"accuracy": 66.67, "f1": 75.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tx\n\nb\ty\tz\n", r"rows.tsv: line 3 has 3 columns; give label<TAB>text"),
        ("a\tx\nb\t \n", r"rows.tsv: line 2 has an empty text"),
    ],
)
def test_a_malformed_file_is_refused_by_name_and_line(tmp_path, content, message):
    (tmp_path / "rows.tsv").write_text(content)
    with pytest.raises(ValueError, match=message):
        labelled_rows(tmp_path / "rows.tsv")


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("MR", {"all": [("label", "1 1"), *separable(40)]},
         r"all.tsv: label 'label' has 1 of 12 required rows.*header"),
        ("TREC", {"train": separable(20), "test": separable(4, "ax")},
         r"test.tsv: label 'x' is not in the training data \(a, b\)"),
        ("MRPC", {"train": separable(40, "ab", 2), "test": separable(4, "ab", 2)},
         r"train.tsv: label 'a'; MRPC has 0 and"),
    ],
)  # fmt: skip
def test_a_set_that_cannot_be_scored_is_refused_before_anything_is_encoded(tmp_path, name, files, message):
    def refuse(texts: list[str]) -> np.ndarray:
        raise AssertionError("encoded")

    with pytest.raises(ValueError, match=message):
        transfer.units(TaskData(write(tmp_path, name, **files)))[name](refuse)


def test_few_shot_runs_are_the_slow_loop_and_drawn_rows_are_not_scored(tmp_path):
    rows = noisy(41, 44)
    x, y = arrays(rows)
    runs = []
    for seed in range(10):
        draw = transfer.drawn(y, seed)
        rest = [n for n in range(len(rows)) if n not in set(draw)]
        runs.append(100 * slow((x[draw], y[draw]), (x[rest], y[rest]), 1.0))
    scores = transfer.few_shot_units(TaskData(write(tmp_path, "CR", all=rows)))["CR"](numbers)
    assert scores["runs"] == [round(run, 2) for run in runs]
    assert scores["accuracy"] == round(statistics.mean(runs), 2)
    assert scores["deviation"] == round(statistics.stdev(runs), 2)


def test_few_shot_scores_the_test_part(tmp_path):
    train, test = noisy(51, 900), noisy(52, 30)
    x, y = arrays(train)
    folder = write(tmp_path, "SST2", train=train, dev=noisy(53, 20), test=test)
    scores = transfer.few_shot_units(TaskData(folder))["SST2"](numbers)
    draws = [transfer.drawn(y, seed) for seed in range(10)]
    assert scores["runs"] == [round(100 * slow((x[draw], y[draw]), arrays(test), 1.0), 2) for draw in draws]


SEED = 1111


def slow_fit(train: Part, held: Part | None, strength: float) -> tuple[torch.nn.Linear, float]:
    """The layer of the best evaluation and its accuracy; a batch at a time through PyTorch's linear layer and Adam."""
    (x, y), names = train, sorted(set(train[1]))
    torch.manual_seed(SEED)
    rng = np.random.RandomState(SEED)
    layer = torch.nn.Linear(x.shape[1], len(names))
    if held is None:
        order = rng.permutation(len(x))
        z, gold = x[order[: len(x) // 20]], y[order[: len(x) // 20]]
        x, y = x[order[len(x) // 20 :]], y[order[len(x) // 20 :]]
    else:
        z, gold = held
    adam = torch.optim.Adam(layer.parameters(), lr=1e-3, weight_decay=strength)
    targets = torch.tensor([names.index(name) for name in y])
    best, kept, failures, epochs = -1.0, {}, 0, 0
    while epochs <= 200:
        for _ in range(4):
            for batch in torch.tensor(rng.permutation(len(x))).split(64):
                adam.zero_grad()
                loss = torch.nn.functional.cross_entropy(layer(torch.tensor(x)[batch]), targets[batch])
                loss.backward()
                adam.step()
        epochs += 4
        accuracy = float(np.mean([names[number] == name for number, name in zip(says(layer, z), gold, strict=True)]))
        if accuracy > best:
            best, kept = accuracy, {name: tensor.clone() for name, tensor in layer.state_dict().items()}
        elif failures >= 5:
            break
        else:
            failures += 1
    layer.load_state_dict(kept)
    return layer, best


def says(layer: torch.nn.Linear, rows: np.ndarray) -> list[int]:
    with torch.no_grad():
        return layer(torch.tensor(rows)).argmax(-1).tolist()


def scaled(seed: int, count: int) -> Part:
    """Overlapping rows of two classes, the dimensions of like size, so that a thousandth a step gets somewhere."""
    rows, names = arrays(noisy(seed, count))
    return (rows / np.logspace(-1, 1, rows.shape[1])).astype(np.float32), names


def test_layers_side_by_side_are_each_pytorchs_layer_and_adam():
    train, held = scaled(0, 150), scaled(100, 60)
    strengths = (1e-5, 1e-2, 3.0)  # the last one decays so much that it stops elsewhere
    weights, accuracies = SentEval().fit(train, held, strengths)
    for strength, weight, accuracy in zip(strengths, weights, accuracies, strict=True):
        layer, best = slow_fit(train, held, strength)
        assert accuracy == pytest.approx(best, abs=1e-9)
        expected = torch.cat([layer.weight, layer.bias[:, None]], 1).detach().numpy()
        np.testing.assert_allclose(weight, expected, atol=2e-5)  # float32 sums in another order


def test_folds_choose_and_the_layer_is_trained_anew_on_95_percent():
    (x, y), (z, _) = scaled(5, 120), scaled(6, 300)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=SEED).split(x, y))
    means = [
        np.mean([slow_fit((x[a], y[a]), (x[b], y[b]), strength)[1] for a, b in splits])
        for strength in SentEval.strengths
    ]
    layer, _ = slow_fit((x, y), None, SentEval.strengths[int(np.argmax(means))])
    predicted = SentEval().by_folds((x, y), z, 4)
    assert predicted.tolist() == [sorted(set(y))[number] for number in says(layer, z)]


def test_an_unknown_classifier_is_refused_and_another_one_is_another_protocol(bert_folder, tmp_path):
    texts = [(str(number % 2), f"the {'dog' if number % 2 else 'cat'} {number}") for number in range(40)]
    folder = write(tmp_path, "TREC", train=texts, test=texts[:6])
    options = ("transfer", "--model", bert_folder, "--data", folder, "--json", tmp_path / "r.json")
    refused(run("evaluate", *options, "--classifier", "svm"), 3, "--classifier 'svm'")
    ran("evaluate", *options, "--classifier", "senteval")
    refused(run("evaluate", *options), 3, "'classifier': 'senteval'")
    refused(run("evaluate", "clustering", *options[1:], "--classifier", "senteval"), 2, "only for the transfer task")
