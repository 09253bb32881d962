"""Texts that are fingerprinted in several processes: the same results, also when one of them dies."""

import multiprocessing
import os
import signal
import time

import numpy as np
import psutil
import pytest
from esdedup.ingest.fingerprint_processes import FingerprintProcesses

from esdedup import VERIFIED, sample
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.lesson import Lesson
from esdedup.errors import ProcessDied
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import Fingerprints

pytestmark = pytest.mark.slow

TEXTS = [article["text"] for article in sample.articles(500)] + ["", "kurz", "x" * 300_000]


def assert_same(one: Fingerprints, other: Fingerprints) -> None:
    for name in ("signatures", "exists", "letters", "are_cut", "pages"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_the_results_are_those_of_one_process() -> None:
    processes, alone = FingerprintProcesses(VERIFIED, 2), Fingerprinter(VERIFIED)
    assert_same(processes.fingerprint(TEXTS), alone.fingerprint(TEXTS))
    # What was learned decides about later pages, so the order counts.
    lessons = [Lesson(Boilerplate(block_pages=8)) for _ in range(2)]
    for some in (TEXTS, TEXTS[:40], []):
        assert_same(
            processes.fingerprint(some, omit=lessons[0].omit), alone.fingerprint(some, omit=lessons[1].omit)
        )
    processes.close()
    assert not multiprocessing.active_children()


def test_after_one_has_died_the_next_call_starts_others(caplog: pytest.LogCaptureFixture) -> None:
    processes = FingerprintProcesses(VERIFIED, 2)
    processes.fingerprint(TEXTS[:3])
    first = multiprocessing.active_children()[0]
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    first.join(10)
    with pytest.raises(ProcessDied, match="send the same again"):
        # Both have something to do.
        processes.fingerprint(TEXTS)
    assert "has died" in caplog.text
    assert_same(processes.fingerprint(TEXTS[:9]), Fingerprinter(VERIFIED).fingerprint(TEXTS[:9]))
    # They end with what has started them.
    assert len(multiprocessing.active_children()) == 2
    del processes
    assert not multiprocessing.active_children()


def test_one_that_is_stopped_ends_with_the_others() -> None:
    processes = FingerprintProcesses(VERIFIED, 1)
    processes.fingerprint(TEXTS[:3])
    (stopped,) = multiprocessing.active_children()
    assert stopped.pid is not None
    os.kill(stopped.pid, signal.SIGSTOP)
    while psutil.Process(stopped.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    try:
        processes.close()
        assert not stopped.is_alive()
    finally:
        stopped.kill()


def test_what_omit_raises_is_raised_and_the_next_call_works() -> None:
    processes = FingerprintProcesses(VERIFIED, 1)

    def omit(*_: object) -> np.ndarray:
        raise KeyError("no")

    with pytest.raises(KeyError):
        processes.fingerprint(TEXTS, omit=omit)
    assert_same(processes.fingerprint(TEXTS[:9]), Fingerprinter(VERIFIED).fingerprint(TEXTS[:9]))
    processes.close()
