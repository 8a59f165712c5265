"""The endpoint of the maps, which answers step by step."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable, Iterator
from typing import Any

from cse.app.models.maps import ModelMap, draw_maps
from cse.app.models.models import plain
from cse.app.models.state import AppState
from cse.app.sections.clusters import PER_TOPIC, points_of


def maps_of(state: AppState) -> Callable[..., Iterator[dict]]:
    """Return the function of the endpoint."""

    def map_endpoint(source: str, lines: str = "", per_topic: int = PER_TOPIC, seed: int = 0) -> Iterator[dict]:
        """t-SNE maps: {"labels": [...], "texts": [...], "maps": {"simcse": {"xy": [[x, y]], "near": [[3, 9]], ...}}}.

        Coordinates are between 0 and 1. "near" are the indices of the five sentences with the nearest vectors, "lost"
        the share of the ten nearest that are not near on the map; "trustworthiness", "continuity" and "same_topic" are
        null if they are undefined. Each answer has the maps done so far; the rest stops if the client disconnects.

        Args:
            source: "demo", the demo corpus; "pairs", its graded pairs, one after the other; or "lines".
            lines: for "lines" up to 2,000 sentences, separated by newlines.
            per_topic: for "demo" how many sentences of each topic, 10 to 100.
            seed: the seed of t-SNE, 0 to 4294967295; the same seed gives the same map.
        """
        points = points_of(state, source, lines, per_topic)
        for answers in draw_maps(state, points, seed):
            yield {"labels": points.labels, "texts": points.texts, "maps": plain(answers, map_fields)}

    return map_endpoint


def map_fields(drawn: ModelMap) -> dict[str, Any]:
    """Return a map as JSON values."""
    return {**drawn._asdict(), "xy": drawn.xy.tolist(), "near": drawn.near.tolist(), "lost": drawn.lost.tolist()}
