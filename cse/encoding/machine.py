"""The machine that something was measured on, and the most memory that work takes on it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from pathlib import Path

CPU, MEMORY, OWN = Path("/proc/cpuinfo"), Path("/proc/meminfo"), Path("/proc/self")
AMD = "AuthenticAMD"
EXTENSIONS = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX512-BF16", "amx_bf16": "AMX"}


def describe_machine() -> dict[str, str | int]:
    """Processor, its cores for this process and matrix extensions, memory, GPU, and the versions measured with."""
    import torch
    import transformers

    cpu = _read(CPU)
    name = re.search(r"^model name\s*: (.+)$", cpu, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", _read(MEMORY), re.MULTILINE)
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


def extensions() -> list[str]:
    """The matrix extensions of the processor; none where the system does not tell."""
    flags = re.search(r"^flags\s*: (.+)$", _read(CPU), re.MULTILINE)
    return [shown for flag, shown in EXTENSIONS.items() if flags and flag in flags[1].split()]


def gpu_has_bf16() -> bool:
    """Whether there is a GPU that multiplies bfloat16 itself; older ones emulate it, slower than float32."""
    import torch

    return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)


def vendor() -> str | None:
    """The maker of the processor as it tells it, such as `AMD`; None where the system does not."""
    found = re.search(r"^vendor_id\s*: (.+)$", _read(CPU), re.MULTILINE)
    return found[1] if found else None


def family() -> int:
    """The processor's family as it tells it: of AMD's, 25 is Zen 3 and 4, 26 is Zen 5; 0 where the system does not."""
    found = re.search(r"^cpu family\s*: (\d+)$", _read(CPU), re.MULTILINE)
    return int(found[1]) if found else 0


def machine_line(machine: dict[str, str | int]) -> str:
    """The description in one line of text."""
    gpu = f", {machine['gpu']}" if "gpu" in machine else ""
    return (
        f"{machine['cpu']} ({machine['extensions']}), {machine['cores']} cores, {machine['threads']} threads, "
        f"{machine['memory_gb']} GB{gpu}; Python {machine['python']}, torch {machine['torch']}, "
        f"transformers {machine['transformers']}"
    )


def with_peak_memory(work: Callable[[], object]) -> int | None:
    """Do the work; the bytes of memory this process had at most meanwhile, None where the system does not tell.

    Only Linux counts the most anew (`/proc/self/clear_refs`); elsewhere it is that of the whole process.
    """
    try:
        (OWN / "clear_refs").write_text("5")
    except OSError:
        work()
        return None
    work()
    most = re.search(r"^VmHWM:\s*(\d+) kB$", _read(OWN / "status"), re.MULTILINE)
    return int(most[1]) * 1024 if most else None


def resident_memory(process: int) -> int | None:
    """The bytes of memory that a process of this number has now; None where the system does not tell (not Linux)."""
    found = re.search(r"^VmRSS:\s*(\d+) kB$", _read(OWN.with_name(str(process)) / "status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def processor_seconds(process: int) -> float | None:
    """The seconds that a process of this number has computed; None where the system does not tell (not Linux)."""
    fields = _read(OWN.with_name(str(process)) / "stat").rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
