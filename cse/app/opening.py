"""Precomputed first results of the bundled models in each tab, shown before any weights are read.

`python app.py --precompute` writes them, and each bundled model's vectors of the demo corpus. Tests compare both with
the models' results.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cse.analysis.calibration import Disagreement
from cse.analysis.maps import centred
from cse.analysis.template_lab import Comparison, Trial
from cse.app.corpus.chosen import DemoCorpus
from cse.app.drawing.canvas import map_of, map_value
from cse.app.drawing.distribution import Placed
from cse.app.drawing.ranks import Found
from cse.app.models.models import Models, divided
from cse.app.scoreboard.model_strip import Description, descriptions
from cse.app.sections.all_pairs import LIST, AllPairs, all_pairs, plain_pairs
from cse.app.sections.changes import SENTENCES as CHANGED
from cse.app.sections.changes import Moved, perturbed
from cse.app.sections.map_points import demo_points
from cse.app.sections.prefix import FIRST as XRAYED
from cse.app.sections.prefix import XRay, opened_xray, plain_xray, xrays
from cse.app.sections.probe import SHOWN, disagreeing, graded_pairs
from cse.app.sections.search import DEFAULT as HITS
from cse.app.sections.search import QUERIES, find_all
from cse.app.sections.similarity import PAIRS, placed
from cse.app.sections.template_lab import OTHER, try_template
from cse.app.sections.tokens import DEFAULT as TOKENS
from cse.app.sections.tokens import SENTENCES, Reading, tokens
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO, VECTORS
from cse.app.state.groups import GROUPS
from cse.app.state.maps import MapKey, draw_maps, model_key
from cse.app.state.model_map import ModelMap
from cse.evaluation.metrics import Difference
from cse.files.writing import read_json
from cse.models.names import BUNDLED_NAMES

FILE = DEMO / "opening.json"
DECIMALS = 4
SEED = 0


class Opening(NamedTuple):
    """The first result of each tab by model; None if the page has to compute it."""

    similarity: dict[str, Placed] | None = None
    all_pairs: dict[str, AllPairs] | None = None
    hits: dict[str, Found] | None = None
    tokens: dict[str, Reading] | None = None
    trials: dict[str, Comparison] | None = None
    maps: dict[str, ModelMap] | None = None
    descriptions: dict[str, Description] | None = None
    changes: list[Moved] | None = None
    disagreements: list[Disagreement] | None = None
    xrays: dict[str, XRay] | None = None


def read_opening(models: Models) -> Opening:
    """Return the shipped first results of the page's columns; empty if a column is not a bundled model."""
    if any(column.opened_by not in {(name, None, None) for name in BUNDLED_NAMES} for column in models.columns):
        return Opening()
    from index.stores import Hit

    stored, names = read_json(FILE), [column.name for column in models.columns]

    def each(field: str, decode: Any) -> dict[str, Any]:
        return {name: decode(stored[field][name]) for name in names}

    whole = names == list(BUNDLED_NAMES)  # disagreement depends on all models
    return Opening(
        similarity=each("similarity", lambda found: Placed(*found)),
        all_pairs=each("all_pairs", lambda found: AllPairs(*map(np.array, found.values()))),
        hits=each("hits", lambda found: Found([Hit(*hit) for hit in found[0]], *found[1:])),
        trials=each("trials", lambda own: Comparison(Trial(*own[0]), Trial(*own[1]), Difference(*own[2]))),
        tokens=each("tokens", lambda reading: Reading(*reading)),
        maps=each("maps", map_of),
        descriptions=each("descriptions", lambda found: found),
        xrays=each("xrays", opened_xray),
        changes=[Moved(*moved) for moved in stored["changes"]] if whole else None,
        disagreements=[Disagreement(*found) for found in stored["disagreements"]] if whole else None,
    )


def keep_maps(state: AppState, opening: Opening) -> None:
    """Put the shipped maps and groups into the caches, so that pinning a sentence does not draw them again."""
    if not opening.maps or not opening.descriptions:
        return
    texts, columns = demo_points(state).digest, [each for each in state.models.own if each.name in opening.maps]
    models = {each.name: model_key(each, opening.descriptions[each.name]["fingerprint"]) for each in columns}
    for name, model in models.items():
        drawn = opening.maps[name]
        key = MapKey(model, next(iter(models.values())), texts, SEED)
        state.maps.put(key, drawn._replace(xy=centred(drawn.xy), groups=None))
        if drawn.groups is not None:
            state.groups.put(((model, texts), GROUPS), drawn.groups)


def compute_opening(state: AppState) -> dict[str, Any]:
    """Return the first results of every tab as JSON values, by tab and model. Raises ValueError if a model fails."""
    moved, _ = perturbed(state, CHANGED[0])
    differing, _ = disagreeing(state, graded_pairs())
    pair, _ = placed(state, *PAIRS["paraphrase"])
    _, matrices = all_pairs(state, LIST)
    *_, maps = draw_maps(state, demo_points(state), SEED, GROUPS)
    hits = find_all(state, QUERIES[0], HITS, DemoCorpus(state))
    return {
        "similarity": found(pair, rounded),
        "all_pairs": found(matrices, plain_pairs),
        "hits": found(hits, lambda each: rounded(each[:3])),  # without the time
        "tokens": found(tokens(state.models, SENTENCES[0], TOKENS), rounded),
        "maps": found(maps, map_value),
        "trials": found(try_template(state, SENTENCES[0], OTHER), rounded),
        "descriptions": found(descriptions(state.models), dict),
        "xrays": found(xrays(state, *XRAYED), lambda answer: rounded(plain_xray(answer))),
        "changes": rounded(moved),
        "disagreements": rounded(differing[:SHOWN]),
    }


def write_opening(state: AppState) -> list[Path]:
    """Write the first results, and the demo corpus's vectors (N, d) float16 by fingerprint. Returns the files."""
    vectors = found(
        state.models.apply(lambda _, encoder: (encoder.fingerprint, encoder.encode(state.demo.sentences))), tuple
    )
    VECTORS.mkdir(exist_ok=True)
    files = {VECTORS / f"{fingerprint}.npy": rows for fingerprint, rows in vectors.values()}
    for path, rows in files.items():
        np.save(path, rows.astype(np.float16))
    computed = compute_opening(state)  # from the rounded vectors, as the app will compute
    FILE.write_text(json.dumps(computed, ensure_ascii=False) + "\n", encoding="utf-8")
    for stale in set(VECTORS.glob("*.npy")) - files.keys():
        stale.unlink()
    return [*files, FILE]


def found(answers: dict[str, Any], encode: Any) -> dict[str, Any]:
    """Return each model's answer as JSON values. Raises ValueError if a model failed."""
    known, failed = divided(answers)
    for name, failure in failed.items():
        raise ValueError(f"{name}: {failure.reason}")
    return {name: encode(answer) for name, answer in known.items()}


def rounded(value: Any) -> Any:
    """Return JSON values with their numbers rounded to `DECIMALS`, of a dataclass a list of its fields."""
    if is_dataclass(value):
        return [rounded(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return round(float(value), DECIMALS) if isinstance(value, (float, np.floating)) else value
