"""The processes of an `accelerate launch` or `torchrun`, which fail together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelerate import PartialState


class OneProcess:
    """The only process of a run that no launcher started, with the attributes of `accelerate.PartialState`."""

    is_main_process, process_index, num_processes = True, 0, 1


class OtherProcessError(ValueError):
    """An error of another process, of which `exit_code` is that of the command."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def processes() -> PartialState | OneProcess:
    """Return the processes of the launch, each on its own GPU if there are any.

    Without a launcher nothing is imported: PyTorch takes 400 MB that OpenVINO does not need.
    """
    if "WORLD_SIZE" not in os.environ:
        return OneProcess()
    import torch
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    return PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU", not torch.cuda.is_available()))


def check_alone(work: str) -> None:
    """Raise ValueError if a launcher started several processes for `work` that runs in one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(f"{work} runs in one process; start it without accelerate launch")


@contextmanager
def together() -> Iterator[None]:
    """Raise an error of the block on all processes if one has it; otherwise the others would wait for that one.

    All processes have to come to the block, and within it none may wait for another.
    """
    state = processes()
    if isinstance(state, OneProcess) or state.num_processes == 1:
        yield
        return
    import torch
    from accelerate.utils import gather_object, reduce

    own: BaseException | None = None
    try:
        yield
    except BaseException as error:
        own = error
    if not reduce(torch.tensor(float(own is not None), device=state.device), "sum"):
        return
    line = None if own is None else " ".join((str(own) or type(own).__name__).split())
    errors = gather_object([(state.process_index, line, getattr(own, "exit_code", 3))])
    if own is not None:
        raise own
    number, line, code = next(error for error in errors if error[1] is not None)
    if line == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt
    raise OtherProcessError(f"process {number}: {line}", code)


BOUND = "CSE_ENDS_WITH_PARENT"  # in the environment of such a process


def start_command(
    words: Sequence[str], environment: Mapping[str, str] = os.environ, **options: Any
) -> subprocess.Popen[str]:
    """Start a command by its words after `cse`; `options` are those of `Popen`. Raises OSError if the system cannot.

    Its stdin is a pipe that nobody writes to. The system closes it when this process ends, even by SIGKILL.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "cse.commands", *words], env={**environment, BOUND: "1"}, stdin=subprocess.PIPE,
        text=True, **options,
    )  # fmt: skip


def end_with_parent() -> None:
    """If `start_command` started this process, end it, and its own children, when its parent has ended."""

    def end_at_eof() -> None:
        while os.read(0, 1):
            pass
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():  # else the group is that of the parent's shell
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    if os.environ.pop(BOUND, None):
        Thread(target=end_at_eof, name="parent", daemon=True).start()
