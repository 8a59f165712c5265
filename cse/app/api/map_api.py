"""The endpoints of the maps: the maps, which answer step by step, and a description of some of their points."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable, Iterator
from typing import Any

from cse.app.models.models import plain
from cse.app.sections.map_points import MOST_POINTS, points_of
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY
from cse.app.state.groups import GROUPS
from cse.app.state.maps import draw_maps
from cse.app.state.model_map import ModelMap
from cse.app.state.selections import describe, point_rows


def maps_of(state: AppState) -> Callable[..., Iterator[dict]]:
    """Return the function of the endpoint."""

    def map_endpoint(
        source: str,
        lines: str = "",
        most: int = MOST_POINTS,
        seed: int = 0,
        groups: int = GROUPS,
        corpus: str = DEMO_KEY,
        key: str = "",
    ) -> Iterator[dict]:
        """t-SNE maps: {"labels": [...], "texts": [...], "maps": {"simcse": {"xy": [[x, y]], "near": [[3, 9]], ...}}}.

        Coordinates are between 0 and 1. "near" are the indices of the five texts with the nearest vectors, "lost"
        the share of the ten nearest that are not near on the map; "trustworthiness", "continuity" and "same_topic" are
        null if they are undefined. "groups" are k-means groups of the vectors: "of" each text, the "words" of each
        group, and its most frequent label with its share in "labels". Each answer has the maps done so far; the rest
        stops if the client disconnects.

        Args:
            source: "corpus"; "pairs", the demo's graded pairs, one after the other; or "lines".
            lines: for "lines" up to 2,000 sentences, separated by newlines.
            most: how many texts of a corpus, 100 to 10,000, sampled evenly.
            seed: the seed of t-SNE, 0 to 4294967295; the same seed gives the same map.
            groups: how many groups, 1 to 100.
            corpus: for "corpus" its name: "demo", "own", or that of a corpus the app was started with.
            key: for "own" the key of the texts.
        """
        points = points_of(state, source, lines, most, corpus, key)
        for answers in draw_maps(state, points, seed, groups):
            yield {"labels": points.labels, "texts": points.texts, "maps": plain(answers, map_fields)}

    return map_endpoint


def selection_of(state: AppState) -> Callable[..., dict]:
    """Return the function of the endpoint."""

    def selection_endpoint(
        points: list[int],
        model: str,
        source: str = "corpus",
        lines: str = "",
        most: int = MOST_POINTS,
        groups: int = GROUPS,
        corpus: str = DEMO_KEY,
        key: str = "",
    ) -> dict[str, Any]:
        """Describe some points of a map: {"size": 9, "words": ["dog"], "typical": [3], "odd": [8], ...}.

        "words" mark these texts among all (c-TF-IDF); "typical" and "odd" are up to five texts each, nearest to the
        mean vector and farthest from it; "labels" are [label, count]; "spread" are [group, count] by model.

        Args:
            points: the indices of the texts, as the map has them.
            model: the model whose vectors say what is typical.
            source: as of the map, and so are the following.
            lines: the same as for the map.
            most: the same as for the map.
            groups: the same as for the map.
            corpus: the same as for the map.
            key: the same as for the map.
        """
        drawn = points_of(state, source, lines, most, corpus, key)
        return describe(state, drawn, point_rows(points, len(drawn.texts)), model, groups)._asdict()

    return selection_endpoint


def map_fields(drawn: ModelMap) -> dict[str, Any]:
    """Return a map as JSON values."""
    groups = drawn.groups and {**drawn.groups._asdict(), "of": drawn.groups.of.tolist()}
    arrays = {name: getattr(drawn, name).tolist() for name in ("xy", "near", "lost")}
    return {**drawn._asdict(), **arrays, "groups": groups}
