"""SentEval's layer against PyTorch's own Adam, one strength and one batch at a time, and on sets that can be told."""

from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import refused, run
from sklearn.model_selection import StratifiedKFold
from transfer_rows import arrays, noisy, write

from cse.evaluation import senteval_classifier, transfer
from cse.evaluation.classification import Part
from cse.evaluation.tasks import TaskData

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


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_layers_side_by_side_are_each_pytorchs_layer_and_adam(seed: int) -> None:
    train, held = scaled(seed, 150), scaled(100 + seed, 60)
    strengths = (1e-5, 1e-2, 3.0)  # the last one decays so much that it stops elsewhere
    weights, accuracies = senteval_classifier.fit(train, held, strengths)
    for strength, weight, accuracy in zip(strengths, weights, accuracies, strict=True):
        layer, best = slow_fit(train, held, strength)
        assert accuracy == pytest.approx(best, abs=1e-9)
        expected = torch.cat([layer.weight, layer.bias[:, None]], 1).detach().numpy()
        np.testing.assert_allclose(weight, expected, atol=2e-5)  # float32 sums in another order


def test_folds_choose_and_the_layer_is_trained_anew_on_95_percent() -> None:
    (x, y), (z, _) = scaled(5, 120), scaled(6, 300)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=SEED).split(x, y))
    means = [
        np.mean([slow_fit((x[a], y[a]), (x[b], y[b]), strength)[1] for a, b in splits])
        for strength in senteval_classifier.STRENGTHS
    ]
    layer, _ = slow_fit((x, y), None, senteval_classifier.STRENGTHS[int(np.argmax(means))])
    predicted = senteval_classifier.chosen_by_folds((x, y), z, 4)
    assert predicted.tolist() == [sorted(set(y))[number] for number in says(layer, z)]
    assert predicted.tolist() == senteval_classifier.chosen_by_folds((x, y), z, 4).tolist()


def test_dev_chooses_the_strength() -> None:
    train, dev, (z, _) = scaled(7, 90), scaled(8, 70), scaled(9, 300)
    fitted = [slow_fit(train, dev, strength) for strength in senteval_classifier.STRENGTHS]
    best = max(fitted, key=lambda model: model[1])[0]
    predicted = senteval_classifier.chosen_on_dev(train, dev, z)
    assert predicted.tolist() == [sorted(set(train[1]))[number] for number in says(best, z)]


def test_an_unknown_classifier_is_refused_and_another_one_is_another_protocol(
    bert_folder: Path, tmp_path: Path
) -> None:
    texts = [(str(number % 2), f"the {'dog' if number % 2 else 'cat'} {number}") for number in range(40)]
    folder = write(tmp_path, "TREC", train=texts, test=texts[:6])
    with pytest.raises(ValueError, match="unknown `classifier` 'svm'; choose from logistic, senteval"):
        transfer.units(TaskData(folder, classifier="svm"))
    options = ("transfer", "--model", bert_folder, "--data", folder, "--json", tmp_path / "r.json")
    refused(run("evaluate", *options, "--classifier", "svm"), 3, "--classifier 'svm'")
    done = run("evaluate", *options, "--classifier", "senteval")
    assert done.exit_code == 0, done.output
    refused(run("evaluate", *options), 3, "'classifier': 'senteval'")
    refused(run("evaluate", "clustering", *options[1:], "--classifier", "senteval"), 2, "only for the transfer task")
