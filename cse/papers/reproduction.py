"""The reproduction of a published row: the commands it needs, and the paths of their artefacts."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cse.benchmark.published import TEMPLATES
from cse.errors import FACES, command_line
from cse.evaluation.tasks import find_task
from cse.models.checkpoint import CHECKPOINT
from cse.papers.template_search import read_scores
from cse.runs.child import start_command
from cse.storage.writing import digest, write_file

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow

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

    def commands(self, row: PublishedRow) -> list[list[str]]:
        """Every command of a row with its words, in order; none for a copied one."""
        if row.copied:
            return []
        if row.task == "templates":
            return [self.templates()]
        trained = [self.train(row, seed) for seed in self.seeds] if row.method else []
        return [*trained, *(self.evaluate(row, seed) for seed in self.runs(row))]

    def model(self, row: PublishedRow, seed: int | None) -> str:
        """The model to evaluate: the checkpoint of a trained row's seed, or the backbone."""
        return self.backbone_of(row) if seed is None else str(self.checkpoint(row, seed))

    def pooling(self, row: PublishedRow) -> str | None:
        """The pooling of an untrained row; None for a trained row or a published checkpoint."""
        return None if row.method or row.checkpoint else row.reading

    def runs(self, row: PublishedRow) -> Sequence[int | None]:
        """The seeds of a trained row; one run without a seed for an untrained one."""
        return self.seeds if row.method else (None,)

    def checkpoint(self, row: PublishedRow, seed: int) -> Path:
        """The checkpoint folder of a trained row, unique to its training and shared by tables."""
        name = "-".join(filter(None, [Path(self.backbone_of(row)).name, row.method, *row.train_options, str(seed)]))
        return self.output / "checkpoints" / f"{name.replace('--', '')}-{self._digest(row, seed)}"

    def _training(self, row: PublishedRow, seed: int) -> list[str]:
        words = ["train", str(row.method), "--backbone", self.backbone_of(row), "--data", str(self.source(row))]
        words += ["--dev", str(self._dev), "--seed", str(seed)]
        return [*words, *row.train_options, *shlex.split(self.train_options)]

    def _digest(self, row: PublishedRow, seed: int) -> str:
        name, *words = self._training(row, seed)
        return settings_digest("python", "-m", f"{FACES}.{name}", *words)  # wherever it runs

    def train(self, row: PublishedRow, seed: int) -> list[str]:
        """The training command of one seed."""
        return [*self._training(row, seed), "--output", str(self.checkpoint(row, seed))]

    def results(self, row: PublishedRow, seed: int | None) -> Path:
        """The results file of one evaluation."""
        options = "-".join(option.strip("-") for option in row.evaluate.split())
        name = self.checkpoint(row, seed).name if seed is not None else row.reading.replace(" ", "-")
        backbone = self.backbone_of(row)
        owner = "" if seed is not None else f"{Path(backbone).name}-{settings_digest(backbone)}"
        text = settings_digest(*given) if (given := self._text(row)) else ""
        return self.output / "results" / ("-".join(filter(None, [row.task, owner, name, options, text])) + ".json")

    def _text(self, row: PublishedRow) -> list[str]:
        """The options for the papers' text: SentEval's, if it exists, and Wikipedia for the anisotropy."""
        tokenised = "tokenised" in find_task(row.task).options and self.tokenised.is_dir()
        sampled = self.sentences if row.read[:1] == ("anisotropy",) else None
        options = ["--tokenised", str(self.tokenised)] if tokenised else []
        return [*options, *(["--sentences", str(sampled)] if sampled else [])]

    def evaluate(self, row: PublishedRow, seed: int | None) -> list[str]:
        """The evaluation command of one run."""
        pooling = [] if (named := self.pooling(row)) is None else ["--pooling", named]
        words = ["evaluate", row.task, "--model", self.model(row, seed), *pooling]
        words += ["--data", str(self.data / find_task(row.task).folder), *self._text(row)]
        results = self.results(row, seed)
        drawn = bool(find_task(row.task).figures)
        figures = ["--figures", str(self.output / "figures" / results.stem)] if drawn else []
        return [*words, *shlex.split(row.evaluate), *figures, "--json", str(results)]

    def templates(self) -> list[str]:
        """The command that scores every template of Table 4 on STS-B dev."""
        words = ["search_templates", "--model", self._template_backbone, "--final-period"]
        words += ["--templates", str(self.output / TEMPLATES_FILE), "--dev", str(self._template_dev)]
        return [*words, "--json", str(self.template_scores)]

    @property
    def template_scores(self) -> Path:
        """The file of the template search's scores."""
        backbone = self._template_backbone
        text = [str(self.tokenised)] if self.tokenised.is_dir() else []
        name = f"templates-{Path(backbone).name}-{settings_digest(backbone, str(self.data), *text)}.json"
        return self.output / "results" / name

    @property
    def _template_backbone(self) -> str:
        return self.backbone or "bert-base-uncased"

    @property
    def _template_dev(self) -> Path:
        tokenised = self.tokenised / "STSB" / "dev.tsv"
        return tokenised if tokenised.is_file() else self._dev

    @property
    def _dev(self) -> Path:
        return self.data / "sts" / "STSB" / "dev.tsv"


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
        if _templates_are_scored(plan):
            return
        text = "\n".join(TEMPLATES) + "\n"
        write_file(plan.output / TEMPLATES_FILE, lambda fresh: fresh.write_text(text, encoding="utf-8"))
    line = command_line(*command)
    report(f"  {line}")
    with start_command([name, *words], stdout=subprocess.DEVNULL) as process:
        code = process.wait()
    if code:
        raise ValueError(f"{row.name}: `{line}` ended with exit code {code}; the line above says why")


def _templates_are_scored(plan: Plan) -> bool:
    path = plan.template_scores
    return path.is_file() and set(TEMPLATES) <= read_scores(path).scores.keys()
