"""The answer to a bulk request of which some articles were rejected. Pure.

The items that Elasticsearch has answered stay as they came, byte for byte; those that it never saw stand
between them, in the order of the request.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from esdedup.errors import ServerError
from esdedup.sidecar.answer_form import AnswerForm
from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.refusals import ARTICLE_REJECTED

_ITEMS = b'"items":['
_NO_ERRORS = re.compile(rb'"errors"\s*:\s*false')
# Between two items. In a string its quotes would be escaped, but a document of the user's may look like it.
_BETWEEN = re.compile(rb'(?<=\}\}),(?=\{"(?:index|create|update|delete)":\{)')


def rejected_item(item: BulkItem, reason: str, *, status: int = 400) -> bytes:
    """Return the answer for an article that was rejected.

    Args:
        item: The article's.
        reason: What is wrong with it.
        status: As Elasticsearch gives it to items. Clients send again by it: not for 400.
    """
    values = {
        "_index": item.index,
        "_id": item.meta.get("_id"),
        "status": status,
        "error": {"type": ARTICLE_REJECTED, "reason": reason},
    }
    # ASCII: an id may have half a character.
    return json.dumps({item.operation: values}, separators=(",", ":")).encode()


def merged(answer: bytes, rejected: Mapping[int, bytes], *, count: int, form: AnswerForm) -> bytes:
    """Return the answer to a whole request.

    Args:
        answer: What Elasticsearch answered, with status 200, for the items that were sent; as JSON, whole and
            not pretty.
        rejected: The others, by their places in the request, from 0.
        count: The number of items in the request.
        form: How the caller wants it.

    Raises:
        ServerError: It is no answer to so many items.
    """
    head, answered, tail = _parts(answer, count - len(rejected))
    remaining = iter(answered)
    items = [rejected[place] if place in rejected else next(remaining) for place in range(count)]
    if rejected:
        head = _NO_ERRORS.sub(b'"errors":true', head, count=1)
    return _formed(head + b",".join(items) + tail, form)


def all_rejected(items: Sequence[bytes], *, took_ms: int, form: AnswerForm) -> bytes:
    """Return the answer to a request of which nothing was sent to Elasticsearch."""
    return _formed(b'{"errors":true,"took":%d,"items":[%b]}' % (took_ms, b",".join(items)), form)


def _parts(answer: bytes, count: int) -> tuple[bytes, list[bytes], bytes]:
    """Return what stands before the items of an answer, the items, and what stands after them."""
    head, found, rest = answer.partition(_ITEMS)
    inside, end, tail = rest.rpartition(b"]")
    items = _BETWEEN.split(inside)
    if found and inside.startswith(b'{"') and tail.strip() == b"}" and len(items) == count:
        return head + found, items, end + tail
    return _parsed_parts(answer, count)


def _parsed_parts(answer: bytes, count: int) -> tuple[bytes, list[bytes], bytes]:
    """Do the same with an answer that is written otherwise, or contains documents that look like items."""
    try:
        values: dict[str, Any] = json.loads(answer)
        items = [json.dumps(each, separators=(",", ":")).encode() for each in values.pop("items")]
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ServerError("Elasticsearch's answer to a bulk request cannot be read", status=200) from error
    if len(items) != count:
        raise ServerError(
            f"Elasticsearch answered {len(items):,} of the {count:,} items of a bulk request", status=200
        )
    head = json.dumps(values, separators=(",", ":")).encode().removesuffix(b"}")
    return head + (b"," if values else b"") + _ITEMS, items, b"]}"


def _formed(answer: bytes, form: AnswerForm) -> bytes:
    if not form.filter_path and not form.is_pretty:
        return answer
    try:
        return form.write(orjson.loads(answer))
    except orjson.JSONDecodeError:
        # An id may have half a character.
        return form.write(json.loads(answer))
