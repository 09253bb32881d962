"""Hypothesis strategies for difficult arrivals: near each other, between several roots, about to expire."""

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

from esdedup.fingerprint.simhash import from_hex
from esdedup.forest import NO_TIME, Aging, Arrivals, Assignment, Store
from esdedup.times import DAY_MS
from tests.support.assign import assign
from tests.support.model import Model

# Later than all generated times except the last kind in `times`, which is implausibly far in the future.
NOW_MS = 10_000
AGING = Aging(retention_ms=100, granularity_ms=10)


@dataclasses.dataclass(frozen=True)
class Arrival:
    id: str | None
    time: int
    # None means that the content hash is derived from the id.
    hash: int | None = None
    addresses: frozenset[int] = frozenset()

    @property
    def content_hash(self) -> int:
        return int((self.id or "0")[:16], 16) ^ 1 << 62 if self.hash is None else self.hash


@st.composite
def fingerprints(draw: st.DrawFn) -> str:
    # Flips of a few bits in each block give distances from 0 to 8, so an arrival can be near several roots.
    base = draw(st.sampled_from([0, 0xFFFF_0000_FFFF_0000]))
    flips = draw(st.sets(st.sampled_from([0, 1, 17, 18, 33, 34, 50, 63]), max_size=8))
    return f"{base ^ sum(1 << bit for bit in flips):016x}"


times = st.one_of(
    st.just(NO_TIME),
    st.integers(0, 400),
    st.integers(0, 30).map(lambda step: 10 * step),  # multiples of the granularity, at which nodes expire
    st.integers(-50, 50),
    st.just(NOW_MS + DAY_MS + 1),
)
# Content hashes that several arrivals share, with or without fingerprints; 0 means no alphanumerics.
some_hash = st.one_of(st.none(), st.none(), st.integers(0, 9))
arrivals = st.lists(
    st.builds(Arrival, st.one_of(st.none(), fingerprints(), fingerprints()), times, some_hash), max_size=60
)
# Arrivals in order of time, as in a backfill, with steps small enough that clusters stay live.
ordered_arrivals = st.builds(
    lambda each, step_ms: [
        dataclasses.replace(one, time=number * step_ms) for number, one in enumerate(each)
    ],
    arrivals,
    st.sampled_from([5, 7, 20, 50]),
)
batch_sizes = st.lists(st.integers(1, 20), min_size=1, max_size=10)


def batches(all_arrivals: list[Any], sizes: list[int]) -> list[list[Any]]:
    """Split arrivals into batches, cycling through the sizes."""
    found: list[list[Any]] = []
    at = 0
    while at < len(all_arrivals):
        size = sizes[len(found) % len(sizes)]
        found.append(all_arrivals[at : at + size])
        at += size
    return found


def as_batch(batch: list[Arrival], signatures: np.ndarray | None = None) -> Arrivals:
    """Return arrivals as `Arrivals`; without `signatures`, the ids are used as simhashes."""
    return Arrivals(
        exist=np.array([each.id is not None for each in batch], bool),
        signatures=from_hex(each.id or "0" * 16 for each in batch) if signatures is None else signatures,
        content_hashes=np.array([each.content_hash for each in batch], np.uint64),
        times_ms=np.array([each.time for each in batch], np.int64),
    )


def assert_follows_model(store: Store, model: Model, batch: list[Arrival]) -> None:
    answers = assign(store, as_batch(batch), now_ms=NOW_MS)
    assert [values_of(each) for each in answers] == [assigned_by(model, each) for each in batch]


def values_of(answer: Assignment) -> tuple[str, str | None, str | None, str | None, str | None, int, int]:
    """Return an assignment in the form that the model returns."""
    links = answer.part_of, answer.has_part
    return answer.kind.value, answer.node, answer.root, *links, answer.seq, answer.time_ms


def assigned_by(
    model: Model, arrival: Arrival
) -> tuple[str, str | None, str | None, str | None, str | None, int, int]:
    return model.assign(
        arrival.id, arrival.content_hash, arrival.time, now=NOW_MS, addresses=arrival.addresses
    )
