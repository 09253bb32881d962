"""Commands that read and write Elasticsearch, as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup.elastic.forest.lease import LEASE_ID
from tests import sample
from tests.acceptance.conftest import LONG, Run, lines
from tests.support.browsing import SampleSite
from tests.support.names import Names
from tests.support.pausing import pausing


def test_learn_reads_all_indices_of_an_alias(online: Run, es: Elasticsearch, index_name: Names) -> None:
    days, forest = [index_name("one"), index_name("other")], index_name("forest")
    for day in days:
        assert online("setup", day, "--text-field", "body").code == 0
    for at, article in enumerate(sample.articles(40)):
        es.index(index=days[at % 2], id=article["id"], document={"body": article["text"]})
    # The alias has no write index.
    alias = f"{days[0]}-alias"
    es.indices.put_alias(index=days, name=alias)
    es.indices.refresh(index=alias)
    learn = ("learn", "--index", alias, "--forest", forest, "--json")
    done = online(*learn)
    assert done.code == 0, done.err
    assert (done.json["read"], done.json["failed"]) == (40, 0)
    assert done.json["learned"] > 0
    assert online(*learn).json["learned"] == 0
    missing = online("learn", "--index", f"{alias}-not", "--forest", forest)
    assert missing.code != 0
    assert "there is no index" in missing.err


def test_serve_logs_json_from_its_first_line(elasticsearch_url: str, unchanged: tuple[str, str]) -> None:
    command = [str(Path(sys.executable).parent / "esdedup"), "serve", "--index", unchanged[0], "--port", "0"]
    command += ["--url", elasticsearch_url, "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = json.loads(process.stderr.readline())
        process.terminate()
        assert f"serves {unchanged[0]} at http://127.0.0.1:" in first["message"]
    refused = subprocess.run([*command, "--profile", "none"], check=False, capture_output=True, text=True)
    assert (refused.returncode, json.loads(refused.stderr)["level"]) == (2, "error")


def test_adopt_dry_run_estimates_without_writing(
    online: Run, run: Run, es: Elasticsearch, index_name: Names
) -> None:
    index = index_name("full")
    for article in sample.articles(60):
        es.index(index=index, id=article["id"], document=article)
    es.indices.refresh(index=index)
    before = es.indices.get(index=index)
    looked = online("adopt", index, "--dry-run", "--json")
    assert looked.code == 0, looked.err
    assert es.indices.get(index=index) == before
    assert looked.json["latest"] == 60
    assert looked.json["repeated"] > 0
    new = 60 - looked.json["repeated"]
    assert 0 < looked.json["bytes_of_the_forest"] / new < looked.json["bytes_of_articles"] / 60 < 2_000
    other = online("adopt", index, "--dry-run", "--json", "--profile", "keywords", "--keywords", 7)
    assert other.json.keys() == looked.json.keys() - {"bytes_of_articles", "bytes_of_the_forest"}


def test_index_list_and_similar_agree_on_counts(online: Run, es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    articles = list(sample.articles(300))
    assert online("setup", index, "--json").json == {"index": index, "made": True}
    first = online("index", "-", "--index", index, "--forest", forest, "--json", stdin=lines(*articles))
    assert first.code == 0
    summary = first.json
    assert list(summary) == [
        *("read", "written", "skipped", "failed", "new_roots", "joined", "known", "without_fingerprint"),
        *("cut", "with_boilerplate", "boilerplate_letters", "undated", "too_old", "seconds"),
    ]
    assert summary["read"] == summary["written"] == len(articles)
    assert summary["new_roots"] + summary["joined"] + summary["known"] == len(articles)

    page = online("list", "--index", index, "--sort", "similar-desc", "--json").json
    assert page["total_rows"] == summary["new_roots"]
    assert page["total_rows_exact"] is True
    assert page["total_articles"] == len(articles)
    counts = [row["similar"] for row in page["rows"]]
    assert counts == sorted(counts, reverse=True)
    for row in page["rows"]:
        by_hand = es.count(index=index, query={"term": {"dedup.root": row["root"]}})["count"]
        assert row["similar"] == by_hand - 1

    head = page["rows"][0]
    similar = online("similar", "--index", index, "--id", head["id"], "--json").json
    assert (similar["root"], similar["total"]) == (head["root"], head["similar"])
    assert head["id"] not in {article["id"] for article in similar["rows"]}
    assert {"id", "title", "published_at", "source", "url"} <= set(similar["rows"][0])

    for is_chinese in (False, True):
        article = next(each for each in articles if (each["title"].upper() == each["title"]) is is_chinese)
        found = online("list", "--index", index, "--query", article["title"], "--json")
        root = es.get(index=index, id=article["id"])["_source"]["dedup"]["root"]
        assert root in {row["root"] for row in found.json["rows"]}
        assert len(found.json["rows"]) < summary["new_roots"]
        assert found.json["sort"] == "relevance"
    words = ("list", "--index", index, "--query", head["title"].split()[0])
    only = online(*words, "--min-similar", "1", "--json").json
    assert only["sort"] == "relevance"
    assert only["rows"]
    assert all(row["similar"] for row in only["rows"])
    assert head["id"] in online("list", "--index", index, "--sort", "similar-desc").out
    people = online("similar", "--index", index, "--id", head["id"])
    assert f"{head['similar']} similar articles" in people.out
    assert online("similar", "--index", index, "--id", "none").code == 1
    for usage in (
        ("similar", "--index", index, "--id", ""),
        ("list", "--index", ""),
        ("setup", ""),
        ("setup", "_x"),
    ):
        assert online(*usage).code == 2
    assert online("list", "--index", "test-no-such-*").code == 3
    feed = ("index", "-", "--index", "test-*", "--forest", forest)
    assert "is not a valid name for an index" in online(*feed, stdin=lines(*articles)).err


def test_a_second_process_waits_for_the_forest(
    online: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("news"), index_name("forest")
    online("setup", index)
    feed = ["index", "-", "--index", index, "--forest", forest, "--json", "--url", elasticsearch_url]
    first = subprocess.Popen(
        [Path(sys.executable).parent / "esdedup", *feed],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    assert first.stdin is not None
    # Send more than one batch, so that the process acquires the forest and then waits for input.
    many = lines(*({"id": f"a{n}", "text": f"{LONG} {n} {n * n} {n**3}"} for n in range(1_001)))
    first.stdin.write(many)
    first.stdin.flush()
    deadline = time.monotonic() + 60
    # 404 means that there is no forest or lease yet; 503 means that the index is being created.
    quiet = es.options(ignore_status=[404, 503])
    while not quiet.get(index=forest, id=LEASE_ID).body.get("found"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    refused = online(*feed, stdin=lines({"id": "b", "text": LONG}))
    assert refused.code == 3
    assert "--wait SECONDS" in refused.err
    assert f"process {first.pid} on" in refused.err
    assert "has owned it since" in refused.err
    threading.Timer(1, first.stdin.close).start()
    waited = online(*feed, "--wait", 60, stdin=lines({"id": "b", "text": LONG}))
    assert waited.code == 0
    assert first.wait(60) == 0
    assert first.stdout is not None
    assert json.loads(first.stdout.read())["written"] == 1_001
    first.stdout.close()


def test_an_interrupted_index_command_can_be_run_again(
    online: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Path
) -> None:
    """After Ctrl-C and kill -9, the next run produces the roots of an uninterrupted run."""
    whole, broken, forests = index_name("whole"), index_name("broken"), [index_name("f1"), index_name("f2")]
    articles = [
        {"id": f"a{n}", "text": f"{LONG} {n // 3} {n // 3 * 7919} {'!' * (n % 3)}"} for n in range(2_400)
    ]
    file = tmp_path / "articles.jsonl"
    file.write_bytes(lines(*articles))
    online("setup", whole)
    online("setup", broken)
    online("index", file, "--index", whole, "--forest", forests[0])
    # If tests run in the background, SIGINT is ignored until a handler is set.
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
        process.stdin.write(lines(*articles[:1_500]))
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
    again = online("index", file, "--index", broken, "--forest", forests[1], "--json")
    assert (again.code, again.json["written"]) == (0, 2_400)
    found = []
    for index in (whole, broken):
        hits = es.search(index=index, size=10_000, source_includes="dedup.root")["hits"]["hits"]
        found.append({hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits})
    assert found[0] == found[1]
    assert len(found[0]) == 2_400


@pytest.mark.parametrize("hangs", [False, True], ids=["server responds", "server hangs"])
@pytest.mark.parametrize(
    ("command", "paused_request", "number"),
    [
        ("adopt", b"_bulk", signal.SIGINT),
        ("learn --index", b"/_pit", signal.SIGTERM),
        ("verify --index", b"/_pit", signal.SIGINT),
    ],
)
def test_commands_exit_soon_after_a_signal(
    online: Run,
    run: Run,
    es: Elasticsearch,
    elasticsearch_url: str,
    index_name: Names,
    command: str,
    paused_request: bytes,
    hangs: bool,
    number: int,
) -> None:
    """The command says how to continue, and releases the forest."""
    index, forest = index_name("news"), index_name("forest")
    helpers.bulk(
        es, ({"_index": index, "text": f"{LONG} {at}", "published_at": at} for at in range(600)), refresh=True
    )
    if command != "adopt":
        online("adopt", index, "--forest", forest)
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from esdedup.cli import main; main()"
    with pausing(elasticsearch_url, paused_request, pauses=hangs) as server:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", program, *command.split()),
                index,
                "--forest",
                forest,
                "--url",
                server.url,
            ],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        try:
            assert server.seen.wait(60)
            process.send_signal(number)
            # The limit is two seconds, doubled for a busy machine.
            _, error = process.communicate(timeout=4)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert b"interrupted: run the command again" in error
    assert b"Traceback" not in error
    assert b"Exception ignored" not in error
    again = online(*command.split(), index, "--forest", forest)
    assert again.code == 0


def test_ctrl_c_during_imports_exits_silently() -> None:
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    # The next import raises SIGINT.
    program += "from esdedup.cli import main\n"
    program += "sys.meta_path[:0] = [type('', (), {'find_spec': lambda *_: signal.raise_signal(2)})]\nmain()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_few_articles_are_indexed_while_input_stays_open(
    es: Elasticsearch, elasticsearch_url: str, online: Run, index_name: Names
) -> None:
    index, forest = index_name("trickle"), index_name("forest")
    online("setup", index)
    options = ["--index", index, "--forest", forest, "--flush-interval", "0.2", "--url", elasticsearch_url]
    feed = subprocess.Popen(
        [sys.executable, "-m", "esdedup", "index", "-", *options, "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert feed.stdin is not None
    feed.stdin.write(lines(*sample.articles(3)))
    feed.stdin.flush()
    deadline = time.monotonic() + 60
    while es.count(index=index)["count"] < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
        es.indices.refresh(index=index)
    assert es.count(index=index)["count"] == 3
    # Give the command time to receive the response.
    time.sleep(1)
    # The reading thread is blocked on input and must not prevent the exit.
    feed.send_signal(signal.SIGTERM)
    try:
        feed.wait(60)
        out, err = feed.stdout.read(), feed.stderr.read().decode()  # type: ignore[union-attr]
    finally:
        feed.kill()
        feed.communicate()
    assert feed.returncode == 143
    assert json.loads(out)["written"] == 3
    assert "interrupted" in err
    assert "Fatal" not in err
    assert "Traceback" not in err


def test_likely_field_names_are_suggested_once(es: Elasticsearch, online: Run, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    online("setup", index)
    options = ("index", "-", "--index", index, "--forest", forest)
    foreign = [{"guid": f"g{n}", "headline": "A title", "body": f"{LONG} {n}"} for n in range(200)]
    refused = online(*options, stdin=lines(*foreign))
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines() == [
        "esdedup: no article has a field 'text' and no field 'id', judging by the first 100; their fields "
        "are 'guid', 'headline', 'body'",
        f"`esdedup setup {index} --text-field body --title-field headline` stores these names in the index",
        "name the id field in this command: --id-field guid",
    ]
    # Following the advice works.
    names = ("--text-field", "body", "--title-field", "headline")
    assert online("setup", index, *names).code == 0
    assert not es.indices.exists(index=forest)
    assert es.count(index=index)["count"] == 0
    csv = "guid,headline,body\n" + "".join(f'{n},A title,"{LONG}, {n}"\n' for n in range(50))
    for stdin in (csv.encode(), json.dumps(foreign[50:]).encode()):
        indexed = online(*options, "--id-field", "guid", "--json", stdin=stdin)
        assert indexed.json["failed"] == 0
    es.indices.refresh(index=index)
    assert es.count(index=index)["count"] == 200


def test_excerpts_are_listed_separately(quoted: SampleSite, online: Run) -> None:
    story = quoted.reader.similar(quoted.index, "story")
    by_others = [
        "also quoted in part by 2 clusters, articles: 3",
        "  Post of second-excerpt: Of the second-excerpt (second-excerpt)",
        "  Post of excerpt: Of the excerpt (excerpt)",
    ]
    of_another = [f"quotes part of root {story.root}, articles: 2", "  Post of story: Of the story (story)"]
    ways = [("similar",), ("similar", "--by-source"), ("show",)]
    for article_id, expected in (("story", by_others), ("excerpt", of_another), ("other", [])):
        values = quoted.reader.similar(quoted.index, article_id).model_dump(mode="json")
        for command, *options in ways:
            arguments = (command, "--index", quoted.index, "--id", article_id, *options)
            assert online(*arguments).out.endswith("".join(f"{line}\n" for line in expected))
            found = online(*arguments, "--json").json
            assert all(found[name] == values[name] for name in ("excerpts", "excerpt_of"))
    shown = online("show", "--index", quoted.index, "--root", story.root or "").out
    assert shown.splitlines()[-3:] == by_others
    assert "quote" not in online("similar", "--index", quoted.index, "--id", "other").out


def test_similar_and_show_report_placeholders(quoted: SampleSite, online: Run) -> None:
    for command in ("similar", "show"):
        arguments = (command, "--index", quoted.index, "--id")
        assert "probably a placeholder" in online(*arguments, "wall-0").out
        assert online(*arguments, "wall-0", "--json").json["is_placeholder"] is True
        assert "placeholder" not in online(*arguments, "story").out


def test_articles_go_to_the_index_of_their_own_day(online: Run, es: Elasticsearch, index_name: Names) -> None:
    name, forest = index_name("daily"), index_name("forest")
    pattern = f"{name}-%{{+yyyy.MM.dd}}"
    articles = lines(
        {"id": "1", "text": f"One {LONG}", "published_at": "2026-11-21T08:00:00Z", "language": "en"},
        {"id": "2", "text": f"One {LONG}", "published_at": "2026-11-22T00:30:00+02:00", "language": "zh"},
        {"id": "3", "text": f"Goats on the roof of the school {LONG}", "published_at": "unknown"},
    )
    refused = online("index", "-", "--index", pattern, "--forest", forest, stdin=articles)
    assert refused.code == 2
    assert f"no index template sets up {name}-*" in refused.err
    es.indices.put_index_template(name=name, index_patterns=[f"{name}-2*"], priority=500)
    try:
        keyword = ("--keyword-field", "language")
        assert online("setup", name, "--template", "--forest", forest, *keyword).code == 0
        done = online("index", "-", "--index", pattern, "--forest", forest, stdin=articles)
        assert done.code == 0
        today = f"{name}-{datetime.now(UTC):%Y.%m.%d}"
        assert f"articles without a plausible date: 1; they are in the index of today, {today}" in done.err
        found = {hit["_id"]: hit for hit in es.search(index=f"{name}-2*")["hits"]["hits"]}
        assert {each: hit["_index"] for each, hit in found.items()} == {
            "1": f"{name}-2026.11.21",
            "2": f"{name}-2026.11.21",
            "3": today,
        }
        assert found["1"]["_source"]["dedup"]["root"] == found["2"]["_source"]["dedup"]["root"]
        shown = online("list", "--index", f"{name}-2*", "--where", "language:zh", "--json").json
        assert [row["id"] for row in shown["rows"]] == ["2"]
    finally:
        es.indices.delete(index=[*es.indices.get(index=f"{name}-2*"), name], ignore_unavailable=True)
        es.indices.delete_index_template(name=name)


def test_further_keyword_fields_are_mapped_for_filters(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    name = index_name("keywords")
    for fields in (["language"], ["language", "meta.desk"]):
        options = [each for field in fields for each in ("--keyword-field", field)]
        assert online("setup", name, *options).code == 0
    mapped = es.indices.get_mapping(index=name)[name]["mappings"]["properties"]
    assert [mapped["language"]["type"], mapped["meta"]["properties"]["desk"]["type"]] == ["keyword"] * 2
    es.indices.put_mapping(index=name, properties={"place": {"type": "text"}})
    for field in ("text", "dedup.root", "place"):
        assert online("setup", name, "--keyword-field", field).code == 0
    kept = es.indices.get_mapping(index=name)[name]["mappings"]["properties"]
    assert (kept["text"], kept["place"]) == (mapped["text"], {"type": "text"})
    assert kept["dedup"] == mapped["dedup"]
