"""Compare models side by side in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cse.app.serving import HOST, PORT, Options, run
from cse.commands import cli
from cse.methods.catalogue import UNTRAINED
from cse.models.names import BACKENDS

SERVER, MODELS, RIGHTS = "Server", "Models and indexes", "Rights"


def ascii_token(token: str | None) -> str | None:
    """Return a token that headers and addresses can hold, or None. Raises a usage error for any other."""
    stripped = None if token is None else token.strip()
    if stripped is not None and not (stripped and all("!" <= character <= "~" for character in stripped)):
        raise typer.BadParameter("give letters, digits and signs of ASCII, at least one")
    return stripped


def main(
    port: int = cli.option("Port to listen on.", default=PORT, min=1, max=65535, panel=SERVER),
    host: str = cli.option("Address to listen on.", default=HOST, envvar="GRADIO_SERVER_NAME", panel=SERVER),
    allow_host: list[str] | None = cli.option(
        "A further name to answer to, as behind a proxy; repeat for more, * for any; also CSE_ALLOWED_HOSTS.",
        metavar="NAME",
        panel=SERVER,
    ),
    mcp: bool = cli.flag(
        "Serve the endpoints as tools of the Model Context Protocol as well.", envvar="GRADIO_MCP_SERVER", panel=SERVER
    ),
    share: bool = cli.flag("Also serve through a public Gradio link.", panel=SERVER),
    model: list[str] | None = cli.model_option(
        "A further column: a checkpoint folder, a backbone's folder or a hub id; repeat for more.",
        metavar="NAME_OR_DIR",
        panel=MODELS,
    ),
    backend: str = cli.option("Where models run.", default="auto", **cli.choices("backend", BACKENDS), panel=MODELS),
    family: str | None = cli.option("Family of published checkpoints, if neither keys nor id show it.", panel=MODELS),
    pooling: str | None = cli.option(
        "Of plain backbones; default mean.", **cli.choices("pooling", UNTRAINED), panel=MODELS
    ),
    index: list[str] | None = cli.option(
        "A folder of build-index to search, one on the hub, or milvus://HOST:PORT/NAME; repeat for more.",
        "--index",
        "--store",
        metavar="DIR",
        panel=MODELS,
    ),
    models_root: Path | None = cli.option(
        "Visitors may add the model folders below it.", metavar="FOLDER", panel=RIGHTS
    ),
    token: str | None = cli.option(
        "What gives the owner's rights, to train and to open folders; better by the variable, which no list of "
        "processes shows; default: a random one. The address with it is printed at the start.",
        envvar="CSE_TOKEN",
        callback=ascii_token,
        metavar="VALUE",
        panel=RIGHTS,
    ),
    open: bool = cli.flag("Give everyone who reaches the app the owner's rights, without a token.", panel=RIGHTS),
    train: bool = cli.flag(
        "Visitors may train models, one at a time, and open uploaded ones.", envvar="CSE_TRAIN", panel=RIGHTS
    ),
    allow_hub: bool = cli.flag("Visitors may add hub ids, which are then downloaded.", panel=RIGHTS),
    precompute: bool = cli.flag("Write the first results of the bundled models, and exit.", panel=SERVER),
) -> None:
    """Compare contrastive sentence embeddings in the browser.

    Example: cse app --model runs/mine --index indexes/mine
    """
    values: dict[str, Any] = {name: value for name, value in locals().items() if value is not None}
    run(Options(**{**values, "host": host.removeprefix("[").removesuffix("]") or HOST}))  # IPv6 in URLs has brackets


app = cli.command(main)
