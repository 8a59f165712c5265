"""One visitor's whole job in a browser, from the upload to a trained model: each step in seconds, with a picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.corpus import Corpus
from cse.corpus.output import csv_text
from tests.bench.browser import chromium

LONG = 3_600_000  # milliseconds: a training on a busy machine
SETTLED = 500  # milliseconds in which lists fade out
VOTES = 20
KEYS = "aabsa"  # the votes of a visitor, again and again


@dataclass(frozen=True)
class Shot:
    """A step: what was done, the seconds from the press to its result, and the file name of the picture."""

    step: str
    seconds: float
    picture: str


@contextmanager
def opened_page(url: str, width: int, height: int) -> Iterator[Any]:
    """Open an app in Chromium; on a narrow screen a finger points. Raises ValueError without Chromium."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height}, has_touch=width < 600)
        page.set_default_timeout(LONG)
        page.goto(url)
        page.wait_for_function("window.cseOpened")
        yield page


def press(page: Any, name: str) -> None:
    """Press the visible button of this name."""
    page.get_by_role("button", name=name, exact=True).locator("visible=true").click()


def begin_training(page: Any, method: str) -> None:
    """Start a training on the page's corpus, by the label of its method, and wait for its first loss."""
    page.get_by_role("tab", name="Train").click()
    page.get_by_role("radio", name=method).locator("visible=true").check()
    press(page, "Train")
    page.locator("#training .cse-course, #training .cse-outcome").first.wait_for()


class Film:
    """The job on an opened `page` with labelled texts; pictures go into `folder`, and `say` gets each step in words."""

    def __init__(self, page: Any, rows: Corpus, folder: Path, method: str, say: Callable[[str], object] = str) -> None:
        """`method` is the label of a choice of the Train tab."""
        self.page, self.folder, self.method, self.say = page, folder, method, say
        self.table = csv_text(["text", "label"], zip(rows.texts, rows.labels, strict=True))
        self.query = rows.sentences[0]
        self.shots: list[Shot] = []
        folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def step(self, what: str, shown: str) -> Iterator[None]:
        """Measure the block, then scroll to what is `shown` (a selector) and take the picture."""
        begun = time.perf_counter()
        yield
        seconds = time.perf_counter() - begun
        self.page.locator(shown).first.scroll_into_view_if_needed()
        self.page.wait_for_timeout(SETTLED)
        picture = f"{len(self.shots) + 1:02}-{what.replace(' ', '-')}.png"
        self.page.screenshot(path=self.folder / picture)
        self.shots.append(Shot(what, round(seconds, 2), picture))
        self.say(f"{what}: {seconds:.1f} s")

    def run(self) -> list[Shot]:
        """Do the job; return its steps."""
        self.upload()
        self.map()
        self.clean_and_score()
        self.train()
        self.choose()
        return self.shots

    def press(self, name: str) -> None:
        """Press the visible button of this name."""
        press(self.page, name)

    def tab(self, name: str) -> None:
        """Open a tab."""
        self.page.get_by_role("tab", name=name).click()

    def upload(self) -> None:
        """Upload the texts with their labels, and search them by the first model."""
        page, form = self.page, self.page.locator("#corpus-form")
        self.tab("Search")
        with self.step("upload to columns", "#corpus-form"):
            self.press("Upload")
            with page.expect_file_chooser() as chosen:
                form.get_by_role("button", name="Click to upload or drop files").click()
            file = {"name": "texts.csv", "mimeType": "text/csv", "buffer": self.table.encode()}
            chosen.value.set_files(file)
            form.get_by_label("Column of the texts").wait_for()
            for field, column in (("Column of the texts", "text"), ("Column of labels", "label")):
                form.get_by_label(field).click()
                page.get_by_role("option", name=column, exact=True).locator("visible=true").last.click()
        with self.step("texts to first search", "#hits"):
            self.press("Use these texts")
            page.get_by_label("Query").fill(self.query)
            self.press("Search")
            page.locator("#hits .cse-ranks tbody th", has_text=self.query).first.wait_for()

    def map(self) -> None:
        """Draw the first map with its groups, open a group, and wait for all models."""
        page = self.page
        self.tab("Clusters")
        with self.step("first map with groups", "#maps .cse-frame"):
            self.press("Draw maps")
            page.locator("#maps .cse-legend button").first.wait_for()
        with self.step("a group opened", "#maps .cse-texts"):
            page.locator("#maps .cse-legend button").first.click()
            page.locator("#maps .cse-texts button").first.wait_for()
        with self.step("maps of all models", "#maps .cse-frame"):
            page.locator("#maps .cse-small").nth(3).wait_for()
            page.wait_for_function("!document.querySelector('#corpus-status').innerText.trim()")

    def clean_and_score(self) -> None:
        """Find near-duplicates, and score all models on the labels."""
        page = self.page
        self.tab("Near-duplicates")
        with self.step("near-duplicates", "#duplicate-numbers"):
            self.press("Find groups")
            page.locator("#duplicate-numbers .cse-count", has_text="texts would go").wait_for()
        self.tab("Results")
        with self.step("scores on the labels", "#label-scores"):
            self.press("Score the corpus")
            page.locator("#label-scores table").first.wait_for()

    def train(self) -> None:
        """Train, and take the result away."""
        page = self.page
        with self.step("training shows its loss", "#training"):
            begin_training(page, self.method)
        with self.step("training to its verdict", "#training .cse-outcome"):
            page.locator("#training .cse-outcome").wait_for()
        with self.step("model as zip", "#training .cse-outcome"), page.expect_download():
            self.press("Download (.zip)")

    def choose(self) -> None:
        """Vote on a pair of models, blind, and see the verdict."""
        page = self.page
        self.tab("Choose for my data")
        with self.step("first vote asked", "#ballot"):
            self.press("Start voting")
            page.locator("#ballot .cse-asked").wait_for()
        with self.step("twenty votes and the verdict", "#verdict"):
            place = page.locator("#ballot .cse-note").first
            for number in range(1, VOTES + 1):
                place.filter(has_text=f"Vote {number} of {VOTES}").wait_for()
                page.wait_for_timeout(100)  # Gradio drops a click while it ends the event before
                page.keyboard.press(KEYS[number % len(KEYS)])
            page.locator("#verdict .cse-verdict").wait_for()
