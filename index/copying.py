"""A copy of an index folder that can be passed on."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from cse.storage.replace import read_settled
from index.folder import DATA_FILES, verify_files
from index.manifest import Manifest, read_manifest, write_manifest

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")


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
