"""The commands that maintain and inspect a forest."""

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
    """The look-up of the forest of `fed`; tests may override it."""
    return "memory"


@pytest.fixture
def fed(online: Run, index_name: Names, lookup: str) -> tuple[str, str]:
    """An index of the sample's articles, backfilled, and its forest with a retention of two days."""
    index, forest = index_name("news"), index_name("forest")
    lines = "".join(json.dumps(article) + "\n" for article in sample.articles(100)).encode()
    online("setup", index)
    options = ["--index", index, "--forest", forest, "--backfill", "--retention-days", 2]
    options += ["--lookup", lookup]
    assert online("index", "-", *options, stdin=lines).code == 0
    return index, forest


# 1,200 articles are more than one batch.
@pytest.mark.parametrize(("backfill", "count"), [(False, 1_200), (True, 300)])
def test_rebuilding_from_real_news_preserves_every_root(
    online: Run,
    es: Elasticsearch,
    index_name: Names,
    shared: Path,
    tmp_path: Path,
    backfill: bool,
    count: int,
) -> None:
    index, forest = index_name("news"), index_name("forest")
    how = ["--index", index, "--forest", forest, *(["--backfill", "--retention-days", 36_500] * backfill)]
    online("setup", index)
    news = (shared / "data/zh_news.jsonl").read_bytes().splitlines(keepends=True)[:count]
    file = tmp_path / "news.jsonl"
    file.write_bytes(b"".join(news))
    first = online("index", file, *how, "--json").json
    before = roots(es, index)
    es.indices.delete(index=forest)
    rebuilt = online("rebuild", "--index", index, "--forest", forest, "--json", *how[5:])
    assert rebuilt.json == {"forest": forest, "nodes": first["new_roots"] + first["joined"]}
    verified = online("verify", "--index", index, "--forest", forest)
    assert (verified.code, verified.err) == (0, "")
    again = online("index", file, *how, "--json").json
    assert (again["known"], again["written"]) == (count, count)
    assert roots(es, index) == before


def test_verify_repairs_a_missing_node(
    online: Run, run: Run, es: Elasticsearch, fed: tuple[str, str]
) -> None:
    index, forest = fed
    verify = ["verify", "--index", index, "--forest", forest]
    sound = online(*verify)
    assert (sound.code, sound.err) == (0, "")
    assert sound.out.endswith("nodes and articles checked, 0 violations\n")
    before = roots(es, index)
    last = es.search(index=index, sort=["dedup.seq:desc"], size=1)["hits"]["hits"][0]
    remove(es, forest, last["_source"]["dedup"]["fingerprint"])
    broken = online(*verify, "--json")
    assert broken.code == 1
    assert broken.json["violations"]
    assert f"{last['_id']}: an article whose node is missing" in broken.err
    assert "(can be repaired)" in broken.err
    assert "Traceback" not in broken.err
    repaired = online(*verify, "--repair", "--json")
    assert (repaired.code, repaired.err) == (0, "")
    assert repaired.json["repaired"]
    assert repaired.json["violations"] == {}
    assert online(*verify, "--repair", "--json").json["repaired"] == {}
    assert roots(es, index) == before
    es.update(index=index, id=last["_id"], doc={"dedup": {"profile": "other-1"}}, refresh=True)
    for number in range(3):
        es.index(index=index, id=f"plain-{number}", document={"text": "not enriched"}, refresh=True)
    left = online(*verify, "--repair", "--json")
    assert (left.code, left.json["violations"]) == (1, {"other_profile": 1, "no_root": 3})


# In a log, expired nodes are deleted together with their document: see `tests/integration/test_log.py`.
@pytest.mark.parametrize("lookup", ["search"])
def test_expire_deletes_expired_nodes(online: Run, run: Run, es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    expire = ["expire", "--forest", forest, "--json"]
    would = online(*expire, "--dry-run").json
    assert list(would) == ["forest", "dry_run", "leaves", "roots", "pages", "kept"]
    assert (would["dry_run"], would["kept"]) == (True, 0)
    assert would["roots"]
    stats = online("stats", "--forest", forest, "--json").json
    assert stats["expired"] == would["leaves"] + would["roots"]
    assert stats["retention_days"] == 2
    assert online(*expire).json == would | {"dry_run": False}
    assert online(*expire).json["roots"] == 0
    after = online("stats", "--forest", forest, "--json").json
    assert after["nodes"] == stats["nodes"] - stats["expired"]
    assert online("verify", "--index", index, "--forest", forest).code == 0
    shown = online("stats", "--forest", forest)
    assert f"{after['nodes']:,} nodes in {after['trees']:,} trees" in shown.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["stats", "--forest", "nothing-there"], 3, "there is no forest 'nothing-there'"),
        (["expire", "--forest", "nothing-there"], 3, "there is no forest 'nothing-there'"),
        (["verify", "--forest", "nothing-there"], 3, "there is no forest 'nothing-there'"),
        (["rebuild", "--index", "nothing-there"], 3, "there is no index 'nothing-there'"),
        (["rebuild"], 2, "Missing option '--index'"),
        (["rebuild", "--index", "x", "--retention-days", "0"], 2, "should be greater than or equal to 0.001"),
    ],
)
def test_impossible_requests_are_refused(online: Run, arguments: list[str], code: int, message: str) -> None:
    result = online(*arguments)
    assert result.code == code
    assert message in " ".join(result.err.split())


def test_rebuild_requires_an_index_of_articles(online: Run, fed: tuple[str, str]) -> None:
    index, forest = fed
    nodes = online("stats", "--forest", forest, "--json").json["nodes"]
    assert online("rebuild", "--index", forest).code == 3
    assert online("stats", "--forest", index).code == 3
    rebuilt = online("rebuild", "--index", index, "--forest", forest, "--json")
    assert (rebuilt.code, rebuilt.json) == (0, {"forest": forest, "nodes": nodes})


def test_rebuild_refuses_articles_not_indexed_through_esdedup(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("news"), index_name("forest")
    online("setup", index)
    es.index(index=index, document={"text": LONG}, refresh=True)
    refused = online("rebuild", "--index", index, "--forest", forest)
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


def test_show_prints_articles_and_nodes(online: Run, es: Elasticsearch, stored: tuple[str, str]) -> None:
    index, forest = stored

    def show(*options: str) -> tuple[dict[str, object], str]:
        words = ("show", "--index", index, "--forest", forest, *options)
        people = online(*words)
        programs = online(*words, "--json")
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


def test_show_refuses_invalid_arguments(online: Run, es: Elasticsearch, stored: tuple[str, str]) -> None:
    index, forest = stored
    for options, code, message in [
        ((), 2, "--id, --fingerprint and --root"),
        (("--id", "a", "--root", "b"), 2, "exactly one of"),
        (("--id", "a", "--size", "3"), 2, "require --fingerprint"),
        (("--id", "nope"), 1, "no article 'nope'"),
        (("--root", "nope"), 1, "no article in"),
        (("--fingerprint", "0123456789abcdef"), 1, "has the fingerprint"),
        (("--fingerprint", ""), 2, "non-empty"),
        (("--root", "r" * 40_000), 2, "at most 32,766 bytes"),
    ]:
        refused = online("show", "--index", index, "--forest", forest, *options)
        assert (refused.code, refused.out) == (code, ""), options
        assert message in refused.err, options
    # `show` works if the forest is missing, but refuses a forest other than the index's own.
    wrong = online("show", "--index", index, "--id", "1", "--forest", "none")
    assert (wrong.code, f"belongs to the forest {forest!r}, not to 'none'" in wrong.err) == (3, True)
    es.indices.put_mapping(index=index, meta={})
    rows = online("list", "--index", index, "--json").json["rows"]
    first = next(row for row in rows if row["id"] != "short")
    shown = online("show", "--index", index, "--id", first["id"], "--forest", "none", "--json")
    assert shown.code == 0
    assert "no forest 'none'" in json.dumps(shown.json["node_missing"])
