"""The endpoints of the shipped results; no model is run."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable
from typing import Any

from cse.app.scoreboard.ledger import ledger_entries
from cse.app.scoreboard.scores import board_of, names_of, plain_board
from cse.app.state.app_state import AppState


def record_endpoints(state: AppState) -> list[Callable[..., Any]]:
    """Return the endpoint functions, named with the suffix "_endpoint"."""

    def results_endpoint(task: str = "sts") -> dict[str, Any]:
        """The models' scores on a task: {"task", "summary", "protocol", "columns": [...], "models": {...}}.

        A model has a figure for each column: {"value": 66.47, "deviation": 0.06, "runs": 3}, and
        "trained_parameters". The scores are the shipped ones; no model is run.

        Args:
            task: sts, transfer, few-shot, clustering, retrieval or geometry.
        """
        board = board_of(state, task)
        return plain_board(board, names_of(board, state.models.columns))

    def ledger_endpoint() -> list[dict[str, Any]]:
        """Published scores and those of the bundled models, from the shipped results; no model is run."""
        return [entry.to_json() for entry in ledger_entries(state)]

    return [results_endpoint, ledger_endpoint]
