"""The ledger of a reproduction: each published row, the project's own commands for it, and what they gave."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.benchmark.published import TEMPLATES
from cse.benchmark.results import provenance, read_results
from cse.benchmark.tables import average
from cse.benchmark.task_figures import draw, draw_sweep, draw_templates
from cse.evaluation.tasks import find_task
from cse.files import digest, write_json

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow

FOLDERS = {"sts": "sts", "geometry": "sts", "transfer": "transfer", "few-shot": "transfer", "clustering": "clustering"}
TEMPLATES_FILE = "templates.txt"


@dataclass(frozen=True)
class Plan:
    """Where a reproduction reads and writes, on which backbone (None: each row's own), with which seeds."""

    data: Path
    output: Path
    train_data: str | None
    triplets: str | None
    backbone: str | None
    seeds: Sequence[int]
    train_options: str

    def source(self, row: PublishedRow) -> str | None:
        """The text a trained row learns from."""
        return self.triplets if "--supervised" in row.train else self.train_data

    def backbone_of(self, row: PublishedRow) -> str:
        """The model to open."""
        return self.backbone or row.key.split()[0]

    def commands(self, row: PublishedRow) -> list[str]:
        """Every command of a row, in order; none for a copied one."""
        if row.copied:
            return []
        if row.task == "templates":
            return [self.templates()]
        trained = [self.train(row, seed) for seed in self.seeds] if row.method else []
        return [*trained, *(self.evaluate(row, seed) for seed in self.runs(row))]

    def runs(self, row: PublishedRow) -> Sequence[int | None]:
        """The seeds of a trained row; one run without a seed for what is not trained."""
        return self.seeds if row.method else (None,)

    def checkpoint(self, row: PublishedRow, seed: int) -> Path:
        """The folder of a trained row: the same for the same training, whichever table it is in, and for no other."""
        name = "-".join(filter(None, [Path(self.backbone_of(row)).name, row.method, *row.train.split(), str(seed)]))
        return self.output / "checkpoints" / f"{name.replace('--', '')}-{settings_digest(*self._training(row, seed))}"

    def _training(self, row: PublishedRow, seed: int) -> list[str]:
        parts = ["scripts.train", str(row.method), "--backbone", self.backbone_of(row), "--data", str(self.source(row))]
        parts += ["--dev", str(self.data / "sts" / "STSB" / "dev.tsv"), "--seed", str(seed)]
        return ["python", "-m", *parts, *shlex.split(row.train), *shlex.split(self.train_options)]

    def train(self, row: PublishedRow, seed: int) -> str:
        """The training command of one seed."""
        return shlex.join([*self._training(row, seed), "--output", str(self.checkpoint(row, seed))])

    def results(self, row: PublishedRow, seed: int | None) -> Path:
        """The results file of one evaluation."""
        options = "-".join(option.strip("-") for option in row.evaluate.split())
        name = self.checkpoint(row, seed).name if seed is not None else "-".join(row.key.split()[1:])
        backbone = self.backbone_of(row)
        owner = "" if seed is not None else f"{Path(backbone).name}-{settings_digest(backbone)}"
        return self.output / "results" / ("-".join(filter(None, [row.task, owner, name, options])) + ".json")

    def evaluate(self, row: PublishedRow, seed: int | None) -> str:
        """The evaluation command of one run."""
        model = str(self.checkpoint(row, seed)) if seed is not None else self.backbone_of(row)
        pooling = [] if seed is not None else ["--pooling", row.key.split()[1]]
        parts = ["scripts.evaluate", row.task, "--model", model, *pooling, "--data", str(self.data / FOLDERS[row.task])]
        results = self.results(row, seed)
        drawn = row.task in ("few-shot", "geometry")
        figures = ["--figures", str(self.output / "figures" / results.stem)] if drawn else []
        return shlex.join(["python", "-m", *parts, *shlex.split(row.evaluate), *figures, "--json", str(results)])

    def templates(self) -> str:
        """Every template of Table 4 on STS-B dev."""
        parts = ["scripts.search_templates", "--model", self.backbone or "bert-base-uncased", "--final-period"]
        parts += ["--templates", str(self.output / TEMPLATES_FILE)]
        dev = self.data / "sts" / "STSB" / "dev.tsv"
        return shlex.join(["python", "-m", *parts, "--dev", str(dev), "--json", str(self.template_scores)])

    @property
    def template_scores(self) -> Path:
        """Where the template search leaves its scores."""
        backbone = self.backbone or "bert-base-uncased"
        return (
            self.output
            / "results"
            / f"templates-{Path(backbone).name}-{settings_digest(backbone, str(self.data))}.json"
        )


def settings_digest(*parts: str) -> str:
    """8 hex digits that keep work done with other settings apart."""
    return digest("\n".join(parts))[:8]


def fill_in(row: PublishedRow, plan: Plan, report: Callable[[str], None]) -> dict[str, Any]:
    """Run what is not yet done of a row, each command given to `report`; its ledger entry comes back."""
    commands = plan.commands(row)
    for command in commands:
        _run(command, plan, row, report)
    entry: dict[str, Any] = {
        "row": row.name, "published": row.average, "published_deviation": row.deviation, "published_seeds": row.seeds,
        "published_on": row.key.split()[0], "task": row.task, "source": row.source, "copied": row.copied,
        "commands": commands,
    }  # fmt: skip
    if row.copied:
        return entry
    runs = [_obtained(row, plan, seed) for seed in plan.runs(row)]
    whole = [run for run in runs if run is not None]
    entry |= {"backbone": plan.backbone_of(row), "seeds": list(plan.seeds) if row.method else [], "runs": runs}
    if len(whole) < len(runs) or not whole:
        return {**entry, "note": "no number to compare: sets are missing"}
    return {**entry, **judged(whole, row)}


def judged(runs: Sequence[float], row: PublishedRow) -> dict[str, Any]:
    """Mean, deviation and difference of runs, and whether no difference lies inside its 95 % interval.

    Where neither side has several runs nothing can be said of noise, and nothing is.
    """
    from cse.benchmark.significance import Sample, margin, over_seeds

    mean, deviation = over_seeds(runs)
    digits = 4 if abs(mean) < 1 else 2  # cosines are not in percent
    found: dict[str, Any] = {"mean": round(mean, digits)}
    found["deviation"] = None if deviation is None else round(deviation, digits)
    if row.average is None:
        return found
    difference = mean - row.average
    found["difference"] = round(difference, digits)
    noise = margin(Sample(deviation, len(runs)), Sample(row.deviation, row.seeds))
    if noise is not None:
        found["verdict"] = "inside the noise" if abs(difference) <= noise else "a difference"
    return found


def _run(command: str, plan: Plan, row: PublishedRow, report: Callable[[str], None]) -> None:
    """Run a command unless its result is there; an interrupted training goes on."""
    parts = shlex.split(command)
    if "scripts.train" in parts:
        output = Path(parts[parts.index("--output") + 1])
        if (output / "config.json").is_file():
            return
        parts += ["--resume"] if output.with_name(f"{output.name}.partial").is_dir() else []
    if "scripts.search_templates" in parts:
        if plan.template_scores.is_file():
            return
        plan.output.mkdir(parents=True, exist_ok=True)
        (plan.output / TEMPLATES_FILE).write_text("\n".join(TEMPLATES) + "\n")
    report(f"  {command}")
    done = subprocess.run([sys.executable, *parts[1:]], stdout=subprocess.DEVNULL)
    if done.returncode:
        raise ValueError(f"{row.name}: `{command}` ended with exit code {done.returncode}; the line above says why")


def _obtained(row: PublishedRow, plan: Plan, seed: int | None) -> float | None:
    if row.task == "templates":
        scores = json.loads(plan.template_scores.read_text())["templates"]
        return next((entry["score"] for entry in scores if entry["template"] == row.name), None)
    *_, record = read_results(plan.results(row, seed)).models.values()  # an earlier one is outdated
    if not row.read:
        return average(row.task, record.scores)
    value: Any = record.scores
    for key in row.read:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def write_ledger(stem: Path, paper: str, table: str, entries: Sequence[dict[str, Any]]) -> None:
    """Write `stem.json` and `stem.md`; rows of an earlier call that are not among `entries` stay."""
    path = stem.with_name(f"{stem.name}.json")
    earlier = json.loads(path.read_text())["rows"] if path.is_file() else []
    fresh = {entry["row"]: entry for entry in entries}
    kept = [fresh.pop(entry["row"], entry) for entry in earlier] + list(fresh.values())
    write_json(path, {"paper": paper, "table": table, **provenance(), "rows": kept})
    stem.with_name(f"{stem.name}.md").write_text("\n".join(markdown(kept)) + "\n")


def markdown(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The ledger as a Markdown table."""
    head = ("row", "published", "obtained", "difference", "backbone, seeds", "published on, source")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for entry in entries:
        published = _spread(entry["published"], entry["published_deviation"])
        if entry["copied"]:
            lines.append(f"| {entry['row']} | {published} | copied, not run | | | {entry['source']} |")
            continue
        difference = f"{entry['difference']:+.2f} {entry.get('verdict', '')}".strip() if "difference" in entry else ""
        obtained = _spread(entry.get("mean"), entry.get("deviation")) or entry.get("note", "-")
        seeds = " ".join(map(str, entry["seeds"])) or "untrained"
        origin = ", ".join(filter(None, [entry["published_on"], entry["source"]]))
        setting = f"{entry['backbone']}, {seeds} | {origin}"
        lines.append(f"| {entry['row']} | {published} | {obtained} | {difference} | {setting} |")
    return lines


def _spread(value: float | None, deviation: float | None) -> str:
    return "" if value is None else f"{value:g}" + (f" ± {deviation:g}" if deviation else "")


def draw_figure(rows: Sequence[PublishedRow], entries: Sequence[dict[str, Any]], plan: Plan) -> list[Path]:
    """Draw what a whole table shows, a figure of the papers' or PromptBERT's Table 4; the files' paths come back."""
    first, name = rows[0], Path(plan.backbone_of(rows[0])).name
    stem = plan.output / "figures" / f"{first.paper}-{first.table}"
    drawn: list[Path] = []
    runs = [[run for run in entry.get("runs", ()) if run is not None] for entry in entries]
    if first.task == "templates" and any(runs):
        scores = {row.name: found[0] for row, found in zip(rows, runs, strict=True) if found}
        drawn = [draw_templates(scores, name, stem.with_suffix(".png"))]
    elif (first.paper, first.table) == ("dcpcse", "figure-2") and any(runs):
        lengths = {int(row.train.split()[-1]): found for row, found in zip(rows, runs, strict=True) if found}
        drawn = [draw_sweep(lengths, f"{first.method} on {name}", stem.with_suffix(".png"))]
    elif first.task in ("few-shot", "geometry") and first.table.startswith("figure"):
        models = {
            f"{row.name} {seed or ''}".strip(): record
            for row in rows
            for seed in plan.runs(row)
            for record in list(read_results(plan.results(row, seed)).models.values())[-1:]
        }
        drawn = draw(find_task(first.task), models, stem)
    return drawn
