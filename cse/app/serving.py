"""Serving of the app, with the options of `cse app` (`cse.commands.app`)."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cse.encoder.devices import bound_arenas, bound_kernels
from cse.files.replace import WAIT_SECONDS, locked
from cse.models.names import BUNDLED_NAMES
from cse.versions import check_versions

if TYPE_CHECKING:
    import gradio as gr

    from cse.app.training.trainings import Trainings

HOST, PORT = "127.0.0.1", 7860
TEMPORARY = "GRADIO_TEMP_DIR"
PREFIX, LOCK = "cse-run-", ".lock"  # of a server's folder and its lock
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # no interface has the address, or its protocol is disabled


@dataclass
class Options:
    """The options of `cse app`, which says what they are."""

    port: int = PORT
    host: str = HOST
    allow_host: Sequence[str] = ()
    mcp: bool = False
    share: bool = False
    model: Sequence[str] = ()
    backend: str = "auto"
    family: str | None = None
    pooling: str | None = None
    models_root: Path | None = None
    token: str | None = None
    open: bool = False
    train: bool = False
    allow_hub: bool = False
    precompute: bool = False
    index: Sequence[Path | str] = ()


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
    from cse.app.models.naming import Admission
    from cse.app.page import page
    from cse.app.state import open_state

    admission = Admission(models_root, allow_hub)
    return page(open_state(models, indexes, family, pooling, admission), trainings)


def run(options: Options) -> None:
    """Serve until interrupted, or write the first results of the bundled models. Raises what `check` does."""
    os.environ["GRADIO_SERVER_NAME"] = HOST if ":" in options.host else options.host  # Gradio first binds IPv4 to it
    bound_arenas()
    bound_kernels()
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000000000")  # calls between unused statistics
    if options.backend != "auto":
        os.environ["CSE_BACKEND"] = options.backend
    if options.precompute:
        precompute()
        return
    check(options)
    serve(options)


def check(options: Options) -> None:
    """Check the options before anything is loaded."""
    from cse.errors import ArtefactError
    from cse.models.names import resolve
    from index.stores import location_of, manifest_at, store_of

    if options.open and options.token:
        raise ValueError("--open gives everyone the owner's rights; leave it out, or --token and CSE_TOKEN")
    check_versions("gradio")
    if find_spec("gradio") is None:  # an optional dependency
        raise ValueError("the app needs Gradio; install it with: pip install gradio")
    if options.mcp and find_spec("mcp") is None:
        raise ValueError("--mcp needs the package mcp; install it with: pip install 'gradio[mcp]'")
    for model in options.model:
        resolve(model, options.pooling, options.family, lenient=True)  # raises for what is no model
    options.index = [store_of(source).downloaded(source) for source in map(location_of, map(str, options.index))]
    for source in options.index:
        manifest_at(source)
    if options.models_root and not options.models_root.is_dir():
        raise ArtefactError(f"--models-root {options.models_root} is not a folder; give one with models beneath it")
    check_address(options.host, options.port)


def check_address(host: str, port: int) -> None:
    """Raise OSError if `host` is not an address of this machine, or if `port` is in use."""
    cure = f"give --host an address of this machine, such as {HOST}"
    try:
        if "*" in host:  # Gradio does not resolve it
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise OSError(f"cannot listen on {host!r} ({getattr(error, 'strerror', error)}); {cure}") from error
    absent = []
    for family, kind, protocol, _, address in addresses:
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
    if len(absent) == len(addresses):  # one address of a name is enough
        raise OSError(f"cannot listen on {host!r} ({absent[0].strerror}); {cure}") from absent[0]


def serve(options: Options) -> None:
    """Build the app and serve it until Ctrl-C or SIGTERM, then remove what visitors uploaded and end the process."""
    signals: list[int] = []

    def end(number: int, _: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    within = os.environ.get(TEMPORARY)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with suppress(KeyboardInterrupt), run_folder(Path(within or tempfile.gettempdir())) as folder:
        os.environ[TEMPORARY] = str(folder)
        serve_from(options)
    if signals:  # a normal exit would crash threads that compute in a native library
        sys.stdout.flush()
        if signal.SIGTERM in signals:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        os._exit(0)


@contextmanager
def run_folder(within: Path) -> Iterator[Path]:
    """Make a folder that is removed at the end, after removing folders left by killed servers.

    A running server holds a lock next to its folder, so that others do not remove it.
    """
    within.mkdir(parents=True, exist_ok=True)
    sweep(within)
    folder = within.resolve() / f"{PREFIX}{secrets.token_hex(8)}"
    with locked(folder.with_suffix(LOCK), folder, WAIT_SECONDS):  # others may hold it for a moment, to sweep it
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(within: Path) -> None:
    """Remove the folders of servers that have ended."""
    for lock in within.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError, ValueError), locked(lock, lock):  # another user's, or one in use
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)


def serve_from(options: Options) -> None:
    """Build the app and serve it until KeyboardInterrupt."""
    from cse.app.page import launch_options
    from cse.app.server.access import PROXIES, Rights, audience, network_address, owner_address, served_names
    from cse.app.training.request import CLOSED, GUESTS, OWN
    from cse.app.training.trainings import Trainings

    names = served_names(options.host, options.allow_host)
    space = names.public or "SPACE_ID" in os.environ
    token = options.token or ("" if space or options.open else secrets.token_urlsafe(32))
    rights = Rights(token, everyone=options.open)
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
        anywhere = name in ("0.0.0.0", "[::]")
        if anywhere and not space and (address := network_address()):
            sys.stdout.write(f"* Address for others in this machine's network: http://{address}:{options.port}\n")
        if rights.token and not space:  # whose log and address are another's
            shown = "localhost" if anywhere else name
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
    from cse.app.corpus.corpora import write_vectors
    from cse.app.results import RESULTS
    from cse.app.show import write_first
    from cse.app.state import open_state

    state = open_state(BUNDLED_NAMES, ())
    written = write_vectors(state.models, state.demo)  # first: the app computes from these, which are rounded
    state = open_state(BUNDLED_NAMES, ())
    for path in (*written, *(write_first(state, kind) for kind in RESULTS if kind.ships)):
        sys.stdout.write(f"{path}\n")
