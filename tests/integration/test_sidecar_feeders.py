"""Articles written through a sidecar get roots; clients get the same responses as without a sidecar."""

import gzip
import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.actions import ArticleAction

from esdedup import VERIFIED, Dedup, Fields, Maintenance, RawPage, SidecarError
from esdedup.forest import Assignment
from tests.support.forests import feed, roots
from tests.support.names import Names, new_names
from tests.support.pages import pages
from tests.support.sidecar_process import SidecarProcess, running

PAGES = [
    {"_id": page["id"], "text": page["text"], "source": f"paper {at % 3}"}
    for at, page in enumerate(pages(300))
]
LOGSTASH_FILTER = "filter_path=errors,items.*.error,items.*.status"


@pytest.fixture(scope="module")
def forest(es: Elasticsearch) -> Iterator[str]:
    with new_names(es) as name:
        yield name("forest")


@pytest.fixture(scope="module")
def process(elasticsearch_url: str, forest: str) -> Iterator[SidecarProcess]:
    with running(elasticsearch_url, forest=forest) as process:
        yield process


def test_articles_get_the_same_roots_without_a_sidecar(
    es: Elasticsearch, process: SidecarProcess, forest: str, index_name: Names
) -> None:
    """This test must be the first to feed the forest."""
    # Both runs use the same index name, because it is part of the signatures.
    index, left_out = index_name("articles"), list[int]()

    def note(article: ArticleAction, _: Assignment) -> None:
        left_out.append(article.boilerplate_letters)

    with Dedup(es, forest=index_name("other"), batch_size=70) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, PAGES, on_assigned=note)
    expected = {**_dedups(es, index)}
    es.indices.delete(index=index)
    with Dedup(es, forest=forest, sidecar=process.url, batch_size=70) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, PAGES, on_assigned=note)
    alone, together = left_out[: len(PAGES)], left_out[len(PAGES) :]
    assert alone == together
    assert process.metric("esdedup_boilerplate_letters_total") == sum(together)
    assert process.metric("esdedup_boilerplate_articles_total") == sum(map(bool, together)) > 0
    found = {**_dedups(es, index)}
    # Without learned boilerplate, pages of one site would be near-duplicates.
    assert len({each["root"] for each in found.values()}) > len(PAGES) / 3
    assert found == expected
    # Clients that only send texts get the same roots.
    answer = process.enrich(*PAGES[::7])
    assert [each["dedup"]["root"] for each in answer] == [found[each["_id"]]["root"] for each in PAGES[::7]]
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    new_roots = process.metric('esdedup_articles_total{outcome="new_root"}')
    assert new_roots == len({each["root"] for each in found.values()})
    # Another profile would give other fingerprints.
    other = Dedup(es, forest=forest, sidecar=process.url, profile=VERIFIED.with_changes(max_text_length=999))
    with other, pytest.raises(SidecarError, match="409 the profile of this sidecar is"):
        list(other.enrich(PAGES[:1]))


def test_the_first_article_is_filtered_after_learning_from_pages(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, taught = index_name("articles"), PAGES[:120]
    texts = [RawPage.of(each, Fields(), name="page", article_id=each["_id"]) for each in taught]
    counts, found, forest = [], [], index_name("forest")
    with running(elasticsearch_url, forest=forest) as process:
        # Requests of this size end in the middle of a block of pages.
        remote = Dedup(es, forest=forest, sidecar=process.url, batch_size=50)
        with Dedup(es, forest=index_name("other")) as own, remote:
            for dedup in (own, remote):
                dedup.setup(index)
                counts.append(dedup.learn(texts))
                assert dedup.learn(texts) == 0
                feed(es, dedup, index, taught)
                found.append({**_dedups(es, index)})
                es.indices.delete(index=index)
        with pytest.raises(urllib.error.HTTPError) as refused:
            process.post("/v1/learn", {"pages": [{"text": 1}]})
        assert refused.value.code == 400
        assert "pages.0.text: Input should be a valid string" in refused.value.read().decode()
    assert counts[0] == counts[1] > 100
    assert found[0] == found[1]


def _dedups(es: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    es.indices.refresh(index=index)
    when = {"seen", "published"}
    return {
        hit["_id"]: {name: value for name, value in hit["_source"]["dedup"].items() if name not in when}
        for hit in helpers.scan(es, index=index)
    }


def test_bulk_requests_from_logstash_are_accepted(
    es: Elasticsearch, process: SidecarProcess, forest: str, index_name: Names
) -> None:
    index = index_name("articles")
    with Dedup(es, forest=forest, fields=Fields(text="message", time="@timestamp")) as dedup:
        dedup.setup(index)
    event = {"@timestamp": "2026-11-22T08:00:00.000Z", "@version": "1", "tags": ["feed"]}
    lines: list[Any] = []
    for text in (PAGES[0]["text"], f"{PAGES[0]['text']}!", None):
        # Logstash sends null for values that an event lacks.
        lines += [{"index": {"_id": None, "_index": index, "routing": None}}, {**event, "message": text}]

    def send(lines: list[Any], content_type: str) -> Any:
        body = gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        headers = {"Content-Type": content_type, "Content-Encoding": "gzip"}
        request = urllib.request.Request(f"{process.url}/_bulk?{LOGSTASH_FILTER}", body, headers)
        with urllib.request.urlopen(request) as answered:
            return json.load(answered)

    # Older versions of Logstash send `text/plain`, which Elasticsearch no longer accepts.
    for content_type in ("application/json", "application/x-ndjson", "text/plain"):
        answer = send(lines, content_type)
        assert answer["errors"] is True
        assert [each["index"]["status"] for each in answer["items"]] == [201, 201, 400]
        assert answer["items"][2]["index"]["error"]["type"] == "esdedup_article_rejected"
    # If nothing is refused, the response is filtered as requested.
    assert send(lines[:2], "application/json") == {"errors": False, "items": [{"index": {"status": 201}}]}
    es.indices.refresh(index=index)
    found = roots(es, index)
    assert (len(found), len({*found.values()})) == (7, 1)


Answer = tuple[int, list[tuple[str, str]], bytes]
Request = tuple[str, str, dict[str, str], bytes | None]

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
# Values that differ between two requests to the same server.
VARYING = re.compile(
    rb'"(took|ingest_took)":\d+|"_scroll_id":"[^"]+"'
    # The ids of indices, and their times of creation.
    rb"|(?<![\w-])[\w-]{22}(?![\w-])|\b\d{13}\b|\b\d{4}-\d\d-\d\dT[\d:.]+Z"
)


def bulk(*lines: dict[str, object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def requests(index: str) -> list[Request]:
    """Return requests that get the same responses whenever all of them are sent in this order."""
    dated = f"%3C{index}-%7Bnow%2Fy%7D%3E"
    actions = bulk(
        {"index": {"_id": "1"}},
        {"text": "Umlaute: äöü, 漢字", "n": 1},
        {"create": {"_id": "1"}},
        {"text": "a conflict"},
        {"index": {"_id": "2"}},
        {"n": "no number"},
        {"update": {"_id": "none"}},
        {"doc": {}},
        {"delete": {"_id": "none"}},
    )
    versioned = "application/vnd.elasticsearch+json;compatible-with=8"
    return [
        ("DELETE", f"/{index}*", {}, None),
        ("HEAD", "/", {}, None),
        ("GET", "/", {}, None),
        ("PUT", f"/{index}", JSON, b'{"mappings":{"properties":{"n":{"type":"long"}}}}'),
        ("PUT", f"/{index}", JSON, b"{}"),
        ("HEAD", f"/{index}", {}, None),
        ("HEAD", f"/{index}-missing", {}, None),
        ("GET", f"/{index}?pretty", {}, None),
        ("GET", f"/{index}?human&format=yaml", {}, None),
        ("POST", f"/{index}/_bulk?refresh=true", NDJSON, actions),
        ("POST", f"/{index}/_bulk?refresh=true&filter_path=items.*.status", NDJSON, actions),
        ("PUT", "/_bulk", NDJSON | {"Content-Encoding": "gzip"}, gzip.compress(actions)),
        ("POST", f"/{index}/_bulk", NDJSON, b'{"index":{}}\nnothing'),
        ("POST", f"/{index}/_bulk", NDJSON, b""),
        ("PUT", f"/{index}/_doc/a%2Fb?routing=x%20y&refresh=true", JSON, b'{"n":1.0}'),
        ("GET", f"/{index}/_doc/a%2Fb?routing=x+y", {}, None),
        ("HEAD", f"/{index}/_doc/a%2fb?routing=x+y", {}, None),
        ("GET", f"/{index}/_doc/a/b", {}, None),
        ("PUT", f"/{index}/_create/1", JSON, b"{}"),
        ("PUT", f"/{dated}/_doc/1", JSON, b"{}"),
        ("GET", f"/{dated}/_doc/1", {}, None),
        ("GET", f"//{index}//_count", {}, None),
        ("GET", f"/{index}/_search?q=n:1&filter_path=hits", {"Accept-Encoding": "gzip"}, None),
        ("GET", f"/{index}/_search?filter_path=-took", JSON, b'{"size":1}'),
        ("POST", f"/{index}/_search", JSON, b'{"query":{"none":{}}}'),
        ("POST", f"/{index}/_search?scroll=1m", JSON, b'{"size":1}'),
        ("GET", f"/{index}/_search?error_trace=false&unknown=1", {}, None),
        ("GET", f"/{index}/_mapping", {"Accept": versioned}, None),
        ("GET", f"/{index}/_mapping", {"Accept": "application/cbor"}, None),
        ("GET", f"/{index}/_mapping", {"Accept": "image/png"}, None),
        ("POST", f"/{index}/_search", {"Content-Type": "text/none"}, b"{}"),
        ("PATCH", f"/{index}", {}, None),
        ("OPTIONS", f"/{index}", {}, None),
        ("GET", "/_no/such/path", {}, None),
        ("GET", f"/{index}/_count", {"X-Opaque-Id": "mine"}, None),
        ("GET", f"/{index}/_count", {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}, None),
        ("DELETE", f"/{index}*", {}, None),
    ]


@pytest.fixture
def allowed_to_delete(es: Elasticsearch) -> Iterator[None]:
    name = "action.destructive_requires_name"
    es.cluster.put_settings(persistent={name: False})
    yield
    es.cluster.put_settings(persistent={name: None})


@pytest.mark.usefixtures("allowed_to_delete")
def test_responses_are_the_same_as_without_a_sidecar(
    es: Elasticsearch, elasticsearch_url: str, sidecar: str, index_name: Names
) -> None:
    index = index_name("comparison")
    ours, theirs = (_answers(url, requests(index)) for url in (sidecar, elasticsearch_url))
    for request, our, their in zip(requests(index), ours, theirs, strict=True):
        assert our == their, request[:2]
    names = {name.lower() for _, headers, _ in ours for name, _ in headers}
    assert {"content-encoding", "x-opaque-id", "x-elastic-product", "allow"} <= names
    assert {status for status, _, _ in ours} >= {200, 201, 400, 404, 405, 406, 409}


def _answers(url: str, sent: list[Request]) -> list[Answer]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        return [_answer(connection, *request) for request in sent]
    finally:
        connection.close()


def _answer(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes | None,
) -> Answer:
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    got = answer.read()
    # Chunking depends only on the connection, and the length depends on the varying values in the body.
    kept = [
        (name, value)
        for name, value in answer.getheaders()
        if name.lower() not in {"transfer-encoding", "content-length"}
    ]
    if answer.getheader("content-encoding") == "gzip":
        got = gzip.decompress(got)
    return answer.status, kept, VARYING.sub(b"", got)
