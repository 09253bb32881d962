"""`esdedup show`: both ways between articles and fingerprints."""

import json

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, sample
from tests.acceptance.conftest import Run
from tests.support.forests import feed
from tests.support.names import Names


@pytest.fixture
def fed(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    index, forest = index_name("news"), index_name("forest")
    articles = [{"_id": each.pop("id"), **each} for each in sample.articles(60)]
    articles.append({"_id": "short", "text": "ok"})
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles)
    return index, forest


def test_both_ways(run: Run, es: Elasticsearch, elasticsearch_url: str, fed: tuple[str, str]) -> None:
    index, forest = fed

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


def test_what_cannot_be_shown(run: Run, elasticsearch_url: str, fed: tuple[str, str]) -> None:
    index, forest = fed
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
    # Without the forest, the articles are shown all the same.
    rows = run("list", "--index", index, "--json", url=elasticsearch_url).json["rows"]
    first = next(row for row in rows if row["id"] != "short")
    shown = run(
        "show", "--index", index, "--id", first["id"], "--forest", "none", "--json", url=elasticsearch_url
    )
    assert shown.code == 0
    assert "no forest 'none'" in json.dumps(shown.json["node_missing"])
