"""Overview of the papers' tables and figures: reproducible, with their needs, or copied."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.encoder.processes import start_command
from cse.errors import FACES, command_line
from cse.evaluation.figures import draw, sweep, template_bars
from cse.evaluation.geometry import BYTE_FREQUENT, WORDPIECE_FREQUENT
from cse.evaluation.published import BASE, PAPERS, ROWS, TEMPLATES, PublishedRow, check_paper, table_order
from cse.evaluation.results import read_results
from cse.evaluation.tasks import find_task
from cse.evaluation.template_search import read_scores
from cse.files.writing import digest, write_file
from cse.methods.presets import PUBLISHED, preset
from cse.methods.templates import NEGATIVE, POSITIVE
from cse.models.checkpoint import CHECKPOINT
from cse.models.loading import load
from cse.models.names import resolve_backbone

if TYPE_CHECKING:
    from cse.evaluation.published import PublishedRow
    from cse.evaluation.results import ModelRecord

WORD_SENTENCES = (
    "i am sad.", "i am not happy.", "the man is playing the guitar.", "the man is playing the piano.",
)  # fmt: skip
BACKBONE_SHAPES = {  # layers, hidden size
    "bert-base": (12, 768), "bert-large": (24, 1024), "roberta-base": (12, 768), "roberta-large": (24, 1024),
}  # fmt: skip
KINDS = ("unsupervised", "supervised")


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [headings, ["---"] * len(headings), *([str(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def settings(name: str) -> list[str]:
    """The published settings of a method on each backbone (`presets.PUBLISHED`)."""
    rows = []
    for method, supervised, backbone in PUBLISHED:
        if method == name and backbone in BACKBONE_SHAPES:
            made, config = preset(name, backbone, supervised)
            shown = (config.batch_size, f"{config.learning_rate:g}", config.epochs, config.eval_every)
            weight = f"{made.mlm_weight:g}" if made.mlm_weight else ""
            rows.append((backbone, KINDS[supervised], *shown, made.reading.prefix or "", weight))
    numbers = ("batch", "learning rate", "epochs", "steps between evaluations", "prefix", "MLM")
    return _table(("backbone", "training", *numbers), rows)


def prefix_parameters() -> list[str]:
    """DCPCSE's numbers of learned parameters: the prefix (keys and values in every layer) and the training head."""
    rows = []
    for name, supervised, backbone in PUBLISHED:
        if name == "dcpcse" and backbone in BACKBONE_SHAPES:
            layers, width = BACKBONE_SHAPES[backbone]
            length = preset(name, backbone, supervised)[0].reading.prefix
            learned = (f"{length * 2 * layers * width:,}", f"{width * (width + 1):,}")
            rows.append((backbone, KINDS[supervised], length, *learned))
    return _table(("backbone", "training", "prefix", "numbers of the prefix", "of the training head"), rows)


def biased_tokens() -> list[str]:
    """The 36 frequent tokens that are removed, for BERT and RoBERTa."""
    shown = {"BERT": WORDPIECE_FREQUENT, "RoBERTa": BYTE_FREQUENT}
    return _table(("vocabulary", "tokens"), [(name, f"`{' '.join(tokens)}`") for name, tokens in shown.items()])


def prompts() -> list[str]:
    """PromptBERT's templates by backbone, the one used for encoding first."""
    rows = []
    for backbone, supervised in product(("bert-base", "roberta-base"), (False, True)):
        views = preset("promptbert", backbone, supervised)[0].views
        texts = dict.fromkeys(f"`{view[0].text}`" for view in views)
        rows.append((backbone, KINDS[supervised], ", ".join(texts)))
    return _table(("backbone", "training", "templates"), rows)


def prototypes() -> list[str]:
    """ConPVP's positive and negative templates, as released."""
    kinds = {"positive": POSITIVE, "negative": NEGATIVE}
    return _table(("kind", "template"), [(kind, f"`{view.text}`") for kind, views in kinds.items() for view in views])


def likeliest_words(backbone: str) -> list[str]:
    """PromptBERT's Table 7: the five likeliest words at [MASK] of its sentences, before and after denoising.

    `backbone` is untrained. Raises as `cse.load` does.
    """
    encoder = load(resolve_backbone(backbone).name, pooling="prompt")
    rows = []
    for text in WORD_SENTENCES:
        words = (encoder.top_tokens(text, 5, denoise) for denoise in (False, True))
        rows.append((text, *(" ".join(token for token, _ in likeliest) for likeliest in words)))
    return _table(("sentence", "words", "words, denoised"), rows)


def word_commands(backbone: str) -> list[str]:
    """The commands that print the words of `likeliest_words`: two per sentence, without and with denoising."""
    words = ["tokens", "--model", backbone, "--pooling", "prompt"]
    return [command_line(*words, text, *more) for text in WORD_SENTENCES for more in (["--no-denoise"], [])]


STATIC_TOKENS_TABLE = ("promptbert", "7")
LISTINGS: dict[tuple[str, str], Callable[[], list[str]]] = {
    ("promptbert", "11"): biased_tokens,
    ("promptbert", "13"): prompts,
    ("promptbert", "14"): partial(settings, "promptbert"),
    ("dcpcse", "3"): prefix_parameters,
    ("dcpcse", "4"): partial(settings, "dcpcse"),
    ("conpvp", "1"): prototypes,
    ("conpvp", "2"): partial(settings, "conpvp"),
}


TEMPLATES_FILE = "templates.txt"


@dataclass(frozen=True)
class Plan:
    """Inputs, output, backbone (None: each row's own) and seeds of a reproduction.

    `data` contains each task's folder and, in `sts_senteval`, the STS text that the papers scored, which replaces
    `sts`; `train_data` is the training text of unsupervised rows, `triplets` that of supervised ones, a file or a hub
    id; `train_options` are more options of the command `train`; `sentences` is the text for PromptBERT's anisotropy.
    """

    data: Path
    output: Path
    train_data: str | None
    triplets: str | None
    backbone: str | None
    seeds: Sequence[int]
    train_options: str
    sentences: Path | None = None

    @property
    def tokenised(self) -> Path:
        """The folder of SentEval's tokenised text of the STS tasks; it may not exist."""
        return self.data / "sts_senteval"

    def source(self, row: PublishedRow) -> str | None:
        """The training text of a trained row."""
        return self.triplets if row.supervised else self.train_data

    def backbone_of(self, row: PublishedRow) -> str:
        """The model to open; a published checkpoint is its own."""
        return row.backbone if row.checkpoint else self.backbone or row.backbone

    def model(self, row: PublishedRow, seed: int | None) -> str:
        """The model to evaluate: the checkpoint of a trained row's seed, or the backbone."""
        return self.backbone_of(row) if seed is None else str(self.checkpoint(row, seed))

    def pooling(self, row: PublishedRow) -> str | None:
        """The pooling of an untrained row; None for a trained row or a published checkpoint."""
        return None if row.method or row.checkpoint else row.reading

    def runs(self, row: PublishedRow) -> Sequence[int | None]:
        """The seeds of a trained row; one run without a seed for an untrained one."""
        return self.seeds if row.method else (None,)

    def commands(self, row: PublishedRow) -> list[list[str]]:
        """Every command of a row with its words, in order; none for a copied one.

        Table 4's command scores every template on STS-B dev.
        """
        if row.copied:
            return []
        if row.task == "templates":
            dev = self.tokenised / "STSB" / "dev.tsv"
            words = ["search_templates", "--model", self.backbone or BASE, "--final-period"]
            words += [
                "--templates",
                str(self.output / TEMPLATES_FILE),
                "--dev",
                str(dev if dev.is_file() else self._dev),
            ]
            return [[*words, "--json", str(self.template_scores)]]
        seeds = self.seeds if row.method else ()
        trained = [[*self._training(row, seed), "--output", str(self.checkpoint(row, seed))] for seed in seeds]
        return [*trained, *(self.evaluate(row, seed) for seed in self.runs(row))]

    def checkpoint(self, row: PublishedRow, seed: int) -> Path:
        """The checkpoint folder of a trained row, unique to its training and shared by tables."""
        name = "-".join(filter(None, [Path(self.backbone_of(row)).name, row.method, *row.train_options, str(seed)]))
        command, *words = self._training(row, seed)
        digest = settings_digest("python", "-m", f"{FACES}.{command}", *words)  # the same wherever it runs
        return self.output / "checkpoints" / f"{name.replace('--', '')}-{digest}"

    def _training(self, row: PublishedRow, seed: int) -> list[str]:
        words = ["train", str(row.method), "--backbone", self.backbone_of(row), "--data", str(self.source(row))]
        words += ["--dev", str(self._dev), "--seed", str(seed)]
        return [*words, *row.train_options, *shlex.split(self.train_options)]

    @property
    def _dev(self) -> Path:
        return self.data / "sts" / "STSB" / "dev.tsv"

    def results(self, row: PublishedRow, seed: int | None) -> Path:
        """The results file of one evaluation."""
        options = "-".join(option.strip("-") for option in row.evaluate.split())
        name = self.checkpoint(row, seed).name if seed is not None else row.reading.replace(" ", "-")
        backbone = self.backbone_of(row)
        owner = "" if seed is not None else f"{Path(backbone).name}-{settings_digest(backbone)}"
        text = settings_digest(*sentences) if (sentences := self._text(row)) else ""
        return self.output / "results" / ("-".join(filter(None, [row.task, owner, name, options, text])) + ".json")

    def _text(self, row: PublishedRow) -> list[str]:
        """The options for the papers' text: SentEval's, if it exists, and Wikipedia for the anisotropy."""
        tokenised = "tokenised" in find_task(row.task).options and self.tokenised.is_dir()
        sampled = self.sentences if row.read[:1] == ("anisotropy",) else None
        options = ["--tokenised", str(self.tokenised)] if tokenised else []
        return [*options, *(["--sentences", str(sampled)] if sampled else [])]

    def evaluate(self, row: PublishedRow, seed: int | None) -> list[str]:
        """The evaluation command of one run."""
        pooling, task, results = self.pooling(row), find_task(row.task), self.results(row, seed)
        words = ["evaluate", row.task, "--model", self.model(row, seed), *(["--pooling", pooling] if pooling else [])]
        words += ["--data", str(self.data / task.folder), *self._text(row), *shlex.split(row.evaluate)]
        words += ["--figures", str(self.output / "figures" / results.stem)] if task.figures else []
        return [*words, "--json", str(results)]

    @property
    def template_scores(self) -> Path:
        """The file of the template search's scores."""
        backbone = self.backbone or BASE
        text = [str(self.tokenised)] if self.tokenised.is_dir() else []
        name = f"templates-{Path(backbone).name}-{settings_digest(backbone, str(self.data), *text)}.json"
        return self.output / "results" / name


def settings_digest(*parts: str) -> str:
    """8 hex digits that distinguish settings in paths."""
    return digest("\n".join(parts))[:8]


def run_command(command: Sequence[str], plan: Plan, row: PublishedRow, report: Callable[[str], None]) -> None:
    """Run a command of a row unless its result exists; an interrupted training or template search continues.

    `report` gets the command. Raises ValueError if it fails.
    """
    name, *words = command
    if name == "train":
        checkpoint = Path(words[words.index("--output") + 1])
        if CHECKPOINT.is_marked(checkpoint):
            return
        words += ["--resume"] if checkpoint.with_name(f"{checkpoint.name}.partial").is_dir() else []
    if name == "search_templates":
        path = plan.template_scores
        if path.is_file() and set(TEMPLATES) <= read_scores(path).scores.keys():
            return
        text = "\n".join(TEMPLATES) + "\n"
        write_file(plan.output / TEMPLATES_FILE, lambda fresh: fresh.write_text(text, encoding="utf-8"))
    line = command_line(*command)
    report(f"  {line}")
    with start_command([name, *words], stdout=subprocess.DEVNULL) as process:
        code = process.wait()
    if code:
        raise ValueError(f"{row.name}: `{line}` ended with exit code {code}; the line above says why")


CHECKPOINTS_PAPER = "published"  # rows of checkpoints, each its own backbone
DRAWING_STATE = "a drawing of the method, without numbers"
UNTIED_STATE = "runs here on small models: pretrain --untied, evaluate geometry --figures"
UNREPRODUCED = {
    STATIC_TOKENS_TABLE: "runs here with --backbone bundled; needs bert-base-uncased",
    ("promptbert", "figure-2"): UNTIED_STATE,
    ("dcpcse", "figure-1"): DRAWING_STATE,
    ("conpvp", "figure-1"): "runs here: tokens --template",
    **{("conpvp", f"figure-{number}"): DRAWING_STATE for number in (2, 3)},
}


def overview() -> list[str]:
    """A line for each table and figure: paper, name, state."""
    return [f"{paper:<11} {table:<10} {state(paper, table)}" for paper, table in _known()]


def _known() -> list[tuple[str, str]]:
    """(paper, table) of every table and figure, in the papers' order."""
    keys = {(row.paper, row.table) for row in ROWS} | LISTINGS.keys() | UNREPRODUCED.keys()
    return sorted(keys, key=lambda key: (PAPERS.index(key[0]), *table_order(key[1])))


def state(paper: str, table: str) -> str:
    """The state of a table or figure: it runs here, with the backbones and data it needs, or it was copied."""
    if (paper, table) in LISTINGS:
        return "runs here: a listing of this project's constants"
    if (paper, table) in UNREPRODUCED:
        return UNREPRODUCED[paper, table]
    rows = [row for row in ROWS if (row.paper, row.table) == (paper, table)]
    running = [row for row in rows if not row.copied]
    if not running:
        return f"copied: {'; '.join(dict.fromkeys(row.source for row in rows))}"
    copied = f"; {len(rows) - len(running)} of {len(rows)} rows copied" if len(running) < len(rows) else ""
    anywhere = "" if paper == CHECKPOINTS_PAPER else " with --backbone bundled"
    texts = ["--triplets" if row.supervised else "--train-data" for row in running if row.method]
    folders = [find_task(row.task).folder if row.task != "templates" else "sts" for row in running]
    dev = ["sts"] if texts else []  # trained rows are selected on STS-B dev
    needs = dict.fromkeys([*(row.backbone for row in running), *folders, *dev, *texts])
    return f"runs here{anywhere}; needs {', '.join(needs)}{copied}"


def check_known(paper: str, table: str) -> None:
    """Raise ValueError, with the choices or the state, for a paper or table that is unknown or not reproducible."""
    check_paper(paper)
    tables = [name for owner, name in _known() if owner == paper]
    if table not in tables:
        raise ValueError(f"{paper} has no table {table!r}; choose from {', '.join(tables)}")
    if (paper, table) in UNREPRODUCED and (paper, table) != STATIC_TOKENS_TABLE:
        raise ValueError(f"{paper} {table}: {UNREPRODUCED[paper, table]}")


def obtained(row: PublishedRow, plan: Plan, seed: int | None) -> float | None:
    """The number of one run of a row: the task's average, or the value at `row.read`; None if sets are missing.

    Raises ValueError if its results file is damaged or has no record of the run's model.
    """
    if row.task == "templates":
        return read_scores(plan.template_scores).scores.get(row.name)
    record = run_record(row, plan, seed)
    if not row.read:
        return find_task(row.task).average(record.scores)
    value: Any = record.scores
    for key in row.read:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def run_record(row: PublishedRow, plan: Plan, seed: int | None) -> ModelRecord:
    """The record of a run in its results file, which may also have outdated records.

    It is found by the model's name. If several records have this name (after the weights changed) or none (if the path
    was written differently), the model is opened and its fingerprint decides. Raises ValueError if it is missing.
    """
    from cse.evaluation.harness import ModelSelection

    path, model, pooling = plan.results(row, seed), plan.model(row, seed), plan.pooling(row)
    records = list(read_results(path).models.values())
    named = [record for record in records if record.model == model]
    if len(named) == 1:
        return named[0]
    poolings, bare = [pooling] if pooling else [], "--bare" in row.evaluate.split()
    (candidate,) = ModelSelection([model], poolings, bare=bare).candidates()
    fingerprint = candidate.open().encoder.fingerprint
    matching = next((record for record in records if record.fingerprint == fingerprint), None)
    if matching is None:
        known = ", ".join(filter(None, [pooling, fingerprint]))
        raise ValueError(f"{path}: no record of {model} ({known}); delete it and run this again")
    return matching


def draw_figure(rows: Sequence[PublishedRow], runs: Sequence[Sequence[float | None]], plan: Plan) -> list[Path]:
    """Draw a figure of the papers, or PromptBERT's Table 4, and return the paths; no paths for other tables.

    `runs` are the numbers of each row's runs; rows without a number are left out.
    """
    first, name = rows[0], Path(plan.backbone_of(rows[0])).name
    stem = plan.output / "figures" / f"{first.paper}-{first.table}"
    present = [[value for value in values if value is not None] for values in runs]
    whole = [(row, numbers) for row, numbers in zip(rows, present, strict=True) if numbers]
    if first.task == "templates" and whole:
        scores = {row.name: numbers[0] for row, numbers in whole}
        return [template_bars(scores, stem.with_suffix(".png"), f"STS-B dev by template, {name}, untrained")]
    if first.prefix is not None and whole:  # DCPCSE's Figure 2
        lengths = {row.prefix: numbers for row, numbers in whole if row.prefix is not None}
        label = f"{first.method} on {name}"
        title = f"Average of seven STS tasks by prompt length, {label}"
        return [sweep({label: lengths}, stem.with_suffix(".png"), title, varied="prompt length")]
    if first.task in ("few-shot", "geometry") and first.table.startswith("figure"):
        labels = {f"{row.name} {seed or ''}".strip(): (row, seed) for row in rows for seed in plan.runs(row)}
        models = {label: run_record(row, plan, seed) for label, (row, seed) in labels.items()}
        return draw(find_task(first.task), models, stem)
    return []
