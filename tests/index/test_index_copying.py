"""Copies of an index: verified, and without paths of the machine that built it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from index import BuildSettings, VectorIndex
from index.export import copy_index
from index.manifest import read_manifest


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/home/me/clients/acme/secret.txt", "secret.txt"), ("clients/secret.txt", "secret.txt"),
        ("~/clients/notes", "notes"), ("../notes", "notes"), ("clients\\acme\\notes", "notes"),
        ("clients/corpus.txt.xz", "corpus.txt.xz"), ("EXISTING/notes", "notes"), ("texts.txt", "texts.txt"),
        ("me/texts", "me/texts"), ("me/texts-1.0@0123abcd", "me/texts-1.0@0123abcd"), ("", ""),
    ],
)  # fmt: skip
def test_a_copy_to_pass_on_tells_the_names_of_corpora_but_not_where_they_lay(
    typed: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EXISTING" / "notes").mkdir(parents=True)
    VectorIndex.build(
        [(["one", "two", "three"], np.eye(3))], tmp_path / "mine", settings=BuildSettings(model="m", corpus=typed)
    )
    assert copy_index(tmp_path / "mine", tmp_path / "copy").corpora == [told]
    assert read_manifest(tmp_path / "copy").corpora == [told]
    assert read_manifest(tmp_path / "mine").corpora == [typed]
