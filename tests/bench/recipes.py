"""Ways to adapt a model to texts, each from the same start, scored on other texts of the set; two recipes among them.

The recipes are those of sentence-transformers, SimCSE and TSDAE (Wang et al. 2021), with the settings of its examples:
SimCSE batches of 128, 32 tokens, rate 5e-5, every text its own positive; TSDAE batches of 8, rate 3e-5, six of ten
words deleted (split at spaces), decoder tied. The rate is constant. They are scored after one pass over the texts, as
in the examples, and when their processor time is over. Beside them is what this project offers for a user's texts:
principal components, the whole of `adapt`, and smoothing.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cse
from cse.adaptation.adapt import AdaptRequest, adapt
from cse.adaptation.choice import START
from cse.adaptation.facts import split
from cse.corpus import Corpus
from cse.evaluation.clustering import label_scores
from cse.vectors import smoothed
from tests.bench.adapt import labelled_texts
from tests.support.fitted_models import project

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Encode = Callable[[list[str]], np.ndarray]
Scores = dict[str, float]
KEPT = 0.4  # of the words of a text that TSDAE's encoder sees
PASS, END = "one pass", "end"
NEIGHBOURS = 10  # that smoothing mixes
ADAPT_SHARE = 2.0  # time of `adapt` by the clock, in the processor time of a training
LONG_SHARE = 20.0  # the same where it is to train, too
MEASURES = ("neighbours", "nmi", "ndcg@10")


@dataclass(frozen=True)
class Recipe:
    """A loss of sentence-transformers with the batch size and rate of its example."""

    loss: str
    batch_size: int
    rate: float
    length: int | None = None


RECIPES = {
    "simcse": Recipe("MultipleNegativesRankingLoss", 128, 5e-5, 32),
    "tsdae": Recipe("DenoisingAutoEncoderLoss", 8, 3e-5),
}


@dataclass(frozen=True)
class Trial:
    """A start (a folder), its pooling (None: what it records), and `seconds` of processor time for each recipe."""

    start: str
    pooling: str | None
    seconds: float
    seed: int


# What makes a model of a trial's texts and returns the scores at each time, and its processor seconds.
Way = Callable[[Trial, Corpus, Callable[[Encode], Scores]], dict[str, Any]]


def measure(
    file: Path, trial: Trial, ways: Mapping[str, Way], output: Path, *, fit: int, scored: int
) -> dict[str, Any]:
    """Return a row of scores and processor seconds of the start and of each way, by name.

    `fit` texts of a file of label<TAB>text lines are seen, `scored` others score. What is not yet in the row of
    `output` is measured, and the row is written there after each. Raises ValueError if there are fewer texts.
    """
    key = {
        "texts": file.parent.name if file.stem == "train" else file.stem, "seed": trial.seed,
        "start": f"{Path(trial.start).name} {trial.pooling or ''}".strip(),
    }  # fmt: skip
    known = [row["scores"] for row in rows_of(output) if key.items() <= row.items()]
    found: dict[str, Any] = known[0] if known else {}
    ways = {"start": lambda trial, seen, scores: {END: scores(cse.load(trial.start, trial.pooling).encode)}, **ways}
    missing = {name: way for name, way in ways.items() if name not in found}
    if not missing:
        return {**key, "scores": found}
    rows = labelled_texts(file, fit + scored, trial.seed)
    if len(rows) < fit + scored:
        raise ValueError(f"{file}: {len(rows)} different texts, but {fit} to fit and {scored} to score are asked for")
    order = np.random.default_rng(trial.seed).permutation(len(rows))
    held, seen = (rows.take(part) for part in (order[:scored], order[scored:]))
    for name, way in missing.items():
        found[name] = way(trial, seen, lambda encode: score(encode, held))
        with output.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**key, "scores": found}) + "\n")
    return {**key, "scores": found}


def score(encode: Encode, rows: Corpus) -> Scores:
    """Return the agreement of vectors with labels x 100."""
    return label_scores(np.asarray(encode(rows.sentences)), rows.labels)


def rows_of(output: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines, the last of each trial; none if it is missing."""
    lines = output.read_text(encoding="utf-8").splitlines() if output.is_file() else []
    rows = {(row["texts"], row["seed"], row["start"]): row for row in map(json.loads, lines)}
    return list(rows.values())


def summary(rows: Sequence[Mapping[str, Any]], measure: str = "neighbours") -> dict[str, dict[str, float]]:
    """Return, for each recipe at each time, the mean, smallest and largest gain over the start in points.

    `ahead` is the number of rows in which the recipe is better than its start.
    """
    gains: dict[str, list[float]] = {}
    for row in rows:
        start = row["scores"]["start"][END]
        for name, found in row["scores"].items():
            for when in (PASS, END):
                if name != "start" and measure in found.get(when, {}):
                    gains.setdefault(f"{name}, {when}", []).append(found[when][measure] - start[measure])
    return {
        name: {"mean": float(np.mean(each)), "smallest": min(each), "largest": max(each),
               "ahead": sum(gain > 0 for gain in each), "rows": len(each)}
        for name, each in gains.items()
    }  # fmt: skip


def trained(recipe: Recipe) -> Way:
    """Return the way that trains by a recipe."""
    return lambda trial, seen, scores: _trained(recipe, trial, seen.sentences, scores)


def _trained(recipe: Recipe, trial: Trial, texts: Sequence[str], scores: Callable[[Encode], Scores]) -> dict[str, Any]:
    """Train by a recipe; `one pass` is missing where the time was over before."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer import losses
    from transformers import TrainerCallback

    model = _start(trial)
    longest = model.max_seq_length
    found: dict[str, Any] = {}

    def now() -> Scores:
        model.max_seq_length, shortened = longest, model.max_seq_length
        scored = scores(lambda each: model.encode(each, batch_size=64, show_progress_bar=False))
        model.max_seq_length = shortened
        return scored

    class Clock(TrainerCallback):
        """Stop when the processor time of training is over."""

        def __init__(self) -> None:
            self.began = time.process_time()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop |= time.process_time() - self.began > trial.seconds

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if PASS not in found and state.epoch and state.epoch >= 1:
                scoring = time.process_time()
                found[PASS] = now()
                self.began += time.process_time() - scoring

    with tempfile.TemporaryDirectory() as folder:
        options = SentenceTransformerTrainingArguments(
            folder, per_device_train_batch_size=recipe.batch_size, learning_rate=recipe.rate, num_train_epochs=1000,
            lr_scheduler_type="constant", report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
            seed=trial.seed, logging_strategy="no",
        )  # fmt: skip
        if recipe.length is not None:
            model.max_seq_length = recipe.length
        loss, clock = getattr(losses, recipe.loss)(model), Clock()
        SentenceTransformerTrainer(
            model=model, args=options, train_dataset=_examples(recipe, texts, trial.seed), loss=loss,
            callbacks=[clock],
        ).train()  # fmt: skip
        spent = time.process_time() - clock.began
    model.max_seq_length = longest
    return {**found, END: now(), "seconds": round(spent, 1)}


def _examples(recipe: Recipe, texts: Sequence[str], seed: int) -> Any:
    from datasets import Dataset

    data = Dataset.from_dict({"anchor": list(texts), "positive": list(texts)})
    if recipe.loss != "DenoisingAutoEncoderLoss":
        return data
    rng = np.random.default_rng(seed)

    def damage(batch: dict[str, list[str]]) -> dict[str, list[str]]:
        return {"anchor": [damaged(text, rng) for text in batch["anchor"]], "positive": batch["positive"]}

    return data.with_transform(damage)


def damaged(text: str, rng: np.random.Generator) -> str:
    """Return the words of a text that are not deleted, at least one."""
    words = text.split()
    kept = rng.random(len(words)) < KEPT
    if words and not kept.any():
        kept[rng.integers(len(words))] = True
    return " ".join(word for word, stays in zip(words, kept, strict=True) if stays) or text


def _start(trial: Trial) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    if (Path(trial.start) / "modules.json").is_file():
        return SentenceTransformer(trial.start, device="cpu", local_files_only=True)
    backbone = Transformer(trial.start)
    pooling = Pooling(backbone.get_embedding_dimension(), trial.pooling or "mean")
    return SentenceTransformer(modules=[backbone, pooling], device="cpu")


def projection(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
    """Project on principal components, which see four fifths of the texts, as in `adapt`."""
    with tempfile.TemporaryDirectory() as folder:
        began, output = time.process_time(), Path(folder) / "adapted"
        project(trial.start, split(seen, trial.seed)[1].sentences, output, pooling=trial.pooling)
        spent = time.process_time() - began
        return {END: scores(cse.load(str(output)).encode), "seconds": round(spent, 1)}


def smoothing(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
    """Mix the scored vectors with their nearest others; nothing is learned."""
    encoder = cse.load(trial.start, trial.pooling)
    return {END: scores(lambda texts: smoothed(encoder.encode(texts), NEIGHBOURS)), "seconds": 0.0}


def adapted(share: float) -> Way:
    """Return the way that runs the whole of `adapt` with the labels, and scores what it advises."""

    def way(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            data, output = Path(folder) / "texts.jsonl", Path(folder) / "adapted"
            labelled = zip(seen.texts, seen.labels, strict=True)
            data.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in labelled))
            minutes, began = share * trial.seconds / 60, time.process_time()
            request = AdaptRequest(str(data), trial.start, trial.pooling, "text", "label", minutes, trial.seed)
            report = adapt(request, output)
            spent = time.process_time() - began
            kept = cse.load(trial.start, trial.pooling) if report["decision"] == START else cse.load(str(output))
            return {END: scores(kept.encode), "seconds": round(spent, 1), "decision": report["decision"],
                    "stages": report["stages"]}  # fmt: skip

    return way


WAYS: dict[str, Way] = {
    "projection": projection,
    "smoothing": smoothing,
    "adapt": adapted(ADAPT_SHARE),
    "long adapt": adapted(LONG_SHARE),
    **{name: trained(recipe) for name, recipe in RECIPES.items()},
}
