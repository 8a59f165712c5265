"""Download STS and transfer sets from the hub and write them in the layout that the tasks read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.files import hub
from cse.files.writing import write_file

PAIR_COLUMNS = ("score", "sentence1", "sentence2")
LABELLED_COLUMNS = ("label", "text")
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
        target = folder / task / name
        if not target.is_file():
            _write(target, _rows(hub_set), hub_set)
    return folder / task


def _rows(hub_set: HubSet) -> list[Mapping[str, Any]]:
    if not hub.reachable():
        raise ValueError(f"{hub_set.source}: the data hub cannot be reached; {FOLDER_CURE}")
    from datasets import load_dataset

    try:
        rows = [row for split in hub_set.splits for row in load_dataset(hub_set.source, split=split)]
    except Exception as error:  # the hub and its loaders raise many types, with one remedy
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise ValueError(f"cannot load {hub_set.source} from the hub ({reason}); {FOLDER_CURE}") from error
    if len(rows) != hub_set.rows:
        raise ValueError(f"{hub_set.source}: {len(rows)} rows, expected {hub_set.rows}; {FOLDER_CURE}")
    return rows


def _write(target: Path, rows: Iterable[Mapping[str, Any]], hub_set: HubSet) -> None:
    lines = ("\t".join(" ".join(str(row[column]).split()) for column in hub_set.columns) for row in rows)
    text = "".join(f"{line}\n" for line in lines)
    write_file(target, lambda fresh: fresh.write_text(text, encoding="utf-8"))
