"""Describes the machine, measures memory and time, and runs work in a new process."""

import concurrent.futures
import contextlib
import ctypes
import functools
import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import psutil

from benchmarks.rows import processor_s
from esdedup.fingerprint.fingerprinter import ByHalves
from esdedup.neighbours.relation import Relation

_Result = TypeVar("_Result")


def machine() -> str:
    """Describe the cores, the processor and the memory of this machine."""
    names = [
        line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")
    ]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{os.cpu_count()} cores of {name}, {psutil.virtual_memory().total / (1 << 30):.0f} GiB"


def peak_bytes() -> int:
    """Return the peak memory of this process so far."""
    # On Linux, `ru_maxrss` starts at the memory of the parent process.
    for line in _lines("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # `ru_maxrss` is in kilobytes, except on macOS.
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return psutil.Process().memory_info().rss


def give_back_memory() -> None:
    """Make the allocator return freed memory to the system, if it is glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def in_new_process(work: Callable[..., _Result], *arguments: object) -> _Result:
    """Do the work in a new process, so that only the work uses its memory."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(work, *arguments).result()


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


Steps = Mapping[str, Sequence[tuple[Any, str]]]
"""The methods of each step, as pairs of a class and a name. No listed method calls another."""
STEPS: Steps = {
    "fingerprint": [(ByHalves, "fingerprints")],
    "ids": [(Relation, "ids")],
    "keys": [(Relation, "terms")],
}


def microseconds_by_step(
    work: Callable[[], object], documents: int, steps: Steps = STEPS
) -> dict[str, float]:
    """Do the work; return microseconds per document for each step, for the rest, and for all the work.

    Args:
        work: Calls the methods of the steps. The methods of `STEPS` compute fingerprints by the profile
            `verified`, with ids and keys.
        documents: The number of documents that are processed.
        steps: The steps to time.
    """
    spent_s = dict.fromkeys(steps, 0.0)
    with contextlib.ExitStack() as stack:
        for step, places in steps.items():
            for owner, name in places:
                stack.enter_context(_timed(owner, name, step, spent_s))
        all_s = processor_s(work)
    spent_s["the rest"] = all_s - sum(spent_s.values())
    spent_s["all"] = all_s
    return {step: each / documents * 1e6 for step, each in spent_s.items()}


@contextlib.contextmanager
def _timed(owner: Any, name: str, step: str, spent_s: dict[str, float]) -> Iterator[None]:
    call = getattr(owner, name)

    @functools.wraps(call)
    def timed(*args: Any, **named: Any) -> Any:
        started = time.process_time()
        try:
            return call(*args, **named)
        finally:
            spent_s[step] += time.process_time() - started

    with mock.patch.object(owner, name, timed):
        yield
