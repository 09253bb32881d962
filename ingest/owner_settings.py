"""What is set for a forest by the process that owns it."""

import contextlib
import dataclasses
import functools
import os
import threading
from datetime import timedelta
from pathlib import Path

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.forest.meta import LOOKUPS, Lookup
from esdedup.elastic.limits import DEFAULT_LIMITS
from esdedup.errors import SettingError
from esdedup.fingerprint.fingerprinter import WORKERS
from esdedup.forest import Aging
from esdedup.forest.growth import MOST_PLAUSIBLE_LEAVES

EXPIRE_EVERY_S = 3_600.0
"""As often as `seen` of a node changes at most."""
PATIENCE_S = 120.0
"""A standby takes over within half a minute from an owner that has died, and may have to be started first."""
LEASE_TTL_S = 30.0

_MOST_WORKERS = 256
_UNKNOWN_BYTES = 4 * 2**30
# Of the second version of control groups, which all current systems have; "max" without a limit.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnerSettings:
    """What a process sets for a forest that it owns; see `Dedup`. Raises `SettingError` beyond its range."""

    retention: timedelta | None = None
    wait_s: float = 0.0
    lease_ttl_s: float = LEASE_TTL_S
    lookup: Lookup | None = None
    memory_bytes: int | None = None
    most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES
    overrides: Overrides = NO_OVERRIDES
    workers: int = WORKERS
    expire_every_s: float | None = EXPIRE_EVERY_S

    def __post_init__(self) -> None:
        leaves, every_s = self.most_plausible_leaves, self.expire_every_s
        if not 1 <= self.lease_ttl_s < float("inf"):
            raise SettingError(f"lease_ttl_s is {self.lease_ttl_s}; it must be at least 1")
        if not self.wait_s >= 0:
            raise SettingError(f"wait_s is {self.wait_s}; it must be at least 0")
        if leaves < 1 or leaves.bit_count() != 1:
            raise SettingError(f"most_plausible_leaves is {leaves}; it must be a power of two")
        if self.lookup not in {None, *LOOKUPS}:
            raise SettingError(f"lookup is {self.lookup!r}; it must be {' or '.join(map(repr, LOOKUPS))}")
        if self.memory_bytes is not None and self.memory_bytes < 0:
            raise SettingError(f"memory_bytes is {self.memory_bytes}; it must be at least 0")
        if not 1 <= self.workers <= _MOST_WORKERS:
            raise SettingError(f"workers is {self.workers}; it must be from 1 to {_MOST_WORKERS}")
        if every_s is not None and not 0 < every_s < threading.TIMEOUT_MAX:
            raise SettingError(f"expire_every_s is {every_s}; it must be greater than 0")
        # Raises if there is none like it.
        _ = self.aging

    @functools.cached_property
    def aging(self) -> Aging | None:
        """How long nodes live; None leaves it as it was."""
        return None if self.retention is None else Aging.of(retention=self.retention)

    @property
    def most_bytes(self) -> int:
        """What nodes may take in memory: by default, half of what this process can have."""
        return available_bytes() // 2 if self.memory_bytes is None else self.memory_bytes

    @property
    def most_followed_bytes(self) -> int:
        """What they may take in the memory of a standby: by default, the owner may be on the same machine."""
        return self.most_bytes // 2 if self.memory_bytes is None else self.memory_bytes

    def refuse_for_sidecar(self) -> None:
        """Raise `SettingError` if any is set: a sidecar that owns a forest has settings of its own."""
        useless = [each.name for each in dataclasses.fields(self) if getattr(self, each.name) != each.default]
        if useless:
            raise SettingError(
                f"{' and '.join(useless)}: with a sidecar, these are settings of the sidecar; leave them out "
                "here"
            )


def machine_bytes() -> int:
    """Return the memory of this machine, as far as it says so; Windows does not."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return _UNKNOWN_BYTES


def available_bytes() -> int:
    """Return the memory of this machine, or of the container if that may have less."""
    with contextlib.suppress(OSError, ValueError):
        return min(machine_bytes(), int(_CONTAINER.read_text()))
    return machine_bytes()


def check_batch_size(batch_size: int) -> None:
    """Raise `SettingError` unless so many articles can be assigned together."""
    if not 1 <= batch_size <= DEFAULT_LIMITS.bulk_documents:
        raise SettingError(
            f"batch_size is {batch_size}; it must be from 1 to {DEFAULT_LIMITS.bulk_documents:,}"
        )


def check_flush_interval(flush_interval_s: float | None) -> None:
    """Raise `SettingError` unless a batch can be closed that long after its first action."""
    if flush_interval_s is not None and not 0 < flush_interval_s < threading.TIMEOUT_MAX:
        raise SettingError(f"flush_interval_s is {flush_interval_s}; it must be greater than 0")
