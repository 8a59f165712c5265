"""Settings and manifest of an index: frozen dataclasses, written as `manifest.json` and checked when read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_origin, get_type_hints

from cse.errors import IndexFolderError, command_line
from cse.files.checksums import DIGEST, content_digest, with_digest
from cse.files.replace import recover
from cse.files.writing import not_permitted

MANIFEST_FILE = "manifest.json"
OPTIONAL_FIELDS = (  # fields added later, written only if they differ from this default
    ("family", None), ("smooth", 0), ("query_prompt", None), ("document_prompt", None)
)  # fmt: skip
READABLE_VERSIONS = (1, 2)  # version 1 has no digest
INDEX_FORMS = ("datasets", "parquet")  # of an export by `index.export`
DOCUMENTED_FACTORIES = {  # FAISS factory strings, and when to choose each
    "Flat": "exact; the default, right up to about 50,000 sentences and wherever exactness matters",
    "SQfp16": "half the memory of Flat and nearly exact, as slow as Flat",
    "SQ8": "a quarter of the memory of Flat, close to exact, as slow as Flat",
    "HNSW32,Flat": "fast on a CPU from 50,000 to 1 million sentences; more memory than Flat, slow to build, no removal",
    "IVF{n},Flat": "fast, also on a GPU; n lists, about 4 times the square root of the number of sentences",
    "IVF{n},SQ8": "the same at a quarter of the memory, for 1 to 10 million sentences",
    "IVF{n},PQ16": "16 bytes a sentence for the largest corpora, lowest recall; 16 must divide the dimension",
}


@dataclass(frozen=True)
class BuildSettings:
    """Settings of a build, and facts about the model and the corpus for the manifest.

    A later search loads the model by `model`, `pooling` and `family`, and checks its `fingerprint`. `nprobe` (IVF
    types) and `ef_search` (HNSW types) are chosen by `index.faiss_engine.tune` if None. `smooth` is the number of
    nearest others that each vector is mixed with (`cse.vectors.smoothed`), and each query of a search. The prompts are
    those of the encoder's properties of these names.
    """

    factory: str = "Flat"
    model: str = ""
    pooling: str | None = None
    family: str | None = None
    fingerprint: str = ""
    corpus: str = ""
    nprobe: int | None = None
    ef_search: int | None = None
    seed: int = 42
    smooth: int = 0
    query_prompt: str | None = None
    document_prompt: str | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of `manifest.json`.

    `rows` counts every row ever added, `count` those not removed. `corpus_sha256` is of the stored sentences in row
    order, each followed by a newline. `recall_at_10` is None for exact types and after additions or removals.
    `files` gives the bytes and sha256 of the other files in the folder. `family` is written if it is not None,
    `smooth` if it is not 0, a prompt if it is not None, which is the model's default prompt. A digest of all fields is
    written too, so that edits are detected. For a Milvus collection `faiss` is the server's version, `files` is empty,
    and an edit derives the new checksum from the old one.
    """

    format: str = "cse-index"
    version: int = 2
    metric: str = "inner_product"
    normalized: bool = True
    model: str
    pooling: str | None
    family: str | None = None
    smooth: int = 0
    query_prompt: str | None = None
    document_prompt: str | None = None
    fingerprint: str
    dimension: int
    factory: str
    nprobe: int | None
    ef_search: int | None
    seed: int
    count: int
    rows: int
    corpora: list[str]
    corpus_sha256: str
    recall_at_10: float | None
    faiss: str
    files: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, settings: BuildSettings, **facts: Any) -> Manifest:
        """The manifest of an index built with these settings; `facts` are the fields that they do not determine."""
        return cls(
            model=settings.model, pooling=settings.pooling, family=settings.family, smooth=settings.smooth,
            fingerprint=settings.fingerprint, factory=settings.factory, seed=settings.seed, corpora=[settings.corpus],
            query_prompt=settings.query_prompt, document_prompt=settings.document_prompt, **facts,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The JSON object of `manifest.json`."""
        values = {name: value for name, value in asdict(self).items() if (name, value) not in OPTIONAL_FIELDS}
        values["version"] = Manifest.version  # even if read from version 1
        return with_digest(values)


def cure() -> str:
    """The end of an error about an unusable index: the command that rebuilds it."""
    return f"rebuild it with {command_line('build_index')}"


def factory_guidance() -> str:
    """The documented factories as one paragraph of help."""
    return "; ".join(f"{factory}: {guidance}" for factory, guidance in DOCUMENTED_FACTORIES.items())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json` into `folder`."""
    text = json.dumps(manifest.to_json(), ensure_ascii=False, indent=2)
    (folder / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index folder. Raises IndexFolderError if there is none, or it cannot be read."""
    recover(folder)
    if not folder.is_dir():
        what = "is a file, not an index folder" if folder.exists() else "no such index folder"
        raise IndexFolderError(f"{folder}: {what}; build it with {command_line('build_index')}")
    try:
        values = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise IndexFolderError(f"{folder}: not an index folder, it has no {MANIFEST_FILE}; {cure()}") from error
    except PermissionError as error:
        raise IndexFolderError(not_permitted(folder / MANIFEST_FILE)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise IndexFolderError(f"{folder}: cannot read {MANIFEST_FILE} ({error}); {cure()}") from error
    return parse_manifest(values, f"{folder}: {MANIFEST_FILE}")


def parse_manifest(values: Any, what: str) -> Manifest:
    """The manifest of a JSON value. Raises IndexFolderError, beginning with `what`, for anything else."""
    if problem := _problem(values):
        raise IndexFolderError(f"{what} {problem}; {cure()}")
    return Manifest(**{name: value for name, value in values.items() if name != DIGEST})


def check_model(location: object, manifest: Manifest, fingerprint: str | None, model: str | None) -> None:
    """Raise IndexFolderError unless the model of `fingerprint`, named `model`, built the index; None is not checked."""
    if fingerprint is not None and fingerprint != manifest.fingerprint:
        read = {"pooling": manifest.pooling, "family": manifest.family}
        options = "".join(f" with `{name}` {value}" for name, value in read.items() if value)
        raise IndexFolderError(
            f"{location}: built by {manifest.model} ({manifest.fingerprint[:8]}…), not {model or 'this model'} "
            f"({fingerprint[:8]}…): search with `model` {manifest.model}{options} or {cure()}"
        )


def check_not_smoothed(location: object, manifest: Manifest) -> None:
    """Raise ValueError if the index was smoothed: added sentences would have to change the vectors of all others."""
    if manifest.smooth:
        raise ValueError(
            f"{location}: its vectors are smoothed over {manifest.smooth} neighbours, so nothing can be added; "
            f"build it again from all sentences with `smooth` {manifest.smooth}"
        )


def _problem(values: Any) -> str | None:
    """Return why `values` is not a valid `Manifest`, or None if it is."""
    if not isinstance(values, dict) or values.get("format") != Manifest.format:
        return f"does not have the format {Manifest.format}"
    version = values.get("version")
    if version not in READABLE_VERSIONS:
        return f"has version {version!r} and this program reads {' and '.join(map(str, READABLE_VERSIONS))} only"
    for name in ("metric", "normalized"):
        if values.get(name) != getattr(Manifest, name):
            return f"has {name} {values.get(name)!r} and this program reads {getattr(Manifest, name)!r} only"
    names = {field.name for field in fields(Manifest)} | ({DIGEST} if version != 1 else set())
    whole = {**dict(OPTIONAL_FIELDS), **values}
    if different := sorted(names ^ whole.keys()):
        return f"has missing or unknown keys: {', '.join(different)}"
    if version != 1 and values[DIGEST] != content_digest(values):
        return f"is damaged or edited (its {DIGEST} is not the one recorded)"
    for name, hint in get_type_hints(Manifest).items():
        if not isinstance(whole[name], hint if isinstance(hint, UnionType) else get_origin(hint) or hint):
            return f"has {name} {whole[name]!r}, which is not {hint}"
    small = next((name for name in ("nprobe", "ef_search") if values[name] is not None and values[name] < 1), None)
    return small and f"has {small} {values[small]}, which is less than 1"
