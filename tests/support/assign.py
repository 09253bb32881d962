"""Assigns arrivals without learning from their texts."""

from collections.abc import Sequence

from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED, Profile
from esdedup.forest import Aging, Arrivals, Assignment, Store, begin, decide
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.times import DAY_MS


def assign(store: Store, arrivals: Arrivals, *, now_ms: int) -> list[Assignment]:
    """Assign every arrival of a batch; return when the assignments are durable."""
    begin(store)
    decision = decide(store, arrivals, now_ms=now_ms)
    decision.written.result()
    return decision.assignments


def assigned(
    texts: Sequence[str],
    profile: Profile = VERIFIED,
    *,
    days: Sequence[int] | None = None,
    origins: Sequence[int] = (),
) -> list[Assignment]:
    """Assign texts, in this order, in a new forest in memory with a retention of a week.

    Args:
        texts: The texts.
        profile: The profile of the forest.
        days: The day on which each text was published; None means that no text has a date.
        origins: The bits that encode each text's address and id.
    """
    times_ms = [None] * len(texts) if days is None else [day * DAY_MS for day in days]
    found = Fingerprinter(profile).fingerprint(texts)
    arrivals = Arrivals.of(found, times_ms=times_ms, origins=origins)
    store = MemoryStore(aging=Aging(retention_ms=7 * DAY_MS, granularity_ms=1), relation=relation_of(profile))
    return assign(store, arrivals, now_ms=400 * DAY_MS)
