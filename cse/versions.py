"""The oldest versions of packages that this project was tried with: the lower bounds of pyproject.toml."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

REQUIRED = {
    "torch": "2.8.0", "transformers": "5.0.0", "accelerate": "1.3.0", "datasets": "3.6.0", "faiss-cpu": "1.11.0",
    "numpy": "2.0.0", "scikit-learn": "1.5.0", "typer": "0.19.0", "matplotlib": "3.9.0", "regex": "2024.11.6",
    "filelock": "3.24.2", "charset-normalizer": "3.4.0", "openpyxl": "3.1.5",
}  # fmt: skip
OPTIONAL = {"gradio": "6.31.0", "openvino": "2025.4.0", "onnx": "1.16.0"}
FOLDER = re.compile(r"([\w.]+)-(\d+(?:\.\d+)*).*\.dist-info")


def check_versions(*optional: str) -> None:
    """Raise ValueError if a required package, or one of these `optional` ones, is installed in too old a version."""
    installed = _installed(tuple(sys.path))
    bounds = REQUIRED | {name: OPTIONAL[name] for name in optional}
    old = [name for name, bound in bounds.items() if name in installed and _numbers(installed[name]) < _numbers(bound)]
    if old:
        names = ", ".join(f"{name} {installed[name]}" for name in old)
        cure = " ".join(f"'{name}>={bounds[name]}'" for name in old)
        raise ValueError(f"too old: {names}; run: pip install {cure}")


@cache
def _installed(folders: tuple[str, ...]) -> dict[str, str]:
    """Return packages' versions by the names of folders; importlib.metadata reads long files for each."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder).glob("*.dist-info"):
            if match := FOLDER.fullmatch(path.name):
                found.setdefault(match[1].replace("_", "-").lower(), match[2])
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
