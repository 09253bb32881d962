"""Nodes in memory."""

import numpy as np
import pytest

from esdedup.errors import SettingError
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest.memory_nodes import MemoryNodes
from esdedup.forest.model import NO_PAGE, NO_TIME, Aging, Arrivals, Nodes
from esdedup.neighbours.relation import relation_of

_RELATION = relation_of(CLASSIC)
_MINUTE_MS = 60_000


def nodes_seen(seen_ms: list[int]) -> tuple[Nodes, Arrivals]:
    """Return roots that were seen then, and arrivals with their texts."""
    count = len(seen_ms)
    signatures = np.arange(1, count + 1, dtype="<u8") * np.uint64(0x9E3779B97F4A7C15)
    ids, times_ms = _RELATION.ids(signatures), np.array(seen_ms, np.int64)
    pages = np.full(count, NO_PAGE, np.uint64)
    nodes = Nodes(
        ids=ids,
        signatures=signatures,
        roots=np.arange(count),
        seqs=np.arange(count, 0, -1),
        made_ms=times_ms,
        seen_ms=times_ms,
        pages=pages,
        pages_seen_ms=times_ms,
        places=np.arange(count),
    )
    return nodes, Arrivals(ids=ids, signatures=signatures, pages=pages, times_ms=times_ms)


def in_memory(granularity_ms: int) -> MemoryNodes:
    aging = Aging(retention_ms=granularity_ms, granularity_ms=granularity_ms)
    return MemoryNodes(aging=aging, relation=_RELATION, for_documents=True)


def test_nodes_may_be_added_in_any_order_of_their_times() -> None:
    """As they are when they are loaded; found, they are in the order in which they were made."""
    seen_ms = [50 * _MINUTE_MS, NO_TIME, 90 * _MINUTE_MS, -30 * _MINUTE_MS, 0]
    nodes, arrivals = nodes_seen(seen_ms)
    kept = in_memory(_MINUTE_MS)
    for at in range(len(nodes)):
        kept.add(nodes, np.array([at]))
    found = kept.find_neighbours(arrivals, live_since_ms=NO_TIME).nodes
    assert found.seen_ms.tolist() == found.pages_seen_ms.tolist() == seen_ms[::-1]
    assert found.seqs.tolist() == [1, 2, 3, 4, 5]
    assert found.ids == nodes.ids[::-1]


def test_what_has_expired_is_forgotten_and_its_rows_are_used_again() -> None:
    nodes, arrivals = nodes_seen([0, 10, 20, NO_TIME])
    kept = in_memory(10)
    rows = kept.add(nodes, np.arange(4))
    kept.forget(NO_TIME)
    assert len(kept) == 4
    kept.forget(20)
    assert len(kept) == 1
    found = kept.find_neighbours(arrivals, live_since_ms=20)
    assert (found.arrivals.tolist(), found.nodes.ids) == ([2], [nodes.ids[2]])
    assert set(kept.add(nodes, np.array([0, 1, 3])).tolist()) <= set(rows.tolist())


def test_a_time_that_is_too_long_for_the_granularity_is_refused() -> None:
    nodes, _ = nodes_seen([0, 2**40])
    with pytest.raises(SettingError, match="make it coarser"):
        in_memory(1).add(nodes, np.arange(2))
