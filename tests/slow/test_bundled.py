"""The embedded default: models that opened, learned and say so, and a demo corpus that is what it claims."""

import functools
import json
from collections import Counter

import numpy as np
import pytest
from conftest import DATA

import cse
from cse.app.corpus.corpora import VECTORS, Demo
from cse.corpus.supervised import scored_pairs
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation.metrics import spearman
from cse.models.names import BACKBONE, BUNDLED, BUNDLED_NAMES, START
from cse.vectors import cosines, unit_rows

CORPUS = [line.split("\t") for line in (BUNDLED / "demo" / "corpus.tsv").read_text().splitlines()]
PAIRS = scored_pairs(BUNDLED / "demo" / "pairs.tsv")
SHIPPED = [(name, start) for name in BUNDLED_NAMES for start in (False, True)]
opened = functools.cache(cse.load)  # the tests of this file only read


@pytest.mark.parametrize("name", BUNDLED_NAMES)
def test_a_bundled_model_beats_its_untrained_start_and_records_how_it_was_made(name: str) -> None:
    config = json.loads((BUNDLED / name / "config.json").read_text())
    assert config["method"]["name"] == name
    assert config["backbone"]["name"] == BACKBONE
    assert config["dev"]["best"] > config["dev"]["start"]
    assert config["settings"]["seed"] in (42, 43, 44)  # the best of three on dev
    encoder = opened(name)
    assert encoder.name == name
    assert encoder.learned_count == config["learned_numbers"]


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real STS-B dev set beside the project (2026-11)")
@pytest.mark.parametrize(("name", "whole", "eighth"), [("dcpcse", 84.99, 84.92), ("conpvp", 83.60, 83.63)])
def test_the_recorded_dev_score_is_that_of_the_shipped_file(name: str, whole: float, eighth: float) -> None:
    """Of a prefix and of learned slots; fingerprints cover the other weights, the next test all vectors.

    The file that scores `whole` on all pairs, as recorded, scores `eighth` on every eighth.
    """
    pairs = scored_pairs(DATA / "sts" / "STSB" / "dev.tsv")
    recorded = json.loads((BUNDLED / name / "config.json").read_text())["dev"]["best"]
    assert recorded == pytest.approx(whole, abs=0.01)
    assert spearman(opened(name).encode, pairs[::8]) == pytest.approx(eighth, abs=0.1)  # stored in half precision


@pytest.mark.parametrize(("name", "start"), SHIPPED)
def test_the_shipped_vectors_of_the_demo_corpus_are_the_models_own(name: str, start: bool) -> None:
    """Ten rows; float16 keeps three digits."""
    encoder, rows = opened(name, start=start), np.linspace(0, len(CORPUS) - 1, 10).astype(int)
    assert len(list(VECTORS.glob("*.npy"))) == len(SHIPPED)
    stored = np.load(VECTORS / f"{encoder.fingerprint}.npy")
    assert (stored.dtype, stored.shape) == (np.float16, (len(CORPUS), encoder.dim))
    own = encoder.encode([CORPUS[row][1] for row in rows])
    np.testing.assert_allclose(stored[rows], own, atol=2e-3 * np.abs(own).max())


@pytest.mark.parametrize("name", BUNDLED_NAMES)
def test_a_bundled_model_tells_related_pairs_from_unrelated_ones(name: str) -> None:
    encoder = opened(name)
    scores = cosines(encoder.encode([first for _, first, _ in PAIRS]), encoder.encode([second for *_, second in PAIRS]))
    grades = np.array([grade for grade, *_ in PAIRS])
    related, unrelated = scores[grades > 0], scores[grades == 0]
    assert related.mean() > unrelated.mean() + 0.1
    assert (related > np.quantile(unrelated, 0.9)).mean() > 0.8


def same_topic_share(encoder: TorchEncoder) -> float:
    """How often a demo sentence's five nearest neighbours have its topic; chance is 0.08."""
    topics = np.array(CORPUS)[:, 0]
    vectors = unit_rows(Demo().vectors(None, encoder))  # as shipped
    nearest = (2 * np.eye(len(topics)) - vectors @ vectors.T).argsort(1)[:, :5]
    return float((topics[nearest] == topics[:, None]).mean())


def test_three_of_four_nearest_neighbours_share_a_topic() -> None:
    for name in BUNDLED_NAMES:
        assert same_topic_share(opened(name)) >= 0.74, name


def test_the_demo_corpus_is_twelve_topics_of_a_hundred_different_sentences() -> None:
    assert Counter(topic for topic, _ in CORPUS).most_common()[-1][1] == 100
    assert len({topic for topic, _ in CORPUS}) == 12
    assert len({text.lower() for _, text in CORPUS}) == 1200
    openings = Counter((topic, *text.lower().split()[:3]) for topic, text in CORPUS)
    assert max(openings.values()) <= 2
    assert all(4 <= len(text.split()) <= 26 for _, text in CORPUS)


def test_fingerprints_are_those_the_shipped_results_were_scored_with() -> None:
    """Indexes and results of earlier versions stay valid: a fingerprint changes with the weights alone."""
    records = json.loads((BUNDLED / "results" / "sts.json").read_text())["models"]
    for name in BUNDLED_NAMES:
        assert opened(name).fingerprint == records[name]["fingerprint"], name
    for pooling in ("mean", "cls", "first-last", "static", "prompt"):
        assert opened(BACKBONE, pooling).fingerprint == records[f"bundled-{pooling}"]["fingerprint"], pooling


@pytest.mark.parametrize("name", BUNDLED_NAMES)
def test_a_bundled_model_card_says_that_its_scores_are_no_unsupervised_results(name: str) -> None:
    assert START in (BUNDLED / name / "README.md").read_text()


def test_the_backbone_opens_in_transformers_with_the_same_vectors_and_words() -> None:
    from transformers import AutoModel, AutoTokenizer, pipeline

    folder = BUNDLED / "backbone"
    inputs = AutoTokenizer.from_pretrained(folder)("A man is playing a guitar.", return_tensors="pt")
    vector = AutoModel.from_pretrained(folder)(**inputs).last_hidden_state[0].mean(0).detach().numpy()
    np.testing.assert_allclose(vector, opened(BACKBONE, "mean").encode(["A man is playing a guitar."])[0], atol=2e-3)
    answers = pipeline("fill-mask", str(folder))("She [MASK] a novel about her childhood.")
    assert answers[0]["token_str"] == "wrote"
