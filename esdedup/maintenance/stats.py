"""The statistics of a forest, and the node of one text."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pydantic

from esdedup.elastic.forest.expiry import count_expired
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedLog, read_learned
from esdedup.elastic.forest.stored import StoredNode, signatures_of
from esdedup.elastic.limits import MAX_HITS
from esdedup.errors import ArticleRejected, ForestDamaged
from esdedup.fingerprint.profile import profile_labelled
from esdedup.fingerprint.simhash import from_hex
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES
from esdedup.forest.model import NO_TIME
from esdedup.maintenance.stored_texts import StoredTexts
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.relation import Relation, Representatives
from esdedup.times import DAY_MS, iso

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


_DAYS_SHOWN = 14
_LARGEST_SHOWN = 10
_SHARED_SHOWN = 5
# Fewer trees than this may share a representative by chance, even if all their texts are alike.
_MANY_TREES = 10


class Cluster(pydantic.BaseModel, frozen=True):
    """A cluster, named by its root."""

    root: str
    leaves: int


class ImplausibleCluster(Cluster, frozen=True):
    """A cluster with more live leaves than one story can plausibly have."""

    # The representative that most of its leaves share; None if the leaves have just been deleted.
    shared: SharedRepresentative | None


class Placeholder(pydantic.BaseModel, frozen=True):
    """A cluster of a short text that many sites publish under unrelated titles."""

    root: str
    articles: int


class Day(pydantic.BaseModel, frozen=True):
    """The nodes of one UTC day of the forest's time."""

    day: str
    # Nodes made on that day.
    made: int
    # Nodes last seen on that day.
    last_needed: int


class ForestNode(pydantic.BaseModel, frozen=True):
    """A node of a forest."""

    id: str
    # The id of the root of its tree; a root has its own id.
    root: str
    is_root: bool
    is_live: bool
    # The number of live leaves in its tree.
    live_leaves: int
    # The seq of the article that made it.
    seq: int
    # When it was made and last seen, in the forest's time (ISO 8601); None if unknown. `seen` is rounded up.
    made: str | None
    seen: str | None
    # When it expires unless another article uses it.
    lives_until: str | None


class LearnedStats(pydantic.BaseModel, frozen=True):
    """The amount and the size of a forest's learned boilerplate."""

    # The number of pages from which the forest has learned, and the number of these that it remembers.
    pages: int
    remembered_pages: int
    # The number of passages that are boilerplate.
    boilerplate: int
    # Memory in each process that holds the learned boilerplate.
    memory_bytes: int
    # The number of documents in the forest's index, and their size before compression.
    documents: int
    document_bytes: int


class Stats(pydantic.BaseModel, frozen=True):
    """The statistics of a forest; times are ISO 8601, None if unknown."""

    profile: str
    nodes: int
    trees: int
    # Expired nodes that can be deleted; in a log, only nodes whose whole document has expired.
    expired: int
    # The number of arrivals so far.
    seq: int
    time: str | None
    retention_days: float
    size_bytes: int
    bytes_a_node: float
    # The share of the nodes that memory can hold; None if nodes are searched for. The owner may hold fewer.
    filled: float | None
    # The number of trees, by their number of leaves: 0, 1, 2-3, 4-7 and so on.
    trees_by_leaves: dict[str, int]
    largest: tuple[Cluster, ...]
    # The number of live leaves above which a cluster is implausible, the largest such clusters, their number.
    most_plausible_leaves: int
    implausible: tuple[ImplausibleCluster, ...]
    implausible_trees: int
    # Representatives that many trees in a random sample share, such as those of a template's sentences.
    shared_by_trees: tuple[SharedRepresentative, ...]
    # The latest days of the forest's time.
    days: tuple[Day, ...]
    # Nodes made in the last seven days of the forest's time, divided by the number of older nodes.
    growth_7_days: float | None
    # Likely placeholders among the 20 largest clusters of short texts; empty if no indices are given.
    placeholders: tuple[Placeholder, ...]
    # The number of articles in the indices that have no root; None if no indices are given.
    not_enriched: int | None
    # The learned boilerplate; None if it is damaged.
    learned: LearnedStats | None


def node_of(index: ForestIndex, node_id: str) -> ForestNode | None:
    """Return a node of a forest; None if the forest has no node with that id."""
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


def learned_stats(index: ForestIndex) -> LearnedStats | None:
    """Measure a forest's learned boilerplate; None if it is damaged, which `verify` reports."""
    try:
        found = index.run(read_learned(index.name))
        boilerplate = LearnedLog(index.name, found).boilerplate
    except ForestDamaged:
        return None
    return LearnedStats(
        pages=boilerplate.last_page,
        remembered_pages=boilerplate.last_page - boilerplate.former_from + 1,
        boilerplate=len(boilerplate.learned()),
        memory_bytes=boilerplate.size_bytes,
        documents=sum(each.last - each.first + 1 for each in found),
        document_bytes=sum(each.size_bytes for each in found),
    )


def stats(index: ForestIndex, texts: StoredTexts | None, *, not_enriched: int | None) -> Stats:
    """Read the statistics of a forest as of its last refresh; `texts` reads the forest's articles."""
    profile = profile_labelled(index.meta.profile)
    explainer = None if profile is None else Explainer(profile)
    shared_representatives = SharedRepresentatives(relation=index.relation, texts=texts, explainer=explainer)
    status = index.status()
    live_since_ms = status.live_since_ms(status.aging)
    time_ms = status.state.time_ms
    new_since_ms = NO_TIME if time_ms == NO_TIME else time_ms - 7 * DAY_MS
    counts = index.run(index.nodes.counts(new_since_ms=new_since_ms, live_since_ms=live_since_ms))
    sizes = collections.Counter(index.run(index.nodes.leaves_by_root()))
    implausible: list[tuple[str, int]] = []
    if max(sizes.values(), default=0) > MOST_PLAUSIBLE_LEAVES:
        live_leaves = index.run(index.nodes.leaves_by_root(live_since_ms))
        implausible = [each for each in live_leaves.items() if each[1] > MOST_PLAUSIBLE_LEAVES]
        implausible.sort(key=lambda each: (-each[1], each[0]))
    random_nodes = index.run(index.nodes.random_nodes(MAX_HITS))
    shared_by_trees = shared_representatives.find(random_nodes, most=_SHARED_SHOWN, by_tree=True)

    def most_shared(root: str) -> SharedRepresentative | None:
        leaves = index.run(index.nodes.some_leaves(root, live_since_ms))
        return next(iter(shared_representatives.find(leaves, most=1, by_tree=False)), None)

    size_bytes, old_nodes = index.size_bytes(), counts.nodes - counts.new
    made, last_needed = counts.made_by_day, counts.seen_by_day
    return Stats(
        profile=index.meta.profile,
        nodes=counts.nodes,
        trees=counts.trees,
        expired=(gone := count_expired(index, status.aging)).leaves + gone.roots,
        seq=status.state.seq,
        time=_moment(status.state.time_ms),
        retention_days=round(status.aging.retention_ms / DAY_MS, 3),
        size_bytes=size_bytes,
        bytes_a_node=round(size_bytes / counts.nodes, 1) if counts.nodes else 0.0,
        filled=round(counts.nodes / index.relation.most_nodes, 4) if index.meta.is_log else None,
        trees_by_leaves=_by_leaves(sizes, counts.trees),
        largest=tuple(
            Cluster(root=root, leaves=leaves) for root, leaves in sizes.most_common(_LARGEST_SHOWN)
        ),
        most_plausible_leaves=MOST_PLAUSIBLE_LEAVES,
        implausible=tuple(
            ImplausibleCluster(root=root, leaves=leaves, shared=most_shared(root))
            for root, leaves in implausible[:_LARGEST_SHOWN]
        ),
        implausible_trees=len(implausible),
        shared_by_trees=tuple(shared for shared in shared_by_trees if shared.trees >= _MANY_TREES),
        days=tuple(
            Day(day=iso(day)[:10], made=made.get(day, 0), last_needed=last_needed.get(day, 0))
            for day in sorted(made.keys() | last_needed.keys())[-_DAYS_SHOWN:]
        ),
        growth_7_days=round(counts.new / old_nodes, 4) if old_nodes > 0 else None,
        placeholders=tuple(
            Placeholder(root=root, articles=articles)
            for root, articles in (() if texts is None else texts.placeholders())
        ),
        not_enriched=not_enriched,
        learned=learned_stats(index),
    )


def _by_leaves(sizes: dict[str, int], trees: int) -> dict[str, int]:
    powers = collections.Counter(leaves.bit_length() - 1 for leaves in sizes.values())
    # `sizes` may have more entries than there are trees, since leaves may have lost their roots.
    counts = {"0": max(0, trees - len(sizes))}
    for power in range(max(powers, default=-1) + 1):
        low, high = 1 << power, (2 << power) - 1
        counts[str(low) if low == high else f"{low}-{high}"] = powers[power]
    return counts


def _moment(time_ms: int) -> str | None:
    return None if time_ms == NO_TIME else iso(time_ms)
