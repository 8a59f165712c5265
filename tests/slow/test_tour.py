"""docs/tour.ipynb runs offline, and its numbers are those of the library."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from small_models import small_bundled

import cse
from cse.app.corpus.corpora import Demo
from cse.models import names
from cse.vectors import unit_rows

nbclient = pytest.importorskip("nbclient", reason="no kernel for Python 3.10 (2026-11)")
nbformat = pytest.importorskip("nbformat")

TOUR = ROOT / "docs" / "tour.ipynb"
SMALL = """
from pathlib import Path
from cse.analysis import maps
from cse.models import names

names.BUNDLED = Path("{}")
maps.ITERATIONS = 250  # the least
"""
# What the test reads from the notebook after its last cell.
DUMP = """
import json
json.dump({
    "folder": str(folder), "compared": compared,
    "tokens": [[list(pair) for pair in tokens[key]] for key in (False, True)],
    "hits": [[hit.rank, hit.score, hit.text] for hit in hits], "shares": shares, "steps": result.steps,
    "left": left, "labels": labels.tolist(), "seen": [texts[row] for row in seen], "pair": pair, "texts": texts,
    "maps": {name: list(points.shape) for name, points in maps.items()}, "sentence": sentence,
}, open("values.json", "w"))
"""


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The notebook's values after it ran in an empty folder, on small models, which the tests open, too."""
    place, small = tmp_path_factory.mktemp("tour"), small_bundled(tmp_path_factory.mktemp("small"))
    book = nbformat.read(TOUR, as_version=4)
    book.cells.insert(0, nbformat.v4.new_code_cell(SMALL.format(small)))
    book.cells.append(nbformat.v4.new_code_cell(DUMP))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("MPLBACKEND", "agg")
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("TMPDIR", str(place))
        patch.setattr(names, "BUNDLED", small)
        nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": place}}).execute()
        yield json.loads((place / "values.json").read_text())


def test_its_comparison_tokens_and_hits_are_those_of_the_models(values: dict[str, Any]) -> None:
    demo = Demo()
    assert values["texts"] == demo.texts
    for name, (cosine, percentile) in values["compared"].items():
        encoder = cse.load(name)
        first, second = encoder.encode(values["pair"], normalize_embeddings=True)
        assert cosine == pytest.approx(float(first @ second), abs=1e-5)
        unit = unit_rows(demo.vectors(None, encoder)[::6])
        random = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
        assert percentile == pytest.approx(100 * float((random < cosine).mean()), abs=0.1)
    encoder = cse.load("promptbert")
    for found, denoise in zip(values["tokens"], (False, True), strict=True):
        wanted = encoder.top_tokens(values["sentence"], k=5, denoise=denoise)
        assert [token for token, _ in found] == [token for token, _ in wanted]
    query = encoder.encode("Where can I hear live music tonight?", normalize_embeddings=True)
    cosines = unit_rows(demo.vectors(None, encoder)) @ query
    best = np.argsort(-cosines)[:3]
    assert [text for *_, text in values["hits"]] == [values["texts"][row] for row in best]
    np.testing.assert_allclose([score for _, score, _ in values["hits"]], cosines[best], atol=1e-3)


def test_the_model_it_trains_is_scored_on_texts_it_has_not_seen(values: dict[str, Any]) -> None:
    assert values["steps"] == 500 // 32
    assert len(values["seen"]) == 500
    assert not set(values["seen"]) & set(values["left"])
    labels = np.array(values["labels"])
    unit = cse.load(Path(values["folder"]) / "run").encode(values["left"], normalize_embeddings=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1)[:, :5]
    assert values["shares"]["after"] == pytest.approx(float((labels[near] == labels[:, None]).mean()), abs=1e-3)
    assert list(values["maps"].values()) == [[len(labels), 2]] * 2
    assert values["shares"]["before"] != values["shares"]["after"]


def test_the_export_opens_in_sentence_transformers_with_the_same_vectors(values: dict[str, Any]) -> None:
    from sentence_transformers import SentenceTransformer

    found = SentenceTransformer(str(Path(values["folder"]) / "exported"), device="cpu").encode(values["pair"])
    np.testing.assert_allclose(found, cse.load("promptbert").encode(values["pair"]), atol=1e-5)
