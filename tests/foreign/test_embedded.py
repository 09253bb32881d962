"""The embedded Elasticsearch as users run it: the demo, and options of commands."""

import json
import re
import shlex
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from esdedup import NodeError, node
from tests.acceptance.conftest import LONG, Run, lines


def answer(options: str) -> str:
    """Return what curl would print; curl may not be installed."""
    given = shlex.split(options)
    request = urllib.request.Request(given[0])
    if "-d" in given:
        request.data = given[given.index("-d") + 1].encode()
        request.add_header(*given[given.index("-H") + 1].split(": "))
    with urllib.request.urlopen(request, timeout=60) as answered:
        return str(answered.read().decode())


def test_the_demo_loads_and_shows_articles(
    run_process: Run, run: Run, tmp_path: Path, data_directory: Path
) -> None:
    own = tmp_path / "own.jsonl"
    own.write_bytes(
        lines(*({"id": f"a{n}", "title": "Mine", "text": LONG + "!" * n} for n in range(3)), {"id": "bad"})
    )
    data = data_directory / "node"
    sampled = run_process("demo", "--data", data, "--port", 0)
    try:
        assert sampled.code == 0
        assert "starting an embedded Elasticsearch" in sampled.err
        sidecar = re.findall(r"a sidecar accepts articles at (\S+)", sampled.err)[0]
        assert "3,000 articles read, 3,000 indexed, 0 failed" in sampled.err
        assert "by similar-desc" in sampled.out
        assert "similar articles under root" in sampled.out
        assert "Also try" in sampled.out
        assert f"Browse the articles at {sidecar}/pages/" in sampled.out
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
        # Both sidecars have stopped.
        for ended in (sidecar, *re.findall(r"a sidecar accepts articles at (\S+)", mine.err)):
            with pytest.raises(OSError, match="refused"):
                answer(f"{ended}/healthz")
    finally:
        run("node", "stop", "--data", data)
    assert run("node", "status", "--data", data).code == 3
    assert run("node", "stop", "--data", data, "--json").json == {"stopped": False}


def test_the_options_of_a_node_are_passed_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def start(data: Path, *, progress: object, **options: Any) -> NoReturn:
        given.update(options, data=data)
        raise NodeError("not started in this test")

    monkeypatch.setattr(node, "start", start)
    options = ["--port", 0, "--version", "8.19", "--nodes", 2, "--join", "--heap", "256m", "--hours", 0.5]
    assert run("node", "start", "--data", tmp_path, *options).code == 3
    expected = {
        "port": 0,
        "version": "8.19",
        "node_count": 2,
        "join": True,
        "heap": "256m",
        "lifetime_s": 1800.0,
    }
    assert given == {"data": tmp_path, **expected}
