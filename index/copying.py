"""A copy of an index folder that can be passed on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from index.folder import DATA_FILES, verify_files
from index.manifest import Manifest, read_manifest, write_manifest


def copy_index(source: Path, target: Path, model: str | None = None) -> Manifest:
    """Copy an index, its files checked, and say what its manifest now holds.

    `model` replaces the name by which the model that built it is opened. Raises IndexFolderError for a damaged folder.
    """
    manifest = read_manifest(source)
    verify_files(source, manifest, whole=True)
    target.mkdir(parents=True, exist_ok=True)
    for name in DATA_FILES:
        shutil.copyfile(source / name, target / name)
    manifest = replace(manifest, model=model or manifest.model)
    write_manifest(target, manifest)
    return manifest
