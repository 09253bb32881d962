"""What many nodes have in common: the representative that most of them share, and its sentence."""

import collections
from collections.abc import Sequence
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

# Of the simhashes of many nodes, those that occur most are compared with each other.
_COMPARED = 1_000
# Nodes whose articles are looked for.
_ASKED_FOR = 100


class Shared(pydantic.BaseModel, frozen=True):
    """The representative that most of some nodes have."""

    simhash: str
    # How many have it, or one near it, of how many that were looked at; and of how many trees those are.
    nodes: int
    looked_at: int
    trees: int
    # What it is of, in an article that has it; for a minhash of the wording, the article's first
    # long sentence. None where no article is at hand.
    kind: Literal["sentence", "minhash", "words"] | None
    sentence: str | None


class SharedFinder:
    """Finds what nodes of one forest share, and says it in words where articles are at hand."""

    def __init__(
        self, *, max_distance_bits: int, texts: StoredTexts | None, explainer: Explainer | None
    ) -> None:
        """Prepare.

        Args:
            max_distance_bits: Between two simhashes that count as one, inclusive.
            texts: The articles of the forest; None: simhashes have to do.
            explainer: Of the forest's profile, None if that is not known.
        """
        self._max_distance_bits = max_distance_bits
        self._texts = texts
        self._explainer = explainer

    def find(
        self, stored: Sequence[StoredNode], simhashes: Simhashes, *, most: int, by_tree: bool
    ) -> list[Shared]:
        """Find the simhashes that are shared most, each once, with those near it.

        Args:
            stored: The nodes.
            simhashes: Theirs, uint64 ``(n, s)``.
            most: How many are wanted; the most shared come first.
            by_tree: Whether it counts how many trees share them, instead of how many nodes.
        """
        if not stored:
            return []
        names = [node.root if by_tree else node.id for node in stored]
        posting_keys = {
            (name, each) for name, own in zip(names, simhashes.tolist(), strict=True) for each in own
        }
        counts = collections.Counter(simhash for _, simhash in posting_keys)
        # Among equals what stands first in a signature: a sentence tells more than a minhash.
        places = {each: place for own in simhashes.tolist() for place, each in reversed(list(enumerate(own)))}
        order = sorted(counts, key=lambda each: (-counts[each], places[each], each))[:_COMPARED]
        common = np.array(order, np.uint64)
        weights = np.array([counts[each] for each in order])
        near = distance_bits(common[:, None], common[None, :]) <= self._max_distance_bits
        found: list[Shared] = []
        while len(found) < most and weights.any():
            # One that was counted for another counts no more.
            middle = int((near @ weights * (weights > 0)).argmax())
            weights[near[middle]] = 0
            found.append(self._shared(common[[middle]], stored, simhashes))
        return found

    def _shared(self, simhash: Simhashes, stored: Sequence[StoredNode], simhashes: Simhashes) -> Shared:
        is_near = (distance_bits(simhashes, simhash) <= self._max_distance_bits).any(axis=1)
        having = [stored[at] for at in np.flatnonzero(is_near).tolist()]
        kind, sentence = self._sentence(int(simhash[0]), having)
        return Shared(
            simhash=f"{int(simhash[0]):016x}",
            nodes=len(having),
            looked_at=len(stored),
            trees=len({node.root for node in having}),
            kind=kind,
            sentence=sentence,
        )

    def _sentence(
        self, simhash: int, having: Sequence[StoredNode]
    ) -> tuple[Literal["sentence", "minhash", "words"] | None, str | None]:
        if self._texts is None or self._explainer is None:
            return None, None
        try:
            article = self._texts.by_fingerprint([node.id for node in having[:_ASKED_FOR]])
        except ArticleRejected:
            article = None
        represented = self._explainer.representatives(article.text) if article is not None else []
        if not represented:
            return None, None
        nearest = min(represented, key=lambda each: (int(each.simhash, 16) ^ simhash).bit_count())
        return nearest.kind, nearest.passage or represented[0].passage
