"""Compare models side by side in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cse.app.serving import HOST, PORT, Options, run
from cse.commands.cli import choices, command, model_option, option
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
    port: Annotated[int, option("Port to listen on.", min=1, max=65535, panel=SERVER)] = PORT,
    host: Annotated[str, option("Address to listen on.", envvar="GRADIO_SERVER_NAME", panel=SERVER)] = HOST,
    allow_host: Annotated[
        list[str] | None,
        option(
            "A further name to answer to, as behind a proxy; repeat for more, * for any; also CSE_ALLOWED_HOSTS.",
            metavar="NAME",
            panel=SERVER,
        ),
    ] = None,
    mcp: Annotated[
        bool,
        option(
            "Serve the endpoints as tools of the Model Context Protocol as well.",
            "--mcp",
            envvar="GRADIO_MCP_SERVER",
            panel=SERVER,
        ),
    ] = False,
    share: Annotated[bool, option("Also serve through a public Gradio link.", "--share", panel=SERVER)] = False,
    model: Annotated[
        list[str] | None,
        model_option(
            "A further column: a checkpoint folder, a backbone's folder or a hub id; repeat for more.",
            metavar="NAME_OR_DIR",
            panel=MODELS,
        ),
    ] = None,
    backend: Annotated[str, option("Where models run.", **choices("backend", BACKENDS), panel=MODELS)] = "auto",
    family: Annotated[
        str | None, option("Family of published checkpoints, if neither keys nor id show it.", panel=MODELS)
    ] = None,
    pooling: Annotated[
        str | None,
        option("Pooling of plain backbones; default mean.", **choices("pooling", UNTRAINED), panel=MODELS),
    ] = None,
    index: Annotated[
        list[str] | None,
        option(
            "A folder of build-index to search, one on the hub, or milvus://HOST:PORT/NAME; repeat for more.",
            "--index",
            "--store",
            metavar="DIR",
            panel=MODELS,
        ),
    ] = None,
    models_root: Annotated[
        Path | None,
        option("Visitors may add the model folders beneath it to their page.", metavar="FOLDER", panel=RIGHTS),
    ] = None,
    token: Annotated[
        str | None,
        option(
            "What gives the owner's rights, to train and to open folders; better by the variable, which no list of "
            "processes shows; default: a random one. The address with it is printed at the start.",
            envvar="CSE_TOKEN",
            callback=ascii_token,
            metavar="VALUE",
            panel=RIGHTS,
        ),
    ] = None,
    open: Annotated[
        bool,
        option("Give everyone who reaches the app the owner's rights, without a token.", "--open", panel=RIGHTS),
    ] = False,
    train: Annotated[
        bool,
        option(
            "Visitors may train models, one at a time, and open those that they upload; the owner may anyway.",
            "--train",
            envvar="CSE_TRAIN",
            panel=RIGHTS,
        ),
    ] = False,
    allow_hub: Annotated[
        bool, option("Visitors may add hub ids, which are then downloaded.", "--allow-hub", panel=RIGHTS)
    ] = False,
    precompute: Annotated[
        bool, option("Write the first results of the bundled models, and exit.", "--precompute", panel=SERVER)
    ] = False,
) -> None:
    """Compare contrastive sentence embeddings in the browser.

    Example: cse app --model runs/mine --index indexes/mine
    """
    values: dict[str, Any] = {name: value for name, value in locals().items() if value is not None}
    run(Options(**{**values, "host": host.removeprefix("[").removesuffix("]") or HOST}))  # IPv6 in URLs has brackets


app = command(main)
