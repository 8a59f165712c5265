"""A film of a visitor's job (`tests.bench film`) on small models; the training has a test of its own."""

from app_models import GOOD, serving, write_model
from app_pages import NEEDS_BROWSER, open_tab, watched

from cse.app.choice.comparison import LEAST_VOTES
from cse.corpus import Corpus
from tests.bench import film as filming
from tests.bench.film import KEYS, Film

pytestmark = NEEDS_BROWSER
NOUNS, VERBS = ("the dog", "a cat", "the sun", "a woman"), ("is happy", "was red", "is eating")
PLACES = ("in the park", "in the rain", "here", "at night", "again", "today")


def test_a_job_is_filmed_from_the_upload_to_the_verdict_with_a_picture_of_each_step(
    browser, bert_folder, tmp_path, monkeypatch
):
    texts = [{"noun": noun, "text": f"{noun} {verb} {place}"} for noun in NOUNS for verb in VERBS for place in PLACES]
    rows = Corpus.of(texts, labels="noun")
    monkeypatch.setattr(filming, "VOTES", LEAST_VOTES)
    monkeypatch.setattr(filming, "SETTLED", 100)
    models = [str(write_model(tmp_path / name, bert_folder, name, seed)) for seed, name in enumerate(GOOD)]
    with serving(models) as url, watched(browser, url) as page:
        film = Film(page, rows, tmp_path / "film", "SimCSE")
        for step in (film.upload, film.map, film.clean_and_score):
            step()
        open_tab(page, "Choose for my data")
        page.get_by_label("number input for Votes").fill(str(LEAST_VOTES))
        film.choose()
        assert f"Votes for the same: {KEYS.count('s')}" in page.locator("#verdict").inner_text()
    assert len(film.shots) == 9
    for shot in film.shots:
        assert shot.seconds > 0
        assert (tmp_path / "film" / shot.picture).read_bytes().startswith(b"\x89PNG")
