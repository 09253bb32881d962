"""The proxy passes requests and responses on byte for byte, and refuses unsafe requests."""

import asyncio
import contextlib
import gzip
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from esdedup.ingest.remote_owner import SidecarConnection

from esdedup.elastic.article_indices import Articles
from esdedup.elastic.client import client_of
from esdedup.elastic.patience import patient
from esdedup.errors import ServerUnavailable, SettingError, SidecarUnavailable
from esdedup.sidecar.proxy import UnreadWrites
from esdedup.sidecar.upstream import Upstream, end_to_end
from tests.support import sidecar
from tests.support.wire import OK, TIMEOUT_S, Connection, ScriptedServer, answer, closed_port

GET = b"GET /a HTTP/1.1\r\nhost: sidecar\r\n\r\n"
GET_CLOSE = b"GET /a HTTP/1.1\r\nhost: sidecar\r\nconnection: close\r\n\r\n"
# More than the kernels and processes at both ends can buffer while nobody reads.
FAR_TOO_MUCH_BYTES = 200 << 20
ENDED = b"0\r\n\r\n"


@pytest.fixture(scope="module")
def _server() -> Iterator[ScriptedServer]:
    with ScriptedServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def url(_server: ScriptedServer) -> Iterator[str]:
    """Yield the address of a sidecar in front of the scripted server."""
    with sidecar.running(_server.url.replace("//", "//user:secret@")) as url:
        yield url


@pytest.fixture
def server(_server: ScriptedServer) -> Iterator[ScriptedServer]:
    _server.failures.clear()
    yield _server
    assert not _server.failures


def exchange(url: str, request: bytes) -> bytes:
    """Send a request; return everything received until the connection is closed."""
    with Connection.to(url) as caller:
        caller.send(request)
        return caller.rest()


@pytest.mark.parametrize(
    "target",
    [
        b"/",
        b"//news//_search",
        b"/news/_doc/a%2Fb%2fc?routing=%E4%B8%AD&pretty",
        b"/%3Cnews-%7Bnow%2Fd%7D%3E/_search?q=a+b%20c&q=&filter_path=**.x,-y",
        b'/<news-{now}>/_search?a={b}|\\^`"',
        b"/a/../b/./_search",
        b"/a;b=c/_search?x#y",
        b"/a#b",
        b"/%",
    ],
)
def test_paths_and_queries_keep_every_byte(server: ScriptedServer, url: str, target: bytes) -> None:
    heads: list[bytes] = []
    server.script = answer(OK, heads)
    exchange(url, GET_CLOSE.replace(b"/a", target))
    assert [head.split(b"\r\n")[0] for head in heads] == [b"GET " + target + b" HTTP/1.1"]


@pytest.mark.parametrize("request_line", [b"OPTIONS * HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"GET a HTTP/1.1"])
def test_requests_without_a_path_are_refused(url: str, request_line: bytes) -> None:
    got = exchange(url, GET_CLOSE.replace(b"GET /a HTTP/1.1", request_line))
    assert got.startswith(b"HTTP/1.1 400 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["type"] == "esdedup_invalid_request"


def test_end_to_end_headers_are_passed_on_unchanged(server: ScriptedServer, url: str) -> None:
    kept = [
        b"authorization: ApiKey bWluZQ==",
        b"x-opaque-id: \xe4\xb8\xad",
        b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        b"x-twice: one",
        b"x-twice: two",
        b"cookie: a=b",
        b"x-empty: ",
    ]
    dropped = [
        b"Connection: close, X-Mine",
        b"x-mine: for the next one only",
        b"keep-alive: 5",
        b"te: trailers",
        b"proxy-connection: close",
    ]
    heads: list[bytes] = []
    server.script = answer(OK, heads)
    exchange(url, b"\r\n".join([b"GET /a HTTP/1.1", b"host: sidecar", *kept, *dropped, b"", b""]))
    (head,) = heads
    node = server.url.removeprefix("http://").encode()
    lines = [line.strip() for line in head.split(b"\r\n")[1:] if line]
    assert sorted(lines) == sorted([b"Host: " + node, *(line.strip() for line in kept)])


def test_a_header_that_is_not_utf8_is_refused(url: str) -> None:
    got = exchange(url, GET_CLOSE.replace(b"host", b"x-opaque-id: \xe9\r\nhost"))
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"the header x-opaque-id is not UTF-8" in got


@pytest.mark.parametrize("character", [b"\x01", b"\x7f"])
def test_a_header_with_a_control_character_is_refused(url: str, character: bytes) -> None:
    got = exchange(url, GET_CLOSE.replace(b"host", b"x-opaque-id: a%bb\r\nhost" % character))
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"the header x-opaque-id contains a control character" in got


@pytest.mark.parametrize("body", [(b"{}",), (b"{", b"}")], ids=["whole", "in parts"])
@pytest.mark.parametrize("status", [b"400 Bad Request", b"413 Too Large", b"417 Expectation Failed"])
def test_a_connection_elasticsearch_stopped_reading_is_not_reused(
    server: ScriptedServer, url: str, status: bytes, body: tuple[bytes, ...]
) -> None:
    """If headers are too long, Elasticsearch sends 400, keeps the connection open and stops reading."""
    is_closed: list[bool] = []
    noticed = threading.Event()

    def script(connection: Connection) -> None:
        if b"x-long: " not in connection.head():
            connection.send(OK)
            return
        first, *rest = body
        connection.send(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\n\r\n" + first)
        for part in rest:
            time.sleep(0.05)
            connection.send(part)
        is_closed.append(connection.is_closed())
        noticed.set()

    server.script = script
    assert exchange(url, GET_CLOSE.replace(b"host", b"x-long: a\r\nhost")).endswith(b"{}")
    assert exchange(url, GET_CLOSE).startswith(b"HTTP/1.1 200 ")
    assert noticed.wait(TIMEOUT_S)
    assert is_closed == [True]


def test_responses_are_passed_on_unchanged(server: ScriptedServer, url: str) -> None:
    packed = gzip.compress(b'{"a":1}')
    head = (
        b"HTTP/1.1 404 Not Found\r\n"
        b"X-elastic-product: Elasticsearch\r\n"
        b'Warning: 299 Elasticsearch-9 "one"\r\n'
        b'Warning: 299 Elasticsearch-9 "two"\r\n'
        b"content-type: application/vnd.elasticsearch+json;compatible-with=9\r\n"
        b"content-encoding: gzip\r\n"
        b"content-length: %d\r\n" % len(packed)
    )
    server.script = answer(head + b"Keep-Alive: 5\r\n\r\n" + packed)
    assert exchange(url, GET_CLOSE) == head + b"Connection: close\r\n\r\n" + packed


@pytest.mark.parametrize(
    ("request_line", "whole"),
    [
        (b"HEAD /a HTTP/1.1", b"HTTP/1.1 200 OK\r\ncontent-length: 54321\r\n\r\n"),
        (b"DELETE /a HTTP/1.1", b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n"),
        (b"GET /a HTTP/1.1", b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n'),
    ],
)
def test_responses_without_a_body_are_passed_on_unchanged(
    server: ScriptedServer, url: str, request_line: bytes, whole: bytes
) -> None:
    server.script = answer(whole)
    got = exchange(url, GET_CLOSE.replace(b"GET /a HTTP/1.1", request_line))
    assert got == whole.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


def test_bodies_keep_their_length_or_chunks(server: ScriptedServer, url: str) -> None:
    heads: list[bytes] = []

    def script(connection: Connection) -> None:
        heads.append(connection.head())
        assert (
            connection.until(b"two" if b"content-length" in heads[-1].lower() else ENDED).count(b"one") == 1
        )
        connection.send(OK)

    server.script = script
    post = GET_CLOSE.replace(b"GET", b"POST")
    exchange(url, post.replace(b"\r\n\r\n", b"\r\ncontent-length: 6\r\n\r\nonetwo"))
    exchange(url, post.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"))
    # If both headers are sent, the length is dropped. If not, later chunks would be read as a request.
    exchange(
        url,
        post.replace(
            b"\r\n\r\n", b"\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
        ),
    )
    with_length, in_chunks, with_both = (head.lower() for head in heads)
    assert b"content-length: 6" in with_length
    assert b"transfer-encoding" not in with_length
    for head in (in_chunks, with_both):
        assert b"transfer-encoding: chunked" in head
        assert b"content-length" not in head


def test_bodies_are_streamed_both_ways(server: ScriptedServer, url: str) -> None:
    """Each part arrives before the next one is sent."""
    there, back = threading.Event(), threading.Event()

    def script(connection: Connection) -> None:
        connection.head()
        connection.until(b"one")
        there.set()
        connection.until(ENDED)
        connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nsix\r\n")
        assert back.wait(TIMEOUT_S)
        connection.send(b"5\r\nseven\r\n0\r\n\r\n")

    server.script = script
    with Connection.to(url) as caller:
        caller.send(b"POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        assert there.wait(TIMEOUT_S)
        caller.send(b"3\r\ntwo\r\n0\r\n\r\n")
        caller.until(b"six")
        back.set()
        assert caller.until(ENDED).count(b"seven") == 1


def test_a_caller_that_reads_nothing_stalls_the_server(server: ScriptedServer, url: str) -> None:
    sent = 0
    stuck = threading.Event()

    def script(connection: Connection) -> None:
        nonlocal sent
        connection.head()
        connection.socket.settimeout(1.0)
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % FAR_TOO_MUCH_BYTES)
        sent = _send_until_stalled(connection)
        stuck.set()

    server.script = script
    with Connection.to(url) as caller:
        caller.send(GET)
        caller.head()
        assert stuck.wait(TIMEOUT_S)
    assert 0 < sent < FAR_TOO_MUCH_BYTES / 4


def test_a_server_that_reads_nothing_stalls_the_caller(server: ScriptedServer, url: str) -> None:
    done = threading.Event()

    def script(connection: Connection) -> None:
        connection.head()
        done.wait(TIMEOUT_S)

    server.script = script
    with Connection.to(url) as caller:
        caller.send(b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % FAR_TOO_MUCH_BYTES)
        caller.socket.settimeout(1.0)
        sent = _send_until_stalled(caller)
    done.set()
    assert 0 < sent < FAR_TOO_MUCH_BYTES / 4


@pytest.mark.parametrize("refuses", [False, True])
def test_elasticsearch_answers_expect_100_continue(server: ScriptedServer, url: str, refuses: bool) -> None:
    def script(connection: Connection) -> None:
        assert b"expect: 100-continue" in connection.head().lower()
        if refuses:
            connection.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        else:
            connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.until(b"body")
            connection.send(OK)

    server.script = script
    with Connection.to(url) as caller:
        caller.send(b"PUT /a HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        first = caller.head()
        if refuses:
            assert first.startswith(b"HTTP/1.1 413 ")
        else:
            assert first.startswith(b"HTTP/1.1 100 ")
            caller.send(b"body")
            assert caller.until(b"{}").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "begun",
    [
        GET,
        b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf",
        b"POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ],
    ids=["waiting", "length", "chunks"],
)
def test_a_caller_that_disconnects_cancels_its_request(
    server: ScriptedServer, url: str, begun: bytes
) -> None:
    """Elasticsearch can then cancel a search, and does not mistake a truncated body for a complete one."""
    arrived, ended = threading.Event(), threading.Event()
    rest = b""

    def script(connection: Connection) -> None:
        nonlocal rest
        connection.head()
        if b"half" in begun:
            connection.until(b"half")
        arrived.set()
        rest = connection.rest()
        ended.set()

    server.script = script
    with Connection.to(url) as caller:
        caller.send(begun)
        assert arrived.wait(TIMEOUT_S)
    assert ended.wait(TIMEOUT_S)
    assert ENDED not in rest


def test_a_caller_that_disconnects_cancels_the_response(server: ScriptedServer, url: str) -> None:
    ended = threading.Event()

    def script(connection: Connection) -> None:
        connection.head()
        connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        if connection.is_closed():
            ended.set()

    server.script = script
    with Connection.to(url) as caller:
        caller.send(GET)
        caller.until(b"one")
    assert ended.wait(TIMEOUT_S)


@pytest.mark.parametrize(
    "half",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf",
    ],
    ids=["length", "chunks", "chunk"],
)
def test_a_truncated_response_does_not_look_complete(server: ScriptedServer, url: str, half: bytes) -> None:
    server.script = answer(half)
    got = exchange(url, GET)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert b"half" in got
    assert b"content-length: 9" in got or (b"chunked" in got and ENDED not in got)


def test_http_1_0_callers_get_a_content_length(server: ScriptedServer, url: str) -> None:
    """Without a length, an HTTP/1.0 response ends with the connection, so truncation would go unnoticed."""
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"
    server.script = answer(chunked)
    assert exchange(url, GET.replace(b"1.1", b"1.0")).startswith(b"HTTP/1.1 502 ")
    server.script = answer(chunked + b"5\r\nwhole\r\n0\r\n\r\n")
    assert exchange(url, GET.replace(b"1.1", b"1.0")).endswith(
        b"content-length: 9\r\nConnection: close\r\n\r\nhalfwhole"
    )


CUT = b"HTTP/1.1 200 OK\r\nx-elastic-product: Elasticsearch\r\nset-cookie: secret\r\ncontent-ty"


@pytest.mark.parametrize(
    "whole",
    [
        *(b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\n", CUT, CUT + b"pe: a\r\n", b"x\r\n\r\n"),
        *(b"HTTP/1.1 %b OK\r\n\r\n" % status for status in (b"007", b"101", b"999", b"9999")),
        b"HTTP/1.1 200 OK\r\ncontent-length: a\r\n\r\n",
    ],
    ids=lambda whole: repr(whole[-30:]),
)
def test_invalid_responses_become_errors_in_elasticsearch_format(
    server: ScriptedServer, url: str, whole: bytes
) -> None:
    server.script = answer(whole)
    got = exchange(url, GET_CLOSE.replace(b"GET", b"POST"))
    assert got.startswith(b"HTTP/1.1 502 ")
    body = json.loads(got.partition(b"\r\n\r\n")[2])
    assert body["status"] == 502
    assert body["error"]["type"] == "esdedup_elasticsearch_unavailable"
    assert body["error"]["root_cause"] == [{key: body["error"][key] for key in ("type", "reason")}]
    assert server.url in body["error"]["reason"]
    assert "secret" not in body["error"]["reason"]


def test_clients_refuse_responses_truncated_in_their_headers() -> None:
    """A response that is truncated in its headers looks like a complete response with an empty body."""
    answers = iter([CUT, CUT, OK])
    json_headers = b"x-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\n"

    def script(connection: Connection) -> None:
        connection.head()
        connection.send(next(answers, CUT).replace(b"OK\r\nc", b"OK\r\n" + json_headers + b"c"))

    with ScriptedServer(script).running() as server:
        with pytest.raises(ServerUnavailable, match="broke off in its headers"):
            Articles(client_of(server.url)).find("news")
        assert patient(client_of(server.url)).indices.get(index="news").body == {}
        sidecar = SidecarConnection([server.url], token=None, credentials={}, ca_certs=None, patience_s=0.1)
        with pytest.raises(SidecarUnavailable, match="200 without a body"):
            sidecar.post("/v1/enrich", b"{}", content_type="application/json")
        sidecar.close()


class TestUpstream:
    def test_nodes_are_used_in_turn_with_failover(self) -> None:
        heads: dict[str, list[bytes]] = {}
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(ScriptedServer().running()) for _ in range(2)]
            for each in servers:
                each.script = answer(OK, heads.setdefault(each.url, []), body_end=ENDED)
            urls = [servers[0].url, f"http://127.0.0.1:{closed_port()}", servers[1].url]
            assert asyncio.run(_send(urls, "POST", times=6, body=[b"one", b"two"])) == [b"{}"] * 6
        assert all(len(got) == 3 for got in heads.values())

    @pytest.mark.parametrize(
        ("method", "has_body", "tried"),
        [("GET", False, 2), ("DELETE", False, 2), ("POST", False, 1), ("PUT", True, 1)],
    )
    def test_only_idempotent_requests_are_repeated(self, method: str, has_body: bool, tried: int) -> None:
        heads: list[bytes] = []

        def script(connection: Connection) -> None:
            heads.append(connection.head())
            if has_body:
                connection.until(b"two")

        with ScriptedServer(script).running() as one, ScriptedServer(script).running() as other:
            urls = [one.url, other.url]
            body = [b"one", b"two"] if has_body else None
            with pytest.raises(ServerUnavailable, match=re.escape(one.url)) as raised:
                asyncio.run(_send(urls, method, body=body))
        assert len({head.split(b"\r\n")[1] for head in heads}) == tried
        assert (other.url in str(raised.value)) == (tried == 2)

    def test_the_failure_of_every_node_is_reported(self) -> None:
        urls = [f"http://127.0.0.1:{closed_port()}" for _ in range(2)]
        with pytest.raises(ServerUnavailable, match="Connect call failed") as raised:
            asyncio.run(_send(urls, "GET"))
        assert all(url in str(raised.value) for url in urls)

    def test_the_path_of_the_server_address_is_kept(self) -> None:
        heads: list[bytes] = []
        with ScriptedServer(answer(OK, heads)).running() as server:
            asyncio.run(_send([f"{server.url}/es%2F1/"], "GET"))
        assert heads[0].startswith(b"GET /es%2F1/a?b HTTP/1.1\r\n")

    @pytest.mark.parametrize(
        "url", ["", "localhost:9200", "ftp://a", "http://", "http://a:b:c", "http://a?b"]
    )
    def test_invalid_addresses_are_refused_without_quoting_them(self, url: str) -> None:
        with pytest.raises(SettingError, match=r"urls must look like"):
            Upstream([url])


def test_hop_by_hop_headers_are_dropped() -> None:
    headers = [
        (b"A", b"1"),
        (b"Connection", b"B, c"),
        (b"connection", b"d"),
        (b"b", b"2"),
        (b"C", b"3"),
        (b"D", b"4"),
    ]
    assert end_to_end(headers) == [(b"A", b"1")]


async def _send(
    urls: list[str], method: str, *, times: int = 1, body: list[bytes] | None = None
) -> list[bytes]:
    answers = []
    async with Upstream(urls) as upstream:
        for _ in range(times):
            parts = _iterate(body) if body else None
            answers.append((await upstream.ask(method, b"/a?b", [(b"x-a", b"b")], parts)).body)
    return answers


async def _iterate(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _send_until_stalled(connection: Connection) -> int:
    sent = 0
    with contextlib.suppress(TimeoutError, ConnectionError):
        while sent < FAR_TOO_MUCH_BYTES:
            sent += connection.socket.send(b"a" * 65_536)
    return sent


MATCHED = [
    ("PUT", "/news/typed/1"),
    ("POST", "/news/typed"),
    ("POST", "/news/typed/1/_update"),
    ("POST", "/news/typed/_bulk"),
    ("POST", "/news/_doc/1/_update"),
    ("POST", "//news///_update_by_query"),
    ("POST", "/news/%5Fsearch"),
    ("POST", "/news/_create"),
    ("PUT", "/news/_update/1"),
    ("PUT", "/news//_doc"),
    ("POST", "//typed/_bulk"),
    ("POST", "/_all/_update_by_query"),
    ("POST", "/n*/_update_by_query"),
    ("POST", "/_reindex"),
    ("PUT", "/_no_such_thing/1"),
]
PASSED = [
    ("GET", "/news/typed/1"),
    ("DELETE", "/news/typed/1"),
    ("POST", "/news/_search"),
    ("POST", "/_search/scroll"),
    ("PUT", "/news"),
    ("PUT", "/news/_mapping"),
    ("PATCH", "/news/_bulk"),
    ("POST", "/_reindex/1:2/_rethrottle"),
    ("PUT", "/_ingest/pipeline/p"),
    ("POST", "/"),
]


async def unexpected(_: Any) -> Any:
    raise AssertionError("unexpected request")


def matches(method: str, path: str) -> bool:
    route = UnreadWrites(Upstream(["http://localhost:9200"]), unexpected)
    scope = {"type": "http", "method": method, "raw_path": path.encode()}
    return bool(route.matches(scope)[0].value)


@pytest.mark.parametrize(("method", "path"), MATCHED)
def test_requests_that_may_write_are_matched(method: str, path: str) -> None:
    assert matches(method, path)


@pytest.mark.parametrize(("method", "path"), PASSED)
def test_requests_that_cannot_write_are_not_matched(method: str, path: str) -> None:
    assert not matches(method, path)
