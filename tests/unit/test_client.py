"""Patience: what a client does while its cluster cannot take a request."""

import sys
from collections.abc import Callable
from typing import Any

import elastic_transport
import pytest
from elasticsearch import ApiError, Elasticsearch

from esdedup import SettingError
from esdedup.elastic.client import connect, connect_async, credentials_of
from esdedup.elastic.errors import translated
from esdedup.elastic.patience import patient

ADDRESS = "http://127.0.0.1:9"

Answer = int | dict[str, Any] | Exception
Answers = Callable[..., list[Answer]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Lets a server answer with these statuses, bodies and errors; what is left over was not asked for."""

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


def test_a_patient_client_asks_again_while_the_cluster_cannot_answer(
    answers: Answers,
) -> None:
    left = answers(503, elastic_transport.ConnectionError("refused"), 429, 200)
    with Elasticsearch(ADDRESS) as es:
        patient(es).indices.refresh(index="news")
        assert left == []
        # Also after its options have been changed; and the client that it was made from stays as it was.
        left = answers(503, 200, 503)
        patient(es).options(request_timeout=1).indices.refresh(index="news")
        with pytest.raises(ApiError):
            es.indices.refresh(index="news")
        assert left == []


def test_several_searches_are_asked_again_if_the_cluster_cannot_answer_one(
    answers: Answers,
) -> None:
    left = answers(*({"responses": [{"status": 200}, {"status": each}]} for each in (503, 429, 200, 503)))
    with Elasticsearch(ADDRESS) as es:
        patient(es).msearch(searches=[{}, {}, {}, {}])
    assert len(left) == 1


def test_who_waits_says_so_and_that_it_is_over(
    answers: Answers,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("esdedup.elastic.patience._UNREMARKABLE_S", 0.2)
    answers(*[elastic_transport.ConnectionError("refused")] * 8, 200, 503, 200)
    with Elasticsearch(ADDRESS) as es:
        patient(es).indices.refresh(index="news")
        # Over so soon that it is not worth a line.
        patient(es).indices.refresh(index="news")
    asked, over = (each.message for each in caplog.records if each.name == "esdedup")
    assert asked == "Elasticsearch does not answer: it is asked again for up to 90 s"
    assert over.startswith("Elasticsearch answers again, after ")


@pytest.mark.parametrize("final", [400, 404, 409, elastic_transport.TlsError("no certificate")])
def test_what_will_not_change_is_told_at_once(answers: Answers, final: int | Exception) -> None:
    left = answers(final, 200)
    with Elasticsearch(ADDRESS) as es, pytest.raises((ApiError, elastic_transport.TlsError)):
        patient(es).indices.refresh(index="news")
    assert left == [200]


@pytest.mark.parametrize("last", [503, elastic_transport.ConnectionError("refused")])
def test_a_patient_client_gives_up_in_the_end(answers: Answers, last: int | Exception) -> None:
    answers(*[last] * 50)
    with Elasticsearch(ADDRESS) as es, pytest.raises((ApiError, elastic_transport.ConnectionError)):
        patient(es, patience_s=0.2).indices.refresh(index="news")


@pytest.mark.parametrize("url", [f"{ADDRESS},nonsense", f"{ADDRESS},", f"{ADDRESS},http://user:secret@"])
def test_several_addresses_of_which_one_makes_no_sense(url: str) -> None:
    with pytest.raises(SettingError, match="the address must be like") as told:
        connect(url)
    assert "secret" not in str(told.value)


def test_a_request_that_json_cannot_hold_is_a_wrong_setting() -> None:
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
def test_who_a_client_says_it_is(client: Elasticsearch, credentials: dict[str, str]) -> None:
    assert credentials_of(client) == credentials


def test_without_aiohttp_an_awaited_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(SettingError, match=r"aiohttp is not installed: pip install 'esdedup\[serve\]'"):
        connect_async(ADDRESS)
