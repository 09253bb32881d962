"""Requests that write articles, told by their paths; those for one document, as an item of a bulk. Pure.

Elasticsearch splits the path before it decodes it: `%2F` is part of an id, and `%5Fdoc` is no `_doc`.
"""

import dataclasses
import re
from collections.abc import Collection
from urllib.parse import quote, unquote, unquote_plus, unquote_to_bytes

from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.refusals import RequestRefused

DOCUMENTS = {
    b"_doc": ("index", frozenset(("POST", "PUT"))),
    b"_create": ("create", frozenset(("POST", "PUT"))),
    b"_update": ("update", frozenset(("POST",))),
}
"""Of each endpoint for one document: its operation and methods. Only `_doc` may lack the id, with POST."""
_BULK = b"_bulk"
_BULK_METHODS = frozenset(("POST", "PUT"))
_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PARAMETERS = re.compile(rb"[&;]")


@dataclasses.dataclass(frozen=True)
class ArticlePath:
    """A path under which articles are written."""

    # "bulk", or the operation on a document: "index", "create" or "update".
    operation: str
    # None only for a bulk request without one.
    index: str | None
    # None if Elasticsearch is to make one; and for a bulk request.
    id: str | None


def article_path(method: str, raw_path: bytes) -> ArticlePath | None:
    """Return what a request writes, by its path.

    Args:
        method: Of the request.
        raw_path: As it came, without the query.

    Returns:
        None for every other request, and for what Elasticsearch refuses.
    """
    path = raw_path.partition(b"#")[0]
    # One slash at the beginning may be missing; those at the end mean nothing.
    parts = path.removeprefix(b"/").rstrip(b"/").split(b"/")
    if _NO_ESCAPE.search(path) or len(parts) > 3:
        return None
    if parts[-1] == _BULK and len(parts) < 3:
        if method not in _BULK_METHODS:
            return None
        return ArticlePath("bulk", _decoded(parts[0]) if len(parts) == 2 else None, None)
    if len(parts) < 2 or parts[1] not in DOCUMENTS or not all(parts):
        return None
    operation, methods = DOCUMENTS[parts[1]]
    if method not in methods:
        return None
    if len(parts) == 2 and (method, operation) != ("POST", "index"):
        return None
    return ArticlePath(operation, _decoded(parts[0]), _decoded(parts[2]) if len(parts) == 3 else None)


def parts_of(raw_path: bytes) -> list[bytes]:
    """Return the parts of a path that are not empty, of which the first is decoded: it may name an index."""
    parts = [part for part in raw_path.partition(b"#")[0].split(b"/") if part]
    return [unquote_to_bytes(part) for part in parts[:1]] + parts[1:]


def read_document(path: ArticlePath, query: bytes, body: bytes) -> BulkItem:
    """Return a request for one document as an item of a bulk request.

    Its document is `source_with`; its other parameters stay in the query, which `routed` changes.

    Args:
        path: Of the request.
        query: As it came, without the question mark.
        body: Not compressed.

    Raises:
        RequestRefused: There is no document.
    """
    if not body and path.operation == "update":
        reason = "Validation Failed: 1: script or doc is missing;"
        raise RequestRefused(400, "action_request_validation_exception", reason)
    if not body:
        raise RequestRefused(400, "parse_exception", "request body is required")
    given = values_of(query)
    meta = {"_index": path.index, "_id": path.id, "routing": given.get("routing") or None}
    is_create = path.operation == "index" and given.get("op_type", "").lower() == "create"
    return BulkItem(
        operation="create" if is_create else path.operation,
        index=path.index,
        meta={key: value for key, value in meta.items() if value is not None},
        header=b"",
        source=body,
    )


def routed(query: bytes, routing: str) -> bytes:
    """Return a query with the routing, instead of any other."""
    return b"&".join((*without(query, {"routing"}), b"routing=" + quote(routing, safe="").encode()))


def without(query: bytes, names: Collection[str]) -> list[bytes]:
    """Return the parameters of a query as they came, but for some."""
    given = _PARAMETERS.split(query.partition(b"#")[0])
    return [each for each in given if each and _name(each) not in names]


def _decoded(part: bytes) -> str:
    return unquote(part, errors="replace")


def values_of(query: bytes) -> dict[str, str]:
    """Return the parameters of a query; of one that comes twice, the last."""
    parts = [each.partition(b"=") for each in _PARAMETERS.split(query.partition(b"#")[0])]
    return {_name(name): unquote_plus(value.decode(errors="replace")) for name, _, value in parts}


def _name(parameter: bytes) -> str:
    return unquote_plus(parameter.partition(b"=")[0].decode(errors="replace"))
