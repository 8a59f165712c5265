"""How much memory a build of an index takes, by the number of its texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

BACKBONE = Path(__file__).parents[2] / "cse" / "bundled" / "backbone"
WORDS = "the of parcel late invoice wrong card declined printer stopped login fails since today please help".split()
DIMENSION = 384
LENGTH = 10  # words of a text, with its number


@dataclass(frozen=True)
class Peak:
    """A build: its texts, the bytes of their file and of their vectors, seconds, and the most memory that it held."""

    texts: int
    text_bytes: int
    vector_bytes: int
    seconds: float
    peak_bytes: int


def static_model(folder: Path, seed: int) -> Path:
    """Write a table of random static embeddings over the bundled vocabulary, in the layout of model2vec."""
    folder.mkdir()
    tokens = json.loads((BACKBONE / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    rows = np.random.default_rng(seed).standard_normal((len(tokens), DIMENSION)).astype(np.float32)
    save_file({"embeddings": rows}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((BACKBONE / "tokenizer.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}), encoding="utf-8")
    return folder


def write_texts(path: Path, count: int, seed: int) -> None:
    """Write `count` different texts, one a line."""
    chosen = np.random.default_rng(seed).integers(len(WORDS), size=(count, LENGTH - 1))
    with path.open("w", encoding="utf-8") as file:
        for number, words in enumerate(chosen):
            file.write(f"{' '.join(WORDS[word] for word in words)} {number}\n")


def measure(folder: Path, count: int, seed: int = 42) -> Peak:
    """Build the index of `count` texts in a process of its own, in an empty `folder`."""
    texts, output = folder / "texts.txt", folder / "index"
    write_texts(texts, count, seed)
    model = static_model(folder / "model", seed)
    words = ["scripts.build_index", texts, "--model", model, "--output", output, "--factory", "IVF1024,SQ8"]
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", *map(str, words)], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise ValueError(f"the build of {count:,} texts failed with status {status}")
    seconds = time.perf_counter() - started
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return Peak(count, texts.stat().st_size, 4 * DIMENSION * count, round(seconds, 1), usage.ru_maxrss * kilobyte)
