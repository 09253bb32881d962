"""`FingerprintProcesses`: texts are fingerprinted in several processes, with the results of one.

Everything about a text is computed in one of them, but for what is left out of it: that depends on the pages
before it, so this process says it, in their order.
"""

import contextlib
import logging
import multiprocessing
import os
import pickle
import weakref
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from esdedup.errors import ProcessDied, SettingError
from esdedup.fingerprint.fingerprinter import Fingerprinter, slices
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.text.passages import Omit

log = logging.getLogger("esdedup")

# They end at once, wherever they are.
_END_S = 5.0


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class FingerprintProcesses:
    """Computes fingerprints of one profile, as `Fingerprinter` does. Not thread-safe.

    The processes start with the first text, and end with this one.
    """

    def __init__(self, profile: Profile, count: int) -> None:
        """Start nothing yet.

        Args:
            profile: How texts are fingerprinted.
            count: How many processes; at least 1.

        Raises:
            SettingError: The profile has a function that other processes cannot import.
        """
        try:
            pickle.dumps(profile)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise SettingError(
                f"the profile {profile.label} cannot be sent to other processes: define the functions in it "
                "at the top level of a module, or fingerprint in one process"
            ) from error
        self.profile = profile
        self._count = count
        self._workers: list[_Worker] = []
        self._ended = weakref.finalize(self, _end, self._workers, os.getpid())

    def fingerprint(self, texts: Sequence[str], *, omit: Omit | None = None) -> Fingerprints:
        """Return the fingerprints of raw texts; see `Fingerprinter.fingerprint`.

        Raises:
            ProcessDied: One of the processes has; the next call starts others.
        """
        try:
            return Fingerprints.joined(list(self._computed(texts, omit)), self.profile.signature_dtype)
        except BaseException as error:
            # What they still send belongs to no later call.
            self.close()
            if isinstance(error, EOFError | BrokenPipeError | ConnectionResetError):
                log.warning("a process that fingerprints texts has died; others start with the next texts")
                raise ProcessDied(
                    "a process that fingerprints texts has died: send the same again"
                ) from error
            raise

    def close(self) -> None:
        """End the processes; the next text starts them again."""
        _end(self._workers, os.getpid())

    def _computed(self, texts: Sequence[str], omit: Omit | None) -> Iterator[Fingerprints]:
        if not self._workers:
            self._workers += [_started(self.profile) for _ in range(self._count)]
        waiting: list[Connection] = []
        for at, some in enumerate(slices(texts)):
            # Whoever sends to a process that sends itself waits for ever, so each gets one slice at a time.
            if len(waiting) == self._count:
                yield _answer(waiting.pop(0), omit)
            pipe = self._workers[at % self._count].pipe
            pipe.send((list(some), omit is not None))
            waiting.append(pipe)
        for pipe in waiting:
            yield _answer(pipe, omit)


def fingerprinter_of(profile: Profile, *, workers: int) -> "Fingerprinter | FingerprintProcesses":
    """Return what fingerprints texts in so many other processes; 0: in this one."""
    return FingerprintProcesses(profile, workers) if workers else Fingerprinter(profile)


def _answer(pipe: Connection, omit: Omit | None) -> Fingerprints:
    """Return what a process has computed, after saying what is to be left out."""
    while not isinstance(answer := pipe.recv(), Fingerprints):
        if isinstance(answer, BaseException):
            raise answer
        assert omit is not None
        pipe.send(omit(*answer))
    return answer


def _started(profile: Profile) -> _Worker:
    # A fork would copy locks that other threads hold.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(profile, theirs), name="esdedup-fingerprints", daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _end(workers: list[_Worker], owner: int) -> None:
    # A forked process has copies of what belongs to its parent.
    if os.getpid() == owner:
        for worker in workers:
            # They hold nothing; and one that is stopped would not end otherwise.
            worker.process.kill()
            worker.pipe.close()
        for worker in workers:
            worker.process.join(_END_S)
    workers.clear()


def _work(profile: Profile, pipe: Connection) -> None:
    """Fingerprint what comes until nothing comes any more."""
    fingerprinter = Fingerprinter(profile)

    def ask(*pages: object) -> object:
        pipe.send(pages)
        return pipe.recv()

    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            texts, is_asking = pipe.recv()
            try:
                pipe.send(fingerprinter.fingerprint(texts, omit=ask if is_asking else None))  # type: ignore[arg-type]
            except Exception as error:  # raised again where the texts came from
                pipe.send(error)
