"""Export models to other tools, atomically."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cse.engines.torch_encoder import TorchEncoder
from cse.publishing import onnx, peft, sentence_transformers
from cse.publishing.export_card import NO_BASE, export_card
from cse.publishing.export_files import EXPORT
from cse.storage.writing import write_folder

FILLS: dict[str, Callable[[TorchEncoder, Path], None]] = {
    module.NAME: module.fill for module in (sentence_transformers, peft, onnx)
}


def export_model(encoder: TorchEncoder, to: str, output: Path, *, overwrite: bool = False) -> None:
    """Write an encoder to the folder `output` in one of `FILLS`' forms, with a README.

    Raises ValueError for an unknown form, for an encoder that the form does not support, and if `output` is not empty;
    with `overwrite` an earlier export is replaced, but never anything else.
    """
    if to not in FILLS:
        raise ValueError(f"unknown `to` {to!r}; choose from {', '.join(FILLS)}")
    check_output(output, overwrite=overwrite)

    def fill(target: Path) -> None:
        FILLS[to](encoder, target)
        base = peft.base_of(encoder) if to == peft.NAME else NO_BASE
        (target / "README.md").write_text(export_card(encoder, to, base), encoding="utf-8")

    write_folder(output, fill, EXPORT)


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise ValueError unless an export may be written to `output`."""
    EXPORT.check_replaceable(output)
    if not overwrite and output.is_dir() and any(output.iterdir()):
        raise ValueError(f"{output} already holds an export; give another `output` or pass `overwrite`")
