"""A searchable set of sentences in a Milvus collection, for corpora too large for one machine.

The server is a cluster or Milvus Lite, which use the same protocol.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import secrets
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import fields_of
from cse.errors import IndexFolderError, command_line
from cse.files.checksums import feed_texts
from index.faiss_index import RecallProbe, unit_blocks
from index.folder import NUMBERS, check_columns, checksum, conformed, is_numbered, numbered, user_columns
from index.manifest import BuildSettings, Manifest, check_model, cure, parse_manifest
from index.stores import Batches, Cells, FewHitsWarning, Index, Rows, silent, spread

ADDRESS = re.compile(r"milvus://(\[[0-9a-f:.]+\]|[^\s\[\]:/@?#]+):(\d+)/([a-z_]\w{0,199})", re.ASCII | re.IGNORECASE)
MAX_PORT = 65_535
ROW, TEXT, VECTOR = "row", "text", "vector"
NUMBER, CORPUS = "cse_row", "cse_corpus"  # dynamic fields of a collection with columns: as `index.folder.NUMBERS`
MANIFEST, OWNER = "cse.manifest", "cse.index"  # properties of a collection: its manifest, the name of its index
COLUMNS = "cse.columns"  # the names of its columns, that of the texts first; lists and earlier versions have none
MAX_TEXT_BYTES = 65_535  # Milvus's limit for a field, and for all dynamic fields of a row
CONNECT_SECONDS, SECONDS = 30.0, 600.0  # time limits of connecting, and of a call such as building an index
PATIENCE_SECONDS, PAUSE_SECONDS = 60.0, 1.0  # of connecting to a slow server in all, and between two attempts
NO_COLLECTION = 100  # Milvus's error code
EF_CONSTRUCTION = 200  # of HNSW; some servers have no default
EF_SEARCH, MIN_PROBES = 64, 8  # as `index.faiss_engine.tune` chooses
INSERT_BATCH = 1024  # rows of one insertion
EXACT = "Flat"
QUERY_BATCH, ROW_BATCH = 256, 1024  # queries per search request, rows per read or delete request
MAX_ANSWERS = 16_384  # Milvus's limit of answers to a query
MILVUS_TYPES = {  # FAISS factories, with the same type and its parameters in Milvus
    r"Flat": ("FLAT", ()),
    r"HNSW(\d+)(?:,Flat)?": ("HNSW", ("M",)),
    r"IVF(\d+),Flat": ("IVF_FLAT", ("nlist",)),
    r"IVF(\d+),SQ8": ("IVF_SQ8", ("nlist",)),
    r"IVF(\d+),PQ(\d+)": ("IVF_PQ", ("nlist", "m")),
}


def alias_of(location: str) -> str:
    """The name of the collection in an address."""
    return location.rpartition("/")[2]


def index_kind(factory: str) -> tuple[str, dict[str, int]]:
    """Milvus's type and parameters of a FAISS factory. Raises ValueError for one that Milvus lacks."""
    for pattern, (name, keys) in MILVUS_TYPES.items():
        if match := re.fullmatch(pattern, factory):
            chosen = dict(zip(keys, map(int, match.groups()), strict=True))
            return name, {**chosen, "efConstruction": EF_CONSTRUCTION} if name == "HNSW" else chosen
    raise ValueError(f"Milvus has no {factory!r}; choose Flat, HNSW32,Flat, IVF256,Flat, IVF256,SQ8 or IVF256,PQ16")


@contextmanager
def plain_errors(what: str) -> Iterator[None]:
    """Turn an error of the server into a one-line `IndexFolderError` that begins with `what`."""
    from pymilvus import MilvusException

    try:
        yield
    except MilvusException as error:
        reason = "no such collection" if error.code == NO_COLLECTION else " ".join(str(error.message).split())
        raise IndexFolderError(f"{what}: {reason or 'the server refused without a reason'}") from error


def connect(location: str) -> Any:
    """Connect to the server of an address; one that listens but does not answer is tried again for a minute.

    Raises IndexFolderError if it does not answer by then, if nothing listens, or without pymilvus; ValueError for a bad
    address.
    """
    parts = ADDRESS.fullmatch(location)
    if not parts or not 0 < int(parts[2]) <= MAX_PORT:
        raise ValueError(
            f"{location!r} is not the address of a collection, which is milvus://HOST:PORT/COLLECTION, with a name of "
            "letters, digits and _, not beginning with a digit"
        )
    host, port = parts[1], int(parts[2])
    try:
        from pymilvus import MilvusClient, MilvusException
    except ImportError as error:
        raise IndexFolderError(f"{location}: needs the package pymilvus; pip install pymilvus") from error
    for name in ("pymilvus", *(name for name in logging.root.manager.loggerDict if name.startswith("pymilvus."))):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # pymilvus logs the traceback of each error it raises
    until = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection((host.strip("[]"), port), timeout=CONNECT_SECONDS).close()
            return MilvusClient(f"http://{host}:{port}", timeout=CONNECT_SECONDS)
        except OSError as error:  # refused, silent, or no such host
            raise IndexFolderError(
                f"{location}: no Milvus server there ({error}); start one, or correct the address"
            ) from error
        except MilvusException as error:
            if monotonic() >= until:
                reason = " ".join(str(error.message).split())
                raise IndexFolderError(
                    f"{location}: a server listens there, but gave no valid answer in {PATIENCE_SECONDS:.0f} seconds "
                    f"({reason}); it may be starting or busy: try again later"
                ) from error
        sleep(PAUSE_SECONDS)


def find(client: Any, location: str) -> tuple[str, dict[str, str]] | None:
    """The unique name and the properties of the collection at an address; None if there is none."""
    from pymilvus import MilvusException

    name = alias_of(location)
    with plain_errors(location):
        if not client.has_collection(name, timeout=SECONDS):
            return None
        with suppress(MilvusException):  # if it is no alias, it was not made by this project
            name = client.describe_alias(name, timeout=SECONDS)["collection_name"]
        return name, dict(client.describe_collection(name, timeout=SECONDS).get("properties") or {})


def keys_of(columns: Sequence[str]) -> dict[str, str]:
    """The dynamic field of each column but the first; underscores are added to names that this project uses."""
    keys = {}
    for name in columns[1:]:
        key = name
        while key in (ROW, TEXT, VECTOR, NUMBER, CORPUS, "$meta") or (key != name and key in columns):
            key += "_"
        keys[name] = key
    return keys


def create(client: Any, name: str, dimension: int, owner: str, columns: Sequence[str] = ()) -> None:
    """Create a collection of row, text and vector for the index `owner`; it is incomplete until it is marked.

    `columns` are the names of the texts' column and of those whose cells are dynamic fields.
    """
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=bool(columns))
    schema.add_field(ROW, DataType.INT64, is_primary=True)
    schema.add_field(TEXT, DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
    schema.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=dimension)
    properties = {OWNER: owner, **({COLUMNS: json.dumps(list(columns), ensure_ascii=False)} if columns else {})}
    client.create_collection(name, schema=schema, properties=properties, consistency_level="Strong", timeout=SECONDS)


def publish(client: Any, fresh: str, owner: str) -> None:
    """Point the alias `owner` at a complete collection, and drop its predecessor and those of killed builds."""
    known = client.has_collection(owner, timeout=SECONDS)
    (client.alter_alias if known else client.create_alias)(fresh, owner, timeout=SECONDS)
    for name in client.list_collections(timeout=SECONDS):
        if name != fresh and re.fullmatch(rf"{owner}_[0-9a-f]{{8}}", name):
            properties = client.describe_collection(name, timeout=SECONDS).get("properties") or {}
            if properties.get(OWNER) == owner:
                client.drop_collection(name, timeout=SECONDS)


def fill(
    client: Any, name: str, batches: Batches, settings: BuildSettings, report: Callable[[int], None]
) -> tuple[Manifest, RecallProbe]:
    """Write all `batches` into the new collection `name` and have the server index them.

    Returns the manifest, without recall, and the probe that measures it. Raises ValueError for bad batches, and
    pymilvus's errors.
    """
    blocks = unit_blocks(batches, report)
    first, vectors = next(blocks)
    columns = user_columns(first).schema.names if is_numbered(first) else []
    create(client, name, vectors.shape[1], name.rpartition("_")[0], columns)
    probe, rows, sha = RecallProbe(vectors, settings.seed), 0, hashlib.sha256()
    for table, block in chain([(first, vectors)], blocks):
        insert(client, name, rows, conformed(table, first.schema), block)
        feed_texts(sha, map(str.strip, table.column(0).to_pylist()))
        probe.see(block)
        rows += len(block)
    kind, parameters = index_kind(settings.factory)
    index_params = client.prepare_index_params()
    index_params.add_index(VECTOR, index_type=kind, metric_type="IP", params={"params": parameters})
    client.flush(name, timeout=SECONDS)
    client.create_index(name, index_params, timeout=SECONDS)
    client.load_collection(name, timeout=SECONDS)
    lists = parameters.get("nlist")
    manifest = Manifest.of(
        settings, dimension=vectors.shape[1],
        nprobe=min(lists, settings.nprobe or max(MIN_PROBES, math.isqrt(lists))) if lists else None,
        ef_search=(settings.ef_search or EF_SEARCH) if kind == "HNSW" else None, count=rows, rows=rows,
        corpus_sha256=sha.hexdigest(), recall_at_10=None, faiss=f"milvus {client.get_server_version()}", files={},
    )  # fmt: skip
    return manifest, probe


def insert(client: Any, name: str, first: int, table: pa.Table, vectors: np.ndarray) -> None:
    """Insert the rows of a `table` and unit `vectors` (n, d) under the positions from `first` on, without marking them.

    Raises ValueError, before anything is written, for a text or other cells that are too long for Milvus.
    """
    cure = f"the {MAX_TEXT_BYTES} bytes Milvus allows; shorten it, or build an index in a folder"
    for _, number, text, more in _entities(table, first):
        if len(text.encode()) > MAX_TEXT_BYTES:
            raise ValueError(f"the sentence of row {number} is longer than {cure}")
        if more and len(json.dumps(more, ensure_ascii=False).encode()) > MAX_TEXT_BYTES:
            raise ValueError(f"the columns of row {number} hold more than {cure}")
    entities = zip(_entities(table, first), vectors, strict=True)
    while part := list(islice(entities, INSERT_BATCH)):
        rows = [{ROW: row, TEXT: text, VECTOR: vector, **more} for (row, _, text, more), vector in part]
        client.insert(name, rows, timeout=SECONDS)


def _entities(table: pa.Table, first: int) -> Iterator[tuple[int, int, str, dict[str, Any]]]:
    """Yield the position of each row of a table, its number in its corpus, its text and its dynamic fields."""
    texts = chain.from_iterable(chunk.to_pylist() for chunk in table.column(0).chunks)
    if not is_numbered(table):
        yield from ((row, row + 1, text, {}) for row, text in enumerate(texts, start=first))
        return
    own = user_columns(table)
    others, keys = own.remove_column(0), keys_of(own.schema.names)
    numbers, corpora = (column.to_pylist() for column in table.columns[-len(NUMBERS) :])
    for at, (text, number, corpus) in enumerate(zip(texts, numbers, corpora, strict=True)):
        cells = {keys[name]: cell for name, cell in fields_of(others, at).items() if cell is not None}
        yield first + at, number, text, {**cells, NUMBER: number, CORPUS: corpus}


def mark(client: Any, name: str, manifest: Manifest) -> None:
    """Store the manifest with a collection, which marks it as a complete index."""
    text = json.dumps(manifest.to_json(), ensure_ascii=False)
    client.alter_collection_properties(name, properties={MANIFEST: text}, timeout=SECONDS)


def read_marked(client: Any, location: str) -> tuple[str, Manifest, list[str]]:
    """The unique name of an index's collection, its manifest, and the names of its columns if it has them.

    Raises IndexFolderError if there is no such collection, or it is not an index.
    """
    collection = find(client, location)
    if collection is None:
        raise IndexFolderError(f"{location}: no such collection; build it with {command_line('build_index')}")
    name, properties = collection
    try:
        values = json.loads(properties.get(MANIFEST, "null"))
        columns = json.loads(properties.get(COLUMNS, "[]"))
    except ValueError as error:
        raise IndexFolderError(f"{location}: its manifest cannot be read ({error}); {cure()}") from error
    if values is None:
        raise IndexFolderError(f"{location}: is not a complete index of this project; {cure()} under another name")
    return name, parse_manifest(values, f"{location}: its manifest"), columns


def count(client: Any, name: str, where: str = "") -> int:
    """The number of sentences in a collection, or of those for which `where` is true."""
    (answer,) = client.query(name, filter=where, output_fields=["count(*)"], timeout=SECONDS)
    return int(answer["count(*)"])


@dataclass(frozen=True)
class Condition:
    """A condition on a collection's fields in Milvus's language, and the number of rows that meet it."""

    expression: str
    count: int

    def __len__(self) -> int:
        """The number of rows."""
        return self.count


class MilvusIndex(Index):
    """Sentences and unit vectors on a server.

    Additions become visible to others with `save`; rows of an addition that was killed before are ignored. One writer
    at a time. An open index stops working when the collection is built again.
    """

    def __init__(
        self,
        client: Any,
        location: str,
        name: str,
        manifest: Manifest,
        *,
        strays: bool = False,
        columns: Sequence[str] = (),
    ) -> None:
        """`name` is the collection's own unique name; `strays` is True if a killed addition left rows in it.

        `columns` are the names of its columns, if it has dynamic fields.
        """
        self.manifest = manifest
        self._columns, self._keys = list(columns), keys_of(columns)
        self._client, self._location, self._name = client, location, name
        self._strays = strays  # searches must exclude rows beyond the manifest's
        self._killed = strays  # such rows are left from a failed addition, not written by another process

    @classmethod
    def build(
        cls,
        batches: Batches,
        location: str,
        *,
        settings: BuildSettings,
        report: Callable[[int], None] = silent,
    ) -> MilvusIndex:
        """Build the index of all `batches` of texts and vectors (n, d) in the collection at `location`.

        It is written under a unique name, marked when complete, and replaces an index at `location` in one step; a
        failure leaves that unchanged. Memory holds one batch. Raises ValueError for bad batches, settings or location,
        and IndexFolderError for errors of the server.
        """
        if settings.smooth:
            raise ValueError(f"{location}: `smooth` {settings.smooth} is for folders; leave it out")
        index_kind(settings.factory)
        cls.holds_index(location)
        client, alias = connect(location), alias_of(location)
        from pymilvus import MilvusException

        fresh = f"{alias}_{secrets.token_hex(4)}"
        with plain_errors(location), warnings.catch_warnings():
            warnings.simplefilter("ignore", FewHitsWarning)  # missing answers lower the recall
            try:
                manifest, probe = fill(client, fresh, batches, settings, report)
                if settings.factory != EXACT:
                    manifest = replace(manifest, recall_at_10=probe.recall(cls(client, location, fresh, manifest)))
                mark(client, fresh, manifest)
            except BaseException:
                with suppress(MilvusException):  # an incomplete collection; the next build tries again
                    client.drop_collection(fresh, timeout=SECONDS)
                raise
            publish(client, fresh, alias)
        return cls.load(location)

    @classmethod
    def load(
        cls, location: str, fingerprint: str | None = None, *, model: str | None = None, verify: bool = False
    ) -> MilvusIndex:
        """The index at `location`; with `fingerprint`, only if that model built it. `model` names the caller's model.

        Raises ValueError for a bad address, and IndexFolderError if the server does not answer or the collection is
        missing, not an index, of another model, or lacks some of its sentences.
        """
        client = connect(location)
        name, manifest, columns = read_marked(client, location)
        check_model(location, manifest, fingerprint, model)
        with plain_errors(location):
            total = count(client, name)
            beyond = count(client, name, f"{ROW} >= {manifest.rows}") if total != manifest.count else 0
        if total - beyond < manifest.count:
            if read_marked(client, location) != (name, manifest, columns):  # saved or rebuilt since it was read
                return cls.load(location, fingerprint, model=model)
            problem = f"holds {total - beyond} sentences, and its manifest says {manifest.count}"
            raise IndexFolderError(f"{location}: {problem}, so some were lost; {cure()}")
        return cls(client, location, name, manifest, strays=beyond > 0, columns=columns)

    @classmethod
    def manifest_at(cls, location: str) -> Manifest:
        return read_marked(connect(location), location)[1]

    @classmethod
    def holds_index(cls, location: str) -> bool:
        collection = find(connect(location), location)
        if collection is not None and OWNER not in collection[1]:
            raise ValueError(f"{location}: is a collection of another program; give the index another name")
        return collection is not None

    @classmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        index_kind(factory)

    @classmethod
    @contextmanager
    def temporary(cls, batches: Batches, location: str, *, settings: BuildSettings) -> Iterator[MilvusIndex]:
        """Build an index that is deleted when the block ends.

        Raises ValueError if a collection of this name exists.
        """
        cls.check_free(location)
        index = cls.build(batches, location, settings=settings)
        try:
            yield index
        finally:
            with plain_errors(location):
                index._client.drop_alias(alias_of(location), timeout=SECONDS)
                index._client.drop_collection(index._name, timeout=SECONDS)

    def sample(self, most: int) -> np.ndarray:
        return spread(np.arange(self.manifest.rows), most)

    def save(self, location: Path | str) -> None:
        """Make additions part of the index at `location`, where it was opened.

        Raises ValueError for another location, as the sentences are on the server.
        """
        if str(location) != self._location:
            raise ValueError(f"{location}: the index is at {self._location} and can only be saved there")
        with plain_errors(self._location):
            self._client.flush(self._name, timeout=SECONDS)
            mark(self._client, self._name, self.manifest)

    @property
    def columns(self) -> list[str]:
        """The names of all columns, that of the texts first; a condition reads the texts as `text`."""
        return self._columns or [TEXT]

    def where(self, condition: str) -> Condition:
        """The rows that meet a condition in Milvus's language, which it reads itself; errors as `Index.where`."""
        from pymilvus import MilvusException

        known = Condition(f"({condition})", 0)
        try:
            return replace(known, count=count(self._client, self._name, self._filter(known)))
        except MilvusException as error:
            raise ValueError(
                f"Milvus cannot read the condition {condition!r} ({' '.join(str(error.message).split())}); give one "
                f'such as label == "billing", of the columns {", ".join([TEXT, *self._keys.values()])}'
            ) from error

    def _distinct(self, among: Any) -> Any:
        return among if isinstance(among, Condition) else super()._distinct(among)

    def _cells_of(self, rows: np.ndarray) -> list[Cells]:
        own = [NUMBER, CORPUS, *self._keys.values()] if self._columns else []
        known, names = self._read(np.unique(rows), TEXT, *own), self.manifest.corpora
        cells: list[Cells] = []
        for row in rows.tolist():
            entity = known[row]
            corpus = entity.get(CORPUS)
            fields = {name: entity.get(key) for name, key in self._keys.items()}
            source = names[corpus] if corpus is not None and len(names) > 1 else None
            cells.append((entity.get(NUMBER, row + 1), entity[TEXT], fields, source))
        return cells

    def _is_exact(self) -> bool:
        return self.manifest.factory == EXACT

    def texts(self, rows: Rows) -> list[str]:
        return self._values(rows, TEXT)

    def vectors(self, rows: Rows) -> np.ndarray:
        return np.array(self._values(rows, VECTOR), dtype=np.float32)

    def _values(self, rows: Rows, field: str) -> list[Any]:
        checked = self._checked(rows)
        known = self._read(np.unique(checked), field)
        return [known[row][field] for row in checked.tolist()]

    def _expanded(self, queries: np.ndarray, count: int) -> np.ndarray:
        if count:
            raise ValueError(f"{self._location}: `expand` {count} is for indexes in folders; leave it out")
        return queries

    def _nearest(self, queries: np.ndarray, k: int, chosen: Any, probe: int | None) -> tuple[np.ndarray, np.ndarray]:
        if k > MAX_ANSWERS:
            raise ValueError(f"k is {k}; Milvus returns at most {MAX_ANSWERS} answers to a query")
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        rows = np.full((len(queries), k), -1, dtype=np.int64)
        for start in range(0, len(queries) if k else 0, QUERY_BATCH):
            block = queries[start : start + QUERY_BATCH]
            answers = self._ask(block, k, chosen, probe)
            if any(hit[ROW] >= self.manifest.rows for hits in answers for hit in hits):
                self._strays = True  # rows that another process is adding took the place of answers: search again
                answers = self._ask(block, k, chosen, probe)
            for at, hits in enumerate(answers, start=start):
                for rank, hit in enumerate(hits):
                    scores[at, rank], rows[at, rank] = hit["distance"], hit[ROW]
        return scores, rows

    def _insert(self, table: pa.Table, vectors: np.ndarray) -> None:
        first = self.manifest.rows
        if self._columns and not is_numbered(table):
            table = numbered(table, np.arange(first + 1, first + len(table) + 1), None)
        check_columns(user_columns(table).schema.names[1:], self.columns[1:])
        if not self._columns:
            table = table.select([0]).replace_schema_metadata(None)  # a collection of an earlier version
        with plain_errors(self._location):
            if self._killed:
                self._client.delete(self._name, filter=f"{ROW} >= {first}", timeout=SECONDS)
            self._killed = self._strays = True  # if the insertion fails, its rows are left over
            insert(self._client, self._name, first, table, vectors)
            self._killed = self._strays = False
        # Derived from the old checksum and the addition, as reading all sentences would take hours.
        signed = hashlib.sha256(f"{self.manifest.corpus_sha256} {checksum(table.column(0))}".encode()).hexdigest()
        self.manifest = replace(self.manifest, corpus_sha256=signed)

    def _filter(self, chosen: np.ndarray | Condition | None) -> str:
        limits = [f"{ROW} in {chosen.tolist()}"] if isinstance(chosen, np.ndarray) else []
        limits += [chosen.expression] if isinstance(chosen, Condition) else []
        limits += [f"{ROW} < {self.manifest.rows}"] if self._strays else []
        return " and ".join(limits)

    def _ask(self, queries: np.ndarray, k: int, chosen: Any, probe: int | None) -> Any:
        manifest = self.manifest
        depth = {
            "nprobe": manifest.nprobe and (probe or manifest.nprobe),
            "ef": manifest.ef_search and max(probe or manifest.ef_search, k),
        }
        with plain_errors(alias_of(self._location)):
            return self._client.search(
                self._name, queries, limit=k, filter=self._filter(chosen), output_fields=[ROW],
                search_params={"params": {name: value for name, value in depth.items() if value}}, timeout=SECONDS,
            )  # fmt: skip

    def _read(self, rows: np.ndarray, *fields: str) -> dict[int, dict[str, Any]]:
        """Fields of each of the distinct `rows` (n,)."""
        values: dict[int, dict[str, Any]] = {}
        with plain_errors(alias_of(self._location)):
            for start in range(0, len(rows), ROW_BATCH):
                ids = rows[start : start + ROW_BATCH].tolist()
                read = self._client.get(self._name, ids=ids, output_fields=list(fields), timeout=SECONDS)
                values.update((entity[ROW], entity) for entity in read)
        return values
