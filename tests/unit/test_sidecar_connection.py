"""Programs that ask whichever of several sidecars takes articles now."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.sidecar_connection import SidecarConnection

from esdedup import Dedup, SettingError, SidecarError, SidecarUnavailable
from tests.support.wire import Connection, ScriptedServer, answer, closed_port

TYPE = "application/x-test"


def response(status: int, body: bytes = b"{}") -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(body), body)


DECIDED = response(200, b"decided")
NOT_OWNER = response(503, b'{"type":"urn:esdedup:problem:not_owner","detail":"another process owns it"}')


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esdedup.elastic.patience._FIRST_PAUSE_S", 0.01)


@pytest.fixture
def servers() -> Iterator[list[ScriptedServer]]:
    with ExitStack() as running:
        yield [running.enter_context(ScriptedServer().running()) for _ in range(2)]


def connection_to(*urls: str, patience_s: float = 20.0, token: str | None = None) -> SidecarConnection:
    return SidecarConnection(
        urls,
        token=token,
        credentials={"authorization": "ApiKey k"},
        ca_certs=None,
        patience_s=patience_s,
    )


def test_the_one_that_takes_articles_is_found_and_remembered(servers: list[ScriptedServer]) -> None:
    heads: list[list[bytes]] = [[], []]
    standby, owner = servers
    standby.script = answer(NOT_OWNER, heads[0], body_end=b"asked")
    owner.script = answer(DECIDED, heads[1], body_end=b"asked")
    nobody = f"http://127.0.0.1:{closed_port()}"
    asking = connection_to(nobody, standby.url, f"{owner.url}/under", token="s")
    for _ in range(3):
        assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"
    assert [len(each) for each in heads] == [1, 3]
    assert heads[1][0].startswith(b"POST /under/v1/enrich HTTP/1.1\r\n")
    assert b"x-esdedup-token: s\r\n" in heads[1][0].lower()
    # By these Elasticsearch knows who writes.
    assert b"authorization: apikey k\r\n" in heads[1][0].lower()
    # Another takes over.
    standby.script, owner.script = owner.script, standby.script
    assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"
    asking.close()
    assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"


def test_it_is_asked_again_until_one_takes_articles(servers: list[ScriptedServer]) -> None:
    """They break off, are busy, end in the middle of an answer, stand behind a proxy that finds nobody."""
    turns = iter([b"", response(429), DECIDED[:-3], response(502, b"<html>"), NOT_OWNER, response(504)])

    def script(connection: Connection) -> None:
        connection.until(b"asked")
        connection.send(next(turns, DECIDED))
        connection.socket.close()

    servers[0].script = script
    asking = connection_to(servers[0].url)
    assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"
    assert next(turns, None) is None


def test_patience_ends(servers: list[ScriptedServer]) -> None:
    servers[0].script = answer(NOT_OWNER, body_end=b"asked")
    began_s = time.monotonic()
    asking = connection_to(servers[0].url, f"http://127.0.0.1:{closed_port()}", patience_s=0.5)
    with pytest.raises(SidecarUnavailable, match=r"within 0.5 s .*: 503 another process owns it; ") as raised:
        asking.post("/v1/enrich", b"asked", content_type=TYPE)
    assert time.monotonic() - began_s < 20
    assert "cannot connect" in str(raised.value)
    assert servers[0].url in raised.value.address


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "give the right sidecar_token"),
        (404, "the address of a sidecar"),
        (409, "that is wrong"),
        (500, ""),
    ],
)
def test_a_refusal_is_raised_at_once(servers: list[ScriptedServer], status: int, advice: str) -> None:
    servers[0].script = answer(response(status, b'{"detail":"that is wrong"}'), body_end=b"asked")
    with pytest.raises(SidecarError, match=f"refuses these articles: {status} that is wrong") as raised:
        connection_to(*(each.url for each in servers)).post("/v1/enrich", b"asked", content_type=TYPE)
    assert advice in str(raised.value)
    assert (raised.value.address, raised.value.status) == (servers[0].url, status)


def test_what_cannot_be_used_is_refused_before_anything_is_sent() -> None:
    client = Elasticsearch("http://127.0.0.1:9")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"sidecar": []}, "sidecar has no address"),
        ({"sidecar": "localhost:9500"}, "an address must be like"),
        ({"sidecar": "http://user:secret@:x"}, "an address must be like"),
        ({"sidecar_token": "a\n"}, "sidecar_token is blank, or has an invalid character"),
        ({"sidecar_patience_s": 0}, "sidecar_patience_s is 0"),
        (
            {"workers": 3, "wait_s": 1.0},
            "wait_s and workers: with a sidecar, these are settings of the sidecar",
        ),
    ]
    for wrong, said in cases:
        with pytest.raises(SettingError, match=said) as raised:
            Dedup(client, **{"sidecar": "http://localhost:9500"} | wrong)
        assert "secret" not in str(raised.value)
    dedup = Dedup(client, sidecar="http://localhost:9500")
    for refused in (dedup.expire, lambda: dedup.learn(["a text"])):
        with pytest.raises(SettingError, match="sidecar"):
            refused()
    client.close()
