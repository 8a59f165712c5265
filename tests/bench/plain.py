"""The papers' tables on a backbone that has seen no sentence pair: trainings one at a time, their records in JSON."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cse
from cse.commands.cli import check_choice
from cse.corpus.lines import text_lines
from cse.corpus.supervised import scored_pairs
from cse.encoder.devices import in_precision
from cse.encoder.encoder import Encoder
from cse.evaluation import geometry, sts
from cse.evaluation.metrics import spearman
from cse.evaluation.reproduction import WORD_SENTENCES
from cse.evaluation.results import TEMPLATES, provenance
from cse.evaluation.tasks import TaskData, find_task
from cse.evaluation.template_search import dev_score
from cse.files.writing import digest, file_digest, read_json, write_file, write_json
from cse.methods.templates import Template
from cse.models.checkpoint import CHECKPOINT

SAMPLE_SEED, HELD_OUT = 0, 100  # every hundredth document is the backbone's held-out text
FIXED = {"batch_size": 64, "max_steps": 60, "max_length": 32, "dropout": 0.1, "precision": "bf16"}
VARIED = {"max_steps": int, "batch_size": int, "dropout": float, "words": int}  # `words`: the first of a sentence
FIRST_SEED = 42
MORE_TASKS = ("transfer", "clustering")
Settings = Mapping[str, Any]
Log = Callable[[str], object]


def grid(rates: Sequence[float], **fixed: Any) -> list[Settings]:
    """Learning rates by temperatures, the same number for each method; the first is used until others were tried."""
    return [{"learning_rate": rate, "temperature": heat, **fixed} for heat, rate in product((0.05, 0.1), rates)]


GRIDS = {
    "simcse": grid((1e-4, 2e-5)),
    "esimcse": grid((1e-4, 2e-5)),
    "consert": grid((1e-4, 2e-5), dropout=0.0),
    "promptbert": grid((1e-4, 2e-5)),
    "conpvp": grid((1e-4, 2e-5)),
    "optiprompt": grid((3e-3, 1e-3)),
    "scpcse": grid((3e-3, 1e-3)),
    "dcpcse": grid((3e-2, 1e-2)),
}


@dataclass(frozen=True)
class Configuration:
    """A row of the tables: a method that is trained, or a reading of the untrained backbone.

    `family` names the grid of a method's settings, empty for an untrained reading; `published` are paper, table and
    name of its row for BERT-base. `period`: PromptBERT's final full stop is appended.
    """

    name: str
    title: str
    method: str = ""
    family: str = ""
    published: tuple[str, str, str] | None = None
    prefix: int | None = None
    period: bool = False


def _reading(name: str, title: str, row: str | None = None, **more: Any) -> Configuration:
    return Configuration(name, f"untrained, {title}", published=("promptbert", "5", row) if row else None, **more)


def _trained(name: str, title: str, published: tuple[str, str, str] | None = None, **more: Any) -> Configuration:
    method = more.pop("method", name)
    family = method.split("-")[0]
    return Configuration(name, title, method, family, published, period=family in ("promptbert", "optiprompt"), **more)


OWN_SCORES = STATIC_BIAS, TEMPLATE_SCORES = "static-bias", "templates"  # untrained rows with scores of their own
CONFIGURATIONS = {
    row.name: row
    for row in (
        _reading("static", "static", "static average"),
        _reading(STATIC_BIAS, "static without biased tokens", "static average, biases removed"),
        _reading("mean", "mean", "last layer average"),
        _reading("first-last", "first-last", "first-last average"),
        _reading("cls", "cls"),
        _reading("prompt", "prompt", "manual prompt", period=True),
        _reading(TEMPLATE_SCORES, "eight templates on STS-B dev", period=True),
        _trained("simcse", "SimCSE", ("conpvp", "3", "SimCSE, bert-base-uncased")),
        _trained("promptbert", "PromptBERT", ("promptbert", "6", "PromptBERT")),
        _trained("conpvp", "ConPVP", ("conpvp", "3", "ConPVP, bert-base-uncased")),
        _trained("dcpcse-16", "DCPCSE, prefix 16", ("dcpcse", "1", "DCPCSE, bert-base-uncased"), prefix=16,
                 method="dcpcse"),
        _trained("esimcse", "ESimCSE"),
        _trained("consert", "ConSERT"),
        _trained("optiprompt", "OptiPrompt", ("promptbert", "5", "OptiPrompt")),
        _trained("scpcse", "SCPCSE", ("dcpcse", "1", "SCPCSE")),
        _trained("promptbert-same", "PromptBERT, one template",
                 ("promptbert", "8", "bert-base-uncased, same template")),
        _trained("promptbert-no-denoising", "PromptBERT, two templates, not denoised",
                 ("promptbert", "8", "bert-base-uncased, different templates")),
        _trained("dcpcse-4", "DCPCSE, prefix 4", prefix=4, method="dcpcse"),
        _trained("dcpcse-8", "DCPCSE, prefix 8", prefix=8, method="dcpcse"),
        _trained("dcpcse-mlm", "DCPCSE, prefix 16, with masked-LM term",
                 ("dcpcse", "2", "bert-base-uncased, dcpcse-mlm"), prefix=16),
        _trained("conpvp-manual", "ConPVP, manual anchor"),
        _trained("conpvp-no-negative", "ConPVP, without c-"),
        _trained("conpvp-no-prototypes", "ConPVP, without c+ and c-"),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Where a run reads and writes: `data` and `backbone`, a folder for texts and checkpoints, the results file."""

    data: Path
    backbone: Path
    work: Path
    results: Path
    fixed: Settings
    sentences: int
    variations: Sequence[Settings] = ()  # of further trainings: what they have instead of `fixed`

    def inputs(self) -> dict[str, Any]:
        """All that the records of one results file have in common."""
        return {"backbone": file_digest(self.backbone / "model.safetensors"), "sentences": self.sentences,
                "texts": file_digest(self.text()), **self.fixed}  # fmt: skip

    def text(self) -> Path:
        """The file of training sentences, drawn from `corpus/wiki_a` without the backbone's held-out documents.

        The variation `words` keeps the first words of each.
        """
        words = self.fixed.get("words")
        path = self.work / f"sentences-{self.sentences}{f'-{words}' if words else ''}.txt"
        if not path.is_file():
            (source,) = (self.data / "corpus").glob("wiki_a.txt*")
            sample = random.Random(SAMPLE_SEED).sample(list(_documents(text_lines(source))), self.sentences)
            kept = [" ".join(text.split()[:words]) for text in sample] if words else sample
            write_file(path, lambda fresh: fresh.write_text("\n".join(kept) + "\n", encoding="utf-8"))
        return path

    @property
    def sts(self) -> Path:
        """The folder of the STS tasks."""
        return self.data / "sts"

    @property
    def dev(self) -> Path:
        """STS-B dev, the only set that settings are chosen on."""
        return self.sts / "STSB" / "dev.tsv"


def _documents(lines: Iterable[str]) -> Iterator[str]:
    document = 0
    for line in lines:
        if not line.strip():
            document += 1
        elif document % HELD_OUT != HELD_OUT - 1:
            yield line.strip()


def open_records(plan: Plan) -> dict[str, Any]:
    """Return the results in the plan's file, or empty ones. Raises ValueError if they have other inputs."""
    inputs = plan.inputs()
    if not plan.results.is_file():
        return {"inputs": inputs, "trials": {}, "records": {}}
    results = read_json(plan.results)
    if results["inputs"] != inputs:
        raise ValueError(f"{plan.results}: holds results of {results['inputs']}, not {inputs}; give another --results")
    return results


def variation(text: str) -> Settings:
    """Return the settings in `KEY=VALUE,KEY=VALUE`. Raises ValueError for a key that no variation has."""
    changes = {key: value for key, _, value in (part.partition("=") for part in text.split(","))}
    for key in changes:
        check_choice("vary", key, VARIED)
    return {key: VARIED[key](value) for key, value in changes.items()}


def best_settings(family: str, trials: Mapping[str, Any]) -> Settings:
    """Return the settings of a family with the best score on STS-B dev, the first of its grid without a trial."""
    names = {trial_name(family, point): point for point in GRIDS[family]}
    scores = {name: trials[name]["dev"] for name in names if name in trials}
    return names[max(scores, key=lambda name: scores[name])] if scores else GRIDS[family][0]


def trial_name(name: str, settings: Settings) -> str:
    """Return the key of these settings of a family or a run in the results."""
    return " ".join([name, *(f"{name}={value:g}" for name, value in settings.items())])


def run(plan: Plan, rows: Sequence[Configuration], note: Log, *, seeds: int, trials: bool, more: bool) -> None:
    """Add what the results lack of these rows, writing them after each: seed by seed, the rows in order.

    With `trials` every point of the rows' grids is scored on STS-B dev before; `more` adds transfer and clustering.
    A record under settings that are no longer the best is made again.
    """
    results = {"variations": {}, **open_records(plan)}

    def keep(kind: str, name: str, record: dict[str, Any]) -> None:
        results[kind][name] = record
        write_json(plan.results, results)
        note(f"{name}: {record.get('average', record.get('dev'))}, {record['seconds']} s")

    for row in rows if trials else ():
        for point in GRIDS.get(row.family, ()):
            name = trial_name(row.family, point)
            if name not in results["trials"]:
                keep("trials", name, _timed(partial(_trial, plan, row, point)))
    for number, row in product(range(seeds), rows):
        if number and not row.family:
            continue
        seed = FIRST_SEED + number if row.family else None
        settings = dict(best_settings(row.family, results["trials"])) if row.family else {}
        name = row.name if seed is None else f"{row.name} {seed}"
        for (kind, key), one in plans_of(plan, row, name).items():
            if results[kind].get(key, {}).get("settings") != settings:
                scores = _timed(partial(_record, one, row, seed, settings))
                keep(kind, key, {"settings": settings, "seed": seed, **scores})
        record = results["records"][name]
        if more and row.name not in OWN_SCORES and MORE_TASKS[0] not in record:
            keep("records", name, record | _more(plan, row, encoder_of(plan, row, seed, settings)))


def plans_of(plan: Plan, row: Configuration, name: str) -> dict[tuple[str, str], Plan]:
    """Return a row's plans by kind and name of their record: the plan itself, and one for each variation."""
    variations = {
        ("variations", trial_name(name, changes)): replace(plan, fixed={**plan.fixed, **changes})
        for changes in (plan.variations if row.family else ())
    }
    return {("records", name): plan, **variations}


def _timed(scores: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The scores, the seconds they took, and what they were made with."""
    began = time.perf_counter()
    record = scores()
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False)
    return {**record, "seconds": round(time.perf_counter() - began), "commit": commit.stdout.strip(), **provenance()}


def encoder_of(plan: Plan, row: Configuration, seed: int | None, settings: Settings) -> Encoder:
    """Return the encoder of a run, trained unless its checkpoint is there."""
    if seed is None:
        pooling = row.name if row.name not in OWN_SCORES else "prompt"
        return cse.load(str(plan.backbone), pooling)
    all_settings = {**plan.fixed, **({"prefix": row.prefix} if row.prefix else {}), **settings}
    inputs = {**plan.inputs(), **all_settings}
    folder = plan.work / f"{row.name}-{seed}-{digest(str(sorted(inputs.items())))[:8]}"
    if not CHECKPOINT.is_marked(folder):
        resume = folder.with_name(f"{folder.name}.partial").is_dir()
        all_settings.pop("words", None)
        cse.train(row.method, str(plan.text()), backbone=plan.backbone, output=folder, seed=seed, storage="float16",
                  resume=resume, progress=False, **all_settings)  # fmt: skip
    return cse.load(str(folder))


def _trial(plan: Plan, row: Configuration, point: Settings) -> dict[str, Any]:
    encoder = encoder_of(plan, row, FIRST_SEED, point)
    return {"dev": round(spearman(_cached(plan, row, encoder), scored_pairs(plan.dev)), 2)}


def _record(plan: Plan, row: Configuration, seed: int | None, settings: Settings) -> dict[str, Any]:
    encoder = encoder_of(plan, row, seed, settings)
    if row.name == TEMPLATE_SCORES:
        score = dev_score(encoder, scored_pairs(plan.dev), final_period=True)
        return {"templates": {text: score(Template(text)) for text in TEMPLATES}}
    if row.name == STATIC_BIAS:
        data = TaskData(plan.sts, encoder=encoder)
        bias = geometry.units(data)["static-bias"](encoder.encode)
        removed = {name: bias[name] for name in geometry.REMOVAL_ROWS}
        return {"sts": {k: v for k, v in removed[geometry.REMOVAL_ROWS[-1]].items() if k != "average"},
                "average": removed[geometry.REMOVAL_ROWS[-1]]["average"],
                "removal": {name: scores["average"] for name, scores in removed.items()},
                "word_cosine": bias["groups"]["all"]["cosine"]}  # fmt: skip
    return all_scores(plan, row, encoder)


def all_scores(plan: Plan, row: Configuration, encoder: Encoder) -> dict[str, Any]:
    """Return the scores of an encoder: seven STS tasks, STS-B dev, geometry on STS-B test, tokens at [MASK]."""
    encode, data = _cached(plan, row, encoder), TaskData(plan.sts)
    scores = {name: unit(encode) for name, unit in sts.units(data).items()}
    shapes = geometry.units(data)
    spread = shapes["alignment-uniformity"](encode)
    record = {
        "sts": {name: of_task["spearman"] for name, of_task in scores.items()},
        "average": sts.TASK.average(scores), "dev": round(spearman(encode, scored_pairs(plan.dev)), 2),
        "anisotropy": shapes["anisotropy"](encode)["anisotropy"],
        "alignment": spread["alignment"], "uniformity": spread["uniformity"],
    }  # fmt: skip
    if row.name in ("prompt", "promptbert"):
        words = {text: [[token for token, _ in encoder.top_tokens(text, 5, denoise)] for denoise in (False, True)]
                 for text in WORD_SENTENCES}  # fmt: skip
        record["tokens"] = words
    return record


def _more(plan: Plan, row: Configuration, encoder: Encoder) -> dict[str, Any]:
    encode, tasks = _cached(plan, row, encoder), [find_task(name) for name in MORE_TASKS]
    units = {task.name: task.units(TaskData(plan.data / task.folder)) for task in tasks}
    return {task.name: {name: unit(encode)[task.main] for name, unit in units[task.name].items()} for task in tasks}


def _cached(plan: Plan, row: Configuration, encoder: Encoder) -> Callable[[list[str]], np.ndarray]:
    """An `encode` in the plan's precision that encodes a text once."""
    encoder, vectors = in_precision(encoder, plan.fixed["precision"]), dict[str, np.ndarray]()

    def encode(texts: list[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            read = [sts.with_final_period(text) for text in new] if row.period else new
            vectors.update(zip(new, encoder.encode(read, batch_size=128), strict=True))
        return np.stack([vectors[text] for text in texts])

    return encode
