"""Who may write to an index may feed the forest through it, and nobody else."""

import asyncio
from collections.abc import Sequence

import orjson
import pytest

from esdedup.errors import ServerUnavailable
from esdedup.sidecar import auth as module
from esdedup.sidecar.auth import CallerRefused, ElasticAnswer, Rights
from esdedup.sidecar.upstream import Headers

FEEDER = [(b"Authorization", b"ApiKey feeder"), (b"User-Agent", b"test")]
VISITOR = [(b"authorization", b"ApiKey visitor")]


class Elasticsearch:
    """Lets the feeder write to `news`; counts what it is asked."""

    def __init__(self, *answers: ElasticAnswer) -> None:
        self.asked: list[tuple[Headers, list[str]]] = []
        self.answers = list(answers)

    async def __call__(self, headers: Headers, body: bytes) -> ElasticAnswer:
        (request,) = orjson.loads(body)["index"]
        self.asked.append((headers, request["names"]))
        if self.answers:
            return self.answers.pop(0)
        is_feeder = (b"Authorization", b"ApiKey feeder") in headers
        found = {name: {"create_doc": is_feeder and name == "news"} for name in request["names"]}
        return ElasticAnswer(200, [], orjson.dumps({"has_all_requested": False, "index": found}))


def may_write(given: Rights, headers: Sequence[tuple[bytes, bytes]], *indices: str) -> dict[str, bool]:
    return dict(asyncio.run(given.may_write(headers, indices)))


def test_elasticsearch_is_asked_with_the_credentials_of_the_caller_and_nothing_else() -> None:
    server = Elasticsearch()
    assert may_write(Rights(server), FEEDER, "news", "other") == {"news": True, "other": False}
    ((headers, names),) = server.asked
    assert headers == [FEEDER[0], (b"content-type", b"application/json")]
    assert names == ["news", "other"]


def test_a_right_counts_for_a_while_and_for_that_caller_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server, now_s = Elasticsearch(), [0.0]
    monkeypatch.setattr(f"{module.__name__}.time.monotonic", lambda: now_s[0])
    given = Rights(server)
    for _ in range(3):
        assert may_write(given, FEEDER, "news") == {"news": True}
    assert len(server.asked) == 1
    assert may_write(given, VISITOR, "news") == {"news": False}
    now_s[0] = 61.0
    assert may_write(given, FEEDER, "news") == {"news": True}
    assert len(server.asked) == 3


def test_what_was_refused_is_asked_again() -> None:
    server = Elasticsearch()
    given = Rights(server)
    for _ in range(2):
        assert may_write(given, VISITOR, "news") == {"news": False}
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error":"no handler found for uri [/_security/user/_has_privileges] and method [POST]"}'),
        (500, b'{"error":{"reason":"Security must be explicitly enabled when using a [basic] license."}}'),
    ],
)
def test_without_security_everybody_may_write(status: int, body: bytes) -> None:
    server = Elasticsearch(ElasticAnswer(status, [], body))
    given = Rights(server)
    assert may_write(given, [], "news", "other") == {"news": True, "other": True}
    assert may_write(given, VISITOR, "more") == {"more": True}
    assert len(server.asked) == 1


def test_who_is_not_known_is_told_so_in_the_words_of_elasticsearch() -> None:
    answer = ElasticAnswer(401, [(b"www-authenticate", b"ApiKey")], b'{"error":{}}')
    with pytest.raises(CallerRefused) as refused:
        may_write(Rights(Elasticsearch(answer)), [], "news")
    assert refused.value.answer is answer


def test_another_answer_is_no_permission() -> None:
    given = Rights(Elasticsearch(ElasticAnswer(503, [], b"")))
    with pytest.raises(ServerUnavailable, match="who may write to news: it answers with status 503"):
        may_write(given, FEEDER, "news")
    assert may_write(given, FEEDER, "news") == {"news": True}
