"""The machine that something is measured on."""

import os
import platform
import resource
import sys
from pathlib import Path

from esdedup.ingest.owner_settings import machine_bytes

_MIB = 1 << 20


def machine() -> str:
    """Return its cores, processor and memory, in words."""
    lines = _lines(Path("/proc/cpuinfo"))
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory_mib = machine_bytes() // _MIB
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{os.cpu_count()} cores of {name}, {memory_mib / 1024:.0f} GiB"


def peak_bytes() -> int:
    """Return the largest memory that this process has taken so far."""
    # On Linux, `ru_maxrss` begins with what the process that started this one took.
    for line in _lines(Path("/proc/self/status")):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In kilobytes, except on macOS.
    return peak if sys.platform == "darwin" else peak * 1024


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
