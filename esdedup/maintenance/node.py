"""What a forest keeps of one text: its node."""

import pydantic

from esdedup.elastic.forest.index import ForestIndex
from esdedup.forest.model import NO_TIME
from esdedup.times import iso


class ForestNode(pydantic.BaseModel, frozen=True):
    """A node of a forest."""

    id: str
    # The id of the root of its tree; its own for a root.
    root: str
    is_root: bool
    is_live: bool
    # The live leaves of its tree.
    live_leaves: int
    # The number of the arrival that made it.
    seq: int
    # In the forest's time, ISO 8601; None where that was not known. `seen` is rounded up.
    made: str | None
    seen: str | None
    # Until when it lives if no article needs it again.
    lives_until: str | None


def node_of(index: ForestIndex, node_id: str) -> ForestNode | None:
    """Return a node of a forest, None if the forest has none of that id."""
    found = next(iter(index.run(index.nodes.by_id([node_id]))), None)
    if found is None:
        return None
    status = index.status()
    live_since_ms = status.live_since_ms(status.aging)
    until_ms = NO_TIME if found.seen_ms == NO_TIME else found.seen_ms + status.aging.retention_ms
    return ForestNode(
        id=found.id,
        root=found.root,
        is_root=found.is_root,
        is_live=found.seen_ms >= live_since_ms,
        live_leaves=index.run(index.nodes.count_leaves(found.root, live_since_ms)),
        seq=found.seq,
        made=_moment(found.made_ms),
        seen=_moment(found.seen_ms),
        lives_until=_moment(until_ms),
    )


def _moment(time_ms: int) -> str | None:
    return None if time_ms == NO_TIME else iso(time_ms)
