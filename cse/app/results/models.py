"""The models of the page: method, paper, what was trained, and where the vector is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.adaptation.projection import PROJECTION_RECORD
from cse.app.models.models import fingerprint_of
from cse.app.result import Result, records, stacked
from cse.methods.catalogue import METHODS
from cse.methods.method import Pooling
from cse.models.names import BACKBONE, START, location

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder


@dataclass(frozen=True)
class Models(Result):
    """What each model of the page is."""

    key = "models"
    title = "About these models"
    summary = "Describe each model: name, summary, citation, trained parameters, dimension, reading, fingerprint."
    reads_corpus = False

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each model."""

        def row(column: Column, encoder: Encoder) -> dict[str, Any]:
            method, reading, folder = encoder.method, encoder.reading, Path(location(column.model))
            weights = sum(path.stat().st_size for path in folder.glob("model*.safetensors")) if folder.is_dir() else 0
            pooling = "at [MASK]" if reading.at_mask else "at the first token"
            return {
                "method": method.name, "summary": method.summary, "citation": method.citation,
                "learned": 0 if column.start else encoder.learned_count, "parameters": encoder.parameter_count,
                "megabytes": round(weights / 1e6, 2), "added": encoder.views[0][0].length + reading.prefix,
                "dimension": encoder.dim,
                "pooling": pooling if reading.pooling is Pooling.TOKEN else reading.pooling.value,
                "template": reading.template.text, "fingerprint": fingerprint_of(encoder),
                "start": START if encoder.backbone == BACKBONE else "",
                "projected": not column.start and (folder / PROJECTION_RECORD).is_file(),
            }  # fmt: skip

        return stacked(session.each(row))

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        papers = {name: method.arxiv for name, method in METHODS.items()}
        return {"all": records(frame.assign(paper=frame["method"].map(papers).fillna("")))}

    def answer(self, frame: pd.DataFrame) -> Any:
        return records(frame.rename(columns={"model": "name"}).drop(columns="projected")) if len(frame) else []

    def with_failures(self, answer: Any, failed: Mapping[str, str]) -> Any:
        return [*answer, *({"name": name, "error": reason} for name, reason in failed.items())]
