"""The endpoints of the Probe tab, and those that describe and add models."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable, Mapping
from typing import Any

from cse.app.models.models import Failure, plain
from cse.app.scoreboard.add_model import add_column
from cse.app.scoreboard.model_strip import descriptions
from cse.app.sections.changes import perturbed
from cse.app.sections.heads import attentions, plain_attention
from cse.app.sections.prefix import plain_xray, xrays
from cse.app.sections.probe import disagreeing, pairs_of
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY


def probe_endpoints(state: AppState) -> list[Callable[..., Any]]:
    """Return the endpoint functions, named with the suffix "_endpoint"."""

    def changes_endpoint(sentence: str, variants: str = "") -> dict[str, Any]:
        """Displacement by small changes: {"changes": [{"name", "keeps", "changed", "moved": {"simcse": 0.1}}]}.

        "keeps" is true if the change keeps the meaning, null for your variants, which come first; 1 is as far away as
        an unrelated sentence. "errors" has the reasons of failures by model.

        Args:
            sentence: the text to change, by leaving out a word, adding a negation, and so on.
            variants: up to 20 variants of your own, separated by newlines.
        """
        rows, failures = perturbed(state, sentence, variants)
        return {"changes": [row._asdict() for row in rows], "errors": reasons(failures)}

    def disagreements_endpoint(
        source: str = "graded", lines: str = "", corpus: str = DEMO_KEY, key: str = ""
    ) -> dict[str, Any]:
        """Pairs by the models' disagreement on rank: {"pairs": [{"s1", "s2", "places": {"simcse": 0.1}}]}.

        A place is 0 (least alike of all pairs) to 1 (most alike).

        Args:
            source: "graded", the demo's pairs; "corpus", near pairs of a corpus; or "lines", yours.
            lines: for "lines" your pairs, "first | second" a line.
            corpus: for "corpus" the name of a corpus, "own" for the texts under the key.
            key: for "own" the key that /texts answers.
        """
        pairs = pairs_of(state, source, lines, corpus, key)
        rows, failures = disagreeing(state, pairs)
        found = [{"s1": pairs[row.pair][0], "s2": pairs[row.pair][1], "places": row.places} for row in rows]
        return {"pairs": found, "errors": reasons(failures)}

    def xray_endpoint(s1: str, s2: str, off: list[int] | None = None) -> dict[str, Any]:
        """X-ray of the models: {"dcpcse": {"cosine": 0.8, "attention": {...}, "ablations": [...]}, ...}.

        "attention" is the share on the prefix by layer (0 to 1). An ablation has the displacement "moved" of s1 (1 is
        as far away as an unrelated sentence) and the "cosine" of s1 and s2 with the prefix off in "layers": each layer,
        all, and those in off together. A model trained with prototypes has those of s1, the nearest first.

        Args:
            s1: the sentence to analyse.
            s2: a sentence to compare it with.
            off: the numbers of layers, from 1, whose prefix is to be off together.
        """
        return plain(xrays(state, s1, s2, off or ()), plain_xray)

    def attention_endpoint(sentence: str) -> dict[str, Any]:
        """Attention by layer and head: {"dcpcse": {"read": null, "tokens": [...], "prefix": 4, "shares": [[[0.1]]]}}.

        "shares" are those of the token that is read ("read" is null if the vector is the mean of all tokens, whose mean
        they are then) on each of "tokens", of which the first "prefix" are learned ones: layers, heads, tokens.

        Args:
            sentence: what the models read.
        """
        return plain(attentions(state, sentence), plain_attention)

    def models_endpoint() -> list[dict[str, Any]]:
        """Describe each model: name, summary, citation, trained parameters, dimension, reading, fingerprint."""
        return [{"name": name, **description} for name, description in plain(descriptions(state.models)).items()]

    def add_model_endpoint(name: str) -> dict[str, Any]:
        """Add a model to the columns of this client's session alone. Returns its description.

        Args:
            name: a bundled name, a folder of the server's models, or a hub id where the server may fetch.
        """
        column, answer = add_column(state, name)
        return {"name": column.name, **answer}

    return [
        changes_endpoint, disagreements_endpoint, xray_endpoint, attention_endpoint, models_endpoint, add_model_endpoint
    ]  # fmt: skip


def reasons(failures: Mapping[str, Failure]) -> dict[str, str]:
    """Return the reasons of failures by model."""
    return {name: failure.reason for name, failure in failures.items()}
