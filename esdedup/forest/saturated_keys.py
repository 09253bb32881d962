"""What too many texts carry is not what they are found by: footers, disclaimers, agency lines.

A node is indexed under each of its representatives, and found by it, unless the nodes indexed under the same
one that were made within the retention are a crowd already. Whoever comes later still finds the crowd by
it, and is found by the rest of its own representatives. So no sentence, however common, makes a look-up
dear. Only when a node was made counts, which never changes; how arrivals are cut into batches does not.
"""

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import Ages, Arrivals, Neighbours
from esdedup.neighbours.relation import Relation


class SaturatedKeys:
    """The representatives of one batch that a crowd carries, or may carry before the batch ends."""

    def __init__(
        self,
        arrivals: Arrivals,
        *,
        near: Neighbours,
        relation: Relation,
        ages: Ages,
    ) -> None:
        """Prepare.

        Args:
            arrivals: The batch.
            near: What the store found; its postings are looked at.
            relation: The profile's.
            ages: Of the arrivals.
        """
        self._signatures = arrivals.signatures
        self._relation = relation
        self._ages = ages
        simhashes = relation.simhashes(arrivals.signatures)
        is_own = relation.are_distinct(arrivals.signatures)
        is_own[[node_id is None for node_id in arrivals.ids]] = False
        saturated, postings = _saturated(simhashes[is_own], near, relation.max_postings)
        # The `seen` of those indexed under each, when they were made; and the arrivals among them.
        self._carriers = postings
        self._listed: dict[int, list[int]] = {value: [] for value in postings}
        is_saturated = is_own & np.isin(simhashes, saturated)
        # bool (n, s): under which representatives each arrival is indexed if it makes a node.
        self.indexed = is_own & ~is_saturated
        self._saturated_places = {
            at: [(place, int(simhashes[at, place])) for place in np.flatnonzero(is_saturated[at]).tolist()]
            for at in np.flatnonzero(is_saturated.any(axis=1)).tolist()
        }
        self._near_saturated: dict[int, list[int]] = {}
        if len(saturated):
            apart = np.bitwise_count(simhashes[:, :, None] ^ saturated)
            is_near = ((apart <= relation.max_distance_bits) & is_own[:, :, None]).any(axis=1)
            self._near_saturated = {
                at: saturated[is_near[at]].tolist() for at in np.flatnonzero(is_near.any(axis=1)).tolist()
            }

    @property
    def met(self) -> set[int]:
        """The arrivals that have a representative near a crowd's."""
        return set(self._near_saturated)

    def neighbours(self, at: int) -> list[int]:
        """Return the arrivals before it, nodes indexed under a representative of a crowd, that agree."""
        others = sorted(
            {other for value in self._near_saturated.get(at, ()) for other in self._listed[value]}
        )
        if not others:
            return []
        agree = self._relation.agree(self._signatures[[at] * len(others)], self._signatures[others])
        return [other for other, does in zip(others, agree.tolist(), strict=True) if does]

    def enter(self, at: int) -> None:
        """Note that an arrival makes a node: list it wherever there is no crowd yet."""
        since_ms = self._ages.live_since_ms[at]
        for place, value in self._saturated_places.get(at, ()):
            if sum(seen_ms >= since_ms for seen_ms in self._carriers[value]) < self._relation.max_postings:
                self._carriers[value].append(self._ages.seen_ms[at])
                self._listed[value].append(at)
                self.indexed[at, place] = True


def _saturated(
    simhashes: npt.NDArray[np.uint64], near: Neighbours, max_postings: int
) -> tuple[npt.NDArray[np.uint64], dict[int, list[int]]]:
    """Return the representatives whose postings may come to be so many, and the postings' `seen`."""
    if len(simhashes) + len(near.posting_keys) < max_postings:
        return simhashes[:0], {}
    values, counts = np.unique(np.concatenate((simhashes, near.posting_keys)), return_counts=True)
    saturated = values[counts >= max_postings]
    postings: dict[int, list[int]] = {value: [] for value in saturated.tolist()}
    of_crowds = np.isin(near.posting_keys, saturated)
    for value, seen_ms in zip(
        near.posting_keys[of_crowds].tolist(), near.postings_seen_ms[of_crowds].tolist(), strict=True
    ):
        postings[value].append(seen_ms)
    return saturated, postings
