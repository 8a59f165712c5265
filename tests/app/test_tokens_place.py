"""The place Tokens: words at [MASK], another template, attention, prefix and prototypes are what the library says."""

import re

import numpy as np
import pytest
from app_models import MARKUP, write_models
from scipy.stats import spearmanr

import cse
from cse.analysis.calibration import random_cosines
from cse.analysis.prefix_analysis import head_attention, prefix_attention, prototypes, without_prefix
from cse.app.corpus.corpora import DEMO
from cse.app.files import as_csv
from cse.app.models.naming import title
from cse.app.results import RESULTS
from cse.app.show import ask, endpoint, page_html
from cse.app.state import AppState, open_state
from cse.corpus.supervised import scored_pairs

SENTENCE, OTHER = "the dog is happy", "the cat is sad"
KINDS = {kind.key: kind for kind in RESULTS if kind.key in ("tokens", "template", "attention", "prefix", "prototypes")}
Tokens, Template, Attention, Prefix, Prototypes = KINDS.values()


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    return open_state(list(map(str, write_models(tmp_path_factory.mktemp("tokens"), bert_folder))), ())


def encoder_of(state: AppState, name: str, **options):
    return cse.load(next(column.model for column in state.models.own if column.name == name), **options)


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def likeliest(encoder, logits: np.ndarray, count: int) -> list[tuple[str, float]]:
    shares = np.exp(logits.astype(np.float64) - logits.max())
    shares /= shares.sum()
    order = [row for row in np.argsort(-shares, kind="stable") if row not in encoder.tokenizer.all_special_ids]
    return [(encoder.tokenizer.decode([int(row)]).strip(), shares[row]) for row in order[:count]]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_tokens_are_those_of_the_logits_on_page_in_file_and_for_programs(state, share) -> None:
    values = {"sentence": SENTENCE, "k": 4, "share": share}
    answer = ask(state, Tokens, values)
    for name in ("simcse", "promptbert"):
        encoder = encoder_of(state, name)
        spoken, alone = encoder.mask_logits(SENTENCE)
        for key, logits in {"sentence": spoken, "template": alone, "denoised": spoken - share * alone}.items():
            rows = answer.frame.query("model == @name and list == @key")
            expected = likeliest(encoder, logits, 4)
            assert rows["token"].tolist() == [token for token, _ in expected]
            assert rows["probability"].tolist() == pytest.approx([value for _, value in expected], rel=1e-3)
            assert endpoint(state, Tokens)(**values)[name][key] == [list(pair) for pair in zip(
                rows["token"].tolist(), rows["probability"].tolist(), strict=True)]  # fmt: skip
    assert endpoint(state, Tokens)(**values)["broken"].keys() == {"error"}
    shown = re.findall(r'cse-token">(.*?)</span>.*?cse-score">(.*?) %', page_html(answer), re.DOTALL)
    assert len(shown) == len(answer.frame) == as_csv(answer).count("\n") - 1
    assert sorted(float(share) for _, share in shown) == sorted((100 * answer.frame["probability"]).round(1).tolist())


def test_a_template_is_scored_on_the_graded_pairs_beside_each_models_own(state) -> None:
    template = '"[X]" is a [MASK] one'
    answer = ask(state, Template, {"sentence": SENTENCE, "template": template, "k": 3})
    pairs = scored_pairs(DEMO / "pairs.tsv")
    for name in ("simcse", "conpvp"):
        encoder = encoder_of(state, name)
        rows = answer.frame.query("model == @name and side == 'own'")
        ones, others = (encoder.encode([pair[place] for pair in pairs]) for place in (1, 2))
        scores = [cosine(*each) for each in zip(ones, others, strict=True)]
        assert rows["score"].iloc[0] == pytest.approx(100 * spearmanr(scores, [pair[0] for pair in pairs])[0], abs=0.02)
        assert rows["token"].tolist() == [token for token, _ in encoder.top_tokens(SENTENCE, 3)]
        own, other = answer.json()[name][0], answer.json()[name][-1]
        assert (own["side"], other["side"], other["template"]) == ("own", "other", template)
        assert other["gain"] == pytest.approx(other["score"] - own["score"], abs=0.02)
    sheet = answer.result.sheet(answer.frame)
    assert sheet["model"].tolist() == list(map(title, answer.models))  # in the order of the page


def test_attention_has_every_head_and_the_page_shows_the_mean_of_a_layer(state) -> None:
    answer = ask(state, Attention, {"sentence": SENTENCE, "layer": 24})
    for name in ("dcpcse", "promptbert"):
        known, records = head_attention(encoder_of(state, name, backend="torch"), SENTENCE), answer.json()[name]
        assert [record["share"] for record in records] == pytest.approx(known.shares.ravel(), abs=1e-5)
        assert [record["token"] for record in records[: len(known.tokens)]] == list(known.tokens)
        assert sum(record["on_prefix"] for record in records[: len(known.tokens)]) == known.prefix
        card = next(card for card in answer.result.view(answer.frame)["cards"] if card["name"] == name)
        assert card["layer"] == 2  # the last
        assert [token["share"] for token in card["tokens"]] == pytest.approx(known.shares[-1].mean(0), abs=1e-5)
    one = ask(state, Attention, {"sentence": SENTENCE, "layer": 1, "head": 2, "models": ["promptbert"]})
    tokens = one.result.view(one.frame)["cards"][0]["tokens"]
    assert [token["share"] for token in tokens] == one.frame.query("layer == 1 and head == 2")["share"].tolist()


def test_a_prefix_is_switched_off_layer_by_layer(state) -> None:
    answer = ask(state, Prefix, {"sentence": SENTENCE, "other": OTHER})
    assert any(note.endswith("have no prefix.") for note in answer.notes)
    rows = answer.frame.set_index("layers")
    assert rows.index.tolist() == ["none", "1", "2", "all"]
    encoder = encoder_of(state, "dcpcse", backend="torch")
    seen = prefix_attention(encoder, SENTENCE)
    assert rows.loc[["1", "2"], "attention"].tolist() == pytest.approx(list(seen.read))
    texts = [state.demo.texts[row] for row in range(0, len(state.demo.texts), 6)]
    own, median = encoder.encode([SENTENCE])[0], np.median(random_cosines(encoder.encode(texts)))
    for name, layers in (("1", (1,)), ("2", (2,)), ("all", (1, 2))):
        first, second = without_prefix(encoder, [SENTENCE, OTHER], layers)
        assert rows.loc[name, "cosine"] == pytest.approx(cosine(first, second), abs=1e-5)
        assert rows.loc[name, "moved"] == pytest.approx((1 - cosine(own, first)) / (1 - median), abs=2e-2)
    assert answer.json()["dcpcse"][0]["attention"] is None


def test_prototypes_are_the_librarys_nearest_first(state) -> None:
    answer = ask(state, Prototypes, {"sentence": SENTENCE})
    known = prototypes(encoder_of(state, "conpvp"), SENTENCE)
    assert answer.frame["template"].tolist() == [each.template for each in known]
    assert answer.frame["cosine"].tolist() == pytest.approx([each.cosine for each in known], abs=1e-6)
    assert (answer.frame["kind"] == "affirms").tolist() == [each.positive for each in known]
    assert page_html(answer).count('<th scope="row">') == len(known)


@pytest.mark.parametrize("key", KINDS)
def test_hostile_texts_stay_texts(state, key) -> None:
    values = {"sentence": MARKUP, "other": MARKUP, "template": f"{MARKUP} [X] [MASK]"}
    page = page_html(ask(state, KINDS[key], {name: values[name] for name in KINDS[key].asks() if name in values}))
    assert "<img" not in page
    assert "&lt;img" in page
