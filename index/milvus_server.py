"""Milvus server: addresses, connections, collections and one-line errors.

The server is a cluster or Milvus Lite, which use the same protocol.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from cse.errors import IndexFolderError

SCHEME = "milvus://"
ADDRESS_FORM = f"{SCHEME}HOST:PORT/COLLECTION"
ROW, TEXT, VECTOR = "row", "text", "vector"
NUMBER, CORPUS = "cse_row", "cse_corpus"  # dynamic fields of a collection with columns: as `index.folder.NUMBERS`
MANIFEST, OWNER = "cse.manifest", "cse.index"  # properties of a collection: its manifest, the name of its index
COLUMNS = "cse.columns"  # the names of its columns, that of the texts first; lists and earlier versions have none
MAX_TEXT_BYTES = 65_535  # Milvus's limit for a field, and for all dynamic fields of a row
CONNECT_SECONDS, SECONDS = 30.0, 600.0  # time limits of connecting, and of a call such as building an index
PATIENCE_SECONDS, PAUSE_SECONDS = 60.0, 1.0  # of connecting to a slow server in all, and between two attempts
NO_COLLECTION = 100  # Milvus's error code
EF_CONSTRUCTION = 200  # of HNSW; some servers have no default
MILVUS_TYPES = {  # FAISS factories, with the same type and its parameters in Milvus
    r"Flat": ("FLAT", ()),
    r"HNSW(\d+)(?:,Flat)?": ("HNSW", ("M",)),
    r"IVF(\d+),Flat": ("IVF_FLAT", ("nlist",)),
    r"IVF(\d+),SQ8": ("IVF_SQ8", ("nlist",)),
    r"IVF(\d+),PQ(\d+)": ("IVF_PQ", ("nlist", "m")),
}


@dataclass(frozen=True)
class Address:
    """Address of a collection: the server, and the collection's name."""

    host: str
    port: int
    collection: str

    def __str__(self) -> str:
        """The address as a user writes it."""
        return f"{SCHEME}{self.host}:{self.port}/{self.collection}"


def parse_address(text: str) -> Address:
    """The address that `milvus://HOST:PORT/COLLECTION` names. Raises ValueError for anything else."""
    try:
        parts = urlsplit(text)
        host, port, name = parts.hostname, parts.port, parts.path.removeprefix("/")
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}; an address is {ADDRESS_FORM}") from error
    if not text.startswith(SCHEME) or not host or not port or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{text!r} is not the address of a collection, which is {ADDRESS_FORM}")
    if not re.fullmatch(r"[A-Za-z_]\w{0,199}", name, re.ASCII):
        raise ValueError(
            f"{text!r}: {name!r} is not a collection's name: letters, digits and _, not beginning with a digit"
        )
    return Address(f"[{host}]" if ":" in host else host, port, name)


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


def connect(address: Address) -> Any:
    """Connect to the server of `address`; one that listens but does not answer is tried again for a minute.

    Raises IndexFolderError if it does not answer by then, if nothing listens, or without pymilvus.
    """
    try:
        from pymilvus import MilvusClient, MilvusException
    except ImportError as error:
        raise IndexFolderError(f"{address}: needs the package pymilvus; pip install pymilvus") from error
    for name in ("pymilvus", *(name for name in logging.root.manager.loggerDict if name.startswith("pymilvus."))):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # pymilvus logs the traceback of each error it raises
    until = monotonic() + PATIENCE_SECONDS
    while True:
        _check_port(address)
        try:
            return MilvusClient(f"http://{address.host}:{address.port}", timeout=CONNECT_SECONDS)
        except MilvusException as error:
            if monotonic() >= until:
                reason = " ".join(str(error.message).split())
                raise IndexFolderError(
                    f"{address}: a server listens there, but gave no valid answer in {PATIENCE_SECONDS:.0f} seconds "
                    f"({reason}); it may be starting or busy: try again later"
                ) from error
        sleep(PAUSE_SECONDS)


def _check_port(address: Address) -> None:
    """Raise IndexFolderError if nothing listens at the address, or the host does not respond."""
    try:
        socket.create_connection((address.host.strip("[]"), address.port), timeout=CONNECT_SECONDS).close()
    except TimeoutError as error:
        raise IndexFolderError(
            f"{address}: no response within {CONNECT_SECONDS:.0f} seconds; correct the address, or check for a "
            "firewall or a busy server and try again later"
        ) from error
    except OSError as error:  # refused, or no such host
        raise IndexFolderError(f"{address}: no Milvus server there; start one, or correct the address") from error


def find(client: Any, address: Address) -> tuple[str, dict[str, str]] | None:
    """The unique name and the properties of the collection at `address`; None if there is none."""
    from pymilvus import MilvusException

    with plain_errors(str(address)):
        if not client.has_collection(address.collection, timeout=SECONDS):
            return None
        try:
            name = client.describe_alias(address.collection, timeout=SECONDS)["collection_name"]
        except MilvusException:  # not an alias, so it was not made by this project
            name = address.collection
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


def index_and_load(client: Any, name: str, factory: str) -> None:
    """Index all vectors of a collection by inner product on the server, and load it for searching."""
    kind, parameters = index_kind(factory)
    index_params = client.prepare_index_params()
    index_params.add_index(VECTOR, index_type=kind, metric_type="IP", params={"params": parameters})
    client.flush(name, timeout=SECONDS)
    client.create_index(name, index_params, timeout=SECONDS)
    client.load_collection(name, timeout=SECONDS)


def publish(client: Any, fresh: str, owner: str) -> None:
    """Point the alias `owner` at a complete collection, and drop its predecessor and those of killed builds."""
    known = client.has_collection(owner, timeout=SECONDS)
    (client.alter_alias if known else client.create_alias)(fresh, owner, timeout=SECONDS)
    for name in client.list_collections(timeout=SECONDS):
        if name != fresh and re.fullmatch(rf"{owner}_[0-9a-f]{{8}}", name):
            properties = client.describe_collection(name, timeout=SECONDS).get("properties") or {}
            if properties.get(OWNER) == owner:
                client.drop_collection(name, timeout=SECONDS)
