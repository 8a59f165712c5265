"""The benchmark of projections: gains on texts that the projection was not fitted on."""

from pathlib import Path

import numpy as np

from tests.bench.adapt import measure


def test_noise_outside_the_components_is_removed_and_fitted_texts_are_not_scored(tmp_path: Path) -> None:
    (tmp_path / "set.tsv").write_text("".join(f"{number % 4}\ttext {number}\n" for number in range(400)))
    asked: list[set[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(set(texts))
        rng = np.random.default_rng(len(texts))
        topics = 8 * np.eye(4)[[int(text.split()[1]) % 4 for text in texts]]
        return np.hstack([topics, rng.normal(scale=2, size=(len(texts), 60))]).astype(np.float32)

    (row,) = measure(tmp_path / "set.tsv", {"made": encode}, [3, 60], fit=300, scored=100, seed=0)
    assert not asked[0] & asked[1]
    assert [len(each) for each in asked] == [300, 100]
    assert row.start + row.gains[3] > 99
    assert row.gains[3] > row.gains[60] + 2
