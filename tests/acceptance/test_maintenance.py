"""The commands that look after a forest and show what it has."""

import json
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup
from tests import sample
from tests.acceptance.conftest import LONG, Run
from tests.support.forests import feed, remove
from tests.support.names import Names


def roots(es: Elasticsearch, index: str) -> dict[str, str]:
    es.indices.refresh(index=index)
    hits = helpers.scan(es, index=index, query={"_source": ["dedup.root"]})
    return {hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits}


@pytest.fixture
def lookup() -> str:
    """How the forest of `fed` finds nodes; a test may name another way."""
    return "memory"


@pytest.fixture
def fed(run: Run, elasticsearch_url: str, index_name: Names, lookup: str) -> tuple[str, str]:
    """An index of the sample's articles and its forest, by their own times, kept for two days."""
    index, forest = index_name("news"), index_name("forest")
    lines = "".join(json.dumps(article) + "\n" for article in sample.articles(100)).encode()
    run("setup", index, url=elasticsearch_url)
    options = ["--index", index, "--forest", forest, "--backfill", "--retention-days", 2]
    options += ["--lookup", lookup]
    assert run("index", "-", *options, stdin=lines, url=elasticsearch_url).code == 0
    return index, forest


# The first is more than a batch.
@pytest.mark.parametrize(("backfill", "count"), [(False, 1_200), (True, 300)])
def test_rebuilt_from_real_news_every_root_is_the_same(
    run: Run,
    es: Elasticsearch,
    elasticsearch_url: str,
    index_name: Names,
    shared: Path,
    tmp_path: Path,
    backfill: bool,
    count: int,
) -> None:
    index, forest = index_name("news"), index_name("forest")
    how = ["--index", index, "--forest", forest, *(["--backfill", "--retention-days", 36_500] * backfill)]
    run("setup", index, url=elasticsearch_url)
    news = (shared / "data/zh_news.jsonl").read_bytes().splitlines(keepends=True)[:count]
    file = tmp_path / "news.jsonl"
    file.write_bytes(b"".join(news))
    first = run("index", file, *how, "--json", url=elasticsearch_url).json
    before = roots(es, index)
    es.indices.delete(index=forest)
    rebuilt = run("rebuild", "--index", index, "--forest", forest, "--json", *how[5:], url=elasticsearch_url)
    assert rebuilt.json == {"forest": forest, "nodes": first["new_roots"] + first["joined"]}
    verified = run("verify", "--index", index, "--forest", forest, url=elasticsearch_url)
    assert (verified.code, verified.err) == (0, "")
    again = run("index", file, *how, "--json", url=elasticsearch_url).json
    assert (again["known"], again["written"]) == (count, count)
    assert roots(es, index) == before


def test_verify_and_repair(run: Run, es: Elasticsearch, elasticsearch_url: str, fed: tuple[str, str]) -> None:
    index, forest = fed
    verify = ["verify", "--index", index, "--forest", forest]
    sound = run(*verify, url=elasticsearch_url)
    assert (sound.code, sound.err) == (0, "")
    assert sound.out.endswith("nodes and articles checked, 0 violations\n")
    before = roots(es, index)
    last = es.search(index=index, sort=["dedup.seq:desc"], size=1)["hits"]["hits"][0]
    remove(es, forest, last["_source"]["dedup"]["fingerprint"])
    broken = run(*verify, "--json", url=elasticsearch_url)
    assert broken.code == 1
    assert broken.json["violations"]
    assert f"{last['_id']}: an article whose node is missing" in broken.err
    assert "(can be repaired)" in broken.err
    assert "Traceback" not in broken.err
    dry = run(*verify, "--repair", "--dry-run", url=elasticsearch_url)
    assert (dry.code, dry.err) == (1, broken.err)
    repaired = run(*verify, "--repair", "--json", url=elasticsearch_url)
    assert (repaired.code, repaired.err) == (0, "")
    assert repaired.json["repaired"]
    assert repaired.json["violations"] == {}
    assert run(*verify, "--repair", "--json", url=elasticsearch_url).json["repaired"] == {}
    assert roots(es, index) == before


# A log forgets what has expired with the document that it is in: `tests/integration/test_log.py`.
@pytest.mark.parametrize("lookup", ["search"])
def test_expire_deletes_what_has_expired(
    run: Run, es: Elasticsearch, elasticsearch_url: str, fed: tuple[str, str]
) -> None:
    index, forest = fed
    expire = ["expire", "--forest", forest, "--json"]
    would = run(*expire, "--dry-run", url=elasticsearch_url).json
    assert list(would) == ["forest", "dry_run", "leaves", "roots", "pages", "kept"]
    assert (would["dry_run"], would["kept"]) == (True, 0)
    assert would["roots"]
    stats = run("stats", "--forest", forest, "--json", url=elasticsearch_url).json
    assert stats["expired"] == would["leaves"] + would["roots"]
    assert stats["retention_days"] == 2
    assert run(*expire, url=elasticsearch_url).json == would | {"dry_run": False}
    assert run(*expire, url=elasticsearch_url).json["roots"] == 0
    after = run("stats", "--forest", forest, "--json", url=elasticsearch_url).json
    assert after["nodes"] == stats["nodes"] - stats["expired"]
    assert run("verify", "--index", index, "--forest", forest, url=elasticsearch_url).code == 0
    shown = run("stats", "--forest", forest, url=elasticsearch_url)
    assert f"{after['nodes']:,} nodes in {after['trees']:,} trees" in shown.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["stats", "--forest", "nothing-there"], 3, "there is no forest 'nothing-there'"),
        (["expire", "--forest", "nothing-there"], 3, "there is no forest 'nothing-there'"),
        (["verify", "--forest", "nothing-there"], 3, "there is no forest 'nothing-there'"),
        (["rebuild", "--index", "nothing-there"], 3, "there is no index 'nothing-there'"),
        (["rebuild"], 2, "Missing option '--index'"),
        (["verify", "--dry-run"], 2, "--dry-run goes with --repair"),
        (["rebuild", "--index", "x", "--retention-days", "0"], 2, "should be greater than or equal to 0.001"),
    ],
)
def test_what_cannot_be_done(
    run: Run, elasticsearch_url: str, arguments: list[str], code: int, message: str
) -> None:
    result = run(*arguments, url=elasticsearch_url)
    assert result.code == code
    assert message in " ".join(result.err.split())


def test_no_forest_is_read_as_articles_or_replaced_unasked(
    run: Run, elasticsearch_url: str, fed: tuple[str, str]
) -> None:
    index, forest = fed
    refused = run("rebuild", "--index", index, "--forest", forest, url=elasticsearch_url)
    assert (refused.code, "--replace" in refused.err) == (3, True)
    assert run("rebuild", "--index", forest, url=elasticsearch_url).code == 3
    assert run("stats", "--forest", index, url=elasticsearch_url).code == 3
    replaced = run("rebuild", "--index", index, "--forest", forest, "--replace", url=elasticsearch_url)
    assert replaced.code == 0


def test_articles_of_another_program_rebuild_no_forest(
    run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("news"), index_name("forest")
    run("setup", index, url=elasticsearch_url)
    es.index(index=index, document={"text": LONG}, refresh=True)
    refused = run("rebuild", "--index", index, "--forest", forest, url=elasticsearch_url)
    assert refused.code == 3
    assert "none of the articles was indexed through esdedup" in refused.err
    assert "--" not in refused.err
    assert not es.indices.exists(index=forest)


@pytest.fixture
def stored(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    index, forest = index_name("news"), index_name("forest")
    articles = [{"_id": each.pop("id"), **each} for each in sample.articles(60)]
    articles.append({"_id": "short", "text": "ok"})
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles)
    return index, forest


def test_both_ways(run: Run, es: Elasticsearch, elasticsearch_url: str, stored: tuple[str, str]) -> None:
    index, forest = stored

    def show(*options: str) -> tuple[dict[str, object], str]:
        words = ("show", "--index", index, "--forest", forest, *options)
        people = run(*words, url=elasticsearch_url)
        programs = run(*words, "--json", url=elasticsearch_url)
        assert people.code == programs.code == 0, people.err
        return programs.json, people.out

    hits = es.search(index=index, size=100)["hits"]["hits"]
    hit = next(each for each in hits if each["_source"]["dedup"].get("fingerprint"))
    dedup = hit["_source"]["dedup"]
    found, shown = show("--id", hit["_id"])
    assert found["article"]["fingerprint"] == dedup["fingerprint"]  # type: ignore[index]
    assert "text" not in found["article"]  # type: ignore[operator]
    assert found["node"]["root"] == dedup["root"]  # type: ignore[index]
    for name in ("root", "fingerprint"):
        assert dedup[name] in shown
        found, listed = show(f"--{name}", dedup[name])
        expected = {each["_id"] for each in hits if each["_source"]["dedup"].get(name) == dedup[name]}
        assert {each["id"] for each in found["rows"]} == expected  # type: ignore[attr-defined]
        assert all(each in listed for each in expected)

    found, shown = show("--id", "short")
    assert found["node"] is None
    assert "has no fingerprint" in shown


def test_what_cannot_be_shown(
    run: Run, es: Elasticsearch, elasticsearch_url: str, stored: tuple[str, str]
) -> None:
    index, forest = stored
    for options, code, said in [
        ((), 2, "--id, --fingerprint or --root"),
        (("--id", "a", "--root", "b"), 2, "name one thing"),
        (("--id", "a", "--size", "3"), 2, "go with --fingerprint"),
        (("--id", "nope"), 1, "no article 'nope'"),
        (("--root", "nope"), 1, "no article in"),
        (("--fingerprint", "0123456789abcdef"), 1, "has the fingerprint"),
        (("--fingerprint", ""), 2, "non-empty"),
        (("--root", "r" * 40_000), 2, "at most 32,766 bytes"),
    ]:
        refused = run("show", "--index", index, "--forest", forest, *options, url=elasticsearch_url)
        assert (refused.code, refused.out) == (code, ""), options
        assert said in refused.err, options
    # Without the forest, the articles are shown all the same, but not with another one than theirs.
    wrong = run("show", "--index", index, "--id", "1", "--forest", "none", url=elasticsearch_url)
    assert (wrong.code, f"belongs to the forest {forest!r}, and not to 'none'" in wrong.err) == (3, True)
    es.indices.put_mapping(index=index, meta={})
    rows = run("list", "--index", index, "--json", url=elasticsearch_url).json["rows"]
    first = next(row for row in rows if row["id"] != "short")
    shown = run(
        "show", "--index", index, "--id", first["id"], "--forest", "none", "--json", url=elasticsearch_url
    )
    assert shown.code == 0
    assert "no forest 'none'" in json.dumps(shown.json["node_missing"])
