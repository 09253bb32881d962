"""Work in a process of its own, and the memory that it takes."""

import contextlib
import ctypes
import multiprocessing
from collections.abc import Callable
from typing import TypeVar

import psutil

_Result = TypeVar("_Result")


def in_new_process(work: Callable[..., _Result], *arguments: object) -> _Result:
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(work, arguments)


def resident_bytes() -> int:
    """Return the memory that this process takes."""
    return psutil.Process().memory_info().rss


def give_back_memory() -> None:
    """Make the allocator return freed memory to the system, if it is glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
