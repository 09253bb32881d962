"""Boilerplate representatives stop being indexed once too many nodes share them. Pure.

A representative is a key of the nodes that are indexed under it. A new node is indexed under those of its
keys that have fewer than `max_postings` postings made within the retention; the others are saturated. It
still finds the postings of a saturated key, and is itself found by its other keys. So no footer, disclaimer
or agency line, however common, makes a search expensive. Only the time when a posting was made counts, and
that never changes; so it does not matter how arrivals are cut into batches.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import Ages, Arrivals, Neighbours
from esdedup.neighbours.relation import Relation
from esdedup.neighbours.representatives import distances_bits


@dataclasses.dataclass(kw_only=True)
class _Postings:
    """The nodes indexed under one key."""

    # The `seen` that each of them got when it was made.
    made_seen_ms: list[int]
    # The positions of those that the batch made.
    arrivals: list[int] = dataclasses.field(default_factory=list)


class SaturatedKeys:
    """The keys of one batch that are saturated, or may be before the batch ends."""

    def __init__(self, arrivals: Arrivals, *, neighbours: Neighbours, relation: Relation, ages: Ages) -> None:
        """Find those keys, and the arrivals that have one or are near one.

        Args:
            arrivals: The batch.
            neighbours: What the store found near it, with the postings of its keys.
            relation: The profile's.
            ages: The batch's.
        """
        self._signatures = arrivals.signatures
        self._relation = relation
        self._ages = ages
        keys = relation.representatives(arrivals.signatures)
        is_own = relation.are_distinct(arrivals.signatures)
        is_own[[node_id is None for node_id in arrivals.ids]] = False
        self._postings = _possibly_saturated(keys[is_own], neighbours, relation.max_postings)
        saturated = np.array(list(self._postings), np.uint64)
        is_saturated = is_own & np.isin(keys, saturated)
        # bool (n, s): the keys under which each arrival is indexed if it makes a node.
        self.indexed = is_own & ~is_saturated
        # For a position in the batch: the places of its saturated keys, and those keys.
        self._own = {
            at: [(place, keys.item(at, place)) for place in np.flatnonzero(is_saturated[at]).tolist()]
            for at in np.flatnonzero(is_saturated.any(axis=1)).tolist()
        }
        # For a position in the batch: the saturated keys near one of its own.
        self._near = _near_keys(keys, is_own, saturated, relation)

    @property
    def near_arrivals(self) -> set[int]:
        """The positions of arrivals that have a key near a saturated one."""
        return set(self._near)

    def neighbours(self, at: int) -> list[int]:
        """Return the earlier positions near `at` that became nodes indexed under a saturated key."""
        others = sorted({other for key in self._near.get(at, ()) for other in self._postings[key].arrivals})
        if not others:
            return []
        agree = self._relation.agree(self._signatures[[at] * len(others)], self._signatures[others])
        return [other for other, does in zip(others, agree.tolist(), strict=True) if does]

    def add_postings(self, at: int) -> None:
        """Index an arrival that makes a node under its keys that are not saturated yet."""
        since_ms = self._ages.live_since_ms[at]
        for place, key in self._own.get(at, ()):
            postings = self._postings[key]
            count = sum(seen_ms >= since_ms for seen_ms in postings.made_seen_ms)
            if count < self._relation.max_postings:
                postings.made_seen_ms.append(self._ages.seen_ms[at])
                postings.arrivals.append(at)
                self.indexed[at, place] = True


def _possibly_saturated(
    keys: npt.NDArray[np.uint64], neighbours: Neighbours, max_postings: int
) -> dict[int, _Postings]:
    """Return the keys that may be saturated before the batch ends, with their stored postings."""
    if len(keys) + len(neighbours.posting_keys) < max_postings:
        return {}
    values, counts = np.unique(np.concatenate((keys, neighbours.posting_keys)), return_counts=True)
    saturated = values[counts >= max_postings]
    is_among = np.isin(neighbours.posting_keys, saturated)
    found = {key: _Postings(made_seen_ms=[]) for key in saturated.tolist()}
    stored = neighbours.posting_keys[is_among].tolist(), neighbours.postings_seen_ms[is_among].tolist()
    for key, seen_ms in zip(*stored, strict=True):
        found[key].made_seen_ms.append(seen_ms)
    return found


def _near_keys(
    keys: npt.NDArray[np.uint64],
    is_own: npt.NDArray[np.bool_],
    saturated: npt.NDArray[np.uint64],
    relation: Relation,
) -> dict[int, list[int]]:
    """Return, for each row of `keys`, the saturated keys that one of its own is near, if any."""
    if not len(saturated):
        return {}
    distances = distances_bits(keys[:, :, None], saturated, relation)
    are_near = (distances <= relation.max_distance_bits) & is_own[:, :, None]
    is_near: npt.NDArray[np.bool_] = np.any(are_near, axis=1)
    return {at: saturated[is_near[at]].tolist() for at in np.flatnonzero(is_near.any(axis=1)).tolist()}
