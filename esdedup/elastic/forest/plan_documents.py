"""The nodes and pages that a plan writes. Pure."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, page_name
from esdedup.forest.model import NO_NODE, Plan


def written_by(plan: Plan) -> list[Stored]:
    """Return the nodes that the plan refreshes, then new nodes and pages, in order of arrival; one per id."""
    written: dict[str, Stored] = {node.document_id: node for node in _nodes(plan, plan.refreshed)}
    made: list[tuple[int, Stored]] = [
        *zip(plan.made.tolist(), _nodes(plan, plan.made_rows), strict=True),
        *_lone_pages(plan),
    ]
    for _, each in sorted(made, key=lambda each: each[0]):
        # An id that expires within the batch and starts anew has several rows: the last one lives.
        written.pop(each.document_id, None)
        written[each.document_id] = each
    return list(written.values())


def _nodes(plan: Plan, rows: npt.NDArray[np.int64]) -> Iterator[StoredNode]:
    nodes = plan.nodes
    return map(
        StoredNode,
        [nodes.ids[row] for row in rows.tolist()],
        [nodes.ids[root] for root in nodes.roots[rows].tolist()],
        [signature.tobytes() for signature in nodes.signatures[rows]],
        nodes.seqs[rows].tolist(),
        nodes.made_ms[rows].tolist(),
        nodes.seen_ms[rows].tolist(),
        map(page_name, nodes.pages[rows].tolist()),
        nodes.pages_seen_ms[rows].tolist(),
    )


def _lone_pages(plan: Plan) -> Iterator[tuple[int, StoredPage]]:
    """Yield the pages, with their arrivals, that their node's document does not remember.

    They got no node; or did not make it; or they had expired, and a crash must not revive them before their
    arrival.
    """
    nodes, rows = plan.nodes, plan.pages.rows
    is_of_node = (nodes.pages[rows] == plan.pages.ids) & (nodes.pages_seen_ms[rows] == plan.pages.seen_ms)
    is_lone = (rows == NO_NODE) | ~is_of_node
    ids = [None if row == NO_NODE else nodes.ids[row] for row in rows[is_lone].tolist()]
    names = map(page_name, plan.pages.ids[is_lone].tolist())
    pages = map(StoredPage, names, ids, plan.pages.seen_ms[is_lone].tolist())
    return zip(plan.paged[is_lone].tolist(), pages, strict=True)
