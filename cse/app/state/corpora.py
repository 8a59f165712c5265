"""The demo corpus, and indexes grouped by the sentences they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.app.models.columns import Column, free_name
from cse.app.models.models import Failure, Models
from cse.app.models.naming import title
from cse.app.models.recent import Recent
from cse.app.models.remembered import fingerprint_of, number_of
from cse.errors import command_line
from cse.models.names import BACKBONE, BUNDLED, canonical_name

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from index.manifest import Manifest
    from index.stores import Index, Location

DEMO = BUNDLED / "demo"
DEMO_KEY, OWN_KEY = "demo", "own"  # reserved: no index has these keys
VECTORS = DEMO / "vectors"  # of the bundled models, `<fingerprint>.npy`; `app.py --precompute` writes them
MOST_KEPT, MOST_BYTES_KEPT = 32, 64 * 2**20  # models whose vectors and indexes are cached; vectors of the demo
MOST_READ = 50_000  # sentences of an index, for what needs all of them
SPREAD = 200  # sentences that make the random pairs

Opener = Callable[[Column, "Encoder"], "Index"]


class Corpus:
    """Sentences that are indexed, and each column's index of them, opened once."""

    def __init__(
        self,
        key: str,
        label: str,
        columns: Sequence[Column],
        opener: Opener,
        note: str = "",
        place: Location | None = None,
    ) -> None:
        """`key` names the corpus to clients; the page shows its `label`, and its `note` above results.

        The texts are read from the index at `place`.
        """
        self.key, self.label, self.note, self.columns = key, label, note, tuple(columns)
        self._opener, self._place = opener, place
        self._open: Recent[Index] = Recent(MOST_KEPT)
        self._texts: tuple[np.ndarray, list[str]] | None = None

    def index(self, column: Column, encoder: Encoder) -> Index:
        """Return the column's index. Raises IndexFolderError if another model than `encoder` built it."""
        key = column, number_of(encoder)  # a folder's model may have been replaced
        index = self._open.get(key)
        if index is None:
            index = self._opener(column, encoder)
            self._open.put(key, index)
        return index

    def texts(self) -> tuple[np.ndarray, list[str]]:
        """Return the row numbers (n,) and texts of the sentences, of more than `MOST_READ` an even sample."""
        if self._texts is None:
            index = self.opened()
            rows = index.sample(MOST_READ)
            self._texts = rows, index.texts(rows)
        return self._texts

    def opened(self) -> Index:
        """Return the index that the texts are read from."""
        from index.stores import open_at

        assert self._place is not None
        return open_at(self._place)

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the (n, d) float32 unit vectors of `texts`. Raises ValueError if the column has no index of them."""
        if column not in self.columns:
            raise ValueError(
                f"{title(column.name)} has no index of these sentences; build one with {command_line('build_index')}."
            )
        return self.index(column, encoder).vectors(self.texts()[0])


class Demo:
    """The bundled sentences with their topics, and each model's vectors of them, cached."""

    def __init__(self) -> None:
        """Read the sentences; no model is opened yet."""
        rows = [line.split("\t") for line in (DEMO / "corpus.tsv").read_text(encoding="utf-8").splitlines()]
        self.topics, self.sentences = ([row[side] for row in rows] for side in (0, 1))
        self._vectors = Recent[np.ndarray](MOST_KEPT, most_bytes=MOST_BYTES_KEPT)
        self._random = Recent[np.ndarray](MOST_KEPT)

    def vectors(self, encoder: Encoder) -> np.ndarray:
        """Return the (N, d) float32 vectors of all sentences, in the corpus's order: shipped or computed."""
        vectors = self._vectors.get(number_of(encoder))
        if vectors is None:
            shipped = self._shipped(encoder)
            vectors = encoder.encode_document(self.sentences) if shipped is None else shipped
            self._vectors.put(number_of(encoder), vectors)
        return vectors

    def random_cosines(self, encoder: Encoder) -> np.ndarray:
        """Return (P,) ascending cosines of all pairs of sentences sampled from all topics; only these are encoded."""
        from cse.analysis.calibration import random_cosines

        reference = self._random.get(number_of(encoder))
        if reference is None:
            spread = slice(None, None, len(self.sentences) // SPREAD)
            # Sentences that are compared have no prompt for documents, so those of the reference have none.
            known = None if encoder.document_prompt is not None else self._vectors.get(number_of(encoder))
            vectors = self._shipped(encoder) if known is None else known
            rows = encoder.encode(self.sentences[spread]) if vectors is None else vectors[spread]
            reference = random_cosines(rows)
            self._random.put(number_of(encoder), reference)
        return reference

    @staticmethod
    def _shipped(encoder: Encoder) -> np.ndarray | None:
        # The fingerprint covers neither the tokenizer nor a prompt for documents.
        if encoder.backbone != BACKBONE or encoder.document_prompt is not None:
            return None
        shipped = VECTORS / f"{fingerprint_of(encoder)}.npy"
        return np.load(shipped).astype(np.float32) if shipped.is_file() else None


def write_vectors(models: Models, demo: Demo) -> list[Path]:
    """Write each model's vectors of the demo (N, d) float16 by fingerprint, and delete others. Returns the files.

    Raises ValueError if a model fails.
    """
    answers = models.apply(lambda _, encoder: (encoder.fingerprint, encoder.encode(demo.sentences)))
    files = []
    VECTORS.mkdir(exist_ok=True)
    for name, answer in answers.items():
        if isinstance(answer, Failure):
            raise ValueError(f"{name}: {answer.reason}")
        fingerprint, rows = answer
        files.append(VECTORS / f"{fingerprint}.npy")
        np.save(files[-1], rows.astype(np.float16))
    for stale in set(VECTORS.glob("*.npy")) - set(files):
        stale.unlink()
    return files


def indexed_corpora(indexes: Sequence[Location], models: Models) -> list[Corpus]:
    """Return a corpus for each set of sentences among the indexes; its columns are the models that indexed it."""
    from index.stores import manifest_at

    places = [place.resolve() if isinstance(place, Path) else place for place in indexes]
    manifests = {place: manifest_at(place) for place in places}
    groups: dict[str, list[Location]] = {}
    for place, manifest in manifests.items():
        groups.setdefault(manifest.corpus_sha256, []).append(place)
    found: dict[str, Corpus] = {}
    for checksum, members in groups.items():
        first = manifests[members[0]]
        name = " + ".join(Path(source).name for source in first.corpora if source)
        key = free_name((name, f"{name} {checksum[:8]}".strip()), {DEMO_KEY, OWN_KEY, *found})
        sources = index_columns({place: manifests[place] for place in members}, models)
        label, note = f"{key} ({first.count:,} sentences)", unknown_models_note(list(sources), models)
        found[key] = Corpus(key, label, list(sources), opener(sources), note, members[0])
    return list(found.values())


def unknown_models_note(columns: Sequence[Column], models: Models) -> str:
    """Return a note that names columns of an index that the page lacks; empty if there are none."""
    odd = ", ".join(column.name for column in columns if column not in models.columns)
    if not odd:
        return ""
    return (
        f"Indexed with {odd}, which is no column of this page. To compare, start the app with that --model, or index "
        f"the same sentences with the page's models ({command_line('build_index')}) and give each folder with --index."
    )


def index_columns(manifests: dict[Location, Manifest], models: Models) -> dict[Column, Location]:
    """Return a column for each index: the page's column of that model if there is one."""
    found: dict[Column, Location] = {}
    for place, manifest in manifests.items():
        opened_by = (canonical_name(manifest.model), manifest.pooling, manifest.family)
        own = [column.name for column in models.columns if column.opened_by == opened_by]
        others = {column.name for column in models.columns} - set(own)
        name = own[0] if own else "-".join(part for part in (Path(manifest.model).name, manifest.pooling) if part)
        candidates = (name, f"{name} {manifest.factory}", f"{name} {Path(place).name}", str(place))
        found[Column(free_name(candidates, others | {column.name for column in found}), *opened_by)] = place
    return found


def opener(sources: dict[Column, Location]) -> Opener:
    """Return a function that opens a column's index and raises if another model built it.

    Its errors name the index and the model without their paths.
    """

    def load(column: Column, encoder: Encoder) -> Index:
        from index import IndexFolderError
        from index.stores import open_at

        place = sources[column]
        try:
            return open_at(place, fingerprint_of(encoder), model=encoder.name)
        except IndexFolderError as error:
            message = str(error).replace(str(place), Path(place).name).replace(column.model, Path(column.model).name)
            raise IndexFolderError(message) from error

    return load
