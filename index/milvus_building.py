"""Build a Milvus collection: insert rows in portions, index them, and mark the collection as complete."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from cse.errors import IndexFolderError, command_line
from cse.storage.checksums import feed_texts
from index import milvus_server as server
from index.building import Batches, RecallProbe, unit_blocks
from index.manifest import BuildSettings, Manifest, cure, parse_manifest
from index.milvus_server import MANIFEST, OWNER, ROW, SECONDS, TEXT, VECTOR, Address

EF_SEARCH, LEAST_PROBES = 64, 8  # as `index.faiss_engine.tune` chooses
PORTION = 1024  # rows of one insertion


def fill(
    client: Any, name: str, batches: Batches, settings: BuildSettings, report: Callable[[int], None]
) -> tuple[Manifest, RecallProbe]:
    """Write all `batches` into the new collection `name` and have the server index them.

    Returns the manifest, without recall, and the probe that measures it. Raises ValueError for bad batches, and
    pymilvus's errors.
    """
    texts: list[pa.Array] = []
    blocks = unit_blocks(batches, texts.append, report)
    first = next(blocks, None)
    if first is None:
        raise ValueError("there is no sentence to index; give a corpus with text in it")
    server.create(client, name, first.shape[1], name.rpartition("_")[0])
    probe, rows, sha = RecallProbe(first, settings.seed), 0, hashlib.sha256()
    for block in chain([first], blocks):
        insert(client, name, rows, texts[-1], block)
        feed_texts(sha, texts[-1].to_pylist())
        probe.see(block)
        rows += len(block)
        texts.clear()
    server.index_and_load(client, name, settings.factory)
    return _manifest(client, settings, first.shape[1], rows, sha.hexdigest()), probe


def _manifest(client: Any, settings: BuildSettings, dimension: int, rows: int, checksum: str) -> Manifest:
    kind, parameters = server.index_kind(settings.factory)
    lists = parameters.get("nlist")
    nprobe = min(lists, settings.nprobe or max(LEAST_PROBES, math.isqrt(lists))) if lists else None
    return Manifest.of(
        settings, dimension=dimension, nprobe=nprobe,
        ef_search=(settings.ef_search or EF_SEARCH) if kind == "HNSW" else None, count=rows, rows=rows,
        corpus_sha256=checksum, recall_at_10=None, faiss=f"milvus {client.get_server_version()}", files={},
    )  # fmt: skip


def insert(client: Any, name: str, first: int, texts: pa.Array, vectors: np.ndarray) -> None:
    """Insert `texts` and unit `vectors` (n, d) under the row numbers from `first` on, without marking them.

    Raises ValueError, before anything is written, for a text that is too long for Milvus.
    """
    for row, text in enumerate(texts.to_pylist(), start=first):
        if len(text.encode()) > server.LONGEST_TEXT:
            raise ValueError(f"the sentence of row {row} is longer than the {server.LONGEST_TEXT} bytes Milvus allows")
    for start in range(0, len(texts), PORTION):
        part = zip(texts[start : start + PORTION].to_pylist(), vectors[start : start + PORTION], strict=True)
        rows = [{ROW: row, TEXT: text, VECTOR: vector} for row, (text, vector) in enumerate(part, start=first + start)]
        client.insert(name, rows, timeout=SECONDS)


def mark(client: Any, name: str, manifest: Manifest) -> None:
    """Store the manifest with a collection, which marks it as a complete index."""
    text = json.dumps(manifest.to_json(), ensure_ascii=False)
    client.alter_collection_properties(name, properties={MANIFEST: text}, timeout=SECONDS)


def read_marked(client: Any, address: Address) -> tuple[str, Manifest]:
    """The unique name of an index's collection, and its manifest.

    Raises IndexFolderError if there is no such collection, or it is not an index.
    """
    found = server.find(client, address)
    if found is None:
        raise IndexFolderError(f"{address}: no such collection; build it with {command_line('build_index')}")
    name, properties = found
    try:
        values = json.loads(properties.get(MANIFEST, "null"))
    except ValueError as error:
        raise IndexFolderError(f"{address}: its manifest cannot be read ({error}); {cure()}") from error
    if values is None:
        raise IndexFolderError(f"{address}: is not a complete index of this project; {cure()} under another name")
    return name, parse_manifest(values, f"{address}: its manifest")


def count(client: Any, name: str, where: str = "") -> int:
    """The number of sentences in a collection, or of those for which `where` is true."""
    (found,) = client.query(name, filter=where, output_fields=["count(*)"], timeout=SECONDS)
    return int(found["count(*)"])


def holds_index(client: Any, address: Address) -> bool:
    """True if the address is an index. Raises ValueError if it is a collection that this project did not make."""
    found = server.find(client, address)
    if found is not None and OWNER not in found[1]:
        raise ValueError(f"{address}: is a collection of another program; give the index another name")
    return found is not None


def discard(client: Any, name: str) -> None:
    """Drop an incomplete collection, ignoring errors of the server; the next build tries again."""
    from pymilvus import MilvusException

    with suppress(MilvusException):
        client.drop_collection(name, timeout=SECONDS)
