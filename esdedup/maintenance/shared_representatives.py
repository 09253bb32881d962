"""Finds the representatives that a set of nodes shares most, and the sentences behind them."""

import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pydantic

from esdedup.elastic.forest.documents import StoredNode
from esdedup.errors import ArticleRejected
from esdedup.fingerprint.simhash import distance_bits
from esdedup.maintenance.stored_texts import StoredTexts
from esdedup.neighbours.explainer import Explainer

Simhashes = npt.NDArray[np.uint64]
_Kind = Literal["sentence", "minhash", "words"]

# Only the most frequent simhashes are compared with each other.
_MOST_COMPARED = 1_000
# Only the articles of so many nodes are searched for.
_MOST_NODES_READ = 100


class SharedRepresentative(pydantic.BaseModel, frozen=True):
    """A representative that many of the examined nodes have; simhashes within the distance count as equal."""

    simhash: str
    # How many nodes have it, how many were examined, and in how many trees the former are.
    nodes: int
    examined: int
    trees: int
    # What it was computed from, in an article that has it; for a minhash, `sentence` is the article's
    # first long sentence. None if no such article is available.
    kind: _Kind | None
    sentence: str | None


class SharedRepresentatives:
    """Finds the representatives that nodes of one forest share."""

    def __init__(
        self, *, max_distance_bits: int, texts: StoredTexts | None, explainer: Explainer | None
    ) -> None:
        """Compare simhashes by the rules of one forest.

        Args:
            max_distance_bits: Two simhashes count as one up to this distance, inclusive.
            texts: The articles of the forest, to show sentences; None: simhashes only.
            explainer: For the forest's profile; None if that profile is unknown.
        """
        self._max_distance_bits = max_distance_bits
        self._texts = texts
        self._explainer = explainer

    def find(
        self, nodes: Sequence[StoredNode], simhashes: Simhashes, *, most: int, by_tree: bool
    ) -> list[SharedRepresentative]:
        """Find the most shared representatives, the most shared one first.

        Args:
            nodes: The nodes.
            simhashes: Their simhashes, uint64 ``(n, s)``.
            most: The most representatives to return.
            by_tree: Rank by the number of trees that share them instead of the number of nodes.
        """
        if not nodes:
            return []
        owners = [node.root if by_tree else node.id for node in nodes]
        common, frequencies = _most_frequent(owners, simhashes)
        centres = self._centres(common, frequencies)
        return [self._describe(centre, nodes, simhashes) for centre in itertools.islice(centres, most)]

    def _centres(self, simhashes: Simhashes, frequencies: npt.NDArray[np.int64]) -> Iterator[np.uint64]:
        """Cluster simhashes greedily: yield the one with the most owners nearby, remove those, repeat."""
        is_near = distance_bits(simhashes[:, None], simhashes[None, :]) <= self._max_distance_bits
        left = frequencies.copy()
        while left.any():
            # A simhash that has been removed cannot become a centre.
            centre = int((is_near @ left * (left > 0)).argmax())
            left[is_near[centre]] = 0
            yield simhashes[centre]

    def _describe(
        self, simhash: np.uint64, nodes: Sequence[StoredNode], simhashes: Simhashes
    ) -> SharedRepresentative:
        is_near = (distance_bits(simhashes, np.array([simhash])) <= self._max_distance_bits).any(axis=1)
        sharing = [nodes[at] for at in np.flatnonzero(is_near).tolist()]
        kind, sentence = self._sentence(int(simhash), sharing)
        return SharedRepresentative(
            simhash=f"{int(simhash):016x}",
            nodes=len(sharing),
            examined=len(nodes),
            trees=len({node.root for node in sharing}),
            kind=kind,
            sentence=sentence,
        )

    def _sentence(self, simhash: int, sharing: Sequence[StoredNode]) -> tuple[_Kind | None, str | None]:
        """Return the kind and the passage of the representative nearest to a simhash, in one article."""
        if self._texts is None or self._explainer is None:
            return None, None
        try:
            article = self._texts.by_fingerprint([node.id for node in sharing[:_MOST_NODES_READ]])
        except ArticleRejected:
            article = None
        represented = self._explainer.representatives(article.text) if article is not None else []
        if not represented:
            return None, None
        nearest = min(represented, key=lambda each: (int(each.simhash, 16) ^ simhash).bit_count())
        return nearest.kind, nearest.passage or represented[0].passage


def _most_frequent(owners: Sequence[str], simhashes: Simhashes) -> tuple[Simhashes, npt.NDArray[np.int64]]:
    """Return the simhashes with the most owners, and how many each has; an owner counts once a simhash."""
    rows = simhashes.tolist()
    pairs = {(owner, simhash) for owner, row in zip(owners, rows, strict=True) for simhash in row}
    counts = collections.Counter(simhash for _, simhash in pairs)
    # Ties go to the simhash that comes first in a signature: a sentence reads better than a minhash.
    places = {simhash: place for row in rows for place, simhash in reversed(list(enumerate(row)))}
    ranked = sorted(counts, key=lambda each: (-counts[each], places[each], each))[:_MOST_COMPARED]
    return np.array(ranked, np.uint64), np.array([counts[each] for each in ranked], np.int64)
