"""Assigns arrivals without learning from their texts."""

from esdedup.forest import Arrivals, Assignment, Store, begin, decide


def assign(store: Store, arrivals: Arrivals, *, now_ms: int) -> list[Assignment]:
    """Give every arrival of a batch its root; return when that is durable."""
    begin(store)
    decision = decide(store, arrivals, now_ms=now_ms)
    decision.written.result()
    return decision.assignments
