"""Two sidecars in front of one node: one owns the forest, the other stands by and takes over."""

import contextlib
import http.client
import http.server
import json
import signal
import socket
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Maintenance
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.neighbours.relation import relation_of
from esdedup.times import DAY_MS
from tests import sample
from tests.support.between import Sent
from tests.support.exploring import EFFORT
from tests.support.forests import SHARDED, feed, nodes, roots
from tests.support.names import Names
from tests.support.sidecar_process import START_S, SidecarProcess, until

TTL_S = 2
OPTIONS = ("--lease-ttl-s", str(TTL_S), "--keep-boilerplate")
# Learning would also depend on the order of pages, which cannot be reconstructed afterwards.
PROFILE = DEFAULT.with_changes(keep_boilerplate=True)
# This limit is generous, because the machine may be busy, and because an owner that gets SIGTERM first
# answers its accepted requests, for half a minute at most.
PATIENCE_S = 60
TEXTS = {article.pop("id"): article for article in sample.articles(600)}
# Pauses grow from the first to the longest; together they are longer than a takeover.
MOST_RETRIES, FIRST_PAUSE_S, LONGEST_PAUSE_S = 40, 0.1, 1.0


class Pair:
    """Two sidecars of one forest, and an empty index of articles."""

    def __init__(self, url: str, *, index: str, forest: str) -> None:
        self.elasticsearch_url, self.index, self.forest = url, index, forest
        self.all = [SidecarProcess(url, "--forest", forest, "--index", index, *OPTIONS) for _ in range(2)]
        until(lambda: any(each.owns() for each in self.all), START_S, *self.all)
        self.owner, self.standby = sorted(self.all, key=SidecarProcess.owns, reverse=True)
        until(lambda: "is a standby for the forest" in self.standby.log, START_S, self.standby)

    def take_over(self) -> None:
        """Wait until the standby owns the forest."""
        until(self.standby.owns, PATIENCE_S, self.standby)
        self.owner, self.standby = self.standby, self.owner

    def end(self) -> None:
        for each in self.all:
            each.process.send_signal(signal.SIGCONT)
            each.end()


@pytest.fixture
def pair(es: Elasticsearch, elasticsearch_url: str, index_name: Names) -> Iterator[Pair]:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
    sidecars = Pair(elasticsearch_url, index=index, forest=forest)
    try:
        yield sidecars
    finally:
        sidecars.end()


def _ways(pair: Pair, article: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return a request with an article for each endpoint that accepts articles."""
    line = json.dumps(article).encode()
    return [
        (f"/{pair.index}/_doc/b?refresh=true", article),
        (f"/{pair.index}/_bulk?refresh=true", b'{"index":{"_id":"c"}}\n%b\n' % line),
        ("/v1/enrich", b'{"index":{}}\n%b\n' % line),
        ("/v1/enrich/one", article),
    ]


def test_a_standby_names_the_owner_and_takes_over(pair: Pair, es: Elasticsearch) -> None:
    one, *_ = TEXTS.values()
    pair.owner.post(f"/{pair.index}/_doc/a?refresh=true", one)
    root = es.get(index=pair.index, id="a")["_source"]["dedup"]["root"]
    for path, body in _ways(pair, one):
        assert f"the owner of the forest, at {pair.owner.url}" in _refusal(pair.standby, path, body)
    # The request is refused although its body is never sent.
    assert b" 503 " in _answer_to_head(pair.standby, f"/{pair.index}/_bulk")
    assert roots(es, pair.index) == {"a": root}
    with Dedup(es, forest=pair.forest, sidecar=[pair.standby.url, pair.owner.url], profile=PROFILE) as dedup:
        (action,) = dedup.enrich([{"_index": pair.index, **one}])
    assert action["_source"]["dedup"]["root"] == root
    owned = {"forest": pair.forest, "owner": "this process"}
    assert pair.owner.get("/readyz") == {"status": "ready", "missing": [], **owned}
    assert not pair.standby.is_ready()
    assert pair.standby.get("/healthz") == {"status": "alive"}

    # All other requests are answered without the owner.
    assert {each["id"] for each in pair.standby.get(f"/api/v1/articles?root={root}")["rows"]} == {"a"}
    similar = pair.standby.post("/api/v1/similar", {"text": one["text"]})
    assert (similar["root"], similar["root_exact"], similar["total"]) == (root, False, 1)
    assert pair.owner.post("/api/v1/similar", {"text": one["text"]}) == similar | {"root_exact": True}
    with Elasticsearch(pair.standby.url) as client:
        assert client.get(index=pair.index, id="a")["_source"]["dedup"]["root"] == root
        assert client.count(index=pair.index)["count"] == 1

    # The owner hangs, and resumes as the standby.
    pair.owner.process.send_signal(signal.SIGSTOP)
    pair.take_over()
    assert pair.owner.post("/v1/enrich/one", one)["dedup"]["root"] == root
    pair.standby.process.send_signal(signal.SIGCONT)
    until(lambda: not pair.standby.owns(), PATIENCE_S, *pair.all)
    assert pair.owner.url in _refusal(pair.standby, "/v1/enrich/one", one)

    # The owner is killed, and the standby takes over immediately.
    pair.owner.process.kill()
    pair.take_over()
    assert pair.owner.post("/v1/enrich/one", one)["dedup"]["root"] == root


def _refusal(sidecar: SidecarProcess, path: str, body: Any) -> str:
    """Return the reason that a sidecar gives for refusing an article."""
    with pytest.raises(urllib.error.HTTPError) as raised:
        sidecar.post(path, body)
    with raised.value as refused:
        assert (refused.code, refused.headers["Retry-After"]) == (503, "1")
        return refused.read().decode()


def _answer_to_head(sidecar: SidecarProcess, path: str) -> bytes:
    """Return the beginning of the response to a request whose body is never sent."""
    address = urlsplit(sidecar.url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE_S) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        return connection.recv(1_000)


# `make test` leaves out SIGKILL, since `test_sidecar_soak` kills an owner in every run.
@pytest.mark.parametrize(
    "how", [signal.SIGTERM, signal.SIGKILL][: 1 if EFFORT <= 1 else 2], ids=lambda how: how.name
)
def test_a_takeover_neither_loses_nor_duplicates_articles(
    pair: Pair, es: Elasticsearch, how: signal.Signals, index_name: Names
) -> None:
    """An owner hangs and becomes the standby; then the new owner is stopped or killed."""
    kinds = [_Feeder, _Feeder, _LibraryFeeder]
    feeders = [kind(pair, list(TEXTS.items())[start :: len(kinds)]) for start, kind in enumerate(kinds)]
    for feeder in feeders:
        feeder.start()
    _await_fed(es, pair, len(TEXTS) // 6)
    pair.owner.process.send_signal(signal.SIGSTOP)
    pair.take_over()
    pair.standby.process.send_signal(signal.SIGCONT)
    _await_fed(es, pair, len(TEXTS) // 2)
    pair.owner.process.send_signal(how)
    pair.take_over()
    assert len(roots(es, pair.index)) < len(TEXTS)
    for feeder in feeders:
        feeder.join(PATIENCE_S)
        assert feeder.outcome == len(feeder.articles)
    # The standbys had followed the forest, and did not reload it.
    assert any("took over the " in each.log for each in pair.all)
    found = roots(es, pair.index)
    assert found.keys() == TEXTS.keys()
    assert es.count(index=pair.index)["count"] == len(TEXTS)
    assert found == _replayed(es, pair, index_name)


@pytest.mark.parametrize(
    "how", list(SHARDED.values())[: 1 if EFFORT <= 1 else 2], ids=list(SHARDED)[: 1 if EFFORT <= 1 else 2]
)
def test_a_standby_completes_a_batch_on_some_shards(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, how: dict[str, Any]
) -> None:
    """The owner is killed after a part of its batch was written."""
    index, forest, whole = index_name("articles"), index_name("forest"), index_name("articles")
    fed = [{"_id": id_, **article} for id_, article in list(TEXTS.items())[:150]]
    for name, more in ((index, {"forest": forest, **how}), (whole, {"forest": index_name("forest")})):
        with Dedup(es, profile=PROFILE, **more) as dedup:
            dedup.setup(name)
            feed(es, dedup, name, fed[: 50 if name == index else None])
    is_due, killed = threading.Event(), threading.Event()
    kept: list[bytes] = []

    def between(request: Sent) -> bytes | None:
        """Send all requests, but only a part of the batch's nodes; then kill the owner."""
        is_nodes = request.operation == "_bulk" and b"~batch" not in request.body[:40]
        if killed.is_set():
            return None
        if not (is_nodes and is_due.is_set()):
            return request.body
        kept[:] = request.items[1::2]
        return b"".join(kept)

    def after(request: Sent) -> None:
        if kept and not killed.is_set():
            killed.set()
            owner.process.kill()

    options = ("--forest", forest, *OPTIONS)
    with contextlib.ExitStack() as held:
        url = held.enter_context(_between(elasticsearch_url, between, after))
        owner = SidecarProcess(url, *options)
        held.callback(owner.end)
        until(owner.owns, START_S, owner)
        standby = SidecarProcess(elasticsearch_url, *options)
        held.callback(standby.end)
        until(lambda: "is a standby for the forest" in standby.log, START_S, standby)
        is_due.set()
        with pytest.raises((urllib.error.URLError, ConnectionError, http.client.HTTPException)):
            _bulk(owner, index, fed[50:100])
        until(standby.owns, PATIENCE_S, standby)
        # The new owner has completed the batch, so that it gives no new roots to its articles.
        assert len(kept) > 10
        assert Maintenance(es, forest=forest).stats().seq == 100
        assert list(Maintenance(es, forest=forest).verify([index])) == []
        _bulk(standby, index, fed[50:])
    es.indices.refresh(index=index)
    assert roots(es, index) == roots(es, whole)
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def _bulk(sidecar: SidecarProcess, index: str, articles: list[dict[str, Any]]) -> None:
    """Write articles in one request."""
    lines: list[dict[str, Any]] = []
    for each in articles:
        source = {name: value for name, value in each.items() if name != "_id"}
        lines += [{"index": {"_id": each["_id"]}}, source]
    body = b"".join(b"%b\n" % json.dumps(line).encode() for line in lines)
    assert not sidecar.post(f"/{index}/_bulk", body)["errors"]


@contextlib.contextmanager
def _between(
    url: str, between: Callable[[Sent], bytes | None], after: Callable[[Sent], None]
) -> Iterator[str]:
    """Yield an address that passes requests on to a server.

    Args:
        url: The address of the server.
        between: Returns the body to pass on; None to close the connection without a response.
        after: Called before the response is returned.
    """
    pool = urllib3.PoolManager(retries=False, timeout=PATIENCE_S)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            sent = Sent(
                self.command,
                urlsplit(self.path).path,
                self.rfile.read(int(self.headers.get("content-length", 0))),
            )
            if (body := between(sent)) is None:
                self.close_connection = True
                return
            passed = {name: value for name, value in self.headers.items() if name.lower() in _PASSED}
            answer = pool.request(self.command, url + self.path, body=body, headers=passed)
            after(sent)
            with contextlib.suppress(ConnectionError):
                self.send_response(answer.status)
                for name in ("content-type", "x-elastic-product"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("content-length", str(len(answer.data)))
                self.end_headers()
                self.wfile.write(answer.data)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = pass_on  # noqa: N815 - the base class calls these

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


_PASSED = {"accept", "content-type"}


def _await_fed(es: Elasticsearch, pair: Pair, articles: int) -> None:
    until(lambda: len(roots(es, pair.index)) >= articles, PATIENCE_S, *pair.all)


class _Feeder(threading.Thread):
    """Feeds articles with the official client, which repeats refused and unanswered requests."""

    def __init__(self, pair: Pair, articles: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__(daemon=True)
        self.articles = articles
        # The number of articles written, or the error.
        self.outcome: object = None
        self._urls, self._index, self._forest = [each.url for each in pair.all], pair.index, pair.forest
        self._elasticsearch_url = pair.elasticsearch_url

    def run(self) -> None:
        actions = [{"_index": self._index, "_id": id_, **article} for id_, article in self.articles]
        try:
            self.outcome = self._feed(actions)
        except Exception as error:
            self.outcome = error

    def _feed(self, actions: list[dict[str, Any]]) -> int:
        # After the timeout, the client gives up on a process that hangs.
        with Elasticsearch(
            self._urls,
            request_timeout=TTL_S,
            retry_on_timeout=True,
            retry_on_status=[429, 502, 503],
            max_retries=MOST_RETRIES,
            retry_backoff_base=FIRST_PAUSE_S,
            retry_backoff_cap=LONGEST_PAUSE_S,
        ) as client:
            return helpers.bulk(client, actions, chunk_size=10)[0]


class _LibraryFeeder(_Feeder):
    """Feeds articles with the library, which requests their roots and writes them to Elasticsearch."""

    def _feed(self, actions: list[dict[str, Any]]) -> int:
        with (
            Elasticsearch(self._elasticsearch_url) as client,
            Dedup(client, sidecar=self._urls, forest=self._forest, profile=PROFILE, batch_size=10) as dedup,
        ):
            return helpers.bulk(client, dedup.enrich(actions), chunk_size=10)[0]


def _replayed(es: Elasticsearch, pair: Pair, index_name: Names) -> dict[str, str]:
    """Return the roots that the articles get if they are fed in the order in which they arrived.

    An article that arrived twice has a new `seq`; its node keeps the first `seq`. If several articles have
    the same node, the article whose own text yields the node's id came first; the other articles have the
    same content hash.
    """
    first = {id_: node.seq for id_, node in nodes(es, pair.forest).items()}
    hits = helpers.scan(es, index=pair.index, _source=["dedup.fingerprint", "dedup.seq"])
    dedups = {hit["_id"]: hit["_source"]["dedup"] for hit in hits}
    own = dict(zip(TEXTS, _own_nodes([article["text"] for article in TEXTS.values()]), strict=True))

    def place(id_: str) -> tuple[int, bool]:
        node = dedups[id_].get("fingerprint")
        return first.get(node, dedups[id_]["seq"]), node not in own[id_]

    order = sorted(dedups, key=place)
    index = index_name("replayed")
    with Dedup(es, forest=index_name("other"), profile=PROFILE) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": id_, **TEXTS[id_]} for id_ in order])
    return roots(es, index)


def _own_nodes(texts: list[str]) -> Sequence[tuple[str, str]]:
    """Return the ids of each text's leaf and root, as computed now for a text whose content hash is new."""
    leaves = Fingerprinter(PROFILE).fingerprint(texts).signatures
    trees = leaves.copy()
    trees["origin"] = int(time.time() * 1000) // (30 * DAY_MS)
    ids = relation_of(PROFILE).ids
    return list(zip(ids(leaves), ids(trees), strict=True))
