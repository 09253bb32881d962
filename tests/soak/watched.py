"""`Watched`: a server under test, with its use of processor time and memory, and its faults."""

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
from tests.soak.odd_requests import RawRequest

MOST_CPU_S, MOST_WAIT_S = 2.0, 1.0
_HANG_S = 60.0
_MIB = 1 << 20
# The machine may be busy, so a check is repeated until one attempt passes.
_ATTEMPTS, _PAUSE_S = 10, 1.0
# The first 1 / _WARM_PART of the memory samples is ignored, because the process is still loading.
_WARM_PART = 5
_MOST_GROWTH, _SLACK_BYTES = 1.15, 48 * _MIB


@dataclasses.dataclass(frozen=True)
class Answer:
    """A response; the status is 0 if there was no response, and -1 after a timeout."""

    status: int
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""


def send(url: str, raw: RawRequest) -> Answer:
    """Send the bytes of a request; return the first response."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=_HANG_S) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(raw.content)
                if raw.is_ended:
                    connection.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(connection, method=raw.method)
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
        # Samples of the memory, without the memory of the forest.
        self.memory_bytes: list[int] = []
        self.longest_wait_s = 0.0
        self.faults: list[str] = []

    def cpu_s(self) -> float:
        """Return the processor time that the process has used so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def send(self, raw: RawRequest) -> Answer:
        """Send a request, and record its cost."""
        before_s = self.cpu_s()
        answer = send(self.url, raw)
        took_s = self.cpu_s() - before_s
        kind = f"{answer.status // 100}xx" if answer.status > 0 else "none"
        self.answers[raw.category, kind] += 1
        self.worst_cpu_s[raw.category] = max(took_s, self.worst_cpu_s.get(raw.category, 0.0))
        if took_s > MOST_CPU_S:
            self.fault(f"{took_s:.1f} s of processor time", raw, answer)
        if answer.status < 0:
            self.fault(f"no response within {_HANG_S:.0f} s", raw, answer)
        return answer

    def fault(self, what: str, raw: RawRequest, answer: Answer) -> None:
        """Record a wrong response."""
        self.note(
            f"{what}: {raw.category}, {len(raw.content):,} bytes {raw.content[:1_500]!r}, response "
            f"{answer.status} {answer.body[:300]!r}"
        )

    def note(self, fault: str) -> None:
        self.faults.append(f"{self.name}: {fault}")
        tell(f"FAULT {self.faults[-1]}")

    def check_is_well(self, *paths: str, forest_bytes: int = 0) -> None:
        """Check that the idle process responds promptly; sample its memory."""
        for path in paths:
            raw = RawRequest("idle", request("GET", path))
            for _ in range(_ATTEMPTS):
                began_s = time.monotonic()
                answer = send(self.url, raw)
                wait_s = time.monotonic() - began_s
                if answer.status == 200 and wait_s < MOST_WAIT_S:
                    break
                time.sleep(_PAUSE_S)
            else:
                self.fault(f"wrong or slow response while idle: {wait_s:.2f} s", raw, answer)
            self.longest_wait_s = max(wait_s, self.longest_wait_s)
        self.memory_bytes.append(self._process.memory_info().rss - forest_bytes)

    def check_memory(self) -> tuple[int, int]:
        """Return the memory after the warm-up and at the end, in MiB; record a fault if it has grown."""
        warm = self.memory_bytes[len(self.memory_bytes) // _WARM_PART :]
        first, last = (sorted(each)[len(each) // 2] for each in (warm[:3], warm[-3:]))
        if last > _MOST_GROWTH * first + _SLACK_BYTES:
            self.note(f"the memory grows: {first // _MIB:,} MiB, then {last // _MIB:,} MiB")
        return first // _MIB, last // _MIB


def tell(line: str) -> None:
    """Report progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
