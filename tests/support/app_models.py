"""Real checkpoints on a tiny backbone, and a running app, for the tests of the app."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from conftest import fresh_backbone
from ports import free_port
from typer.testing import CliRunner

MARKUP = "<img src=x onerror=alert(1)>"  # a folder may be called this, and the app shows folder names
GOOD = ("simcse", "promptbert", "dcpcse", "conpvp")


class AtOnce:
    """Stands for the process of a command, whose start takes seconds."""

    lines, failure = (), ""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.words = words
        back = os.getcwd()
        os.chdir(folder)
        try:
            from cse.commands.__main__ import app as commands

            done = CliRunner().invoke(commands, words)
        finally:
            os.chdir(back)
        assert done.exit_code == 0, done.output

    def ended(self, seconds: float) -> bool:
        return True

    def interrupt(self) -> None:
        """It has ended."""

    def end(self, patience: float = 0) -> None:
        """It has ended."""


def write_model(folder: Path, backbone: Path, method: str, seed: int = 0) -> Path:
    """Write an untrained checkpoint of `method` to `folder`; its head start is random by `seed`."""
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.methods.presets import preset
    from cse.models.checkpoint import save

    torch.manual_seed(seed)
    encoder = TorchEncoder(
        *fresh_backbone(backbone), preset(method, "bert-small")[0], name=method, backbone=str(backbone)
    )
    with torch.no_grad():
        for tensor in encoder.learned().values():
            tensor.add_(torch.randn_like(tensor) * 0.02)  # two models of one method differ
    save(encoder, folder, {})
    return folder


def write_models(root: Path, backbone: Path) -> list[Path]:
    """Write the four methods, a fifth model in a folder named `MARKUP`, and a broken one; their folders."""
    folders = [write_model(root / name, backbone, name, seed) for seed, name in enumerate(GOOD)]
    folders.append(write_model(root / MARKUP, backbone, "scpcse", seed=9))
    broken = write_model(root / "broken", backbone, "dcpcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    return [*folders, broken]


@contextmanager
def serving(
    models: Sequence[str],
    indexes: Sequence[Path] = (),
    root: Path | None = None,
    trainings: Any = None,
    rights: Any = None,
    **launched: bool,
) -> Iterator[str]:
    """The address of a running app with these columns; visitors may add what is under `root` and use `trainings`.

    `rights` are those of its owner.
    """
    from cse.app.page import launch_options
    from cse.app.serving import build_app

    port = free_port()
    given = {} if trainings is None else {"largest": trainings.visitors.file_bytes}
    options = launch_options(**given, rights=rights)
    blocks = build_app(models, indexes, models_root=root, trainings=trainings)
    _, url, _ = blocks.launch(server_port=port, prevent_thread_lock=True, quiet=True, **options, **launched)
    try:
        yield url
    finally:
        blocks.close()
