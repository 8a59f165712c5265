"""Evaluation tasks as values, what their units read, all tasks by name, and the sets that the hub has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cse.errors import first_line
from cse.files import hub
from cse.files.writing import write_text

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.evaluation import Scores, Search, Unit

TASKS = {  # name -> module of `cse.evaluation`
    "sts": "sts", "transfer": "transfer", "few-shot": "transfer", "clustering": "clustering", "retrieval": "retrieval",
    "geometry": "geometry",
}  # fmt: skip
LOGISTIC = "logistic"


@dataclass(frozen=True)
class TaskData:
    """Inputs of a task's units: its data `folder`, and options of single tasks.

    `tokenised`: a folder with SentEval's tokenised text (STS, geometry); `details`: scores of subsets too (STS);
    `sentences`: a text file (geometry); `search`: exact vector search (retrieval); `encoder`: whose tokens are read,
    `batch_size` texts at a time, None for one without tokens (geometry); `classifier`: one of `transfer.CLASSIFIERS`;
    `smooth` and `expand`: neighbours that `search` mixes with documents and queries (retrieval); the prompts are the
    model's, as an index records them (retrieval).
    """

    folder: Path
    tokenised: Path | None = None
    details: bool = False
    sentences: Path | None = None
    search: Search | None = None
    encoder: Encoder | None = None
    batch_size: int = 128
    classifier: str = LOGISTIC
    smooth: int = 0
    expand: int = 0
    query_prompt: str | None = None
    document_prompt: str | None = None


@dataclass(frozen=True)
class Repeats:
    """Repeated runs whose mean is a score: `count` runs of `what`; `deviations` maps scores to their deviations."""

    count: int
    what: str
    deviations: Mapping[str, str]


@dataclass(frozen=True)
class Task:
    """An evaluation task; `units` returns its units by name, or raises ValueError if `folder` lacks its `layout`.

    `shown` are the score columns of its tables, the main score first, headed by their unit unless `unit_headings` is
    False; those in `lower` are better if lower. The papers average the main score over `sets`, whose numbers of pairs
    are `pairs` if fixed. `options` are the command's options that apply to it. `figures` maps each figure to the unit
    it is drawn from, None for all; `points` are the scores that only figures and comparisons need. `token_units` are
    skipped for an encoder without tokens and if files of `layout` are missing. It reads the data of the task `data_of`,
    its own if empty. A task that `ranks` documents for queries encodes them with the model's prompts for these.
    `repeats` are the runs within one evaluation.
    """

    name: str
    units: Callable[[TaskData], dict[str, Unit]]
    layout: str
    shown: tuple[str, ...]
    title: str
    summary: str
    sets: tuple[str, ...] = ()
    pairs: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    figures: Mapping[str, str | None] = field(default_factory=dict)
    points: tuple[str, ...] = ()
    token_units: tuple[str, ...] = ()
    unit_headings: bool = True
    data_of: str = ""
    lower: tuple[str, ...] = ()
    repeats: Repeats | None = None
    ranks: bool = False

    @property
    def main(self) -> str:
        """The score that is averaged and compared with published numbers."""
        return self.shown[0]

    @property
    def folder(self) -> str:
        """The name of its data folder, within a folder of all tasks' data."""
        return self.data_of or self.name

    def average(self, scores: Mapping[str, Scores]) -> float | None:
        """The papers' average of the main score over the sets; None if the task has no sets or some are missing."""
        if not self.sets or not all(name in scores for name in self.sets):
            return None
        return round(sum(scores[name][self.main] for name in self.sets) / len(self.sets), 2)


def find_task(name: str) -> Task:
    """Return the task of a name, importing its module. Raises ValueError, with the choices, for an unknown name."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; choose from {', '.join(TASKS)}")
    values = vars(import_module(f"cse.evaluation.{TASKS[name]}")).values()
    return next(value for value in values if isinstance(value, Task) and value.name == name)


PAIR_COLUMNS, LABELLED_COLUMNS = ("score", "sentence1", "sentence2"), ("label", "text")
FOLDER_CURE = "give a folder as `data`"


@dataclass(frozen=True)
class HubSet:
    """A file's hub id, the splits concatenated in it, its columns in order, and its required number of rows."""

    source: str
    splits: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int


HUB_SETS: dict[str, dict[str, HubSet]] = {
    "sts": {
        **{
            f"STS{year}/all.tsv": HubSet(f"mteb/sts{year}-sts", ("test",), PAIR_COLUMNS, rows)
            for year, rows in ((12, 3108), (13, 1500), (14, 3750), (15, 3000), (16, 1186))
        },
        "STSB/dev.tsv": HubSet("mteb/stsbenchmark-sts", ("validation",), PAIR_COLUMNS, 1500),
        "STSB/test.tsv": HubSet("mteb/stsbenchmark-sts", ("test",), PAIR_COLUMNS, 1379),
    },
    "transfer": {
        "CR/all.tsv": HubSet("SetFit/CR", ("train", "test"), LABELLED_COLUMNS, 3775),
        "SUBJ/all.tsv": HubSet("SetFit/subj", ("train", "test"), LABELLED_COLUMNS, 10000),
        "SST2/train.tsv": HubSet("SetFit/sst2", ("train",), LABELLED_COLUMNS, 6920),
        "SST2/dev.tsv": HubSet("SetFit/sst2", ("validation",), LABELLED_COLUMNS, 872),
        "SST2/test.tsv": HubSet("SetFit/sst2", ("test",), LABELLED_COLUMNS, 1821),
        "TREC/train.tsv": HubSet("SetFit/TREC-QC", ("train",), ("label_coarse", "text"), 5452),
        "TREC/test.tsv": HubSet("SetFit/TREC-QC", ("test",), ("label_coarse", "text"), 500),
    },
}


def fetch(task: str, folder: Path | None = None) -> Path:
    """Download the task's sets to `folder`/`task` and return it; existing files are kept.

    The default folder is the cache of `datasets`. SICK-R is not included, as the hub's copy merges its splits. Raises
    ValueError for a task without sets on the hub, and for a set that cannot be loaded or does not have the number of
    rows that the papers scored.
    """
    if task not in HUB_SETS:
        raise ValueError(f"the data hub has the sets of {' and '.join(HUB_SETS)}, not of {task}; {FOLDER_CURE}")
    if folder is None:
        from datasets.config import HF_CACHE_HOME

        folder = Path(HF_CACHE_HOME) / "cse"
    for name, hub_set in HUB_SETS[task].items():
        target, source = folder / task / name, hub_set.source
        if target.is_file():
            continue
        if not hub.reachable():
            raise ValueError(f"{source}: the data hub cannot be reached; {FOLDER_CURE}")
        from datasets import load_dataset

        try:
            rows = [row for split in hub_set.splits for row in load_dataset(source, split=split)]
        except Exception as error:  # the hub and its loaders raise many types, with one remedy
            raise ValueError(f"cannot load {source} from the hub ({first_line(error)}); {FOLDER_CURE}") from error
        if len(rows) != hub_set.rows:
            raise ValueError(f"{source}: {len(rows)} rows, expected {hub_set.rows}; {FOLDER_CURE}")
        cells = ((" ".join(str(row[column]).split()) for column in hub_set.columns) for row in rows)
        write_text(target, "".join("\t".join(row) + "\n" for row in cells))
    return folder / task
