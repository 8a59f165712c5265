"""System calls that change a file, of a forked process and its threads: counted, and the process killed before one.

A filter in the kernel (seccomp) stops the process at these calls alone; ptrace tells its parent. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys

TRACEME, CONTINUE, SET_OPTIONS = 0, 7, 0x4200  # <sys/ptrace.h>
FORK, VFORK, CLONE, SECCOMP, EXIT_KILL = 1 << 1, 1 << 2, 1 << 3, 1 << 7, 1 << 20
SECCOMP_EVENT, ALL_CHILDREN = 7, 0x40000000
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2  # <sys/prctl.h>
ALLOW, TRACE = 0x7FFF0000, 0x7FF00000  # <linux/seccomp.h>
LOAD, EQUAL, ANY_BIT, GREATER, RETURN = 0x20, 0x15, 0x45, 0x25, 0x06  # <linux/filter.h>
NUMBER, FIRST = 0, 16  # where seccomp_data has the call's number and its first argument
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

# Numbers of write, pwrite64, writev, pwritev (whose first argument is a file); of open calls, with the place of their
# flags; of creat, rename*, link*, unlink*, rmdir, mkdir*, *truncate, fallocate, *chmod*, f*sync, flock, symlink*,
# sendfile, copy_file_range.
CALLS: dict[str, tuple[tuple[int, ...], dict[int, int], tuple[int, ...]]] = {
    "x86_64": (
        (1, 18, 20, 296), {2: 1, 257: 2},
        (85, 82, 264, 316, 86, 265, 87, 263, 84, 83, 258, 76, 77, 285, 90, 91, 268, 74, 75, 73, 88, 266, 40, 326),
    ),
    "aarch64": (
        (64, 68, 66, 70), {56: 2},
        (38, 276, 37, 35, 34, 45, 46, 47, 52, 53, 82, 83, 32, 36, 71, 285),
    ),
}  # fmt: skip


def may_trace() -> bool:
    """Whether system calls can be counted here."""
    return sys.platform == "linux" and platform.machine() in CALLS


def trace_me() -> None:
    """Have the parent, which must be in `count_calls`, stop this process before each call that changes a file."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = _filter(*CALLS[platform.machine()])
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    if libc.ptrace(TRACEME, 0, None, None):
        raise OSError(ctypes.get_errno(), "cannot be traced here")
    os.kill(os.getpid(), signal.SIGSTOP)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.prctl(SET_SECCOMP, FILTER, described, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot be filtered here")


def count_calls(child: int, fatal: int | None) -> tuple[tuple[int, resource.struct_rusage], int]:
    """The wait status and usage of a child that calls `trace_me`, and its calls; killed before call `fatal`, from 0."""
    libc = ctypes.CDLL(None, use_errno=True)
    calls, begun = 0, False
    while True:
        process, status, usage = os.wait4(-child, ALL_CHILDREN)
        if not os.WIFSTOPPED(status):
            if process == child:
                return (status, usage), calls
            continue
        event, sign = status >> 16, os.WSTOPSIG(status)
        if not begun:
            options = FORK | VFORK | CLONE | SECCOMP | EXIT_KILL
            libc.ptrace(SET_OPTIONS, process, None, ctypes.c_void_p(options))
            begun = True
        if event == SECCOMP_EVENT:
            if calls == fatal:
                os.kill(child, signal.SIGKILL)
                continue
            calls += 1
        passed_on = 0 if event or sign in (signal.SIGSTOP, signal.SIGTRAP) else sign
        libc.ptrace(CONTINUE, process, None, ctypes.c_void_p(passed_on))


def _filter(writes: tuple[int, ...], opens: dict[int, int], others: tuple[int, ...]) -> bytes:
    """A program for the kernel: stop before a write beyond stderr, an open to write and the other calls."""

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("HBBI", code, then, otherwise, value)

    parts = []
    for number in writes:
        parts.append(
            step(EQUAL, number, 0, 4) + step(LOAD, FIRST) + step(GREATER, 2, 0, 1)
            + step(RETURN, TRACE) + step(RETURN, ALLOW)
        )  # fmt: skip
    for number, place in opens.items():
        parts.append(
            step(EQUAL, number, 0, 4) + step(LOAD, FIRST + 8 * place) + step(ANY_BIT, WRITES, 0, 1)
            + step(RETURN, TRACE) + step(RETURN, ALLOW)
        )  # fmt: skip
    parts += [step(EQUAL, number, 0, 1) + step(RETURN, TRACE) for number in others]
    return step(LOAD, NUMBER) + b"".join(parts) + step(RETURN, ALLOW)
