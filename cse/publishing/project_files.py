"""Project texts for a Space: files of a clone, or metadata of an installed package."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path

from cse.errors import ArtefactError

LOCK, CARD, LICENCE = "requirements.txt", "README.md", "LICENSE"
CLONE = (LOCK, CARD, LICENCE, "pyproject.toml")  # the last distinguishes a clone from an installed package
PACKAGE, EXTRA = "contrastive-sentence-embeddings", "app"
FAISS = "faiss-cpu"  # the package's requirement; faiss-gpu has the same files
FAISS_PLACES = {
    "faiss-gpu": 'sys_platform == "linux" and platform_machine == "x86_64"',
    FAISS: 'sys_platform != "linux" or platform_machine != "x86_64"',
}


def project_texts(root: Path) -> dict[str, str]:
    """Requirements, README and licence of the project with packages in `root`, by their file names in a clone.

    The requirements of an installed package are the installed versions of its dependencies. Raises ArtefactError if
    `root` is neither a clone nor the folder of the installed package.
    """
    missing = next((name for name in CLONE if not (root / name).is_file()), None)
    if missing is None:
        return {name: (root / name).read_text(encoding="utf-8") for name in (LOCK, CARD, LICENCE)}
    installed = _installed(root)
    if installed is None:
        raise ArtefactError(
            f"{root}: no {missing}, which a Space needs; deploy from a clone of the repository, or install the package"
        )
    return {
        LOCK: "\n".join([*pins(installed.requires or ()), ""]),
        CARD: installed.metadata["Description"] or "",
        LICENCE: installed.read_text(f"licenses/{LICENCE}") or "",
    }


def pins(needs: Iterable[str]) -> list[str]:
    """Pin the requirements of a package and its app to the installed versions, or the oldest allowed if not installed.

    `needs` are lines of its metadata (`gradio>=6.31.0,<7; extra == "app"`).
    """
    lines = []
    for need in needs:
        extra = re.search(r"extra == ['\"]([\w-]+)", need)
        if extra and extra[1] != EXTRA:
            continue
        name, oldest = re.match(r"[\w.-]+", need), re.search(r">=([\w.]+)", need)
        if not name or not oldest:
            raise ValueError(f"{PACKAGE}: its metadata has {need!r} without an oldest version; install it again")
        found = _version(name[0]) or (_version("faiss-gpu") if name[0] == FAISS else None) or oldest[1]
        places = FAISS_PLACES if name[0] == FAISS else {name[0]: ""}
        lines += [f"{each}=={found}{f'; {where}' if where else ''}" for each, where in places.items()]
    return lines


def _version(name: str) -> str | None:
    """The version of an installed package without its build tag (`+cpu`); None if it is not installed."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None


def _installed(root: Path) -> Distribution | None:
    try:
        found = distribution(PACKAGE)
    except PackageNotFoundError:
        return None
    return found if Path(str(found.locate_file(""))).resolve() == root.resolve() else None
