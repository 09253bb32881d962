"""The answer to a bulk request of which some items were refused here. Pure.

Elasticsearch is asked for a whole answer in JSON, and the items that it never saw are put between its own, in
the order of the request: whatever the caller wanted left out of the answer is in it then.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from esdedup.errors import ServerError
from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.document_request import values_of, without
from esdedup.sidecar.refusals import ARTICLE_REJECTED, RequestRefused

# Elasticsearch's parameters by which an answer is less, or written otherwise.
_FORMS = frozenset(("filter_path", "format", "pretty"))
_VERSION = re.compile(r"compatible-with=(\d+)", re.ASCII)


def refused_item(item: BulkItem, reason: str, *, status: int = 400) -> dict[str, Any]:
    """Return the answer for an item that is refused.

    Args:
        item: The item.
        reason: What is wrong with it.
        status: As Elasticsearch gives it to items. Clients send again by it: not for 400.
    """
    error = {"type": ARTICLE_REJECTED, "reason": reason}
    return {
        item.operation: {
            "_index": item.index,
            "_id": item.meta.get("_id"),
            "status": status,
            "error": error,
        }
    }


def merged(answer: bytes, refused: Mapping[int, dict[str, Any]], *, count: int) -> bytes:
    """Return the answer to a whole request.

    Args:
        answer: What Elasticsearch answered, with status 200, for the items that were sent; as JSON.
        refused: The others, by their places in the request, from 0.
        count: The number of items in the request.

    Raises:
        ServerError: It is no answer to so many items.
    """
    try:
        values: dict[str, Any] = json.loads(answer)
        answered = values.pop("items")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ServerError("Elasticsearch's answer to a bulk request cannot be read", status=200) from error
    if not isinstance(answered, list):
        answered = []
    if len(answered) != count - len(refused):
        raise ServerError(
            f"Elasticsearch answered {len(answered):,} items of a bulk request, not {count - len(refused):,}",
            status=200,
        )
    remaining = iter(answered)
    items = [refused[place] if place in refused else next(remaining) for place in range(count)]
    return _written(values | {"errors": True, "items": items})


def all_refused(items: Mapping[int, dict[str, Any]], *, took_ms: int) -> bytes:
    """Return the answer to a request of which nothing was sent to Elasticsearch."""
    return _written({"errors": True, "took": took_ms, "items": [*items.values()]})


def whole_answer(query: bytes) -> bytes:
    """Return a query for Elasticsearch to answer whole: its other parts stay as they came."""
    return b"&".join(without(query, _FORMS))


def json_type(accept: str | None) -> str:
    """Return the type of JSON that a caller accepts: of the version that is wanted."""
    versioned = None if accept is None else _VERSION.search(accept)
    if versioned is None:
        return "application/json"
    return f"application/vnd.elasticsearch+json;compatible-with={versioned[1]}"


def require_json(accept: str | None, query: bytes) -> None:
    """Make sure that a caller can read an answer with items of ours, which is JSON.

    Raises:
        RequestRefused: He wants another format.
    """
    format_ = values_of(query).get("format", "json")
    is_json = accept is None or any(
        each in accept.lower() for each in ("json", "*/*", "application/*", "text/plain")
    )
    if not is_json or format_ != "json":
        raise RequestRefused(
            406,
            "media_type_header_exception",
            "an item of this request is refused, which can be told in JSON only: accept application/json",
        )


def _written(answer: dict[str, Any]) -> bytes:
    # ASCII: an id may have half a character.
    return json.dumps(answer, separators=(",", ":")).encode()


# In a string its quotes would be escaped.
_STATUS = re.compile(rb'"status"\s*:\s*(\d{3})\b')
# No status is longer, with the white space of a pretty answer.
_LONGEST = 32


class ItemStatuses:
    """Counts the statuses in an answer that comes in parts."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._rest = b""

    @property
    def counts(self) -> Mapping[int, int]:
        """How many items have each status, as far as the answer was read."""
        return self._counts

    def read(self, part: bytes) -> None:
        """Go on with the next part of the answer; one that is compressed tells nothing."""
        text = self._rest + part
        end = 0
        for found in _STATUS.finditer(text):
            self._counts[int(found[1])] += 1
            end = found.end()
        self._rest = text[max(end, len(text) - _LONGEST) :]
