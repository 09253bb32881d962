"""The memory of sidecars: whether it grows by more than the forest's nodes."""

import contextlib
import dataclasses
import itertools
import re
import urllib.request

import psutil

from tests.support.sidecar_process import SidecarProcess

_MIB = 1 << 20
# Until a process has loaded what it needs, and the forest, if it has to.
_WARM_S = 30.0
# Python's memory is uneven; what each of 100,000 articles leaves behind would be more.
_MOST_GROWTH, _SLACK_BYTES = 1.15, 32 * _MIB
_FOREST = re.compile(rb"^esdedup_forest_memory_bytes\{[^}]*\} (\S+)$", re.MULTILINE)
_OWNED = re.compile(rb"^esdedup_lease_held\{[^}]*\} 1", re.MULTILINE)
_ASK_S = 2.0
# Of samples, those that count as the beginning and the end.
_SOME = 3


@dataclasses.dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    at_s: float
    resident_bytes: int
    # Of that, what the forest's nodes and pages take.
    forest_bytes: int
    is_owner: bool

    @property
    def own_bytes(self) -> int:
        return self.resident_bytes - self.forest_bytes


class Memory:
    """Of one process, from its start."""

    def __init__(self, sidecar: SidecarProcess) -> None:
        self.sidecar = sidecar
        self.samples: list[Sample] = []

    @property
    def is_alive(self) -> bool:
        return self.sidecar.process.poll() is None

    def take(self, now_s: float) -> None:
        """Note how it is now, if it lives and answers."""
        with contextlib.suppress(OSError, psutil.Error):
            with urllib.request.urlopen(f"{self.sidecar.url}/metrics", timeout=_ASK_S) as answer:
                metrics = answer.read()
            resident = psutil.Process(self.sidecar.process.pid).memory_info().rss
            forest_bytes = round(sum(map(float, _FOREST.findall(metrics))))
            self.samples.append(Sample(now_s, resident, forest_bytes, bool(_OWNED.search(metrics))))

    def growth(self, since_s: float) -> tuple[Sample, Sample] | None:
        """Return a sample from then, or from when it was warm, and the last; None if it lived too short.

        Whoever takes a forest over loads it, and keeps some of the memory that this takes. So the time counts
        since it has, or has not, owned the forest.
        """
        last = self.samples[-1:]
        same = list(
            itertools.takewhile(lambda each: each.is_owner is last[0].is_owner, reversed(self.samples))
        )
        warm = [each for each in same[::-1] if each.at_s >= max(since_s, same[-1].at_s + _WARM_S)]
        return (_middle(warm[:_SOME]), _middle(warm[-_SOME:])) if len(warm) > 2 * _SOME else None


def is_flat(first: Sample, last: Sample) -> bool:
    """Return whether a process takes hardly more at the end, apart from the forest."""
    return last.own_bytes <= _MOST_GROWTH * first.own_bytes + _SLACK_BYTES


def shown(sample: Sample) -> str:
    return f"{sample.resident_bytes / _MIB:,.0f} MiB (forest {sample.forest_bytes / _MIB:,.0f})"


def _middle(samples: list[Sample]) -> Sample:
    return sorted(samples, key=lambda each: each.own_bytes)[len(samples) // 2]
