"""The way through Elasticsearch, as a user runs it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import sample
from tests.acceptance.conftest import Run

Names = Callable[[str], str]
LONG = "and a text that is long enough to be told from others"


def lines(*articles: Any) -> bytes:
    return b"".join(json.dumps(article).encode() + b"\n" for article in articles)


def test_index_list_similar(run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    articles = list(sample.articles(300))
    assert run("setup", index, "--json", url=elasticsearch_url).json == {"index": index, "made": True}
    first = run(
        "index",
        "-",
        "--index",
        index,
        "--forest",
        forest,
        "--json",
        stdin=lines(*articles),
        url=elasticsearch_url,
    )
    assert first.code == 0
    summary = first.json
    assert list(summary) == [
        *("read", "indexed", "failed", "new_roots", "joined", "known", "without_fingerprint", "seconds")
    ]
    assert summary["read"] == summary["indexed"] == len(articles)
    assert summary["new_roots"] + summary["joined"] + summary["known"] == len(articles)

    page = run("list", "--index", index, "--sort", "similar-desc", "--json", url=elasticsearch_url).json
    assert page["total_rows"] == summary["new_roots"]
    assert page["total_rows_exact"] is True
    assert page["total_articles"] == len(articles)
    counts = [row["similar"] for row in page["rows"]]
    assert counts == sorted(counts, reverse=True)
    for row in page["rows"]:
        by_hand = es.count(index=index, query={"term": {"dedup.root": row["root"]}})["count"]
        assert row["similar"] == by_hand - 1

    head = page["rows"][0]
    similar = run("similar", "--index", index, "--id", head["id"], "--json", url=elasticsearch_url).json
    assert (similar["root"], similar["total"]) == (head["root"], head["similar"])
    assert head["id"] not in {article["id"] for article in similar["articles"]}
    assert {"id", "title", "published_at", "source", "url"} <= set(similar["articles"][0])

    for is_chinese in (False, True):
        article = next(each for each in articles if (each["title"].upper() == each["title"]) is is_chinese)
        found = run("list", "--index", index, "--query", article["title"], "--json", url=elasticsearch_url)
        root = es.get(index=index, id=article["id"])["_source"]["dedup"]["root"]
        assert root in {row["root"] for row in found.json["rows"]}
        assert len(found.json["rows"]) < summary["new_roots"]
    assert head["id"] in run("list", "--index", index, "--sort", "similar-desc", url=elasticsearch_url).out
    people = run("similar", "--index", index, "--id", head["id"], url=elasticsearch_url)
    assert f"{head['similar']} similar articles" in people.out
    assert run("similar", "--index", index, "--id", "none", url=elasticsearch_url).code == 1
    for usage in (
        ("similar", "--index", index, "--id", ""),
        ("list", "--index", ""),
        ("setup", ""),
        ("setup", "_x"),
    ):
        assert run(*usage, url=elasticsearch_url).code == 2
    assert run("list", "--index", "test-no-such-*", url=elasticsearch_url).code == 3
    feed = ("index", "-", "--index", "test-*", "--forest", forest)
    assert "cannot name one index" in run(*feed, stdin=lines(*articles), url=elasticsearch_url).err


def test_real_news(
    run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names, shared: Path
) -> None:
    """Every count on every page equals a count by hand; a second run changes no root."""
    index, forest = index_name("news"), index_name("forest")
    file = shared / "data" / "zh_news.jsonl"
    run("setup", index, url=elasticsearch_url)
    documents: list[dict[str, str]] = []
    for again in (False, True):
        result = run("index", file, "--index", index, "--forest", forest, "--json", url=elasticsearch_url)
        summary = result.json
        assert result.code == 0
        assert summary["read"] == summary["indexed"] == 2268
        assert (summary["new_roots"], summary["joined"]) == (0, 0) if again else summary["new_roots"] > 1_000
        hits = es.search(index=index, size=10_000, source=["dedup.root"])["hits"]["hits"]
        documents.append({hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits})
    assert documents[0] == documents[1]
    sizes = Counter(documents[0].values())

    for sort in ("newest", "oldest", "similar-desc", "similar-asc", "relevance"):
        seen: list[str] = []
        for number in range(1, 100):
            page = run(
                "list",
                "--index",
                index,
                "--sort",
                sort,
                "--page",
                number,
                "--size",
                500,
                "--json",
                url=elasticsearch_url,
            ).json
            assert page["total_rows"] == len(sizes)
            assert page["total_articles"] == 2268
            assert all(row["similar"] == sizes[row["root"]] - 1 for row in page["rows"])
            seen += [row["root"] for row in page["rows"]]
            if not page["rows"]:
                break
        assert sorted(seen) == sorted(sizes)
        if sort.startswith("similar"):
            counts = [sizes[root] for root in seen]
            assert counts == sorted(counts, reverse=sort == "similar-desc")


def test_bad_input(run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names) -> None:
    index = index_name("bad")
    run("setup", index, url=elasticsearch_url)
    run_lines = [
        b"{not json",
        *lines({"title": "no id", "text": LONG}).splitlines(),
        *lines({"id": "no-text"}, {"id": "number", "text": 5}, {"id": "list", "text": ["x"]}).splitlines(),
        b'{"id": "half", "text": "half \\ud83d a character"}',
        *lines(
            {"id": "title", "text": "an object for a title " + LONG, "title": {"a": 1}},
            {"id": "date", "text": "a date that is none " + LONG, "published_at": "yesterday"},
            {"id": "good", "text": "a good one " + LONG},
            {"id": "good", "text": "a second one of that id " + LONG},
        ).splitlines(),
        # These are taken.
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
    result = run(
        "index",
        "-",
        "--index",
        index,
        "--forest",
        index_name("forest"),
        "--json",
        stdin=b"\n".join(run_lines),
        url=elasticsearch_url,
    )
    assert result.code == 1
    summary = result.json
    del summary["seconds"]
    assert summary == {
        "read": 17,
        "indexed": 8,
        "failed": 9,
        "new_roots": 5,
        "joined": 0,
        "known": 0,
        "without_fingerprint": 3,
    }
    for place, words in [
        (1, "is not JSON"),
        (2, "has no id"),
        (3, "(id 'no-text'): has no field 'text'"),
        (4, "(id 'number'): its text in 'text' is a number"),
        (5, "(id 'list'): its text in 'text' is a list"),
        (6, "lone surrogate"),
        (7, "(id 'title'): Elasticsearch refuses it"),
        (8, "(id 'date'): Elasticsearch refuses it"),
        (10, "the id 'good' was there before, on standard input:9"),
    ]:
        (message,) = [
            line
            for line in result.err.splitlines()
            if line.startswith(f"standard input:{place}") and line[len(f"standard input:{place}")] in ": "
        ]
        assert words in message
    assert "yesterday" not in result.err
    found = {hit["_id"]: hit["_source"]["dedup"] for hit in es.search(index=index, size=50)["hits"]["hits"]}
    assert set(found) == {"good", "empty", "signs", "emoji", "mega", "null-byte", "future", "7"}
    assert len({dedup["root"] for dedup in found.values()}) == 8
    assert all(found[each]["root"].startswith("~") for each in ("empty", "signs", "emoji"))
    assert found["future"]["seen"] < 4_000_000_000_000


def test_servers_that_are_none(run: Run) -> None:
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
def test_secrets_stay_secret(run: Run, url: str, key: str) -> None:
    result = run("list", "--index", "x", "--url", url, ES_API_KEY=key)
    assert result.code in {2, 3}
    for secret in ("hunter2", "ter2", "topsecret"):
        assert secret not in result.err + result.out


def test_indices_and_forests_that_do_not_fit(
    run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    plain, index, forest = index_name("plain"), index_name("news"), index_name("forest")
    article = lines({"id": "1", "text": LONG})
    missing = run("index", "-", "--index", plain, stdin=article, url=elasticsearch_url)
    assert (missing.code, "esdedup setup" in missing.err) == (3, True)
    es.indices.create(index=plain)
    lacking = run("index", "-", "--index", plain, stdin=article, url=elasticsearch_url)
    assert (lacking.code, "lacks fields" in lacking.err) == (3, True)
    run("setup", index, url=elasticsearch_url)
    feed = ("index", "-", "--index", index, "--forest", forest, "--json")
    assert run(*feed, stdin=article, url=elasticsearch_url).code == 0
    other = run(*feed, "--profile", "keywords", stdin=article, url=elasticsearch_url)
    assert other.code == 3
    assert "was made with profile 'verified-1'" in other.err
    assert other.json["failed"] == 1


def test_two_processes_and_one_forest(
    run: Run, elasticsearch_url: str, index_name: Names, tmp_path: Path
) -> None:
    index, forest = index_name("news"), index_name("forest")
    run("setup", index, url=elasticsearch_url)
    feed = ["index", "-", "--index", index, "--forest", forest, "--json", "--url", elasticsearch_url]
    first = subprocess.Popen(
        [Path(sys.executable).parent / "esdedup", *feed],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    assert first.stdin is not None
    # More than a batch, so that it takes the forest, and then waits for more.
    many = lines(*({"id": f"a{n}", "text": f"{LONG} {n} {n * n} {n**3}"} for n in range(1_001)))
    first.stdin.write(many)
    first.stdin.flush()
    deadline = time.monotonic() + 60
    while True:
        refused = run(*feed, stdin=lines({"id": "b", "text": LONG}))
        if refused.code == 3 or time.monotonic() > deadline:
            break
    assert f"process {first.pid} on" in refused.err
    assert "owns it since" in refused.err
    threading.Timer(2, first.stdin.close).start()
    waited = run(*feed, "--wait", 60, stdin=lines({"id": "b", "text": LONG}))
    assert waited.code == 0
    assert first.wait(60) == 0
    assert first.stdout is not None
    assert json.loads(first.stdout.read())["indexed"] == 1_001
    first.stdout.close()


def test_the_demo(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_bytes(
        lines(*({"id": f"a{n}", "title": "Mine", "text": LONG + "!" * n} for n in range(3)), {"id": "bad"})
    )
    data = tmp_path / "node"
    sampled = run("demo", "--data", data, "--port", 0)
    try:
        assert sampled.code == 0
        assert "starting an embedded Elasticsearch" in sampled.err
        assert "3,000 articles read, 3,000 indexed, 0 failed" in sampled.err
        assert "by similar-desc" in sampled.out
        assert "similar articles under root" in sampled.out
        assert "Go on with" in sampled.out
        status = run("node", "status", "--data", data, "--json")
        assert status.json["nodes"][0]["alive"]
        mine = run("demo", "--data", data, "--input", own, "--once")
        assert mine.code == 1
        assert "4 articles read, 3 indexed, 1 failed: 1 new clusters, 2 near-duplicates" in mine.err
        assert f"{own}:4 (id 'bad')" in mine.err
    finally:
        run("node", "stop", "--data", data)
    assert run("node", "status", "--data", data).code == 3
    assert run("node", "stop", "--data", data, "--json").json == {"stopped": False}


def test_elasticsearch_8(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "node"
    started = run("node", "start", "--data", data, "--port", 0, "--version", "8.19", "--hours", 0.2, "--json")
    try:
        url = started.json["url"]
        assert started.json["version"].startswith("8.19.")
        articles = list(sample.articles(300))
        assert run("setup", "news", url=url).code == 0
        summary = run("index", "-", "--index", "news", "--json", stdin=lines(*articles), url=url).json
        assert summary["indexed"] == len(articles)
        page = run("list", "--index", "news", "--sort", "similar-desc", "--json", url=url).json
        assert page["total_rows"] == summary["new_roots"]
        head = page["rows"][0]
        similar = run("similar", "--index", "news", "--id", head["id"], "--json", url=url).json
        assert similar["total"] == head["similar"]
    finally:
        run("node", "stop", "--data", data)


def test_interrupted_and_run_again(
    run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Path
) -> None:
    """Ctrl-C and kill -9 in the middle: the next run ends with what an undisturbed one gives."""
    whole, broken, forests = index_name("whole"), index_name("broken"), [index_name("f1"), index_name("f2")]
    articles = [
        {"id": f"a{n}", "text": f"{LONG} {n // 3} {n // 3 * 7919} {'!' * (n % 3)}"} for n in range(4_000)
    ]
    file = tmp_path / "articles.jsonl"
    file.write_bytes(lines(*articles))
    run("setup", whole, url=elasticsearch_url)
    run("setup", broken, url=elasticsearch_url)
    run("index", file, "--index", whole, "--forest", forests[0], url=elasticsearch_url)
    # Whoever runs the tests in the background has Ctrl-C ignored.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from esdedup.cli import main; main()"
    feed = [sys.executable, "-c", program, "index", "-", "--index", broken, "--forest", forests[1]]
    for stop in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(
            [*feed, "--url", elasticsearch_url],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(lines(*articles[:2_500]))
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while es.count(index=broken)["count"] == 0 and time.monotonic() < deadline:
            es.indices.refresh(index=broken)
            time.sleep(0.1)
        process.send_signal(stop)
        process.wait(60)
        error = process.stderr.read().decode()
        process.stderr.close()
        process.stdin.close()
        assert "Traceback" not in error
        if stop == signal.SIGINT:
            assert process.returncode == 130
            assert "interrupted" in error
    again = run("index", file, "--index", broken, "--forest", forests[1], "--json", url=elasticsearch_url)
    assert (again.code, again.json["indexed"]) == (0, 4_000)
    found = []
    for index in (whole, broken):
        hits = es.search(index=index, size=10_000, source=["dedup.root"])["hits"]["hits"]
        found.append({hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits})
    assert found[0] == found[1]
    assert len(found[0]) == 4_000
