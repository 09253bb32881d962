"""Reads the nodes that a batch needs, and looks up a text's cluster without changing the forest."""

from collections.abc import Mapping

import numpy as np

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, without_placeholders
from esdedup.elastic.forest.article_nodes import ArticleNodes
from esdedup.elastic.forest.batch import read_batch
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.meta import Meta, read_meta, refuse_others
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.forest.status import read_status
from esdedup.elastic.forest.stored import HASH_PREFIX, hash_name, packed_by_id
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.elastic.requests import AskOwner, ReadClock, Requests, refresh
from esdedup.errors import ForestMissing
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import NO_TIME, Aging, Arrivals, Assignment, Nodes, State
from esdedup.text.left_out import LeftOut
from esdedup.text.parsed import left_out

# The first round loads the nodes of content hashes, the second round loads the roots of these nodes.
_ROUNDS = 2


def gather(
    search: NodeSearch | ArticleNodes,
    arrivals: Arrivals,
    *,
    recent: Mapping[str, bytes],
    state: State,
    aging: Aging,
    now_ms: int,
) -> Requests[Nodes]:
    """Find the nodes that a batch needs: live near nodes, nodes of known content hashes, and all their roots.

    If the relation counts leaves, also find the leaves of contested roots, whose counts decide. `recent` has
    packed nodes and content hashes that a search may not show yet, by document id.
    """
    live_since_ms = state.live_since_ms(aging)
    names = {hash_name(each) for each in np.unique(arrivals.content_hashes).tolist()}
    signatures = arrivals.signatures[arrivals.exist]
    found = yield from search.packed_candidates(signatures, hashes=sorted(names), live_since_ms=live_since_ms)
    # Leave out content hashes that are not in this batch, since their nodes were not searched for.
    known = {f"{HASH_PREFIX}{name}" for name in names}
    newer = [each for name, each in recent.items() if name in known or not name.startswith(HASH_PREFIX)]
    with_leaves: set[str] = set()
    while True:
        nodes = Nodes(search.relation, aging)
        # Drop expired nodes, whose roots may also have expired, and may now be leaves of other trees.
        nodes.load([*found, *newer], live_since_ms=live_since_ms)
        yield from load_missing(nodes, search, live_since_ms=live_since_ms)
        if not search.relation.counts_leaves:
            return nodes
        # Until all leaves of contested roots are loaded, decisions from the first contest on may be wrong.
        nodes.assign(arrivals, state, now_ms=now_ms)
        contested = set(nodes.contested()) - with_leaves
        nodes.undo()
        if not contested:
            return nodes
        with_leaves |= contested
        leaves = yield from search.leaves(contested, live_since_ms)
        found += map(search.relation.core.pack, leaves)


def load_missing(nodes: Nodes, search: NodeSearch | ArticleNodes, *, live_since_ms: int) -> Requests[None]:
    """Load the missing roots of leaves and the missing nodes of content hashes, then call `settle`."""
    pack = search.relation.core.pack
    for _ in range(_ROUNDS):
        roots, of_hashes = nodes.missing()
        # In a damaged forest, a root may have expired before its leaf.
        for ids, since_ms in ((set(roots), NO_TIME), (set(of_hashes) - set(roots), live_since_ms)):
            found = yield from search.by_id(ids)
            nodes.load([pack(each) for each in found], live_since_ms=since_ms)
    nodes.settle()


def reader_nodes(
    forest: str, meta: Meta, aging: Aging, *, index: str, fields: Fields, limits: Limits = DEFAULT_LIMITS
) -> NodeSearch | ArticleNodes:
    """Return how readers find a forest's nodes: in its index or, if it has a log, in its articles."""
    if not meta.is_log:
        return NodeSearch(forest=forest, relation=meta.relation, layout=meta.key_layout, limits=limits)
    return ArticleNodes(index=index, fields=fields, profile=meta.profile, relation=meta.relation, aging=aging)


def look_up(
    text: str,
    *,
    index: str,
    fields: Fields,
    forest: str,
    profile: Profile,
    learned: LearnedCopy,
    overrides: Overrides = NO_OVERRIDES,
    site: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Requests[tuple[Assignment, bool]]:
    """Return the assignment that a text would get if it arrived now, and whether it is exact.

    Reads the forest as of the last refresh. If the forest has a log, asks its owner, provided that the owner
    is in this process; otherwise reads articles, which gives an approximation.

    Args:
        text: A text, with or without markup.
        learned: The boilerplate that the forest has learned; it is updated.
        overrides: The overrides of the process that feeds the forest.
        site: The site of the text; None if it is not known.
    """
    meta = yield from _meta(forest, profile)
    # The owner refreshes the index only when it needs to search.
    yield from refresh(forest)
    now_ms = yield ReadClock()
    if not profile.keep_boilerplate:
        yield from learned.update(forest)
    status = yield from read_status(forest)
    batch = yield from read_batch(forest, meta)
    if meta.is_log:
        # Ask only now, after the reads above have shown that the caller may read the forest.
        decided: Assignment | None = yield AskOwner(text=text, site=site)
        if decided is not None:
            return decided, True
    with learned.filter_on(site, overrides) as passage_filter:
        fingerprints = Fingerprinter(profile).fingerprint([text], passage_filter=passage_filter).checked()
    fingerprints = without_placeholders(overrides, fingerprints, [text], [site])
    arrivals = Arrivals.of(fingerprints, times_ms=[now_ms])
    state, aging = status.state.after(batch.state or State()), status.aging
    search = reader_nodes(forest, meta, aging, index=index, fields=fields, limits=limits)
    recent = packed_by_id(batch.packed, meta.relation)
    nodes = yield from gather(search, arrivals, recent=recent, state=state, aging=aging, now_ms=now_ms)
    (assignment,) = nodes.assign(arrivals, state, now_ms=now_ms).assignments
    return assignment, isinstance(search, NodeSearch)


def what_is_left_out(
    text: str,
    *,
    forest: str,
    profile: Profile,
    learned: LearnedCopy,
    overrides: Overrides,
    site: str | None,
    is_fresh: bool,
) -> Requests[LeftOut]:
    """Return the parts of a text that a forest leaves out as boilerplate.

    Arguments as for `look_up`; `learned` is updated only if `is_fresh`.
    """
    yield from _meta(forest, profile, is_fresh=False)
    if profile.keep_boilerplate:
        return left_out(text, None, max_length=profile.max_text_length)
    if is_fresh:
        yield from learned.update(forest)
    with learned.filter_on(site, overrides) as passage_filter:
        return left_out(text, passage_filter, max_length=profile.max_text_length)


def learned_copy(forest: str, profile: Profile) -> Requests[LearnedCopy]:
    """Return a copy of the boilerplate that a forest has learned so far."""
    yield from _meta(forest, profile)
    yield from refresh(forest)
    learned = LearnedCopy()
    if not profile.keep_boilerplate:
        yield from learned.update(forest)
    return learned


def _meta(forest: str, profile: Profile, *, is_fresh: bool = True) -> Requests[Meta]:
    meta = yield from read_meta(forest, is_fresh=is_fresh)
    if meta is None:
        raise ForestMissing.of(forest)
    refuse_others(forest, meta, profile)
    return meta
