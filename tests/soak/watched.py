"""`Watched`: a server under test, with its use of time and memory and the faults noticed."""

import contextlib
import dataclasses
import http.client
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlsplit

import psutil

from tests.soak.odd_bytes import request
from tests.soak.odd_requests import Asked

MOST_CPU_S, MOST_WAIT_S = 2.0, 1.0
_HANG_S = 60.0
_MIB = 1 << 20
# Whoever is asked may have to wait for a machine that has other things to do; the best of these counts.
_ATTEMPTS, _PAUSE_S = 10, 1.0
# Of the looks at the memory, the first are not counted: what is needed is being loaded.
_WARM_PART = 5
_MOST_GROWTH, _SLACK_BYTES = 1.15, 48 * _MIB


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer; the status is 0 if there was none, -1 if it timed out."""

    status: int
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""


def ask(url: str, asked: Asked) -> Answer:
    """Send the bytes of a request; return the first answer to them."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=_HANG_S) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(asked.content)
                if asked.is_ended:
                    connection.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(connection, method=asked.method)
            answer.begin()
            headers = {key.lower(): each for key, each in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())
    except TimeoutError:
        return Answer(-1)
    except (OSError, http.client.HTTPException):
        return Answer(0)


class Watched:
    """A process that listens at an address."""

    def __init__(self, name: str, url: str, pid: int) -> None:
        self.name, self.url = name, url
        self._process = psutil.Process(pid)
        self.answers: Counter[tuple[str, str]] = Counter()
        self.worst_cpu_s: dict[str, float] = {}
        # Without what the forest takes.
        self.memory_bytes: list[int] = []
        self.longest_wait_s = 0.0
        self.faults: list[str] = []

    def cpu_s(self) -> float:
        """Return the processor time that it has taken so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def ask(self, asked: Asked) -> Answer:
        """Send a request; record its cost."""
        before_s = self.cpu_s()
        answer = ask(self.url, asked)
        took_s = self.cpu_s() - before_s
        kind = f"{answer.status // 100}xx" if answer.status > 0 else "none"
        self.answers[asked.door, kind] += 1
        self.worst_cpu_s[asked.door] = max(took_s, self.worst_cpu_s.get(asked.door, 0.0))
        if took_s > MOST_CPU_S:
            self.fault(f"{took_s:.1f} s of processor time", asked, answer)
        if answer.status < 0:
            self.fault(f"no answer within {_HANG_S:.0f} s", asked, answer)
        return answer

    def fault(self, what: str, asked: Asked, answer: Answer) -> None:
        """Record a wrong answer."""
        self.note(
            f"{what}: {asked.door}, {len(asked.content):,} bytes {asked.content[:1_500]!r}, answered "
            f"{answer.status} {answer.body[:300]!r}"
        )

    def note(self, fault: str) -> None:
        self.faults.append(f"{self.name}: {fault}")
        tell(f"FAULT {self.faults[-1]}")

    def check_is_well(self, *paths: str, forest_bytes: int = 0) -> None:
        """Ask what must be answered at once, for it is idle now; note its memory."""
        for path in paths:
            asked = Asked("idle", request("GET", path))
            for _ in range(_ATTEMPTS):
                began_s = time.monotonic()
                answer = ask(self.url, asked)
                wait_s = time.monotonic() - began_s
                if answer.status == 200 and wait_s < MOST_WAIT_S:
                    break
                time.sleep(_PAUSE_S)
            else:
                self.fault(f"not well after {wait_s:.2f} s", asked, answer)
            self.longest_wait_s = max(wait_s, self.longest_wait_s)
        self.memory_bytes.append(self._process.memory_info().rss - forest_bytes)

    def check_memory(self) -> tuple[int, int]:
        """Return its memory when it was warm, and at the end, in MiB; note if that is more."""
        warm = self.memory_bytes[len(self.memory_bytes) // _WARM_PART :]
        first, last = (sorted(each)[len(each) // 2] for each in (warm[:3], warm[-3:]))
        if last > _MOST_GROWTH * first + _SLACK_BYTES:
            self.note(f"its memory grows: {first // _MIB:,} MiB, then {last // _MIB:,} MiB")
        return first // _MIB, last // _MIB


def tell(line: str) -> None:
    """Report progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
