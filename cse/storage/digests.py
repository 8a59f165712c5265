"""Fingerprints: digests of named arrays and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np

from cse.storage.writing import DIGITS


def array_digest(arrays: Mapping[str, np.ndarray], *texts: str) -> str:
    """Return 12 hex digits of sha256 over named arrays as float32, sorted by name, and texts."""
    sha = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        sha.update(name.encode())
        sha.update(np.ascontiguousarray(array, np.float32).data)
    for text in texts:
        sha.update(text.encode())
    return sha.hexdigest()[:DIGITS]


def backbone_digest(parameters: Mapping[str, np.ndarray], vocabulary: Mapping[str, int]) -> str:
    """Return the fingerprint of a backbone: the digest of its parameters by name and of its vocabulary."""
    return array_digest(parameters, json.dumps(sorted(vocabulary.items())))
