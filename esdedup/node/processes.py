"""Finds and stops background processes, identified by pid, start time and arguments."""

import contextlib
from collections.abc import Iterable, Sequence

import psutil
import pydantic

# Two measurements of a process's start time differ by less than this.
_SAME_START_S = 0.1


class Background(pydantic.BaseModel, frozen=True):
    """A process that was started in the background."""

    pid: int = pydantic.Field(gt=0)
    # Seconds since 1970; distinguishes the process from a later one with the same pid.
    started_at: float

    def find(self, arguments: Sequence[str]) -> psutil.Process | None:
        """Return the process if it is running and its command line contains these consecutive arguments."""
        try:
            process = psutil.Process(self.pid)
            is_same = abs(process.create_time() - self.started_at) < _SAME_START_S
            given = process.cmdline() if is_same and process.status() != psutil.STATUS_ZOMBIE else []
        except psutil.Error:
            return None
        expected = list(arguments)
        is_ours = any(given[first : first + len(expected)] == expected for first in range(len(given)))
        return process if is_ours else None


def start_of(pid: int) -> float:
    """Return the start time of a process, for `Background.started_at`."""
    return psutil.Process(pid).create_time()


def end(processes: Iterable[psutil.Process], *, timeout_s: float) -> bool:
    """Terminate processes, then kill any that do not exit in time; return whether all have exited."""
    late = list(processes)
    for signal in (psutil.Process.terminate, psutil.Process.kill):
        for process in late:
            with contextlib.suppress(psutil.NoSuchProcess):
                signal(process)
        _, late = psutil.wait_procs(late, timeout=timeout_s)
    return not late
