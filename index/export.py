"""Copies of an index folder, and exports: a dataset with its FAISS index, a Parquet table, the projector's tables."""

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

from cse.storage.replace import read_settled
from index.folder import DATA_FILES, verify_files
from index.manifest import Manifest, read_manifest, write_manifest
from index.store import VectorIndex

RECORD = {"format": "cse-export", "version": 1}
RECORD_FILE, FAISS_FILE, PARQUET_FILE = "cse_export.json", "vectors.faiss", "index.parquet"
VECTOR = "vector"
BLANKS = str.maketrans({"\t": " ", "\n": " ", "\r": " "})
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
Points = Mapping[str, Sequence[float]]


def copy_index(source: Path, target: Path, model: str | None = None) -> Manifest:
    """Copy an index, its files checked, and say what its manifest now holds.

    `model` replaces the name by which the model that built it is opened. Of corpora on this machine the copy has the
    last part of the path. Raises IndexFolderError for a damaged folder.
    """

    def copied() -> Manifest:
        manifest = read_manifest(source)
        verify_files(source, manifest, again=True)
        target.mkdir(parents=True, exist_ok=True)
        for name in DATA_FILES:
            shutil.copyfile(source / name, target / name)
        return manifest

    manifest = read_settled(source, copied)
    manifest = replace(manifest, model=model or manifest.model, corpora=[_public(name) for name in manifest.corpora])
    write_manifest(target, manifest)
    return manifest


def _public(corpus: str) -> str:
    """A hub id as it is, of a path the last part. What could be both is a path where it exists or ends as a file."""
    name = corpus.partition("@")[0]
    if HUB_ID.fullmatch(corpus) and not Path(corpus).exists() and not Path(name).suffix[1:2].isalpha():
        return corpus
    return re.split(r"[\\/]", corpus.rstrip("\\/"))[-1]


@dataclass(frozen=True)
class Contents:
    """What an index holds: row numbers (n,) int64, their sentences, and (n, d) float32 vectors as it stored them."""

    rows: np.ndarray
    texts: list[str]
    vectors: np.ndarray

    def table(self, points: Points | None = None) -> pa.Table:
        """Row, text, vector, and the columns of `points` where given, as an Arrow table."""
        flat = pa.array(self.vectors.reshape(-1), type=pa.float32())
        columns = {
            "row": pa.array(self.rows),
            "text": pa.array(self.texts, type=pa.large_string()),
            VECTOR: pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1]),
        }
        axes = {name: pa.array(values, pa.float32()) for name, values in (points or {}).items()}
        return pa.table({**columns, **axes})


def contents(index: VectorIndex) -> Contents:
    """The sentences of an index that were not removed. Types that compress give vectors as they can be restored.

    Raises ValueError for a type that gives none back.
    """
    rows, vectors = index.contents()
    return Contents(rows, index.texts(rows), vectors)


def fill(index: VectorIndex, to: str, target: Path, points: Points | None = None) -> None:
    """Write an index into an empty folder in a form of `index.manifest.INDEX_FORMS`, with a README.

    Raises ValueError for another form, and for an index that cannot be written so.
    """
    if to not in FORMS:
        raise ValueError(f"unknown `to` {to!r}; choose from {', '.join(FORMS)}")
    write, text = FORMS[to]
    write(index, target, points)
    manifest = index.manifest
    record = {**RECORD, "to": to, "model": manifest.model, "fingerprint": manifest.fingerprint, "count": manifest.count}
    (target / RECORD_FILE).write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
    facts = {"count": manifest.count, "d": manifest.dimension, "model": manifest.model, "factory": manifest.factory}
    axes = " `x` and `y` are a t-SNE map." if points else ""
    (target / "README.md").write_text(CARD.format(**facts) + text.replace("AXES", axes), encoding="utf-8")


def _dataset(index: VectorIndex, target: Path, points: Points | None) -> None:
    from datasets import Dataset

    Dataset(contents(index).table()).save_to_disk(str(target))
    index.write_faiss(target / FAISS_FILE)


def _parquet(index: VectorIndex, target: Path, points: Points | None) -> None:
    pyarrow.parquet.write_table(contents(index).table(points), target / PARQUET_FILE)


def _projector(index: VectorIndex, target: Path, points: Points | None) -> None:
    found = contents(index)
    with (target / "vectors.tsv").open("w", encoding="utf-8") as file:
        for vector in found.vectors:
            file.write("\t".join(str(number) for number in vector) + "\n")  # the shortest text of each float32
    with (target / "metadata.tsv").open("w", encoding="utf-8") as file:
        file.writelines(f"{text.translate(BLANKS) or ' '}\n" for text in found.texts)


CARD = """# A search index of {count:,} sentences

Their unit vectors ({d} dimensions, float32) by the model {model}, from a FAISS index of type {factory}; written by
`cse export`. The sentences are in it: their licence holds. Scores of models trained on the bundled backbone are no
unsupervised results: it began as all-MiniLM-L6-v2, which has seen labelled pairs.

"""
DATASETS_TEXT = """A `datasets` dataset (row, text, vector) with its FAISS index; a query has to have length 1.

```python
import numpy as np
from datasets import load_from_disk

dataset = load_from_disk("THIS_FOLDER")
dataset.load_faiss_index("vector", "THIS_FOLDER/vectors.faiss")
query = np.array(dataset[0]["vector"], dtype=np.float32)
scores, found = dataset.get_nearest_examples("vector", query, k=2)
print(scores, found["text"])
```
"""
PARQUET_TEXT = """A table of row, text and vector.AXES [Embedding Atlas](https://apple.github.io/embedding-atlas/)
opens it: `embedding-atlas THIS_FOLDER/index.parquet --text text --vector vector` makes its own map, and
`--x x --y y` takes the one here, where there is one.

```python
import pandas as pd

table = pd.read_parquet("THIS_FOLDER/index.parquet")
print(table.head())
```
"""
PROJECTOR_TEXT = """For the [Embedding Projector](https://projector.tensorflow.org): *Load*, then `vectors.tsv` and
`metadata.tsv`. Tabs and line breaks of a sentence are spaces there.

```python
import numpy as np

print(np.loadtxt("THIS_FOLDER/vectors.tsv", dtype=np.float32).shape)
```
"""
FORMS: dict[str, tuple[Callable[[VectorIndex, Path, Points | None], None], str]] = {
    "datasets": (_dataset, DATASETS_TEXT),
    "parquet": (_parquet, PARQUET_TEXT),
    "projector": (_projector, PROJECTOR_TEXT),
}
