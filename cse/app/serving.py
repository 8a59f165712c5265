"""The app: contrastive sentence embeddings side by side. `python app.py` serves it on http://127.0.0.1:7860."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cse.encoder.devices import bound_arenas, bound_kernels
from cse.methods.catalogue import UNTRAINED
from cse.models.names import BUNDLED_NAMES
from cse.versions import check_versions

if TYPE_CHECKING:
    import gradio as gr

    from cse.app.training.trainings import Trainings

HOST, PORT = "127.0.0.1", 7860
BAD_DATA = 3
TEMPORARY = "GRADIO_TEMP_DIR"
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # no interface has the address, or its protocol is disabled


def build_app(
    models: Sequence[str] = BUNDLED_NAMES,
    indexes: Sequence[Path | str] = (),
    family: str | None = None,
    pooling: str | None = None,
    models_root: Path | None = None,
    allow_hub: bool = False,
    trainings: Trainings | None = None,
) -> gr.Blocks:
    """Build the app with a column per model, and the indexes of `build_index` to search.

    An index is a folder's path, or the address of a Milvus collection. `family` is that of published checkpoints among
    the models, `pooling` that of plain backbones. Visitors may add models to their own page: bundled ones, folders
    under `models_root`, and hub ids, downloaded with `allow_hub`. Weights are read when a page needs them. They may
    train where `trainings` are given, which their owner closes. Raises `index.IndexFolderError` for an invalid index.
    """
    from cse.app.models.admission import Admission
    from cse.app.page import page
    from cse.app.state.app_state import open_state

    admission = Admission(models_root, allow_hub)
    return page(open_state(models, indexes, family, pooling, admission), trainings)


def main(arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Serve until interrupted and return the exit code: 0, 3 for a bad host or port, 4 for a bad model or index.

    `program` is its name in usage messages, by default this file's.
    """
    options = parser(program).parse_args(arguments)
    os.environ["GRADIO_SERVER_NAME"] = HOST if ":" in options.host else options.host  # Gradio first binds IPv4 to it
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    bound_arenas()
    bound_kernels()
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000000000")  # calls between unused statistics
    if options.backend != "auto":
        os.environ["CSE_BACKEND"] = options.backend
    try:
        if options.precompute:
            precompute()
            return 0
        check(options)
        serve(options)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"Error: {' '.join(str(error).split())}\n")
        return getattr(error, "exit_code", BAD_DATA)
    return 0


def check(options: argparse.Namespace) -> None:
    """Check the options before anything is loaded.

    Raises ValueError if a package is missing or too old or options contradict each other, `ArtefactError` for a model,
    `IndexFolderError` for an index, OSError for a host or port that cannot be used.
    """
    from cse.errors import ArtefactError
    from cse.models.names import Kind, resolve
    from index.stores import location_of, manifest_at, store_of

    if options.open and options.token:
        raise ValueError("--open gives everyone the owner's rights; leave it out, or --token and CSE_TOKEN")
    check_versions("gradio")
    if find_spec("gradio") is None:  # an optional dependency
        raise ValueError("the app needs Gradio; install it with: pip install gradio")
    if options.mcp and find_spec("mcp") is None:
        raise ValueError("--mcp needs the package mcp; install it with: pip install 'gradio[mcp]'")
    for model in options.model:
        if resolve(model, options.pooling, options.family, lenient=True).kind is Kind.WORD_VECTORS:
            raise ArtefactError(f"{model} is a file; give a model's folder")
    options.index = [store_of(place).downloaded(place) for place in map(location_of, options.index)]
    for place in options.index:
        manifest_at(place)
    if options.models_root and not options.models_root.is_dir():
        raise ArtefactError(f"--models-root {options.models_root} is not a folder; give one with models beneath it")
    check_address(options.host, options.port)


def check_address(host: str, port: int) -> None:
    """Raise OSError if `host` is not an address of this machine, or if `port` is in use."""
    cure = f"give --host an address of this machine, such as {HOST}"
    if "*" in host:  # Gradio does not resolve it
        raise OSError(f"cannot listen on {host!r} (no address); {cure}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise OSError(f"cannot listen on {host!r} ({getattr(error, 'strerror', error)}); {cure}") from error
    absent = []
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as the server does
                probe.bind(address)
        except OSError as error:
            if error.errno not in NOT_HERE:
                raise OSError(f"cannot use port {port} ({error.strerror}); give another with --port") from error
            absent.append(error)
    if len(absent) == len(found):  # one address of a name is enough
        raise OSError(f"cannot listen on {host!r} ({absent[0].strerror}); {cure}") from absent[0]


def serve(options: argparse.Namespace) -> None:
    """Build the app and serve it until Ctrl-C or SIGTERM, then remove what visitors uploaded and end the process.

    Its exit code is 0 after Ctrl-C; after SIGTERM it ends by that signal, as without a handler.
    """
    from cse.app.server.run_folder import run_folder

    signals: list[int] = []

    def end(number: int, _: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    given = os.environ.get(TEMPORARY)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with suppress(KeyboardInterrupt), run_folder(Path(given) if given else None) as folder:
        os.environ[TEMPORARY] = str(folder)
        serve_from(options)
    if signals:  # a normal exit would crash threads that compute in a native library
        sys.stdout.flush()
        if signal.SIGTERM in signals:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        os._exit(0)


def serve_from(options: argparse.Namespace) -> None:
    """Build the app and serve it until KeyboardInterrupt."""
    from cse.app.page import launch_options
    from cse.app.server.hosts import PROXIES, audience, served_names
    from cse.app.server.rights import owner_address, rights_of
    from cse.app.training.rules import CLOSED, GUESTS, OWN
    from cse.app.training.trainings import Trainings

    names = served_names(options.host, options.allow_host)
    space = names.public or "SPACE_ID" in os.environ
    rights = rights_of(options.token, options.open, space=space)
    visitors = OWN if options.open else GUESTS if options.train else CLOSED
    trainings = Trainings(visitors, owner=OWN if rights.owned else None)
    app = build_app(
        [*BUNDLED_NAMES, *options.model], options.index, options.family, options.pooling, options.models_root,
        options.allow_hub, trainings,
    )  # fmt: skip
    name = f"[{options.host}]" if ":" in options.host else options.host  # for Gradio's URL
    for line in audience(options.host, options.port, options.share, everyone=rights.everyone):
        sys.stderr.write(f"{line}\n")
    if names.public:  # otherwise all visitors would share the bounds of the proxy's address
        os.environ.setdefault("FORWARDED_ALLOW_IPS", PROXIES)
    try:
        app.launch(
            server_name=name, server_port=options.port, share=options.share, mcp_server=options.mcp,
            prevent_thread_lock=True, **launch_options(names, visitors.file_bytes, rights),
        )  # fmt: skip
        if rights.token and not space:  # whose log and address are another's
            shown = "localhost" if name in ("0.0.0.0", "[::]") else name
            addresses = [f"http://{shown}:{options.port}", *([str(app.share_url)] if options.share else [])]
            for address in addresses:
                sys.stdout.write(f"* Your address, with the owner's rights: {owner_address(address, rights.token)}\n")
            sys.stdout.flush()
        while app.is_running:
            time.sleep(0.1)
    finally:
        trainings.close()
        app.close(verbose=False)  # closes event streams, for which the server would wait


def precompute() -> None:
    """Write the first answers of the bundled models into the package, and print the files."""
    from cse.app.results import RESULTS
    from cse.app.show import write_first
    from cse.app.state.app_state import open_state
    from cse.app.state.corpora import write_vectors

    state = open_state(BUNDLED_NAMES, ())
    written = write_vectors(state.models, state.demo)  # first: the app computes from these, which are rounded
    state = open_state(BUNDLED_NAMES, ())
    for path in (*written, *(write_first(state, kind) for kind in RESULTS if kind.ships)):
        sys.stdout.write(f"{path}\n")


def parser(program: str | None = None) -> argparse.ArgumentParser:
    """Return the argument parser of the command `program`."""
    made = argparse.ArgumentParser(program, description="Compare contrastive sentence embeddings in the browser.")
    made.add_argument("--port", type=port, default=PORT, help="default %(default)s")
    made.add_argument(
        "--host", type=host, default=os.environ.get("GRADIO_SERVER_NAME", ""),
        help=f"address to listen on; default GRADIO_SERVER_NAME or {HOST}",
    )  # fmt: skip
    made.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a further name to answer to, as behind a proxy; repeat for more, * for any; also CSE_ALLOWED_HOSTS",
    )  # fmt: skip
    made.add_argument(
        "--mcp", action="store_true", default=os.environ.get("GRADIO_MCP_SERVER", "").lower() == "true",
        help="serve the endpoints as tools of the Model Context Protocol as well",
    )  # fmt: skip
    made.add_argument("--share", action="store_true", help="also serve through a public Gradio link")
    made.add_argument(
        "--model", action="append", default=[], metavar="NAME_OR_DIR",
        help="a further column: a checkpoint folder, a backbone's folder or a hub id; repeat for more",
    )  # fmt: skip
    made.add_argument("--backend", choices=("auto", "torch", "openvino"), default="auto", help="default %(default)s")
    made.add_argument("--family", help="family of published checkpoints, if neither keys nor id show it")
    made.add_argument("--pooling", choices=UNTRAINED, help="pooling of plain backbones; default mean")
    made.add_argument(
        "--models-root", type=Path, metavar="FOLDER", help="visitors may add the model folders beneath it to their page"
    )
    made.add_argument(
        "--token", type=token, default=os.environ.get("CSE_TOKEN") or None, metavar="VALUE",
        help="what gives the owner's rights, to train and to open folders; default CSE_TOKEN, which no list of "
        "processes shows, or a random one; the address with it is printed at the start",
    )  # fmt: skip
    made.add_argument(
        "--open", action="store_true", help="give everyone who reaches the app the owner's rights, without a token"
    )
    made.add_argument(
        "--train", action="store_true", default=os.environ.get("CSE_TRAIN") == "1",
        help="visitors may train models, one at a time, and open those that they upload; the owner may anyway",
    )  # fmt: skip
    made.add_argument("--allow-hub", action="store_true", help="visitors may add hub ids, which are then downloaded")
    made.add_argument(
        "--precompute", action="store_true", help="write the first results of the bundled models, and exit"
    )
    made.add_argument(
        "--index", "--store", action="append", default=[], metavar="DIR",
        help="a folder of build-index to search, one on the hub, or milvus://HOST:PORT/NAME; repeat for more",
    )  # fmt: skip
    return made


def host(text: str) -> str:
    """Parse a name or address, without the brackets of IPv6 in URLs; empty text gives the default."""
    return text.removeprefix("[").removesuffix("]") or HOST


def token(text: str) -> str:
    """Parse a token, which headers and addresses can hold."""
    stripped = text.strip()
    if not stripped or not all("!" <= character <= "~" for character in stripped):
        raise argparse.ArgumentTypeError("give letters, digits and signs of ASCII, at least one")
    return stripped


def port(text: str) -> int:
    """Parse a port number, 1 to 65535."""
    number = int(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is not a port; give 1 to 65535")
    return number


if __name__ == "__main__":
    sys.exit(main())
