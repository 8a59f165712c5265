"""The texts that a model was fitted on, as digests in its folder: scores on these texts are marked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cse.errors import ArtefactError
from cse.files.writing import digest, read_json, write_json

FITTED_TEXTS = "fitted_texts.json"


def write_fitted_texts(folder: Path, texts: Iterable[str], start: str) -> None:
    """Write the digests of texts to the folder of a model that was fitted on them, and of those of its start."""
    write_json(folder / FITTED_TEXTS, {"digests": " ".join(sorted(_digests(texts) | _recorded(start)))})


def fitted_count(model: str, texts: Iterable[str]) -> int:
    """Return how many of the different texts a model in a folder was fitted on; 0 where nothing is recorded.

    Raises ArtefactError for a damaged record.
    """
    fitted = _recorded(model)
    return len(_digests(texts) & fitted) if fitted else 0


def fitted_note(count: int, texts: int, what: str = "texts") -> str:
    """Return the mark of scores on texts of which a model was fitted on `count`; empty for none."""
    return f"fitted on {count:,} of these {texts:,} {what}" if count else ""


def _recorded(model: str) -> set[str]:
    path = Path(model) / FITTED_TEXTS
    if not path.is_file():
        return set()
    fitted = read_json(path).get("digests")
    if not isinstance(fitted, str):
        raise ArtefactError(f"{path}: holds no digests; adapt again, or delete it")
    return set(fitted.split())


def _digests(texts: Iterable[str]) -> set[str]:
    return {digest(text.strip()) for text in texts}
