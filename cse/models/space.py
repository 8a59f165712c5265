"""Stage the folder of a Hugging Face Space: the app, its packages, models and indexes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import distributions
from pathlib import Path

from cse.errors import ArtefactError
from cse.models.names import BUNDLED_NAMES, resolve
from cse.models.push import copy_model

LOCK, CARD, LICENCE = "requirements.txt", "README.md", "LICENSE"
CLONE = (LOCK, CARD, LICENCE, "pyproject.toml")  # the last distinguishes a clone from an installed package
PACKAGE = "contrastive-sentence-embeddings"


def project_texts(root: Path) -> dict[str, str]:
    """Requirements, README and licence of the project with packages in `root`, by their file names in a clone.

    An installed package has the requirements of the clone that it was built from (setup.py). Raises ArtefactError if
    `root` is neither a clone nor the folder of the installed package.
    """
    missing = next((name for name in CLONE if not (root / name).is_file()), None)
    if missing is None:
        return {name: (root / name).read_text(encoding="utf-8") for name in (LOCK, CARD, LICENCE)}
    lock = root / "cse" / LOCK
    for installed in distributions(name=PACKAGE):
        if Path(str(installed.locate_file(""))).resolve() == root.resolve() and lock.is_file():
            return {
                LOCK: lock.read_text(encoding="utf-8"), CARD: installed.metadata["Description"] or "",
                LICENCE: installed.read_text(f"licenses/{LICENCE}") or "",
            }  # fmt: skip
    raise ArtefactError(f"{root}: no {missing}; deploy from a clone, or install the package")


ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cse", "index")
ENTRY = "space.py"
MODELS, INDEXES = "models", "indexes"
OWNED = tuple(f"{name}/*" for name in (*PACKAGES, MODELS, INDEXES))  # files that a later deployment may delete
PYTHON = "3.12"
ZERO_GPU_TORCH = "2.11.0"  # the newest on ZeroGPU
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


class Hardware(str, Enum):
    """Hardware of a Space."""

    ZERO_GPU = "zero-gpu"  # free; a GPU is allocated per call
    CPU = "cpu"
    GPU = "gpu"


MACHINES = {Hardware.ZERO_GPU: "zero-a10g", Hardware.CPU: "cpu-basic", Hardware.GPU: "t4-small"}  # the hub's names

# `spaces` must be imported before torch, and only functions decorated with `spaces.GPU` may use a GPU.
ON_ZERO_GPU = '''
os.environ.setdefault("CSE_DEVICE", "cpu")


def lent_gpu() -> str:
    """Return the name of the call's GPU. ZeroGPU requires a function that requests one.

    The app computes on the CPU: its models are small, and waiting for a GPU would take longer.
    """
    import torch

    return torch.cuda.get_device_name()


if find_spec("spaces"):
    import spaces

    lent_gpu = spaces.GPU(lent_gpu)
'''
ENTRY_TEXT = '''"""The entry of this Space: the app with the models and indexes that were deployed with it."""

import os
import sys
{imports}from pathlib import Path
{setup}
HERE = Path(__file__).resolve().parent
MODELS = {models}
INDEXES = {indexes}


def main() -> None:
    """Serve the app; other options are passed to it."""
    os.chdir(HERE)
    from cse.commands.app import app

    options = [word for model in MODELS for word in ("--model", model)]
    options += [word for index in INDEXES for word in ("--index", index)]
    app([*options, *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''


@dataclass(frozen=True)
class SpaceRequest:
    """A Space to deploy: its name on the hub, its hardware, models in addition to the bundled ones, indexes.

    `indexes` are names of folders in the Space's folder `INDEXES`.
    """

    name: str
    hardware: Hardware = Hardware.ZERO_GPU
    models: Sequence[str] = ()
    indexes: Sequence[str] = ()


def stage(request: SpaceRequest, folder: Path) -> dict[str, str]:
    """Write the files that the Space needs from the project, a clone or an installed package, to `folder`.

    Returns the name in the Space of each additional model, by its local name. Raises ArtefactError for a model that
    cannot be copied, and as `project_texts` does.
    """
    project = project_texts(ROOT)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*", LOCK))
    staged: dict[str, str] = {}
    for model in request.models:
        reference = resolve(model)
        if reference.name in BUNDLED_NAMES or reference.name in staged:  # the first are columns already
            continue
        name = reference.name
        if Path(reference.name).is_dir():
            name = f"{MODELS}/{Path(reference.name).name}"
            if name in staged.values():
                raise ValueError(f"two model folders are named {Path(name).name}; rename one")
            copy_model(reference, folder / name)
        staged[reference.name] = name
    lent = request.hardware is Hardware.ZERO_GPU
    entry = ENTRY_TEXT.format(
        imports="from importlib.util import find_spec\n" if lent else "", setup=f"{ON_ZERO_GPU}\n" if lent else "",
        models=list(staged.values()), indexes=[f"{INDEXES}/{name}" for name in request.indexes],
    )  # fmt: skip
    texts = {
        LOCK: requirements(project[LOCK], request.hardware), ENTRY: entry,
        CARD: card(request, project[CARD], project[LOCK], staged), LICENCE: project[LICENCE],
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return staged


def requirements(lock: str, hardware: Hardware) -> str:
    """The pinned requirements of `lock` for a Space's hardware, unchanged for a GPU.

    Otherwise FAISS is faiss-cpu, and torch the build without CUDA, or ZeroGPU's version.
    """
    if hardware is Hardware.GPU:
        return lock
    lines = [line for line in lock.splitlines() if not line.startswith("faiss-gpu")]
    lines = [line.partition(";")[0] if line.startswith("faiss-cpu") else line for line in lines]
    if hardware is Hardware.CPU:
        return "\n".join([f"--extra-index-url {CPU_WHEELS}", *lines, ""])
    return "\n".join([f"torch=={ZERO_GPU_TORCH}" if line.startswith("torch==") else line for line in lines] + [""])


def card(request: SpaceRequest, readme: str, lock: str, staged: Mapping[str, str]) -> str:
    """The Space's README: the front matter of the project's, adapted to lock and hardware, and a few lines.

    Raises ArtefactError if the project's README has no front matter.
    """
    front = re.match(r"---\n(.*?\n)---\n", readme, re.DOTALL)
    gradio = re.search(r"^gradio==(\S+)", lock, re.MULTILINE)
    if not front or not gradio:
        raise ArtefactError(f"{CARD} or {LOCK} lacks what a Space needs (front matter, a pin of gradio); restore them")
    settings = {
        "sdk_version": gradio[1], "python_version": f'"{PYTHON}"', "app_file": ENTRY,
        "suggested_hardware": MACHINES[request.hardware],
    }  # fmt: skip
    front_lines = [line for line in front[1].splitlines() if line.partition(":")[0] not in settings]
    ids = [name for name in staged.values() if not name.startswith(f"{MODELS}/")]
    model_lines = [f"models: [{', '.join(name.partition('@')[0] for name in ids)}]"] if ids else []
    names = ", ".join([*BUNDLED_NAMES, *(Path(name).name for name in staged.values())])
    body = f"# {request.name.rpartition('/')[2]}\n\nSentence embeddings of {names}, side by side in the browser."
    return "\n".join(
        ["---", *front_lines, *(f"{key}: {value}" for key, value in settings.items()), *model_lines, "---", body, ""]
    )
