"""What is set for a forest by the process that owns it."""

import dataclasses
import functools
import threading
from datetime import timedelta

from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.elastic.limits import DEFAULT_LIMITS
from esdedup.errors import SettingError
from esdedup.forest import Aging
from esdedup.forest.growth import MOST_PLAUSIBLE_LEAVES

MEMORY_BYTES = 256 * 2**20
"""The most that nodes kept in memory may take by default: some 800,000 of `verified`."""
EXPIRE_EVERY_S = 3_600.0
"""As often as `seen` of a node changes at most."""
PATIENCE_S = 120.0
"""A standby takes over within half a minute from an owner that has died, and may have to be started first."""
LEASE_TTL_S = 30.0

_MOST_WORKERS = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnerSettings:
    """What a process sets for a forest that it owns, as it is if nobody says anything; see `Dedup`.

    Raises:
        SettingError: A value is out of its range.
    """

    retention: timedelta | None = None
    wait_s: float = 0.0
    lease_ttl_s: float = LEASE_TTL_S
    memory_bytes: int | None = MEMORY_BYTES
    most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES
    pins: Pins = NO_PINS
    workers: int = 1
    expire_every_s: float | None = EXPIRE_EVERY_S

    def __post_init__(self) -> None:
        leaves, every_s = self.most_plausible_leaves, self.expire_every_s
        if not 1 <= self.lease_ttl_s < float("inf"):
            raise SettingError(f"lease_ttl_s is {self.lease_ttl_s}; it must be at least 1")
        if not self.wait_s >= 0:
            raise SettingError(f"wait_s is {self.wait_s}; it must be at least 0")
        if leaves < 1 or leaves.bit_count() != 1:
            raise SettingError(f"most_plausible_leaves is {leaves}; it must be a power of two")
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

    def refuse_for_sidecar(self) -> None:
        """Make sure that all is as it is by default: a sidecar that owns a forest has settings of its own.

        Raises:
            SettingError: Something is set.
        """
        usual = OwnerSettings()
        useless = [
            each.name
            for each in dataclasses.fields(self)
            if getattr(self, each.name) != getattr(usual, each.name)
        ]
        if useless:
            raise SettingError(
                f"{' and '.join(useless)}: with a sidecar, these are settings of the sidecar; leave them out "
                "here"
            )


def check_batch_size(batch_size: int) -> None:
    """Make sure that so many articles can be assigned together.

    Raises:
        SettingError: They cannot.
    """
    if not 1 <= batch_size <= DEFAULT_LIMITS.bulk_documents:
        raise SettingError(
            f"batch_size is {batch_size}; it must be from 1 to {DEFAULT_LIMITS.bulk_documents:,}"
        )


def check_flush_interval(flush_interval_s: float | None) -> None:
    """Make sure that a batch can be closed so long after its first action.

    Raises:
        SettingError: It cannot.
    """
    if flush_interval_s is not None and not 0 < flush_interval_s < threading.TIMEOUT_MAX:
        raise SettingError(f"flush_interval_s is {flush_interval_s}; it must be greater than 0")
