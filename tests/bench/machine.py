"""Description of this machine for measurements, and memory and processor time of processes."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from pathlib import Path

from cse.encoder.devices import CPU, extensions, read

MEMORY, OWN = Path("/proc/meminfo"), Path("/proc/self")


def describe_machine() -> dict[str, str | int]:
    """Return processor, cores for this process, matrix extensions, memory, GPU and library versions."""
    import torch
    import transformers

    cpu = read(CPU)
    name = re.search(r"^model name\s*: (.+)$", cpu, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", read(MEMORY), re.MULTILINE)
    found: dict[str, str | int] = {
        "cpu": name[1] if name else platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "extensions": ", ".join(extensions()) or "unknown",
        "threads": torch.get_num_threads(),
        "memory_gb": round(int(memory[1]) / 2**20) if memory else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    return found | ({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {})


def with_peak_memory(work: Callable[[], object]) -> int | None:
    """Call `work` and return the peak memory of this process during the call in bytes; None if it is not reported.

    Needs Linux, which can reset the peak (`/proc/self/clear_refs`).
    """
    try:
        (OWN / "clear_refs").write_text("5")
    except OSError:
        work()
        return None
    work()
    most = re.search(r"^VmHWM:\s*(\d+) kB$", read(OWN / "status"), re.MULTILINE)
    return int(most[1]) * 1024 if most else None


def resident_memory(process: int) -> int | None:
    """Return the resident memory of a process id in bytes; None if the system does not report it (not Linux)."""
    found = re.search(r"^VmRSS:\s*(\d+) kB$", read(OWN.with_name(str(process)) / "status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def processor_seconds(process: int) -> float | None:
    """Return the processor time of a process id in seconds; None if the system does not report it (not Linux)."""
    fields = read(OWN.with_name(str(process)) / "stat").rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else None
