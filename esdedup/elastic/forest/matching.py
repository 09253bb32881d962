"""The nodes that a batch may meet, from the index and from what no refresh has shown, in memory."""

from collections.abc import Iterable

import numpy as np

from esdedup.elastic.forest.article_nodes import ArticleNodes
from esdedup.elastic.forest.packing import Packing
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.forest.stored import Stored, page_name
from esdedup.elastic.requests import Requests
from esdedup.forest import NO_TIME, Aging, Arrivals, Nodes

# The nodes of some pages, then the roots of these.
_ROUNDS = 2


def gather(
    search: NodeSearch | ArticleNodes,
    arrivals: Arrivals,
    *,
    recent: Iterable[Stored],
    live_since_ms: int,
    aging: Aging,
) -> Requests[Nodes]:
    """Find the live nodes near a batch's arrivals, and the remembered pages with their nodes; and all roots.

    Args:
        search: The forest's nodes and pages, as far as a refresh has shown them.
        arrivals: The batch.
        recent: Nodes and pages that may be newer than those that a search shows.
        live_since_ms: The `seen` from which on (inclusive) a node lives.
        aging: How long nodes live.
    """
    nodes, packing = Nodes(search.relation, aging), Packing(search.relation)

    def load(stored: Iterable[Stored]) -> None:
        # Expired nodes must go: the root of one may have expired too, and be a leaf of another tree by now.
        nodes.load([packing.pack(each) for each in stored], live_since_ms=live_since_ms)

    names = {page_name(page) for page in np.unique(arrivals.pages).tolist()}
    signatures = arrivals.signatures[arrivals.exist]
    found = yield from search.candidates_and_pages(signatures, sorted(names), live_since_ms=live_since_ms)
    load(found)
    # Of pages, the others' nodes would have to be searched for.
    load(each for each in recent if each.page in names or not each.is_page)
    yield from load_missing(nodes, search, live_since_ms=live_since_ms)
    return nodes


def load_missing(nodes: Nodes, search: NodeSearch | ArticleNodes, *, live_since_ms: int) -> Requests[None]:
    """Load the roots of what was loaded and the nodes of pages, and settle.

    Args:
        nodes: Some were loaded.
        search: The forest's nodes, as far as a refresh has shown them.
        live_since_ms: The `seen` from which on (inclusive) a node lives.
    """
    packing = Packing(search.relation)
    for _ in range(_ROUNDS):
        roots, of_pages = nodes.missing()
        # In a damaged forest a root may have expired before its leaf.
        for ids, since_ms in ((set(roots), NO_TIME), (set(of_pages) - set(roots), live_since_ms)):
            found = yield from search.by_id(ids)
            nodes.load([packing.pack(each) for each in found], live_since_ms=since_ms)
    nodes.settle()
