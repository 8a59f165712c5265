"""The overview after an upload: what the texts are, what was left out, and where to go on with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from cse.analysis.maps import evenly
from cse.app.state.corpora import OwnCorpus
from cse.app.validation import counted

QUERIES = 3
MAX_QUERY_CHARACTERS = 120


@dataclass(frozen=True)
class Overview:
    """Facts of a visitor's texts as words, and three of them as queries."""

    label: str
    facts: tuple[str, ...]
    queries: tuple[str, ...]


def overview(own: OwnCorpus) -> Overview:
    """Return the overview of texts that were just given."""
    lengths = np.array([len(text) for text in own.texts])
    short, middle, long = np.quantile(lengths, (0.1, 0.5, 0.9)).astype(int)
    facts = [f"{len(own.texts):,} texts", f"{middle:,} characters each (8 of 10 have {short:,} to {long:,})"]
    if own.without_text:
        facts.append(f"{counted(own.without_text, 'row')} without a text left out")
    copies = len(own.texts) - len({text.strip() for text in own.texts})
    facts.append(f"{copies:,} exact copies" if copies else "no exact copies")
    if own.labels:
        known = Counter(label for label in own.labels if label)
        most = ", ".join(f"{label} {count:,}" for label, count in known.most_common(3))
        missing = len(own.texts) - known.total()
        without = f", {missing:,} without" if missing else ""
        facts.append(f"{len(known):,} labels ({most}, …{without})" if len(known) > 3 else f"labels {most}{without}")
    if own.table is not None:
        facts.append(f"columns kept: {', '.join(own.table.schema.names[:8])}")
    return Overview(own.label, tuple(facts), tuple(queries_of(own)))


def queries_of(own: OwnCorpus) -> list[str]:
    """Return a few short, different texts spread over the corpus."""
    texts: dict[str, Any] = {}
    for row in evenly(len(own.texts), 8 * QUERIES):
        text = " ".join(own.texts[row].split())
        if len(text) <= MAX_QUERY_CHARACTERS:
            texts[text] = None
    return list(texts)[:: max(1, len(texts) // QUERIES)][:QUERIES]
