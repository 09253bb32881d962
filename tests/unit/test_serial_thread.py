"""Jobs of a `SerialThread`: in order, each with its own result, and the thread ends with its holder."""

import subprocess
import sys
import threading
import time

import pytest

from esdedup.serial_thread import SerialThread


def test_jobs_are_done_in_their_order_whatever_they_raise() -> None:
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


def test_a_job_is_done_even_if_nobody_waits_for_it() -> None:
    goes_on = threading.Event()
    thread = SerialThread("test")
    thread.begin(goes_on.wait)
    forgotten = thread.begin(lambda: 1)
    assert not forgotten.cancel()
    goes_on.set()
    assert forgotten.result() == 1


def test_the_thread_ends_when_nobody_holds_it() -> None:
    thread = SerialThread("dropped")
    running = thread.begin(threading.current_thread).result()
    assert running.name == "dropped"
    del thread
    running.join(5)
    assert not running.is_alive()


def test_what_is_being_done_at_the_end_of_a_process_is_done() -> None:
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
    # Threads that do nothing are not waited for.
    assert time.monotonic() - began_s < 4


def test_a_job_can_be_begun_while_a_process_ends() -> None:
    program = """
import atexit
atexit.register(lambda: print(thread.begin(lambda: "done").result(timeout=20), flush=True))
from esdedup.serial_thread import SerialThread
thread = SerialThread("last")
thread.begin(lambda: None).result()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")


def test_a_forked_process_waits_for_no_thread() -> None:
    program = """
import os, sys, threading
from esdedup.serial_thread import SerialThread
thread, goes_on = SerialThread("parent's"), threading.Event()
thread.begin(goes_on.wait)
if (child := os.fork()) == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
goes_on.set()
"""
    began_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"7\n")
    assert time.monotonic() - began_s < 4
