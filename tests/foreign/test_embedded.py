"""The embedded Elasticsearch, as a user runs it: the demo, and another version."""

import json
import re
import shlex
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from esdedup import NodeError, node
from tests import sample
from tests.acceptance.conftest import LONG, Run, lines


def answer(options: str) -> str:
    """Return what curl would print; there may be none."""
    given = shlex.split(options)
    request = urllib.request.Request(given[0])
    if "-d" in given:
        request.data = given[given.index("-d") + 1].encode()
        request.add_header(*given[given.index("-H") + 1].split(": "))
    with urllib.request.urlopen(request, timeout=60) as answered:
        return str(answered.read().decode())


def test_the_demo_starts_loads_shows_and_stops(
    run_process: Run, run: Run, tmp_path: Path, data_directory: Path
) -> None:
    own = tmp_path / "own.jsonl"
    own.write_bytes(
        lines(*({"id": f"a{n}", "title": "Mine", "text": LONG + "!" * n} for n in range(3)), {"id": "bad"})
    )
    data = data_directory / "demo"
    sampled = run_process("demo", "--data", data, "--port", 0)
    try:
        assert sampled.code == 0
        assert "starting an embedded Elasticsearch" in sampled.err
        sidecar = re.findall(r"a sidecar takes articles at (\S+)", sampled.err)[0]
        assert "3,000 articles read, 3,000 indexed, 0 failed" in sampled.err
        assert "by similar-desc" in sampled.out
        assert "similar articles under root" in sampled.out
        assert "Go on with" in sampled.out
        assert f"Open it in a browser: {sidecar}/pages/" in sampled.out
        assert "Residents" in answer(f"{sidecar}/pages/")
        found = {word: json.loads(answer(f"{sidecar}/api/v1/list?q={word}")) for word in ("ferry", "ferries")}
        assert found["ferry"]["total_articles"] == found["ferries"]["total_articles"] > 50
        (newest, *_) = json.loads(answer(f"{sidecar}/api/v1/list?sort=newest"))["rows"]
        assert datetime.now(UTC) - datetime.fromisoformat(newest["published_at"]) < timedelta(hours=1)
        pasted = [answer(line) for line in re.findall(r"^  curl (.*)$", sampled.out, re.MULTILINE)]
        assert [json.loads(each).keys() & {"result", "dedup", "rows"} for each in pasted] == [
            {"result"},
            {"dedup"},
            {"rows"},
        ]
        status = run("node", "status", "--data", data, "--json")
        assert status.json["nodes"][0]["alive"]
        mine = run_process("demo", "--data", data, "--input", own, "--once")
        assert mine.code == 1
        assert "4 articles read, 3 indexed, 1 failed: 1 clusters, 2 near-duplicates" in mine.err
        assert f"{own}:4 (id 'bad')" in mine.err
        # Neither of the two sidecars is left.
        for ended in (sidecar, *re.findall(r"a sidecar takes articles at (\S+)", mine.err)):
            with pytest.raises(OSError, match="refused"):
                answer(f"{ended}/healthz")
    finally:
        run("node", "stop", "--data", data)
    assert run("node", "status", "--data", data).code == 3
    assert run("node", "stop", "--data", data, "--json").json == {"stopped": False}


def test_a_node_of_elasticsearch_8_serves_the_command_line(run: Run, data_directory: Path) -> None:
    data = data_directory / "older"
    options = ["--port", 0, "--version", "8.19", "--heap", "256m", "--hours", 0.2]
    started = run("node", "start", "--data", data, *options, "--json")
    try:
        url = started.json["url"]
        assert started.json["version"].startswith("8.19.")
        assert [each["alive"] for each in started.json["nodes"]] == [True]
        articles = list(sample.articles(300))
        assert run("setup", "news", url=url).code == 0
        summary = run("index", "-", "--index", "news", "--json", stdin=lines(*articles), url=url).json
        assert summary["written"] == len(articles)
        page = run("list", "--index", "news", "--sort", "similar-desc", "--json", url=url).json
        assert page["total_rows"] == summary["new_roots"]
        head = page["rows"][0]
        similar = run("similar", "--index", "news", "--id", head["id"], "--json", url=url).json
        assert similar["total"] == head["similar"]
    finally:
        run("node", "stop", "--data", data)


def test_the_options_of_a_node_are_passed_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def start(data: Path, *, progress: object, **options: Any) -> NoReturn:
        given.update(options, data=data)
        raise NodeError("it is not started here")

    monkeypatch.setattr(node, "start", start)
    options = ["--port", 0, "--version", "8.19", "--nodes", 2, "--heap", "256m", "--hours", 0.5]
    assert run("node", "start", "--data", tmp_path, *options).code == 3
    wished = {"port": 0, "version": "8.19", "node_count": 2, "heap": "256m", "lifetime_s": 1800.0}
    assert given == {"data": tmp_path, **wished}
