"""The folder of an index: replaced as a whole or not at all, and checked against every kind of damage."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_corpus import D, N, build, in_batches, sentences, vectors

from index import BuildSettings, IndexFolderError, VectorIndex
from index.manifest import read_manifest


@pytest.fixture
def flat(tmp_path: Path) -> VectorIndex:
    return build(tmp_path / "flat")


def broken_batches(kind: str) -> Iterator[tuple[list[str], np.ndarray]]:
    yield from list(in_batches(100))[:3]
    if kind == "interrupted":
        raise KeyboardInterrupt
    if kind == "lengths":
        yield sentences(3), vectors(4)
    if kind == "dimension":
        yield sentences(3), np.ones((3, D + 1))


@pytest.mark.parametrize("kind", ["interrupted", "lengths", "dimension"])
def test_a_failing_build_leaves_things_as_they_were(kind, tmp_path):
    settings = BuildSettings(factory="IVF8,Flat")
    expected = KeyboardInterrupt if kind == "interrupted" else ValueError
    with pytest.raises(expected):
        VectorIndex.build(broken_batches(kind), tmp_path / "x", settings=settings)
    assert list(tmp_path.iterdir()) == []
    build(tmp_path / "x", count=9)
    with pytest.raises(expected):
        VectorIndex.build(broken_batches(kind), tmp_path / "x", settings=settings)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert VectorIndex.load(tmp_path / "x").texts(range(9)) == sentences(9)


def test_only_an_index_is_ever_replaced(tmp_path):
    index = build(tmp_path / "x", count=9)
    (tmp_path / "looks_alike").mkdir()
    (tmp_path / "looks_alike" / "manifest.json").write_text('{"format": "other"}')
    build(tmp_path / "guest", count=9)
    (tmp_path / "guest" / "notes.txt").write_text("mine")
    for name in ("looks_alike", "guest"):
        with pytest.raises(ValueError, match="another folder"):
            index.save(tmp_path / name)
        with pytest.raises(ValueError, match="another folder"):
            VectorIndex.build(in_batches(97, 9), tmp_path / name, settings=BuildSettings())
    assert (tmp_path / "guest" / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    index.save(tmp_path / "empty")
    index.save(tmp_path / "new" / "deep")
    assert len(VectorIndex.load(tmp_path / "empty")) == len(VectorIndex.load(tmp_path / "new" / "deep")) == 9


def test_a_mapped_index_outlives_its_folder_being_replaced(tmp_path):
    old = build(tmp_path / "x", count=50)
    build(tmp_path / "x", count=9)
    assert old.texts(old.search(vectors(50)[49:], 1)[1][0]) == ["sentence 49 é"]
    old.save(tmp_path / "y")
    assert VectorIndex.load(tmp_path / "y").texts(range(50)) == sentences(50)


def edit_manifest(folder: Path, **values: Any) -> None:
    """Change what the manifest says, its digest with it where none is given."""
    manifest = {**json.loads((folder / "manifest.json").read_text()), **values}
    kept = {key: value for key, value in manifest.items() if value != "drop" and key != "digest"}
    digest = hashlib.sha256(json.dumps({**kept, "digest": None}, sort_keys=True).encode()).hexdigest()[:12]
    kept |= {"digest": digest} if values.get("digest") != "drop" else {}
    (folder / "manifest.json").write_text(json.dumps(kept))


def flipped(content: bytes) -> bytes:
    return content[:500] + bytes([content[500] ^ 1]) + content[501:]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("index.faiss", None, "index.faiss is missing"),
        ("index.faiss", lambda content: content[:-100], r"index.faiss has \d+ bytes, not \d+"),
        ("index.faiss", flipped, "is not what manifest.json describes"),
        ("texts.arrow", flipped, "is not what manifest.json describes"),
        ("manifest.json", None, "not an index folder, it has no manifest.json"),
        ("manifest.json", lambda content: b"\xff{not json", "cannot read manifest.json"),
    ],
)
def test_damage_is_refused_in_one_line_with_the_cure(name, damage, message, flat, tmp_path):
    path = tmp_path / "flat" / name
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    with pytest.raises(IndexFolderError, match=message) as caught:
        VectorIndex.load(tmp_path / "flat")
    assert str(caught.value).startswith(f"{tmp_path / 'flat'}: ")
    assert str(caught.value).endswith("rebuild it with python -m scripts.build_index")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": "other"}, "not have the format"),
        ({"version": 3}, "has version 3 and this program reads 1 and 2 only"),
        ({"surprise": 1}, "unknown keys: surprise"),
        ({"count": "drop"}, "missing or unknown keys: count"),
        ({"dimension": 31}, "damaged index"), ({"rows": 601}, "damaged index"),
        ({"nprobe": -1}, "has nprobe -1, which is less than 1"),
    ],
)  # fmt: skip
def test_a_foreign_manifest_is_refused(values, message, flat, tmp_path):
    edit_manifest(tmp_path / "flat", **values)
    with pytest.raises(IndexFolderError, match=message):
        VectorIndex.load(tmp_path / "flat")


@pytest.mark.parametrize("content", [b"IxFI", b"not an index at all, but long enough to be read as one"])
@pytest.mark.parametrize("name", ["index.faiss", "texts.arrow"])
def test_files_that_only_the_manifest_believes_in(content, name, flat, tmp_path):
    (tmp_path / "flat" / name).write_bytes(content)
    files = dict(flat.manifest.files)
    files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit_manifest(tmp_path / "flat", files=files)
    with pytest.raises(IndexFolderError, match="damaged index"):
        VectorIndex.load(tmp_path / "flat")


def test_a_flipped_bit_anywhere_in_a_manifest_is_refused_or_changes_nothing(flat, tmp_path):
    path = tmp_path / "flat" / "manifest.json"
    content, readable = path.read_bytes(), 0
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1 << position % 8]) + content[position + 1 :])
        with suppress(IndexFolderError):
            assert read_manifest(tmp_path / "flat") == flat.manifest
            readable += 1
    assert readable < 0.01 * len(content)  # white space that another takes the place of


def test_a_manifest_of_version_1_had_no_digest_and_opens(flat, tmp_path):
    edit_manifest(tmp_path / "flat", version=1, digest="drop")
    index = VectorIndex.load(tmp_path / "flat")
    np.testing.assert_array_equal(index.search(vectors(9), 5)[1], flat.search(vectors(9), 5)[1])
    index.save(tmp_path / "flat")
    assert json.loads((tmp_path / "flat" / "manifest.json").read_text())["version"] == 2
    assert len(VectorIndex.load(tmp_path / "flat")) == N


@pytest.mark.parametrize(
    "step", ["index.faiss_index.read_manifest", "index.faiss_index.verify_files", "index.faiss_engine.read_mapped"]
)
def test_an_index_that_is_replaced_while_it_is_opened_is_the_old_one_or_the_new_one(tmp_path, step, monkeypatch):
    """The other index, of the same size, holds the same sentences in reverse: each vector would meet another's text."""
    texts, points = sentences(60), vectors(60)
    VectorIndex.build([(texts, points)], tmp_path / "x", settings=BuildSettings())
    module, _, name = step.rpartition(".")
    really, replaced = getattr(sys.modules[module], name), []

    def stepped(*arguments: Any, **options: Any) -> Any:
        result = really(*arguments, **options)
        if not replaced:
            replaced.append(step)
            VectorIndex.build([(texts[::-1], points[::-1])], tmp_path / "x", settings=BuildSettings())
        return result

    monkeypatch.setattr(sys.modules[module], name, stepped)
    index = VectorIndex.load(tmp_path / "x")
    assert replaced
    assert index.texts(index.search(points[:3], 1)[1][:, 0]) == texts[:3]


def test_a_large_file_that_was_verified_before_is_noticed_where_it_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("index.folder.MIN_STAMPED_BYTES", 1000)
    monkeypatch.setattr("index.folder.SETTLED_SECONDS", 0.0)
    build(tmp_path / "large")
    VectorIndex.load(tmp_path / "large")
    assert any((tmp_path / "cache").rglob("*"))
    path = tmp_path / "large" / "index.faiss"
    content = path.read_bytes()
    for position in range(100, len(content), len(content) // 60):
        path.write_bytes(content[:position] + bytes([content[position] ^ 64]) + content[position + 1 :])
        os.utime(path, ns=(path.stat().st_atime_ns, 1))  # a time that is not the file's own is no reason to trust it
        with pytest.raises(IndexFolderError, match=r"index\.faiss is not what manifest\.json describes"):
            VectorIndex.load(tmp_path / "large")
