"""`SerialThread`: a thread that does what it is given, one thing after the other."""

import atexit
import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from typing import Any, TypeVar, TypeVarTuple

_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")
_Jobs = queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...], Future[Any]] | None]

# Of all threads.
_unfinished: set[Future[Any]] = set()
_EXIT_S = 5.0
if hasattr(os, "register_at_fork"):  # Windows has no fork
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_unfinished.clear)


class SerialThread:
    """Begins with its first job, and ends when this object is garbage.

    It is a daemon: a job that waits for a server that does not answer keeps no process from ending for more
    than some seconds.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: _Jobs = queue.SimpleQueue()
        self._is_started = False

    def begin(self, job: Callable[[*_Args], _Result], *args: *_Args) -> Future[_Result]:
        """Call a function after all earlier ones, even if nobody awaits its result."""
        done: Future[_Result] = Future()
        # It cannot be cancelled.
        done.set_running_or_notify_cancel()
        _unfinished.add(done)
        done.add_done_callback(_unfinished.discard)
        self._jobs.put((job, args, done))
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True).start()
            weakref.finalize(self, self._jobs.put, None).atexit = False
        return done


@atexit.register
def _finish() -> None:
    """Let threads finish what they do: Python would abort the process where one comes back from the crate.

    They go on: what a program does at its end may be done after this.
    """
    futures.wait(_unfinished.copy(), timeout=_EXIT_S)


def _work(jobs: _Jobs) -> None:
    while (given := jobs.get()) is not None:
        job, args, done = given
        try:
            result = job(*args)
        except BaseException as error:  # raised where its result is awaited
            done.set_exception(error)
        else:
            done.set_result(result)
        # Until the next job comes, nothing of this one is kept.
        del given, job, args, done
