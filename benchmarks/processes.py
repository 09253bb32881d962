"""The machine, the memory that a process takes, and work in a process of its own."""

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import platform
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

_Result = TypeVar("_Result")


def machine() -> str:
    """Return its cores, processor and memory, in words."""
    names = [
        line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")
    ]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{os.cpu_count()} cores of {name}, {psutil.virtual_memory().total / (1 << 30):.0f} GiB"


def peak_bytes() -> int:
    """Return the largest memory that this process has taken so far."""
    # On Linux, `ru_maxrss` begins with what the process that started this one took.
    for line in _lines("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In kilobytes, except on macOS.
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Return the memory that this process takes."""
    return psutil.Process().memory_info().rss


def give_back_memory() -> None:
    """Make the allocator return freed memory to the system, if it is glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def in_new_process(work: Callable[..., _Result], *arguments: object) -> _Result:
    """Do the work in a process of its own, whose memory is that of this work."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(work, *arguments).result()


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
