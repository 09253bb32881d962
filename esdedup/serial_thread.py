"""`SerialThread`: a daemon thread that runs jobs one after another."""

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

# The unfinished jobs of all threads.
_unfinished: set[Future[Any]] = set()
_EXIT_S = 5.0
if hasattr(os, "register_at_fork"):  # Windows has no fork
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_unfinished.clear)


class SerialThread:
    """Runs jobs in a thread that starts with the first job and stops when this object is garbage-collected.

    The thread is a daemon, so it delays the exit of the process by a few seconds at most.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: _Jobs = queue.SimpleQueue()
        self._is_started = False

    def begin(self, job: Callable[[*_Args], _Result], *args: *_Args) -> Future[_Result]:
        """Queue a call; it runs even if no caller waits for its result."""
        done: Future[_Result] = Future()
        # The job cannot be cancelled.
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
    """Wait for running jobs: Python aborts a process when a thread returns from the crate during shutdown.

    Threads keep running, since further jobs may be queued later.
    """
    futures.wait(_unfinished.copy(), timeout=_EXIT_S)


def _work(jobs: _Jobs) -> None:
    while (given := jobs.get()) is not None:
        job, args, done = given
        try:
            result = job(*args)
        except BaseException as error:  # re-raised where the result is awaited
            done.set_exception(error)
        else:
            done.set_result(result)
        # Keep no reference to this job while waiting for the next one.
        del given, job, args, done
