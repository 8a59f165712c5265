"""The corpora of the app: texts with labels and vectors, and a search among them; the demo, and indexes by their texts.

Those of visitors are in `own`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cse.analysis.maps import evenly
from cse.app.models.models import Column, Models, before, fingerprint_of, free_name, number_of
from cse.app.models.naming import title
from cse.app.models.recent import Bounds, Recent
from cse.corpus.corpus import fields_of
from cse.errors import command_line
from cse.models.names import BACKBONE, BUNDLED, canonical_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from cse.encoder.encoder import Encoder
    from index.manifest import Manifest
    from index.stores import Hit, Index, Location

DEMO = BUNDLED / "demo"
DEMO_KEY, OWN_KEY = "demo", "own"  # reserved: no index has these keys
VECTORS = DEMO / "vectors"  # of the bundled models, `<fingerprint>.npy`; `app.py --precompute` writes them
MAX_MODELS, MAX_DEMO_VECTORS = Bounds(32), Bounds(32, 64 * 2**20)  # models whose vectors and indexes are cached
MAX_READ = 50_000  # sentences of an index, for what needs all of them
SPREAD = 200  # sentences that make the random pairs
FIELD = "The corpus"
EXACT = "Flat"
MAX_CONDITION_STEPS = 50_000_000  # of SQLite's machine: a second or two, so that no visitor keeps a core busy
EXAMPLES, MAX_EXAMPLE_CHARACTERS = 3, 120


class Nearest(NamedTuple):
    """The sentences nearest to a query, best first, the type of the index and its recall@10 if that is known."""

    hits: list[Hit]
    factory: str = EXACT
    recall: float | None = 1.0


class ChosenCorpus:
    """Texts with a label each if they have labels, and each column's vectors of them.

    `key` names it to clients; the page shows its `label`. `columns` are those that can search it, None for the page's;
    `note` is shown above results. `rows` are the texts' rows in the visitor's file if they are not 1, 2, 3, …. `table`
    has the further columns of the texts, if any; `text_name` and `label_name` are those of the texts and labels.
    """

    key: str
    number = 0  # tells one corpus under a key from another
    label: str
    texts: Sequence[str]  # in the order of the vectors
    labels: Sequence[str] | None = None
    columns: Sequence[Column] | None = None
    note: str = ""
    rows: Sequence[int] | None = None
    without_text = 0  # rows of the file that were left out
    table: pa.Table | None = None
    text_name: str = "text"
    label_name: str = "label"

    def fields(self, position: int) -> dict[str, Any]:
        """Return the further cells of a text by column; the label is one of them where the texts have no table."""
        if self.table is not None:
            return fields_of(self.table, position)
        return {"label": self.labels[position]} if self.labels and self.labels[position] else {}

    def cells(self, positions: Sequence[int]) -> dict[str, list[Any]]:
        """Return the further columns of texts by their names."""
        if self.table is not None:
            return self.table.take(list(positions)).to_pydict()
        return {"label": [self.labels[position] for position in positions]} if self.labels else {}

    def further(self, positions: Sequence[int], own: Sequence[str]) -> pd.DataFrame:
        """Return the further cells of texts as columns; one that has a name of the `own` columns ends with a blank."""
        import pandas as pd

        cells = self.cells(positions).items()
        named = {f"{name} " if name in own else name: values for name, values in cells}
        return pd.DataFrame(named, dtype=object)  # else a column of whole numbers with a gap becomes 1.0, 2.0

    @property
    def numbers(self) -> Sequence[int]:
        """The number of each text's row, counted from 1, in the visitor's file or else in the corpus."""
        return self.rows or range(1, len(self.texts) + 1)

    @property
    def positions(self) -> np.ndarray:
        """The (N,) positions of the texts as hits have them."""
        return np.arange(len(self.texts))

    def examples(self) -> list[str]:
        """Return a few short, different texts, or their longest lines, that are spread over the corpus."""
        texts = (self.texts[row].strip() for row in evenly(len(self.texts), 8 * EXAMPLES))
        spread = (" ".join(max(text.splitlines(), key=len, default="").split()) for text in texts)
        short = list(dict.fromkeys(text for text in spread if 0 < len(text) <= MAX_EXAMPLE_CHARACTERS))
        return short[:: max(1, len(short) // EXAMPLES)][:EXAMPLES]

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return a column's (N, d) float32 vectors of the texts. Raises ValueError while there are none."""
        raise NotImplementedError

    def ready(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns whose vectors are there, or are computed at once."""
        return list(columns)

    def answering(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns without those that still encode the texts, unless all do."""
        return list(columns)

    def rows_where(self, condition: str, note: Callable[[str], object] = lambda line: None) -> np.ndarray:
        """Return the positions (n,) of the texts that an SQL condition on the columns picks. Raises ValueError."""
        import pyarrow as pa

        from cse.corpus.where import rows_where

        table = self.table
        if table is None:
            table = pa.table({"label": list(self.labels or [""] * len(self.texts))})
        for name in dict.fromkeys((self.text_name, "text")):
            if name not in table.schema.names:
                table = table.append_column(name, pa.array(list(self.texts)))
        return rows_where(table, condition, MAX_CONDITION_STEPS, note)

    def nearest(self, column: Column, encoder: Encoder, vector: np.ndarray, count: int, condition: str = "") -> Nearest:
        """Return the `count` texts with the highest cosines to a vector (d,), among those that a `condition` picks."""
        from index.stores import Hit

        rows = self.vectors(column, encoder)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.linalg.norm(vector)  # without a copy of the rows
        scores = np.divide(rows @ vector, lengths, out=np.zeros(len(rows), np.float32), where=lengths > 0)
        best = np.argsort(-scores, kind="stable")
        if condition:
            best = best[np.isin(best, self.rows_where(condition))]
        numbers = self.numbers
        return Nearest([
            Hit(rank, float(scores[row]), numbers[row], self.texts[row], self.fields(row), row)
            for rank, row in enumerate(best[:count].tolist(), start=1)
        ])  # fmt: skip

    def query_prompt(self, column: Column, encoder: Encoder) -> str | None:
        """Return the prompt of a query among a column's vectors, as an index records it."""
        return encoder.query_prompt

    def random_cosines(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return (P,) ascending cosines of all pairs of different texts that are spread over the corpus."""
        from cse.analysis.calibration import random_cosines

        cosines = self._random.get(number_of(encoder))
        if cosines is None:
            cosines = random_cosines(self.some_vectors(self.spread(), column, encoder))
            self._random.put(number_of(encoder), cosines)
        return cosines

    @cached_property
    def _random(self) -> Recent[np.ndarray]:
        return Recent(MAX_MODELS)

    def spread(self) -> list[int]:
        """Return the positions of the different texts that make the random pairs."""
        first = list({text: row for row, text in reversed(list(enumerate(self.texts)))}.values())[::-1]
        return [first[place] for place in evenly(len(first), SPREAD)]

    def some_vectors(self, rows: Sequence[int], column: Column, encoder: Encoder) -> np.ndarray:
        """Return the vectors (n, d) of a few rows, also before a column has those of all."""
        return encoder.encode([self.texts[row].strip() for row in rows])

    def shortfall(self, column: Column, encoder: Encoder, found: int, count: int) -> str:
        """Return why a search for `count` sentences found fewer, and the cure; empty if it did not."""
        return ""


class Demo(ChosenCorpus):
    """The bundled sentences, labelled by topic, and each model's vectors of them, cached."""

    key = DEMO_KEY

    def __init__(self) -> None:
        rows = [line.split("\t") for line in (DEMO / "corpus.tsv").read_text(encoding="utf-8").splitlines()]
        self.labels, self.texts = ([row[side] for row in rows] for side in (0, 1))
        self.label = f"Demo ({len(self.texts):,})"
        self._vectors: Recent[np.ndarray] = Recent(MAX_DEMO_VECTORS)

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the (N, d) float32 vectors of all sentences: shipped, or computed at the first call."""
        vectors = self._vectors.get(number_of(encoder))
        if vectors is None:
            shipped = self._shipped(encoder)
            vectors = encoder.encode_document(self.texts) if shipped is None else shipped
            self._vectors.put(number_of(encoder), vectors)
        return vectors

    def spread(self) -> list[int]:
        """Return every sixth sentence, so that all topics are among them."""
        return list(range(0, len(self.texts), len(self.texts) // SPREAD))

    def some_vectors(self, rows: Sequence[int], column: Column, encoder: Encoder) -> np.ndarray:
        """Return the shipped vectors of these rows, or encode the sentences without a prompt for documents."""
        known = None if encoder.document_prompt is not None else self._vectors.get(number_of(encoder))
        vectors = self._shipped(encoder) if known is None else known
        return super().some_vectors(rows, column, encoder) if vectors is None else vectors[rows]

    @staticmethod
    def _shipped(encoder: Encoder) -> np.ndarray | None:
        # The fingerprint covers neither the tokenizer nor a prompt for documents.
        if encoder.backbone != BACKBONE or encoder.document_prompt is not None:
            return None
        shipped = VECTORS / f"{fingerprint_of(encoder)}.npy"
        return np.load(shipped).astype(np.float32) if shipped.is_file() else None


def write_vectors(models: Models, demo: Demo) -> list[Path]:
    """Write the vectors of the demo (N, d) float16 by each model and its start, by fingerprint, and delete others."""
    encoders = [models.encoder(column) for known in models.columns for column in (known, before(known)) if column]
    VECTORS.mkdir(exist_ok=True)
    files = []
    for fingerprint, encoder in {encoder.fingerprint: encoder for encoder in encoders}.items():
        files.append(VECTORS / f"{fingerprint}.npy")
        np.save(files[-1], encoder.encode(demo.texts).astype(np.float16))
    for stale in set(VECTORS.glob("*.npy")) - set(files):
        stale.unlink()
    return files


class IndexedCorpus(ChosenCorpus):
    """The sentences of index folders or Milvus collections, and each column's index of them, opened once."""

    def __init__(self, key: str, label: str, sources: Mapping[Column, Location], note: str = "") -> None:
        """`sources` are the indexes by the columns that built them; the texts are read from the first."""
        self.key, self.label, self.note, self.columns = key, label, note, tuple(sources)
        self._sources = sources
        self._open: Recent[Index] = Recent(MAX_MODELS)

    def index(self, column: Column, encoder: Encoder) -> Index:
        """Return the column's index. Raises IndexFolderError, without paths, if another model than `encoder` built it.

        A model in a folder may have been replaced, so that its number is part of the key.
        """
        from index import IndexFolderError
        from index.stores import open_at

        key, source = (column, number_of(encoder)), self._sources[column]
        index = self._open.get(key)
        if index is None:
            try:
                index = open_at(source, fingerprint_of(encoder), model=encoder.name)
            except IndexFolderError as error:
                line = str(error).replace(str(source), Path(source).name).replace(column.model, Path(column.model).name)
                raise IndexFolderError(line) from error
            self._open.put(key, index)
        return index

    def opened(self) -> Index:
        """Return the index that the texts are read from."""
        from index.stores import open_at

        return open_at(next(iter(self._sources.values())))

    @cached_property
    def _rows(self) -> np.ndarray:
        return self.opened().sample(MAX_READ)

    @cached_property
    def texts(self) -> Sequence[str]:  # type: ignore[override]
        """The sentences, of more than `MAX_READ` an even sample, read at the first use."""
        return self.opened().texts(self._rows)

    @property
    def positions(self) -> np.ndarray:
        """Those of the sentences in the index."""
        return self._rows

    def ready(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that have an index."""
        return [column for column in columns if column in self._sources]

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the (n, d) float32 unit vectors of the texts. Raises ValueError if the column has no index of them."""
        if column not in self._sources:
            raise ValueError(
                f"{title(column.name)} has no index of these sentences; build one with {command_line('build_index')}."
            )
        return self.index(column, encoder).vectors(self._rows)

    def rows_where(self, condition: str, note: Callable[[str], object] = lambda line: None) -> Any:
        """Return what the index picks by a condition in its own language. Raises ValueError."""
        return self.opened().where(condition)

    def query_prompt(self, column: Column, encoder: Encoder) -> str | None:
        """Return the prompt that the column's index records."""
        return self.index(column, encoder).manifest.query_prompt

    def nearest(self, column: Column, encoder: Encoder, vector: np.ndarray, count: int, condition: str = "") -> Nearest:
        """Return the hits of the column's index, which may be approximate."""
        index = self.index(column, encoder)
        among = index.where(condition) if condition else None
        return Nearest(index.hits(vector, count, quiet=True, among=among), index.manifest.factory, index.recall_at_10)

    def shortfall(self, column: Column, encoder: Encoder, found: int, count: int) -> str:
        """Return the index's own reason, with the command that has the cure."""
        index = self.index(column, encoder)
        note = index.shortfall(found, min(count, len(index)))
        return note.replace("`probe`", f"--probe of {command_line('search')}")


def indexed_corpora(indexes: Sequence[Location], models: Models) -> list[IndexedCorpus]:
    """Return a corpus for each set of sentences among the indexes; its columns are the models that indexed it."""
    from index.stores import manifest_at

    locations = [source.resolve() if isinstance(source, Path) else source for source in indexes]
    groups: dict[str, dict[Location, Manifest]] = {}
    for location in locations:
        manifest = manifest_at(location)
        groups.setdefault(manifest.corpus_sha256, {})[location] = manifest
    corpora: dict[str, IndexedCorpus] = {}
    for checksum, manifests in groups.items():
        first = next(iter(manifests.values()))
        name = " + ".join(Path(source).name for source in first.corpora if source)
        key = free_name((name, f"{name} {checksum[:8]}".strip()), {DEMO_KEY, OWN_KEY, *corpora})
        sources = index_columns(manifests, models)
        unknown = ", ".join(column.name for column in sources if column not in models.columns)
        note = (
            f"Indexed with {unknown}, which is no column of this page. To compare, start the app with that --model, or "
            f"index the same sentences with the page's models ({command_line('build_index')}) and give each folder "
            "with --index."
        )
        corpora[key] = IndexedCorpus(key, f"{key} ({first.count:,} sentences)", sources, note if unknown else "")
    return list(corpora.values())


def index_columns(manifests: Mapping[Location, Manifest], models: Models) -> dict[Column, Location]:
    """Return a column for each index: the page's column of that model if there is one."""
    columns: dict[Column, Location] = {}
    for location, manifest in manifests.items():
        opened_by = Column("", canonical_name(manifest.model), manifest.pooling, manifest.family).opened_by
        own = [column.name for column in models.columns if column.opened_by == opened_by]
        others = {column.name for column in models.columns} - set(own)
        name = own[0] if own else "-".join(part for part in (Path(manifest.model).name, manifest.pooling) if part)
        candidates = (name, f"{name} {manifest.factory}", f"{name} {Path(location).name}", str(location))
        known = others | {column.name for column in columns}
        columns[Column(free_name(candidates, known), *opened_by)] = location
    return columns
