"""Copies of an index folder, and exports: a dataset with its FAISS index, and a Parquet table."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from cse.corpus.output import beside, with_vectors
from cse.files.replace import read_settled
from index.faiss_index import VectorIndex
from index.folder import DATA_FILES, verify_files
from index.manifest import Manifest, read_manifest, write_manifest

RECORD = {"format": "cse-export", "version": 1}
RECORD_FILE, FAISS_FILE, PARQUET_FILE = "cse_export.json", "vectors.faiss", "index.parquet"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
Points = Mapping[str, Sequence[float]]


def copy_index(source: Path, target: Path, model: str | None = None) -> Manifest:
    """Verify an index, copy it and return the copy's manifest.

    `model` replaces the recorded name of the model that built it. Local corpus paths are cut to their last part.
    Raises IndexFolderError for a damaged folder.
    """

    def copied() -> Manifest:
        manifest = read_manifest(source)
        verify_files(source, manifest, again=True)
        target.mkdir(parents=True, exist_ok=True)
        for name in DATA_FILES:
            shutil.copyfile(source / name, target / name)
        return manifest

    manifest = read_settled(source, copied)
    manifest = replace(
        manifest, model=model or manifest.model, corpora=[public_name(name) for name in manifest.corpora]
    )
    write_manifest(target, manifest)
    return manifest


def public_name(corpus: str) -> str:
    """Return a hub id unchanged, a path's last part. An ambiguous name is a path if it exists or has a file suffix."""
    name = corpus.partition("@")[0]
    if HUB_ID.fullmatch(corpus) and not Path(corpus).exists() and not Path(name).suffix[1:2].isalpha():
        return corpus
    return re.split(r"[\\/]", corpus.rstrip("\\/"))[-1]


def fill(index: VectorIndex, to: str, target: Path, points: Points | None = None) -> None:
    """Write an index and a README into an empty folder in one of `index.manifest.INDEX_FORMS`.

    Its table has the rows that were not removed: their numbers, their corpora if there are several, all their columns,
    the vectors as stored, and the columns of `points`. Raises ValueError for an index that cannot be written in it.
    """
    positions, vectors = index.contents()
    rows = index.table if len(positions) == len(index.table) else index.table.take(pa.array(positions))
    numbers, corpora = index.numbers(positions)
    own = {"row": pa.array(numbers, pa.int64())}
    if any(corpora):
        own["corpus"] = pa.array([corpus and public_name(corpus) for corpus in corpora], pa.large_string())
    axes = {name: pa.array(values, pa.float32()) for name, values in (points or {}).items()}
    table = beside(axes, with_vectors(beside(own, rows), vectors), last=True)
    if to == "datasets":
        from datasets import Dataset

        Dataset(table).save_to_disk(str(target))
        index.write_faiss(target / FAISS_FILE)
    else:
        pyarrow.parquet.write_table(table, target / PARQUET_FILE)
    manifest = index.manifest
    record = {**RECORD, "to": to, "model": manifest.model, "fingerprint": manifest.fingerprint, "count": manifest.count}
    (target / RECORD_FILE).write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
    facts = {"count": manifest.count, "d": manifest.dimension, "model": manifest.model, "factory": manifest.factory}
    facts["smoothed"] = f" Each is mixed with its {manifest.smooth} nearest." if manifest.smooth else ""
    prompt = manifest.query_prompt
    facts["prompted"] = f" Encode queries with the prompt {prompt!r}." if prompt is not None else ""
    names = table.schema.names[: table.num_columns - len(axes)]
    x, y = table.schema.names[-2:] if axes else ("x", "y")
    columns = {
        "AXES": " `x` and `y` are a t-SNE map." if axes else "", "COLUMNS": ", ".join(names), "VECTOR": names[-1],
        "TEXT": names[len(own)], "X_AXIS": x, "Y_AXIS": y,
    }  # fmt: skip
    text = CARD + (DATASETS_TEXT if to == "datasets" else PARQUET_TEXT)
    (target / "README.md").write_text(text.format(**facts, **columns), encoding="utf-8")


CARD = """# A search index of {count:,} sentences

Unit vectors ({d} dimensions, float32) of the model {model}, from a FAISS index of type {factory}; written by
`cse export`.{smoothed}{prompted} The folder contains the sentences and the other columns of their table,
so their licence applies. Models trained on the bundled backbone are not unsupervised: it was initialised from
all-MiniLM-L6-v2, which was trained on labelled pairs.

"""
DATASETS_TEXT = """A `datasets` dataset ({COLUMNS}) with its FAISS index. Queries must have unit length.

```python
import numpy as np
from datasets import load_from_disk

dataset = load_from_disk("THIS_FOLDER")
dataset.load_faiss_index("{VECTOR}", "THIS_FOLDER/vectors.faiss")
query = np.array(dataset[0]["{VECTOR}"], dtype=np.float32)
scores, found = dataset.get_nearest_examples("{VECTOR}", query, k=2)
print(scores, found["{TEXT}"])
```
"""
PARQUET_TEXT = """A table of {COLUMNS}.{AXES} [Embedding Atlas](https://apple.github.io/embedding-atlas/)
opens it: `embedding-atlas THIS_FOLDER/index.parquet --text {TEXT} --vector {VECTOR}` computes a map, and
`--x {X_AXIS} --y {Y_AXIS}` uses the one stored here, if any.

```python
import pandas as pd

table = pd.read_parquet("THIS_FOLDER/index.parquet")
print(table.head())
```
"""
