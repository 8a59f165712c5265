"""Copies of an index folder, and exports: a dataset with its FAISS index, and a Parquet table."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from cse.corpus.corpus import free_name
from cse.files.replace import read_settled
from index.faiss_index import VectorIndex
from index.folder import DATA_FILES, verify_files
from index.manifest import Manifest, read_manifest, write_manifest

RECORD = {"format": "cse-export", "version": 1}
RECORD_FILE, FAISS_FILE, PARQUET_FILE = "cse_export.json", "vectors.faiss", "index.parquet"
VECTOR = "vector"
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


@dataclass(frozen=True)
class Contents:
    """Contents of an index: its rows, texts first, and (n, d) float32 vectors as stored.

    `own` are the columns that this project adds: the rows' numbers, and their corpora if there are several.
    """

    rows: pa.Table
    own: dict[str, pa.Array]
    vectors: np.ndarray

    def name(self, column: str) -> str:
        """The name of a column of this project: another one if the user has a column of that name."""
        return free_name(column, self.rows.schema.names)

    def table(self, points: Points | None = None) -> pa.Table:
        """An Arrow table of the rows' numbers, all their columns, the vectors and the columns of `points`."""
        flat = pa.array(self.vectors.reshape(-1), type=pa.float32())
        axes = {name: pa.array(values, pa.float32()) for name, values in (points or {}).items()}
        after = {VECTOR: pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1]), **axes}
        table = self.rows
        for at, (name, values) in enumerate(self.own.items()):
            table = table.add_column(at, self.name(name), values)
        for name, values in after.items():
            table = table.append_column(self.name(name), values)
        return table


def contents(index: VectorIndex) -> Contents:
    """The rows that were not removed, with their vectors, decompressed if the type compresses.

    Raises ValueError for a type that cannot reconstruct vectors.
    """
    positions, vectors = index.contents()
    rows = index.table if len(positions) == len(index.table) else index.table.take(pa.array(positions))
    numbers, corpora = index.numbers(positions)
    own = {"row": pa.array(numbers, pa.int64())}
    if any(corpora):
        own["corpus"] = pa.array([corpus and public_name(corpus) for corpus in corpora], pa.large_string())
    return Contents(rows, own, vectors)


def fill(index: VectorIndex, to: str, target: Path, points: Points | None = None) -> None:
    """Write an index and a README into an empty folder in one of `index.manifest.INDEX_FORMS`.

    Raises ValueError for an index that cannot be written in it.
    """
    write, text = FORMS[to]
    stored = contents(index)
    write(index, stored, target, points)
    manifest = index.manifest
    record = {**RECORD, "to": to, "model": manifest.model, "fingerprint": manifest.fingerprint, "count": manifest.count}
    (target / RECORD_FILE).write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
    facts = {"count": manifest.count, "d": manifest.dimension, "model": manifest.model, "factory": manifest.factory}
    facts["smoothed"] = f" Each is mixed with its {manifest.smooth} nearest." if manifest.smooth else ""
    prompt = manifest.query_prompt
    facts["prompted"] = f" Encode queries with the prompt {prompt!r}." if prompt is not None else ""
    names = [*map(stored.name, stored.own), *stored.rows.schema.names]
    columns = {
        "AXES": " `x` and `y` are a t-SNE map." if points else "", "COLUMNS": ", ".join([*names, stored.name(VECTOR)]),
        "VECTOR": stored.name(VECTOR), "TEXT": names[len(stored.own)],
        "X_AXIS": stored.name("x"), "Y_AXIS": stored.name("y"),
    }  # fmt: skip
    (target / "README.md").write_text((CARD + text).format(**facts, **columns), encoding="utf-8")


def _dataset(index: VectorIndex, stored: Contents, target: Path, points: Points | None) -> None:
    from datasets import Dataset

    Dataset(stored.table()).save_to_disk(str(target))
    index.write_faiss(target / FAISS_FILE)


def _parquet(index: VectorIndex, stored: Contents, target: Path, points: Points | None) -> None:
    pyarrow.parquet.write_table(stored.table(points), target / PARQUET_FILE)


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
FORMS: dict[str, tuple[Callable[[VectorIndex, Contents, Path, Points | None], None], str]] = {
    "datasets": (_dataset, DATASETS_TEXT),
    "parquet": (_parquet, PARQUET_TEXT),
}
