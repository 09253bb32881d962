"""How commands refuse invalid input, servers, indices and forests."""

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from tests.acceptance.conftest import LONG, Run, lines
from tests.support.names import Names


def test_bad_lines_are_reported_and_the_rest_is_indexed(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    index = index_name("bad")
    online("setup", index)
    run_lines = [
        b"{not json",
        *lines({"title": "no id", "text": LONG}).splitlines(),
        *lines({"id": "no-text"}, {"id": "number", "text": 5}, {"id": "list", "text": ["x", 5]}).splitlines(),
        b'{"id": "half", "text": "half \\ud83d a character"}',
        *lines(
            {"id": "title", "text": "an object for a title " + LONG, "title": {"a": 1}},
            {"id": "source", "text": "an object for a source " + LONG, "source": {"name": "the source"}},
            {"id": "good", "text": "a good one " + LONG},
            {"id": "good", "text": "a second one of that id " + LONG},
        ).splitlines(),
        # The following articles are accepted.
        *lines(
            {"id": "empty", "text": ""},
            {"id": "signs", "text": "!!! ???"},
            {"id": "emoji", "text": "😀😀😀😀😀😀😀"},
            {"id": "mega", "text": "a" * 1_000_000},
            {"id": "null-byte", "text": "a null \x00 byte " + LONG},
            {"id": "future", "text": "a far date " + LONG, "published_at": "3732-07-13T15:31:38"},
            {"id": 7, "text": "a number for an id " + LONG},
        ).splitlines(),
    ]
    result = online(
        "index",
        "-",
        "--index",
        index,
        "--forest",
        index_name("forest"),
        "--json",
        stdin=b"\n".join(run_lines),
    )
    assert result.code == 1
    summary = result.json
    del summary["seconds"]
    assert summary == {
        "read": 17,
        "written": 8,
        "skipped": 0,
        "failed": 9,
        "new_roots": 5,
        "joined": 0,
        "known": 0,
        "without_fingerprint": 3,
        "cut": 1,
        "with_boilerplate": 0,
        "boilerplate_letters": 0,
        "undated": 7,
        "too_old": 0,
    }
    for place, words in [
        (1, "is not JSON"),
        (2, "has no id"),
        (3, "(id 'no-text'): has no field 'text'"),
        (4, "(id 'number'): the text in the field 'text' is a number"),
        (5, "(id 'list'): the text in the field 'text' is a list"),
        (6, "lone surrogate"),
        (7, "(id 'title'): Elasticsearch refuses it"),
        (8, "(id 'source'): Elasticsearch refuses it"),
        (10, "repeats the id 'good' of an earlier article"),
    ]:
        (message,) = [
            line
            for line in result.err.splitlines()
            if line.startswith(f"standard input:{place}") and line[len(f"standard input:{place}")] in ": "
        ]
        assert words in message
    assert "the source" not in result.err
    found = {hit["_id"]: hit["_source"]["dedup"] for hit in es.search(index=index, size=50)["hits"]["hits"]}
    assert set(found) == {"good", "empty", "signs", "emoji", "mega", "null-byte", "future", "7"}
    assert len({dedup["root"] for dedup in found.values()}) == 8
    assert all(found[each]["root"].startswith("~") for each in ("empty", "signs", "emoji"))
    assert found["future"]["seen"] < 4_000_000_000_000


def test_unreachable_and_foreign_servers_are_refused(run: Run) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        do_HEAD = do_GET  # noqa: N815 - the protocol's name

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wrong = run("list", "--index", "x", url=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert wrong.code == 3
    assert "not Elasticsearch" in wrong.err
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for command in (["list", "--index", "x"], ["setup", "x"], ["index", "-", "--index", "x"]):
        nobody = run(*command, stdin=b"", url=url)
        assert nobody.code == 3
        assert "no server answers" in nobody.err
    assert run("list", "--index", "x", url="nonsense").code == 2
    assert run("list", "--index", "x", "--ca-certs", "none.pem", url=url).code == 2


OLD = "Accept version must be either version 7 or 6, but found 8"


@pytest.mark.parametrize(
    ("scheme", "status", "reason", "remedy"),
    [
        ("http", 401, "unable to authenticate user [elastic]", "check the user and the password"),
        ("http", 403, "action is unauthorized for user [feeder]", "check the privileges of the user"),
        ("http", 400, OLD, "too old for esdedup, which needs Elasticsearch 8.19 or 9"),
        # The server closes the connection, as a server with TLS does.
        ("http", None, "", "its address begins with https://"),
        ("https", 200, "", "begins with http:// instead of https://"),
    ],
)
def test_faults_of_the_first_run_name_their_remedy(
    run: Run, scheme: str, status: int | None, reason: str, remedy: str
) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if status is None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return
            error = {"type": "of_the_server", "reason": reason}
            body = json.dumps({"error": {"root_cause": [error], **error}, "status": status}).encode()
            self.send_response(status)
            for name, value in (("Content-Type", "application/json"), ("Content-Length", len(body))):
                self.send_header(name, str(value))
            self.send_header("X-Elastic-Product", "Elasticsearch")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = run("setup", "x", url=f"{scheme}://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert refused.code == 3
    error, *advice = refused.err.splitlines()
    assert reason in error
    assert remedy in error
    assert len(advice) <= 1


def test_refusals_for_too_many_fields_name_the_limit(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    full, crowded, forest = index_name("full"), index_name("crowded"), index_name("forest")
    own = {"text": {"type": "text"}, "title": {"type": "text"}}
    for index, limit in ((full, 3), (crowded, 25)):
        es.indices.create(
            index=index,
            settings={"index.mapping.total_fields.limit": limit},
            mappings={"properties": own},
        )
    refused = online("setup", full)
    assert refused.code == 3
    assert "raise `index.mapping.total_fields.limit`" in refused.err
    online("setup", crowded)
    article = {"id": "many", "text": LONG} | {f"field_{number}": 1 for number in range(20)}
    rejected = online("index", "-", "--index", crowded, "--forest", forest, stdin=lines(article))
    assert rejected.code == 1
    assert "raise `index.mapping.total_fields.limit`" in rejected.err


def test_the_api_key_comes_from_option_or_environment(run: Run) -> None:
    received: list[str | None] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers["Authorization"])
            self.send_response(401)
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815 - the protocol's name

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        refused = run(
            "list", "--index", "x", "--api-key", "from-option", url=url, ES_API_KEY="from-environment"
        )
        run("list", "--index", "x", url=url, ES_API_KEY="from-environment")
        server.shutdown()
    assert refused.code == 3
    assert set(received) == {"ApiKey from-option", "ApiKey from-environment"}
    assert received[0] == "ApiKey from-option"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://user:hunter2@127.0.0.1:9", "topsecret"),
        ("http://user:hunter2@127.0.0.1:99999", "topsecret"),
        ("http://user:hun/ter2@127.0.0.1:9", "topsecret"),
        ("http://127.0.0.1:9", "topsecret\nhunter2"),
        ("http://127.0.0.1:9", "topsecret\u4e2d"),
    ],
)
def test_secrets_are_never_printed(run: Run, url: str, key: str) -> None:
    result = run("list", "--index", "x", "--url", url, ES_API_KEY=key)
    assert result.code in {2, 3}
    for secret in ("hunter2", "ter2", "topsecret"):
        assert secret not in result.err + result.out


def test_unsuitable_indices_are_refused(online: Run, es: Elasticsearch, index_name: Names) -> None:
    plain, index, forest = index_name("plain"), index_name("news"), index_name("forest")
    article = lines({"id": "1", "text": LONG})
    missing = online("index", "-", "--index", plain, stdin=article)
    assert (missing.code, "esdedup setup" in missing.err) == (3, True)
    es.indices.create(index=plain)
    lacking = online("index", "-", "--index", plain, stdin=article)
    assert (lacking.code, "lacks fields" in lacking.err) == (3, True)
    online("setup", index)
    feed = ("index", "-", "--index", index, "--forest", forest, "--json")
    assert online(*feed, stdin=article).code == 0
    other = online(*feed, "--profile", "keywords", stdin=article)
    assert other.code == 3
    assert "was made with profile 'verified-5'" in other.err
    assert other.json["failed"] == 1


def test_terminal_escapes_in_articles_and_errors_are_neutralised(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    index, hostile = index_name("steering"), "\x1b]0;owned\x07\x9b31m\u202e"
    online("setup", index)
    article = {"id": hostile, "text": LONG, "title": hostile, "source": hostile, "url": hostile}
    refused = article | {"id": f"{hostile}2", "title": {"a": 1}}
    done = online("index", "-", "--index", index, stdin=lines(article, refused))
    # The server's message contains the id.
    assert "\\x1b]0;owned\\x07\\x9b31m\\u202e2" in done.err
    es.indices.refresh(index=index)
    shown = [online("list", "--index", index)]
    shown += [
        online("similar", "--index", index, "--id", hostile, *options) for options in ((), ("--sources",))
    ]
    listed = online("list", "--index", index, "--json")
    assert listed.json["rows"][0]["title"] == hostile
    assert not [each for each in (done, *shown, listed) if {*"\x1b\x07\x9b\u202e"} & {*each.out, *each.err}]


def test_refused_articles_can_be_corrected_and_indexed(
    online: Run, es: Elasticsearch, index_name: Names, tmp_path: Path
) -> None:
    index, forest, refused = index_name("refusing"), index_name("forest"), tmp_path / "refused.jsonl"
    es.indices.create(index=index, mappings={"properties": {"priority": {"type": "integer"}}})
    online("setup", index)
    articles = [
        {"id": "none", "text": LONG, "priority": "none \ud83d".encode(errors="replace").decode()},
        {"id": "one", "text": LONG, "priority": 1},
        {"id": "empty"},
    ]
    command = ("index", "--index", index, "--forest", forest, "--json", "--refused", refused)
    first = online(*command, "-", stdin=lines(*articles))
    assert (first.code, first.json["read"], first.json["failed"]) == (1, 3, 2)
    kept = [json.loads(line) for line in refused.read_text().splitlines()]
    assert sorted(kept, key=lambda each: str(each["id"])) == [articles[2], articles[0]]
    # An existing file of refused articles is not overwritten.
    again = online(*command, "-", stdin=lines(*articles))
    assert (again.code, "cannot create" in again.err) == (2, True)
    corrected = tmp_path / "corrected.jsonl"
    corrected.write_bytes(refused.read_bytes().replace(b'"none ?"', b"2"))
    refused.unlink()
    second = online(*command, corrected)
    assert (second.code, second.json["read"], second.json["written"]) == (1, 2, 1)
    assert [json.loads(line) for line in refused.read_text().splitlines()] == [{"id": "empty"}]
    refused.unlink()
    last = online(*command, "-", stdin=lines(articles[1]))
    assert (last.code, last.json["known"], refused.exists()) == (0, 1, False)


def test_an_index_of_an_earlier_version_needs_migration(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    """The index has roots but lacks other fields."""
    index = index_name("earlier")
    root = {"properties": {"root": {"type": "keyword"}}}
    es.indices.create(index=index, mappings={"properties": {"dedup": root}})
    given = lines({"id": "one", "text": LONG})
    result = online("index", "-", "--index", index, stdin=given)
    assert result.code != 0
    assert f"`esdedup migrate {index} --to FOREST`" in result.err
    assert "esdedup setup" not in result.err
