"""Finds the representatives that nodes share most often, and the sentences they were computed from."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pydantic

from esdedup.elastic.forest.stored import StoredNode, signatures_of
from esdedup.errors import ArticleRejected
from esdedup.fingerprint.simhash import from_hex
from esdedup.maintenance.stored_texts import StoredTexts
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.relation import Relation, Representatives

_Kind = Literal["sentence", "minhash", "words"]

# Only the most frequent representatives are compared with each other.
_MAX_COMPARED = 1_000
# Maximum number of nodes whose articles are searched for.
_MAX_NODES_READ = 100


class SharedRepresentative(pydantic.BaseModel, frozen=True):
    """A representative that many of the examined nodes have, counting near representatives as equal."""

    simhash: str
    # How many nodes have it, how many nodes were examined, and how many trees have nodes with it.
    nodes: int
    examined: int
    trees: int
    # Its kind, and the sentence from which it was computed in an article that has it; for a minhash,
    # `sentence` is the article's first long sentence. None if there is no such article.
    kind: _Kind | None
    sentence: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedRepresentatives:
    """Finds the representatives that nodes share, and their sentences if there are texts and an explainer."""

    relation: Relation
    texts: StoredTexts | None
    explainer: Explainer | None

    def find(self, nodes: Sequence[StoredNode], *, most: int, by_tree: bool) -> list[SharedRepresentative]:
        """Find at most `most` shared representatives, the most frequent first, counting nodes or trees."""
        if not nodes:
            return []
        representatives = self.relation.representatives(signatures_of(nodes, self.relation))
        owners = [node.root if by_tree else node.id for node in nodes]
        common, frequencies = _most_frequent(owners, representatives)
        centres = self._centres(common, frequencies)
        return [self._describe(centre, nodes, representatives) for centre in itertools.islice(centres, most)]

    def _centres(
        self, representatives: Representatives, frequencies: npt.NDArray[np.int64]
    ) -> Iterator[np.uint64]:
        """Cluster greedily: yield the value near most owners' values, drop all values near it, and repeat."""
        is_near = self._are_near(representatives[:, None], representatives[None, :])
        left = frequencies.copy()
        while left.any():
            # A removed representative cannot become a centre.
            centre = int((is_near @ left * (left > 0)).argmax())
            left[is_near[centre]] = 0
            yield representatives[centre]

    def _are_near(self, one: Representatives, other: Representatives) -> npt.NDArray[np.bool_]:
        return self.relation.distances_bits(one, other) <= self.relation.max_distance_bits

    def _describe(
        self, centre: np.uint64, nodes: Sequence[StoredNode], representatives: Representatives
    ) -> SharedRepresentative:
        is_near = self._are_near(representatives, np.array([centre])).any(axis=1)
        sharing = [nodes[at] for at in np.flatnonzero(is_near).tolist()]
        kind, sentence = self._sentence(centre, sharing)
        return SharedRepresentative(
            simhash=f"{int(centre):016x}",
            nodes=len(sharing),
            examined=len(nodes),
            trees=len({node.root for node in sharing}),
            kind=kind,
            sentence=sentence,
        )

    def _sentence(self, centre: np.uint64, sharing: Sequence[StoredNode]) -> tuple[_Kind | None, str | None]:
        """Return the kind and passage of the representative nearest to `centre`, in one node's article."""
        if self.texts is None or self.explainer is None:
            return None, None
        try:
            article = self.texts.by_fingerprint([node.id for node in sharing[:_MAX_NODES_READ]])
        except ArticleRejected:
            article = None
        represented = self.explainer.representatives(article.text) if article is not None else []
        if not represented:
            return None, None
        theirs = from_hex(each.simhash for each in represented)
        nearest = represented[int(self.relation.distances_bits(theirs, np.array([centre])).argmin())]
        return nearest.kind, nearest.passage or represented[0].passage


def _most_frequent(
    owners: Sequence[str], representatives: Representatives
) -> tuple[Representatives, npt.NDArray[np.int64]]:
    """Return the representatives with the most owners, and the number of owners of each."""
    rows = representatives.tolist()
    pairs = {(owner, value) for owner, row in zip(owners, rows, strict=True) for value in row}
    counts = collections.Counter(value for _, value in pairs)
    # On a tie, prefer the first value in a signature, since a sentence is easier to read than a minhash.
    places = {value: place for row in rows for place, value in reversed(list(enumerate(row)))}
    ranked = sorted(counts, key=lambda each: (-counts[each], places[each], each))[:_MAX_COMPARED]
    return np.array(ranked, np.uint64), np.array([counts[each] for each in ranked], np.int64)
