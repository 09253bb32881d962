"""Requests of a hostile feeder: some must write nothing, others contain honest articles."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

from tests.soak.odd_bytes import FORGED, request
from tests.soak.odd_requests import DEDUPS

_BAD_INDICES = ("a*", "_all", "", "x:a1", "_x", "<a1-{now/x}>", "A", "..", "a,b")
_TYPED = "application/vnd.elasticsearch+json;compatible-with=7"
# No honest feeder uses it: found in an index, it proves a forbidden write.
_ID = "hostile"


def requests(index: str, number: int) -> Iterator[bytes]:
    """Yield complete requests, all of which a sidecar must refuse."""
    article = json.dumps(
        {"text": f"An article that nobody has written, number {number}."} | DEDUPS[0]
    ).encode()
    bulk = b'{"index":{"_index":"%b","_id":"%b"}}\n%b\n' % (index.encode(), _ID.encode(), article)
    hidden = request("PUT", f"/{index}/_doc/{_ID}", article, content_type="application/json")
    start = (
        f"POST /{index}/_bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n".encode()
    )
    length, chunked = b"Content-Length: %d\r\n" % len(bulk), b"Transfer-Encoding: chunked\r\n"
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(bulk), bulk)
    yield request("PUT", f"/{index}/typed/{_ID}", article, content_type=_TYPED)
    for path in (f"/{index}/typed/_bulk", "/elsewhere/typed/_bulk", "//typed/_bulk"):
        yield request("POST", path, bulk, content_type=_TYPED)
    yield request("POST", f"/{index}/_update_by_query", b"{}", content_type="application/json")
    reindex = json.dumps({"source": {"index": index}, "dest": {"index": index}}).encode()
    yield request("POST", "/_reindex", reindex, content_type="application/json")
    for update in ({"doc": {"n": 1}, "doc_as_upsert": True}, {"upsert": DEDUPS[0], "doc": {"n": 1}}):
        body = json.dumps(update).encode()
        yield request("POST", f"/{index}/_update/{_ID}", body, content_type="application/json")
    for body in (
        b'{"text":null}',
        b'{"n":1}',
        b'{"text":"a"',
        b"[" * 50_000,
        b'{"text":"a"/**/}',
        b"\xff",
        b"",
    ):
        yield request("PUT", f"/{index}/_doc/{_ID}", body, content_type="application/json")
    for line in (
        b'{"index":{"_id":"\\ud83d"}}',
        b'{"index":{"_id":"%b' % (b'"' * 90_000),
        b'{"index":[]}',
        b"[" * 90_000,
    ):
        yield request("POST", f"/{index}/_bulk", line + b"\n" + bulk, content_type="application/x-ndjson")
    packed = gzip.compress(bulk)[:-9]
    yield request(
        "POST", f"/{index}/_bulk", packed, content_type="application/x-ndjson", content_encoding="gzip"
    )
    yield start + chunked + length + b"\r\n" + chunks + hidden
    yield start + length + length + b"\r\n" + bulk
    yield start + b"X: a\r\n b\r\n" + length + b"\r\n" + bulk
    yield (start + length).replace(b"\r\n", b"\n") + b"\n" + bulk
    yield start.replace(b"1.1", b"1.0") + chunked + b"\r\n" + chunks
    yield start + b"Transfer-Encoding: identity, chunked\r\n" + length + b"\r\n" + chunks


def mixed(chunk: list[dict[str, Any]], number: int) -> tuple[bytes, int]:
    """Return articles as a bulk body, each with a forged object, and how many items in it nobody can take."""
    lines: list[Any] = []
    refused = 0
    for at, each in enumerate(chunk):
        own = {key: value for key, value in each.items() if key != "_id"}
        lines += [{"index": {"_id": each["_id"]}}, own | DEDUPS[(number + at) % len(DEDUPS)]]
        if at % 10 == 0:
            index = _BAD_INDICES[(number + at // 10) % len(_BAD_INDICES)]
            lines += [
                {"index": {"_index": index, "_id": _ID}},
                own,
                {"index": {"_id": _ID}},
                {"title": "\ud83d", "dedup.root": FORGED},
            ]
            refused += 2
    return "".join(f"{json.dumps(each)}\n" for each in lines).encode(), refused
