"""Measures the size of the list page, and the time that it takes beyond Elasticsearch's own time.

The application runs in this process and is called as a server calls it. The sample corpus is fed with
languages in a keyword field, so that a page has all possible parts. Elasticsearch reports
its own time as `took`; the rest of a page's time is spent in our code, in the client and on the connection.
The server answers repeated requests from its caches, which reduces `took` but not the rest.
"""

import asyncio
import math
import time
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers
from starlette.types import ASGIApp

from benchmarks import server
from benchmarks.rows import Row
from benchmarks.server import Run
from esdedup import Dedup
from esdedup.elastic.client import connect_async
from esdedup.web.app import create_app
from tests import sample

_INDEX, _FOREST = "benchmark-list-page", "benchmark-list-page-forest"
_ARTICLES = 3_000
_WARM_UP, _MEASURED = 10, 100
_PERCENTILES = (50, 95)
_TABLE = "list-page"
_PAGES: dict[str, dict[str, Any]] = {
    "newest, everything": {},
    "most similar, everything": {"sort": "similar-desc"},
    "a word": {"q": "harbour"},
    "a word, one language": {"q": "council", "where": "language:en"},
    "not grouped": {"dedup": "false"},
    "100 rows": {"size": 100},
}


_Span = tuple[float, float]
"""The start and end of a span of time, in seconds."""


class _Loaded(NamedTuple):
    """The measurements of one page."""

    ms: float
    # The time during which Elasticsearch worked on at least one request, according to its responses.
    engine_ms: float
    # The processor time of this process, which other processes disturb less.
    processor_ms: float
    requests: int
    size: int


def list_page(run: Run) -> list[Row]:
    """Measure pages of the list, in turn."""
    with server.client(run, lifetime_s=3_600) as client:
        try:
            _feed(client, run.size(_ARTICLES))
            loaded = asyncio.run(_load(server.url_of(client)))
        finally:
            client.indices.delete(index=[_INDEX, _FOREST], ignore_unavailable=True)
    return [row for name, pages in loaded.items() for row in _rows(name, pages)]


def _feed(client: Elasticsearch, count: int) -> None:
    with Dedup(client, forest=_FOREST) as dedup:
        dedup.setup(_INDEX)
        client.indices.put_mapping(index=_INDEX, properties={"language": {"type": "keyword"}})
        actions = (
            {
                "_index": _INDEX,
                "_id": each["id"],
                "_source": each | {"language": "en" if each["title"].isascii() else "zh"},
            }
            for each in sample.articles(count)
        )
        helpers.bulk(client, dedup.enrich(actions), refresh=True)


async def _load(url: str) -> dict[str, list[_Loaded]]:
    spans: list[_Span] = []
    loaded: dict[str, list[_Loaded]] = {name: [] for name in _PAGES}
    async with connect_async(url) as client:
        _note_times(client, spans)
        app = create_app(client, _INDEX, forest=_FOREST)
        for number in range(_WARM_UP + _MEASURED):
            for name, parameters in _PAGES.items():
                spans.clear()
                started, processor_s = time.perf_counter(), time.process_time()
                size = await _get(app, urlencode(parameters))
                ms = (time.perf_counter() - started) * 1_000
                processor_ms = (time.process_time() - processor_s) * 1_000
                if number >= _WARM_UP:
                    engine_ms = _covered_s(spans) * 1_000
                    loaded[name].append(_Loaded(ms, engine_ms, processor_ms, len(spans), size))
    return loaded


def _note_times(client: AsyncElasticsearch, spans: list[_Span]) -> None:
    """Record the span in which the server worked on each request: the reported time before its response."""
    perform_request = client.transport.perform_request

    async def noted(*arguments: Any, **options: Any) -> Any:
        answer = await perform_request(*arguments, **options)
        if isinstance(answer.body, dict) and "took" in answer.body:
            now = time.perf_counter()
            spans.append((now - answer.body["took"] / 1_000, now))
        return answer

    client.transport.perform_request = noted  # type: ignore[method-assign]


def _covered_s(spans: list[_Span]) -> float:
    """Return the length of the union of spans, which overlap because pages send concurrent requests."""
    covered_s, until = 0.0, -math.inf
    for start, end in sorted(spans):
        covered_s += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered_s


async def _get(app: ASGIApp, query: str) -> int:
    """Request a page of the list as a browser does; return its uncompressed size in bytes."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost"), (b"accept-language", b"en")],
    }
    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"the page of {query!r} has the status {sent[0]['status']}")
    return sum(len(each.get("body", b"")) for each in sent)


def _rows(name: str, pages: list[_Loaded]) -> list[Row]:
    beyond_ms = [each.ms - each.engine_ms for each in pages]
    rows = [
        Row(table=_TABLE, case=f"{name}, beyond the engine's answers, p{percentile}", ours=ms, unit="ms")
        for percentile, ms in zip(_PERCENTILES, np.percentile(beyond_ms, _PERCENTILES).tolist(), strict=True)
    ]
    engine_ms = float(np.median([each.engine_ms for each in pages]))
    processor_ms = float(np.median([each.processor_ms for each in pages]))
    last = pages[-1]
    return [
        *rows,
        Row(table=_TABLE, case=f"{name}, processor time of our process, p50", ours=processor_ms, unit="ms"),
        Row(table=_TABLE, case=f"{name}, the engine's answers, p50", ours=engine_ms, unit="ms"),
        Row(table=_TABLE, case=f"{name}, searches", ours=last.requests, unit="requests"),
        Row(table=_TABLE, case=f"{name}, unpacked, without style", ours=last.size / 1_000, unit="kB"),
    ]
