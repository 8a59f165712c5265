"""The papers' tables and figures: what runs here and its commands, and the ledger of published and obtained numbers."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.encoder.processes import start_command
from cse.errors import FACES, as_called, command_line
from cse.evaluation.geometry import BYTE_FREQUENT, WORDPIECE_FREQUENT
from cse.evaluation.metrics import Figure, margin, over_seeds
from cse.evaluation.results import AVERAGE, BASE, PAPERS, ROWS, TEMPLATES, PublishedRow, provenance, read_results
from cse.evaluation.tasks import find_task
from cse.evaluation.template_search import read_scores
from cse.files.weights import available
from cse.files.writing import digest, file_digest, read_json, write_json, write_text
from cse.methods.presets import PUBLISHED, preset
from cse.methods.templates import NEGATIVE, POSITIVE
from cse.models.checkpoint import CHECKPOINT
from cse.models.loading import load
from cse.models.names import resolve_backbone

if TYPE_CHECKING:
    from cse.evaluation.results import Scoreboard

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


def prompts() -> list[str]:
    """PromptBERT's templates by backbone, the one used for encoding first."""
    rows = []
    for backbone, supervised in product(("bert-base", "roberta-base"), (False, True)):
        views = preset("promptbert", backbone, supervised)[0].views
        texts = dict.fromkeys(f"`{view[0].text}`" for view in views)
        rows.append((backbone, KINDS[supervised], ", ".join(texts)))
    return _table(("backbone", "training", "templates"), rows)


def likeliest_words(backbone: str) -> list[str]:
    """PromptBERT's Table 7: the likeliest words at [MASK] of its sentences by an untrained backbone, then denoised."""
    encoder = load(resolve_backbone(backbone).name, pooling="prompt")
    rows = []
    for text in WORD_SENTENCES:
        words = (encoder.top_tokens(text, 5, denoise) for denoise in (False, True))
        rows.append((text, *(" ".join(token for token, _ in likeliest) for likeliest in words)))
    return _table(("sentence", "words", "words, denoised"), rows)


LIKELIEST_WORDS = ("promptbert", "7")
FREQUENT = [("BERT", f"`{' '.join(WORDPIECE_FREQUENT)}`"), ("RoBERTa", f"`{' '.join(BYTE_FREQUENT)}`")]
PROTOTYPES = [(kind, f"`{view.text}`") for kind, views in (("positive", POSITIVE), ("negative", NEGATIVE))
              for view in views]  # fmt: skip
LISTINGS: dict[tuple[str, str], Callable[[], list[str]]] = {
    ("promptbert", "11"): lambda: _table(("vocabulary", "tokens"), FREQUENT),
    ("promptbert", "13"): prompts,
    ("promptbert", "14"): lambda: settings("promptbert"),
    ("dcpcse", "3"): prefix_parameters,
    ("dcpcse", "4"): lambda: settings("dcpcse"),
    ("conpvp", "1"): lambda: _table(("kind", "template"), PROTOTYPES),
    ("conpvp", "2"): lambda: settings("conpvp"),
}


TEMPLATES_FILE = "templates.txt"
READ = "read.json"  # beside a checkpoint: digests of the text that it was trained on


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

    def commands(self, row: PublishedRow) -> list[list[str]]:
        """Every command of a row with its words, in order; none for a copied one."""
        if row.copied:
            return []
        if row.task == "templates":
            dev = self.tokenised / "STSB" / "dev.tsv"
            words = ["search_templates", "--model", self.backbone or BASE, "--final-period"]
            words += ["--templates", str(self.output / TEMPLATES_FILE)]
            words += ["--dev", str(dev if dev.is_file() else self._dev)]
            return [[*words, "--json", str(self.template_scores)]]
        if not row.method:
            return [self.evaluate(row, None)]
        trained = [[*self._training(row, seed), "--output", str(self.checkpoint(row, seed))] for seed in self.seeds]
        return [*trained, *(self.evaluate(row, seed) for seed in self.seeds)]

    def checkpoint(self, row: PublishedRow, seed: int) -> Path:
        """The checkpoint folder of a trained row, unique to its training and shared by tables."""
        name = "-".join(filter(None, [Path(self.backbone_of(row)).name, row.method, *row.train_options, str(seed)]))
        command, *words = self._training(row, seed)
        settings = settings_digest("python", "-m", f"{FACES}.{command}", *words)  # the same wherever it runs
        return self.output / "checkpoints" / f"{name.replace('--', '')}-{settings}"

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
        task, results = find_task(row.task), self.results(row, seed)
        words = ["evaluate", row.task, "--model", self.model(row, seed)]
        words += [] if row.method or row.checkpoint else ["--pooling", row.reading]
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
    """Run a command of a row unless its checkpoint exists; what was begun continues.

    `report` gets the command. Raises ValueError if it fails, and for a checkpoint that was trained on other text.
    """
    name, *words = command
    if name == "train":
        checkpoint = Path(words[words.index("--output") + 1])
        read = _read_by(words)
        known = checkpoint.with_name(f"{checkpoint.name}.{READ}")
        if known.is_file() and read_json(known) != read:
            raise ValueError(f"{checkpoint}: trained on other text of these names; delete it and {known.name}")
        if CHECKPOINT.is_marked(checkpoint):
            return
        write_json(known, read)
        words += ["--resume"] if checkpoint.with_name(f"{checkpoint.name}.partial").is_dir() else []
    if name == "search_templates":
        write_text(plan.output / TEMPLATES_FILE, "\n".join(TEMPLATES) + "\n")
    line = command_line(*command)
    report(f"  {line}")
    with start_command([name, *words], stdout=subprocess.DEVNULL) as process:
        code = process.wait()
    if code:
        raise ValueError(f"{row.name}: `{line}` ended with exit code {code}; the line above says why")


def _read_by(words: Sequence[str]) -> dict[str, str]:
    """Return the digests of the files that a training reads, by the options that name them."""
    files = {option: Path(words[words.index(option) + 1]) for option in ("--data", "--dev")}
    return {option: file_digest(path) for option, path in files.items() if path.is_file()}


DRAWING_STATE = "a drawing of the method, without numbers"
UNREPRODUCED = {
    LIKELIEST_WORDS: "runs here with --backbone bundled; needs bert-base-uncased",
    ("promptbert", "figure-2"): "runs here on small models: pretrain --untied, evaluate geometry --figures",
    ("dcpcse", "figure-1"): DRAWING_STATE,
    ("conpvp", "figure-1"): "runs here: tokens --template",
    **{("conpvp", f"figure-{number}"): DRAWING_STATE for number in (2, 3)},
}


def rows(paper: str, table: str) -> list[PublishedRow]:
    """The published rows of a table."""
    return [row for row in ROWS if (row.paper, row.table) == (paper, table)]


def tables(paper: str) -> list[str]:
    """The tables of a paper by number, then its figures."""
    known = {(row.paper, row.table) for row in ROWS} | LISTINGS.keys() | UNREPRODUCED.keys()
    names = [table for owner, table in known if owner == paper]
    return sorted(names, key=lambda name: (not name.isdigit(), len(name), name))


def state(paper: str, table: str) -> str:
    """The state of a table or figure: it runs here, with the backbones and data it needs, or it was copied."""
    if (paper, table) in LISTINGS:
        return "runs here: a listing of this project's constants"
    if (paper, table) in UNREPRODUCED:
        return UNREPRODUCED[paper, table]
    listed = rows(paper, table)
    running = [row for row in listed if not row.copied]
    if not running:
        return f"copied: {'; '.join(dict.fromkeys(row.source for row in listed))}"
    copied = f"; {len(listed) - len(running)} of {len(listed)} rows copied" if len(running) < len(listed) else ""
    anywhere = "" if running[0].checkpoint else " with --backbone bundled"
    texts = ["--triplets" if row.supervised else "--train-data" for row in running if row.method]
    folders = [find_task(row.task).folder if row.task != "templates" else "sts" for row in running]
    dev = ["sts"] if texts else []  # trained rows are selected on STS-B dev
    needs = dict.fromkeys([*(row.backbone for row in running), *folders, *dev, *texts])
    return f"runs here{anywhere}; needs {', '.join(needs)}{copied}"


def check_known(paper: str, table: str) -> None:
    """Raise ValueError, with the choices or the state, for a paper or table that is unknown or not reproducible."""
    if paper not in PAPERS:
        raise ValueError(f"unknown paper {paper!r}; choose from {', '.join(PAPERS)}")
    if table not in tables(paper):
        raise ValueError(f"{paper} has no table {table!r}; choose from {', '.join(tables(paper))}")
    if (paper, table) in UNREPRODUCED and (paper, table) != LIKELIEST_WORDS:
        raise ValueError(f"{paper} {table}: {UNREPRODUCED[paper, table]}")


def obtained(row: PublishedRow, plan: Plan, seed: int | None) -> float | None:
    """The number of one run of a row: the task's average, or the value at `row.read`; None if sets are missing.

    Raises ValueError if its results file is damaged or has no record of the run's model.
    """
    if row.task == "templates":
        return read_scores(plan.template_scores)[1].get(row.name)
    path, model = plan.results(row, seed), plan.model(row, seed)
    records = [record for record in read_results(path).models.values() if record.model == model]
    if not records:
        raise ValueError(f"{path}: no record of {model}; delete it and run this again")
    value: Any = records[-1].scores  # the others are of earlier weights
    if not row.read:
        return find_task(row.task).average(value)
    for key in row.read:
        value = value.get(key) if isinstance(value, dict) else None
    return value


@dataclass(frozen=True)
class LedgerEntry:
    """One row of a ledger: the published number, the `commands` that reproduce it, and their results.

    `published_on` is the paper's backbone, `backbone` the one used here. `runs` are the numbers by seed, or the single
    number of an untrained row; None where there is no number, then `note` says why, as for a published checkpoint that
    is not available. The others are those of `judged`. A `copied` row has neither commands nor results.
    """

    row: str
    published: float | None
    published_deviation: float | None
    published_seeds: int
    published_on: str
    task: str
    source: str
    copied: bool
    commands: tuple[str, ...] = ()
    backbone: str | None = None
    seeds: tuple[int, ...] = ()
    runs: tuple[float | None, ...] = ()
    note: str | None = None
    mean: float | None = None
    deviation: float | None = None
    difference: float | None = None
    verdict: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a row in a ledger file."""
        left_out = {name for name in ("note", "mean", "difference", "verdict") if getattr(self, name) is None}
        left_out |= {"deviation"} if self.mean is None else set()
        left_out |= {"backbone", "seeds", "runs"} if self.copied else set()
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def judged(figure: Figure, row: PublishedRow) -> dict[str, Any]:
    """Compare the figure of runs with a published row, and return values of a `LedgerEntry`.

    `mean` and standard `deviation` (None for one run) of the runs, `difference` of the mean from the published number
    (None if there is none), and a `verdict` on it from its interval: None without several runs on either side, as the
    noise is unknown. Of a row that trains nothing only the rounding is noise.
    """
    digits = 4 if abs(figure.value) < 1 else 2  # cosines are not percentages
    deviation = None if figure.deviation is None else round(figure.deviation, digits)
    own = {"mean": round(figure.value, digits), "deviation": deviation}
    if row.average is None:
        return own
    difference = figure.value - row.average
    noise = margin(figure, Figure(row.average, row.deviation, row.seeds))
    if noise is None and row.method is None:
        noise = 0.5 / 10**digits
    verdict = None if noise is None else "inside the noise" if abs(difference) <= noise else "a difference"
    return {**own, "difference": round(difference, digits), "verdict": verdict}


def shipped_ledger(board: Scoreboard) -> list[LedgerEntry]:
    """An entry for each published average of the task that has a counterpart among the board's models.

    Counterparts have the same method or pooling; the papers' are on BERT-base. A number that a paper repeats in
    another table is listed once. A board without an average has no entries.
    """
    if not board.columns or board.columns[0].unit != AVERAGE:
        return []
    entries: dict[tuple[str, float | None], LedgerEntry] = {}
    protocol, command = board.results.protocol, as_called(board.results.command)
    for label, row in board.rows.items():
        backbone, _, reading = (row.record.key or "").partition(" ")
        for published in ROWS:
            own = published.task == board.task.name and published.key == f"{BASE} {reading}"
            foreign = published.copied or published.checkpoint or published.supervised or published.prefix
            if not own or foreign or published.average is None or (label, published.average) in entries:
                continue
            source = published.source
            if "--final-period" in published.evaluate and not protocol.final_period:
                source = "; ".join(filter(None, [source, "published with a full stop added to texts that lack one"]))
            values = {"note": "no number to compare"} if not row.figures[0] else judged(row.figures[0], published)
            entries[label, published.average] = LedgerEntry(
                f"{published.name} ({published.paper}, table {published.table})", published.average,
                published.deviation, published.seeds, published.backbone, published.task, source, copied=False,
                commands=(command,), backbone=backbone, seeds=row.seeds, **values,
            )  # fmt: skip
    return list(entries.values())


def reproduce(rows: Sequence[PublishedRow], plan: Plan, report: Callable[[str], None]) -> list[LedgerEntry]:
    """Reproduce a table's rows one by one and return their entries; the ledger in `plan.output` is updated after each.

    `report` gets a line for each row and each command. Raises ValueError if a command fails.
    """
    entries: list[LedgerEntry] = []
    for number, row in enumerate(rows, start=1):
        report(f"{number}/{len(rows)} {row.name}: {'copied, not run' if row.copied else f'published {row.average}'}")
        commands = plan.commands(row)
        entry = LedgerEntry(
            row.name, row.average, row.deviation, row.seeds, row.backbone, row.task, row.source, row.copied,
            tuple(command_line(*words) for words in commands),
        )  # fmt: skip
        if row.checkpoint and not row.copied and not available(row.backbone):
            missing = "needs the model hub, or the checkpoint in its cache"
            entry = replace(entry, backbone=row.backbone, note=missing)
        elif not row.copied:
            for command in commands:
                run_command(command, plan, row, report)
            seeds = tuple(plan.seeds) if row.method else ()
            runs = tuple(obtained(row, plan, seed) for seed in seeds or (None,))
            entry = replace(entry, backbone=plan.backbone_of(row), seeds=seeds, runs=runs)
            numbers = [run for run in runs if run is not None]
            if numbers and len(numbers) == len(runs):
                entry = replace(entry, **judged(over_seeds(numbers), row))
            else:
                reason = "sets are missing" if find_task(row.task).sets or row.read else "it is a picture"
                entry = replace(entry, note=f"no number to compare: {reason}")
        entries.append(entry)
        write_ledger(plan.output / f"{row.paper}-{row.table}", row.paper, row.table, entries)
    return entries


def write_ledger(stem: Path, paper: str, table: str, entries: Sequence[LedgerEntry]) -> None:
    """Write `stem.json` and `stem.md`; earlier rows that are not in `entries` are kept.

    Raises ValueError if `stem.json` exists and is not a ledger.
    """
    path = stem.with_name(f"{stem.name}.json")
    earlier: list[LedgerEntry] = []
    if path.is_file():
        try:
            for value in json.loads(path.read_text(encoding="utf-8"))["rows"]:
                fields: dict[str, Any] = {
                    key: tuple(item) if isinstance(item, list) else item for key, item in value.items()
                }
                earlier.append(LedgerEntry(**fields))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not a ledger ({error}); move it away or give another `output`") from error
    fresh = {entry.row: entry for entry in entries}
    kept = [fresh.pop(entry.row, entry) for entry in earlier] + list(fresh.values())
    write_json(path, {"paper": paper, "table": table, **provenance(), "rows": [entry.to_json() for entry in kept]})
    write_text(stem.with_name(f"{stem.name}.md"), "\n".join(markdown(kept)) + "\n")


def markdown(entries: Sequence[LedgerEntry]) -> list[str]:
    """The ledger as a Markdown table, line by line."""
    rows: list[Sequence[str]] = []
    for entry in entries:
        published = _spread(entry.published, entry.published_deviation)
        if entry.copied:
            rows.append((entry.row, published, "copied, not run", "", "", entry.source))
            continue
        obtained = entry.note or _spread(entry.mean, entry.deviation) or "-"
        difference = "" if entry.difference is None else f"{entry.difference:+.2f} {entry.verdict or ''}".strip()
        backbone = f"{entry.backbone}, {' '.join(map(str, entry.seeds)) or 'untrained'}"
        origin = ", ".join(filter(None, [entry.published_on, entry.source]))
        rows.append((entry.row, published, obtained, difference, backbone, origin))
    return _table(("row", "published", "obtained", "difference", "backbone, seeds", "published on, source"), rows)


def _spread(value: float | None, deviation: float | None) -> str:
    return "" if value is None else f"{value:g}" + (f" ± {deviation:g}" if deviation else "")
