"""The owner's thread, which runs jobs in order until it is unreferenced, and the schedule of expiry."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from esdedup.ingest.owner import ExpirySchedule

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import ServerUnavailable
from esdedup.serial_thread import SerialThread


def test_jobs_run_in_order_even_if_some_raise() -> None:
    done: list[int] = []
    thread = SerialThread("test")

    def job(number: int) -> int:
        done.append(number)
        if number % 2:
            raise ValueError(number)
        return number

    begun = [thread.begin(lambda number=number: job(number)) for number in range(100)]  # type: ignore[misc]
    for number, each in enumerate(begun):
        if number % 2:
            with pytest.raises(ValueError, match=str(number)):
                each.result()
        else:
            assert each.result() == number
    assert done == list(range(100))


def test_a_queued_job_cannot_be_cancelled() -> None:
    may_end = threading.Event()
    thread = SerialThread("test")
    thread.begin(may_end.wait)
    forgotten = thread.begin(lambda: 1)
    assert not forgotten.cancel()
    may_end.set()
    assert forgotten.result() == 1


def test_the_thread_stops_when_it_is_unreferenced() -> None:
    thread = SerialThread("dropped")
    running = thread.begin(threading.current_thread).result()
    assert running.name == "dropped"
    del thread
    running.join(5)
    assert not running.is_alive()


def test_a_running_job_completes_before_the_process_exits() -> None:
    program = """
import time
from esdedup.serial_thread import SerialThread
thread = SerialThread("last")
thread.begin(lambda: (time.sleep(0.3), print("done", flush=True)))
SerialThread("idle").begin(lambda: None).result()
"""
    began_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"done\n")
    # The process does not wait for idle threads.
    assert time.monotonic() - began_s < 4


def test_a_job_can_be_started_while_a_process_exits() -> None:
    program = """
import atexit
atexit.register(lambda: print(thread.begin(lambda: "done").result(timeout=20), flush=True))
from esdedup.serial_thread import SerialThread
thread = SerialThread("last")
thread.begin(lambda: None).result()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")


def test_a_forked_process_does_not_wait_for_inherited_threads() -> None:
    program = """
import os, sys, threading
from esdedup.serial_thread import SerialThread
thread, may_end = SerialThread("parent's"), threading.Event()
thread.begin(may_end.wait)
if (child := os.fork()) == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
may_end.set()
"""
    began_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"7\n")
    assert time.monotonic() - began_s < 4


class Deletion:
    """A fake expiry in two steps; if `fails` is set, the second step raises an error."""

    def __init__(self) -> None:
        self.begun = 0
        self.fails = False

    def __call__(self) -> Iterator[Expired]:
        self.begun += 1
        yield Expired(leaves=1)
        if self.fails:
            raise ServerUnavailable("no server answers")
        yield Expired(leaves=2)


def leaves(schedule: ExpirySchedule, steps: int) -> list[int | None]:
    found = [schedule.step() for _ in range(steps)]
    return [None if each is None else each.leaves for each in found]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    return now_s


def test_nodes_are_expired_on_schedule(clock: list[float]) -> None:
    schedule = ExpirySchedule(Deletion(), every_s=60, first_after_s=10)
    assert leaves(schedule, 1) == [None]
    clock[0] += 10
    assert leaves(schedule, 4) == [1, 2, None, None]
    # The interval runs from the beginning of one expiry to the beginning of the next expiry.
    clock[0] += 59
    assert leaves(schedule, 1) == [None]
    clock[0] += 1
    assert leaves(schedule, 1) == [1]
    clock[0] += 60
    assert leaves(schedule, 4) == [2, None, 1, 2]


def test_an_abandoned_or_failed_expiry_is_not_continued(clock: list[float]) -> None:
    deletion = Deletion()
    schedule = ExpirySchedule(deletion, every_s=60)
    assert leaves(schedule, 1) == [1]
    schedule.abandon()
    assert leaves(schedule, 1) == [None]
    deletion.fails = True
    clock[0] += 60
    assert leaves(schedule, 1) == [1]
    with pytest.raises(ServerUnavailable):
        schedule.step()
    assert leaves(schedule, 1) == [None]
    assert deletion.begun == 2
