"""Requests that fail wholly or in part, and retries while the cluster is unavailable."""

import json
import socket
import sys
from collections.abc import Callable
from typing import Any, cast

import elastic_transport
import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import ApiError, Elasticsearch

from esdedup import EsdedupError, IndexBlocked, IndexNotReady, ServerUnavailable, SettingError
from esdedup.elastic import bulk
from esdedup.elastic.bulk import ArticleBulk, send_bulk
from esdedup.elastic.client import connect, connect_async, credentials_of
from esdedup.elastic.errors import translated
from esdedup.elastic.patience import await_first_answer, patient

ARTICLES, CULPRIT = 100, "37"
BREAKER = {"type": "circuit_breaking_exception", "reason": "[parent] Data too large"}
QUEUE = {"type": "es_rejected_execution_exception", "reason": "the queue is full"}
Refuse = Callable[[list[str]], Exception | None]


class Server:
    """A fake client and server, which stores articles unless `refuse` or `refuse_one` returns an error."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.stored: list[str] = []
        self.refuse: Refuse = lambda _: None
        self.refuse_one: Callable[[list[str], str], dict[str, Any] | None] = lambda _, __: None
        self.is_up = True
        self.transport = Elasticsearch("http://localhost:1").transport
        self.indices = self

    def options(self, **_: Any) -> "Server":
        return self

    def exists(self, **_: Any) -> bool:
        if not self.is_up:
            raise elastic_transport.ConnectionError("refused")
        return True

    def bulk(self, *, operations: list[Any], **_: Any) -> dict[str, Any]:
        ids = [_parsed(line)["index"]["_id"] for line in operations[::2]]
        self.asked.append(ids)
        if error := self.refuse(ids):
            raise error
        items = []
        for each in ids:
            refused = self.refuse_one(ids, each)
            if refused is None:
                self.stored.append(each)
            items.append({"index": {"_id": each, "status": 201} | (refused or {})})
        return {"items": items}


def _parsed(line: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(line) if isinstance(line, bytes) else line
    return parsed


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record pauses instead of sleeping; the monotonic clock shows their sum."""
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    monkeypatch.setattr("time.monotonic", lambda: sum(found))
    return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(bulk, "patient", lambda client: client)
    return Server()


def answer(status: int, error: dict[str, Any] | None = None) -> ApiError:
    meta = ApiResponseMeta(status, "1.1", HttpHeaders(), 0.0, NodeConfig("http", "localhost", 1))
    return ApiError("refused", meta, {"error": error, "status": status} if error else None)


def load(server: Server, *, culprit_bytes: int = 1) -> dict[str, str | None]:
    articles = ArticleBulk(cast("Elasticsearch", server), index="news")
    actions = (
        {"_index": "news", "_id": str(n), "_source": {"x": "x" * (culprit_bytes if str(n) == CULPRIT else 1)}}
        for n in range(ARTICLES)
    )
    return {each.id: each.refusal for written in articles.write(actions) for each in written}


@pytest.mark.parametrize(
    "error",
    [
        answer(413),
        answer(400, {"type": "illegal_argument_exception", "reason": "malformed"}),
        answer(429, BREAKER),
        elastic_transport.ConnectionError("reset by peer"),
    ],
    ids=["413", "malformed", "breaker", "reset"],
)
def test_one_article_that_fails_every_request_fails_alone(
    server: Server, pauses: list[float], error: Exception
) -> None:
    server.refuse = lambda ids: error if CULPRIT in ids else None
    found = load(server, culprit_bytes=2_000_000)
    assert [name for name, refusal in found.items() if refusal is not None] == [CULPRIT]
    assert sorted(server.stored) == sorted(set(found) - {CULPRIT})
    assert len(server.asked) < 25
    assert sum(pauses) < 10


def test_articles_refused_with_a_large_article_are_resent(server: Server, pauses: list[float]) -> None:
    server.refuse_one = lambda ids, _: {"status": 429, "error": BREAKER} if CULPRIT in ids else None
    found = load(server, culprit_bytes=2_000_000)
    assert {name for name, refusal in found.items() if refusal is not None} == {CULPRIT}
    assert found[CULPRIT] == "[parent] Data too large [circuit_breaking_exception]"
    assert len(pauses) == 5


def test_requests_to_a_busy_server_are_retried(server: Server, pauses: list[float]) -> None:
    answers = iter([answer(503)] * 4)
    server.refuse = lambda _: next(answers, None)
    assert set(load(server).values()) == {None}
    assert [len(ids) for ids in server.asked] == [ARTICLES] * 5
    assert pauses == [0.2, 0.4, 0.8, 1.6]


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        (
            {"status": 503, "error": {"type": "unavailable_shards_exception", "reason": "r"}},
            ServerUnavailable,
        ),
        ({"status": 429, "error": QUEUE}, ServerUnavailable),
        ({"status": 403, "error": {"type": "cluster_block_exception", "reason": "r"}}, IndexBlocked),
        ({"status": 404, "error": {"type": "index_not_found_exception", "reason": "r"}}, IndexNotReady),
    ],
)
def test_a_server_error_aborts_the_write(
    server: Server, pauses: list[float], refused: dict[str, Any], kind: type[EsdedupError]
) -> None:
    server.refuse_one = lambda _, __: refused
    with pytest.raises(kind, match="cannot index into 'news'"):
        load(server)
    assert server.stored == []
    assert sum(pauses) < 100


def test_an_unreachable_server_aborts_the_write(server: Server) -> None:
    server.is_up = False
    server.refuse = lambda _: elastic_transport.ConnectionError("refused")
    with pytest.raises(ServerUnavailable):
        load(server)
    assert len(server.asked) == 1


def test_only_items_refused_by_a_busy_server_are_resent(server: Server, pauses: list[float]) -> None:
    server.refuse_one = lambda _, each: {"status": 429} if each == "b" and not pauses else None
    results = send_bulk(
        cast("Elasticsearch", server),
        [({"index": {"_id": each}}, {}) for each in ("a", "b", "c")],
        task="write",
        is_settled=lambda result: result["status"] == 201,
    )
    assert [result["_id"] for result in results] == ["a", "b", "c"]
    assert server.asked == [["a", "b", "c"], ["b"]]


def test_large_articles_do_not_share_a_request(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_CHUNK_BYTES", 10_000)
    load(server, culprit_bytes=20_000)
    assert [CULPRIT] in server.asked
    assert sum(map(len, server.asked)) == ARTICLES


ADDRESS = "http://127.0.0.1:9"

Answer = int | dict[str, Any] | Exception
Answers = Callable[..., list[Answer]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Return a function that queues responses (statuses, bodies or errors), and returns the queue."""

    def answers(*queue: Answer) -> list[Answer]:
        left = list(queue)
        node = elastic_transport.NodeConfig("http", "127.0.0.1", 9)

        def perform_request(*_: Any, **__: Any) -> elastic_transport.TransportApiResponse:
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            headers = elastic_transport.HttpHeaders({"x-elastic-product": "Elasticsearch"})
            status, body = (answer, {}) if isinstance(answer, int) else (200, answer)
            meta = elastic_transport.ApiResponseMeta(status, "1.1", headers, 0.0, node)
            return elastic_transport.TransportApiResponse(meta, body)

        monkeypatch.setattr(elastic_transport.Transport, "perform_request", perform_request)
        return left

    return answers


def test_a_patient_client_retries_an_unavailable_cluster(
    answers: Answers,
) -> None:
    left = answers(503, elastic_transport.ConnectionError("refused"), 429, 200)
    with Elasticsearch(ADDRESS) as es:
        patient(es).indices.refresh(index="news")
        assert left == []
        # A client derived with `options()` also retries; the original client, `es`, does not.
        left = answers(503, 200, 503)
        patient(es).options(request_timeout=1).indices.refresh(index="news")
        with pytest.raises(ApiError):
            es.indices.refresh(index="news")
        assert left == []


def test_all_searches_are_retried_if_one_is_unavailable(
    answers: Answers,
) -> None:
    left = answers(*({"responses": [{"status": 200}, {"status": each}]} for each in (503, 429, 200, 503)))
    with Elasticsearch(ADDRESS) as es:
        patient(es).msearch(searches=[{}, {}, {}, {}])
    assert len(left) == 1


def test_long_waits_and_their_end_are_logged(
    answers: Answers,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("esdedup.elastic.patience._UNREMARKABLE_S", 0.2)
    answers(*[elastic_transport.ConnectionError("refused")] * 8, 200, 503, 200)
    with Elasticsearch(ADDRESS) as es:
        await_first_answer(es, 60.0)
        patient(es).indices.refresh(index="news")
        # A short wait is not logged.
        patient(es).indices.refresh(index="news")
    asked, over = (each.message for each in caplog.records if each.name == "esdedup")
    assert asked == f"Elasticsearch at {ADDRESS} does not answer: retrying for up to 60 s"
    assert over.startswith("Elasticsearch answers again, after ")


REFUSED = elastic_transport.ConnectionError("refused")


def test_only_a_server_that_has_answered_is_awaited(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esdedup.elastic.patience.FIRST_PATIENCE_S", 0.0)
    left = answers(REFUSED, REFUSED, 503, REFUSED, REFUSED, 200)
    with Elasticsearch(ADDRESS) as es:
        with pytest.raises(elastic_transport.ConnectionError) as raised:
            patient(es).indices.refresh(index="news")
        assert raised.value.message == f"refused; if {ADDRESS} is starting, `wait_s` waits for it"
        await_first_answer(es, 10.0)
        # Every copy of the client knows that the server was reached.
        patient(es).indices.refresh(index="news")
        assert left == []
        left = answers(REFUSED, 200)
        patient(es).indices.refresh(index="news")
        assert left == []


def test_a_server_that_never_responds_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esdedup.elastic.patience._LATE_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Elasticsearch(address) as es, pytest.raises(elastic_transport.ConnectionTimeout):
            patient(es, patience_s=0.5).indices.refresh(index="news")
    assert caplog.messages[0] == f"Elasticsearch at {address} has not answered yet"


@pytest.mark.parametrize("final", [400, 404, 409, elastic_transport.TlsError("no certificate")])
def test_permanent_errors_are_raised_immediately(answers: Answers, final: int | Exception) -> None:
    left = answers(final, 200)
    with Elasticsearch(ADDRESS) as es, pytest.raises((ApiError, elastic_transport.TlsError)):
        patient(es).indices.refresh(index="news")
    assert left == [200]


@pytest.mark.parametrize("url", [f"{ADDRESS},nonsense", f"{ADDRESS},", f"{ADDRESS},http://user:secret@"])
def test_an_invalid_address_among_several_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="the address must look like") as raised:
        connect(url)
    assert "secret" not in str(raised.value)


def test_a_request_that_is_not_json_serializable_is_refused() -> None:
    with (
        Elasticsearch(ADDRESS) as es,
        pytest.raises(SettingError, match=r"cannot search: the request cannot be written as JSON \(.*set"),
        translated("search"),
    ):
        es.search(index="news", query={"terms": {"source": {"Coastline"}}})


@pytest.mark.parametrize(
    ("client", "credentials"),
    [
        (Elasticsearch(ADDRESS), {}),
        (Elasticsearch(ADDRESS, headers={"x-a": "b"}, api_key="a2V5"), {"authorization": "ApiKey a2V5"}),
        (Elasticsearch(ADDRESS, basic_auth=("a", "b")), {"authorization": "Basic YTpi"}),
        (Elasticsearch("http://a:b@127.0.0.1:9"), {"authorization": "Basic YTpi"}),
        (Elasticsearch("http://a:b@127.0.0.1:9", api_key="a2V5"), {"authorization": "ApiKey a2V5"}),
        (Elasticsearch(ADDRESS).options(api_key="a2V5"), {"authorization": "ApiKey a2V5"}),
    ],
)
def test_credentials_of_a_client_are_found(client: Elasticsearch, credentials: dict[str, str]) -> None:
    assert credentials_of(client) == credentials


def test_an_async_client_without_aiohttp_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(SettingError, match=r"aiohttp is not installed: pip install 'esdedup\[serve\]'"):
        connect_async(ADDRESS)
