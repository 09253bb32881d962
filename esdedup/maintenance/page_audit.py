"""Checks the pages that a forest remembers against its nodes, and against one article."""

from collections.abc import Callable, Iterator

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage
from esdedup.forest.model import NO_TIME, Aging
from esdedup.maintenance.record import Record
from esdedup.maintenance.violations import Remedy, RepairableViolation, Violation, ViolationKind


def stray_pages(index: ForestIndex, aging: Aging) -> Iterator[Violation]:
    """Yield the documents of pages that name a missing node, or are damaged."""
    for pages in index.nodes.lone_pages(index.hit_pages):
        named = {page.node for _, page in pages if page and page.node}
        gone = named - {node.id for node in index.run(index.nodes.by_id(named))}
        # Read after the nodes: the node of a page that lives at this time was alive when it was read.
        live_since_ms = index.status().live_since_ms(aging)
        for hit, page in pages:
            if page is None or (page.node in gone and page.seen_ms >= live_since_ms):
                detail = "its document is damaged" if page is None else f"its node {page.node} is missing"
                yield RepairableViolation(
                    kind=ViolationKind.STRAY_PAGE,
                    subject=hit["_id"],
                    detail=f"{detail}; a repair deletes it and restores it from articles",
                    remedy=Remedy(damaged=hit),
                )


def page_of_article(
    record: Record,
    *,
    pages: dict[str, StoredPage],
    nodes: dict[str, StoredNode],
    seen_ms: int,
    latest_of_page: Callable[[str], int],
) -> list[Stored]:
    """Return what is to be written so that an article's page is remembered as it must be.

    The latest article of a page decides: the forest must remember the page until then at least, with a node
    of that article's root, or with none if it has none.

    Args:
        record: The article's record.
        pages: By id, as far as they are remembered; changed to what they will be.
        nodes: By id, among them the article's and those of `pages`; changed to what they will be.
        seen_ms: The `seen` that the article gave to its page.
        latest_of_page: Returns the `seq` of the latest article that has a page.
    """
    if record.page is None:
        return []
    own = None if record.fingerprint is None else nodes[record.fingerprint]
    page = pages.get(record.page)
    other = None if page is None or page.node is None else nodes.get(page.node)
    # No page may outlive its node, whose time may have been rounded with another granularity.
    right = StoredPage(record.page, own and own.id, min(seen_ms, own.seen_ms) if own else seen_ms)
    if page is None or (page.node and not other) or _seen_ms(page, other) < record.seen_ms:
        changed = [own.remembering(right.page, right.seen_ms) if own else right]
    elif (other and other.root) == (own and own.root) or latest_of_page(record.page) != record.seq:
        return []
    else:
        # Its own document replaces the wrong one, if that is what remembers the page.
        changed = [right]
        if other and other.page == record.page:
            changed.append(other._replace(page="", page_seen_ms=NO_TIME))
    nodes |= {each.id: each for each in changed if isinstance(each, StoredNode)}
    pages[record.page] = right
    return changed


def _seen_ms(page: StoredPage, node: StoredNode | None) -> int:
    return min(page.seen_ms, node.seen_ms) if node else page.seen_ms
