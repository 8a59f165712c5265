"""The folder of a Hugging Face Space: the app, what it imports, its models, and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from cse.errors import ArtefactError
from cse.models.names import BUNDLED_NAMES, Kind, resolve
from cse.publishing.copying import copy_model
from cse.publishing.project_files import CARD, LICENCE, LOCK, project_texts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cse", "index")
ENTRY = "space.py"
MODELS, INDEXES = "models", "indexes"
OWNED = tuple(f"{name}/*" for name in (*PACKAGES, MODELS, INDEXES))  # what a deployment writes, and deletes later
PYTHON = "3.12"
ZERO_GPU_TORCH = "2.11.0"  # the newest that ZeroGPU has
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


class Hardware(str, Enum):
    """What a Space runs on."""

    ZERO_GPU = "zero-gpu"  # free; a GPU is lent to a call
    CPU = "cpu"
    GPU = "gpu"


MACHINES = {Hardware.ZERO_GPU: "zero-a10g", Hardware.CPU: "cpu-basic", Hardware.GPU: "t4-small"}  # the hub's names

# ZeroGPU has to be imported before torch, and no call but one under `spaces.GPU` may touch a GPU.
ON_ZERO_GPU = '''
os.environ.setdefault("CSE_DEVICE", "cpu")


def lent_gpu() -> str:
    """The name of the GPU that the call is lent. ZeroGPU starts no Space without a function that asks for one.

    The pages compute on the CPU: the models are small, and a call would wait longer for a GPU than it computes.
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


def main() -> int:
    """Serve the app; further options are those of the app."""
    os.chdir(HERE)
    from cse.app.serving import main as serve

    options = [word for model in MODELS for word in ("--model", model)]
    options += [word for index in INDEXES for word in ("--index", index)]
    return serve([*options, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
'''


@dataclass(frozen=True)
class SpaceRequest:
    """A Space as it is asked for: its name on the hub, its hardware, models beside the bundled ones, indexes.

    `indexes` are the names of folders that are put into `INDEXES` there.
    """

    name: str
    hardware: Hardware = Hardware.ZERO_GPU
    models: Sequence[str] = ()
    indexes: Sequence[str] = ()


@dataclass(frozen=True)
class StagedSpace:
    """What was put into a Space's folder: the name there of each further model, by the name that opens it here."""

    models: Mapping[str, str] = field(default_factory=dict)


def stage(request: SpaceRequest, folder: Path, root: Path = ROOT) -> StagedSpace:
    """Fill `folder` with what the Space needs of the project in `root`, a clone or an installed package.

    What the models are called there comes back. Raises ArtefactError for a model that cannot be passed on, and as
    `project_texts` does.
    """
    project = project_texts(root)
    for name in PACKAGES:
        shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*"))
    staged = StagedSpace(_stage_models(request.models, folder))
    texts = {
        LOCK: requirements(project[LOCK], request.hardware), ENTRY: entry(request, list(staged.models.values())),
        CARD: card(request, project[CARD], project[LOCK], staged), LICENCE: project[LICENCE],
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return staged


def _stage_models(models: Sequence[str], folder: Path) -> dict[str, str]:
    staged: dict[str, str] = {}
    for model in models:
        reference = resolve(model)
        if reference.kind is Kind.WORD_VECTORS:
            raise ArtefactError(f"{model} is a file; give a model's folder or hub id")
        if reference.name in BUNDLED_NAMES:  # columns already
            continue
        if not Path(reference.name).is_dir():
            staged[reference.name] = reference.name
            continue
        name = f"{MODELS}/{Path(reference.name).name}"
        if name in staged.values() and reference.name not in staged:
            raise ValueError(f"two models are called {Path(name).name}; rename the folder of one")
        if reference.name not in staged:
            copy_model(reference, folder / name)
        staged[reference.name] = name
    return staged


def requirements(lock: str, hardware: Hardware) -> str:
    """The pinned requirements of `lock` for a Space's hardware: with a GPU all its own as they are.

    Otherwise FAISS is that for the CPU, and torch the build without CUDA, or the version that ZeroGPU has.
    """
    if hardware is Hardware.GPU:
        return lock
    lines = [line for line in lock.splitlines() if not line.startswith("faiss-gpu")]
    lines = [line.partition(";")[0] if line.startswith("faiss-cpu") else line for line in lines]
    if hardware is Hardware.CPU:
        return "\n".join([f"--extra-index-url {CPU_WHEELS}", *lines, ""])
    return "\n".join([f"torch=={ZERO_GPU_TORCH}" if line.startswith("torch==") else line for line in lines] + [""])


def entry(request: SpaceRequest, models: Sequence[str]) -> str:
    """The Space's own Python file, which starts the app with `models` as further columns, and the indexes."""
    lent = request.hardware is Hardware.ZERO_GPU
    imports = "from importlib.util import find_spec\n" if lent else ""
    setup, indexes = f"{ON_ZERO_GPU}\n" if lent else "", [f"{INDEXES}/{name}" for name in request.indexes]
    return ENTRY_TEXT.format(imports=imports, setup=setup, models=list(models), indexes=indexes)


def card(request: SpaceRequest, readme: str, lock: str, staged: StagedSpace) -> str:
    """The Space's README: the front matter of the project's, fitted to lock and hardware, and a few lines.

    Raises ArtefactError where the project's README has no front matter.
    """
    found = re.match(r"---\n(.*?\n)---\n", readme, re.DOTALL)
    gradio = re.search(r"^gradio==(\S+)", lock, re.MULTILINE)
    if not found or not gradio:
        raise ArtefactError(f"{CARD} or {LOCK} lacks what a Space needs (front matter, a pin of gradio); restore them")
    settings = {
        "sdk_version": gradio[1], "python_version": f'"{PYTHON}"', "app_file": ENTRY,
        "suggested_hardware": MACHINES[request.hardware],
    }  # fmt: skip
    kept = [line for line in found[1].splitlines() if line.partition(":")[0] not in settings]
    ids = [name for name in staged.models.values() if not name.startswith(f"{MODELS}/")]
    named = [f"models: [{', '.join(name.partition('@')[0] for name in ids)}]"] if ids else []
    names = ", ".join([*BUNDLED_NAMES, *(Path(name).name for name in staged.models.values())])
    body = f"# {request.name.rpartition('/')[2]}\n\nSentence embeddings of {names}, side by side in the browser."
    return "\n".join(["---", *kept, *(f"{key}: {value}" for key, value in settings.items()), *named, "---", body, ""])


def folder_size(folder: Path) -> tuple[int, float]:
    """How many files a folder holds, and their megabytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), round(sum(sizes) / 1e6, 1)
