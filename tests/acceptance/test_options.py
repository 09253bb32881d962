"""Every option of the commands that set up and read an index takes effect."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from tests.acceptance.conftest import LONG, Run, lines, run_in
from tests.support.names import Names, new_names

Ask = Callable[..., Any]

STORY = (
    f"{LONG} of a ferry line between the two largest islands of the north, which opens on monday after years "
    "of dispute about its harbour, its noise, and who should pay for the ice that closes it every winter"
)
# Three near-duplicates, from two sources and on three days, and an unrelated article.
ARTICLES = [
    {"key": "a", "head": "ferry", "body": STORY, "day": "2026-01-01", "by": "North", "desk": "sea"},
    {
        "key": "b",
        "head": "ferry",
        "body": STORY.replace("its noise", "all its noise"),
        "day": "2026-01-02",
        "by": "South",
        "desk": "sea",
    },
    {"key": "c", "head": "late ferry", "body": STORY, "day": "2026-01-03", "by": "North", "desk": "land"},
    {
        "key": "d",
        "head": "rain",
        "body": "rain is expected in the hills on monday",
        "day": "2026-01-04",
        "by": "East",
    },
]
FIELDS = [
    *("--text-field", "body", "--title-field", "head", "--time-field", "day", "--source-field", "by"),
    *("--link-field", "at", "--dedup-field", "near"),
]


@pytest.fixture(scope="module")
def names(
    es: Elasticsearch, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """An index with custom field names, and its forest, for all tests that only read."""
    online = run_in(tmp_path_factory.mktemp("fed"), elasticsearch_url)
    with new_names(es) as name:
        index, forest = name("news"), name("forest")
        assert online("setup", index, *FIELDS, "--shards", 1).code == 0
        es.indices.put_mapping(index=index, properties={"desk": {"type": "keyword"}})
        how = ("--index", index, "--forest", forest, "--id-field", "key")
        fed = online("index", "-", *how, stdin=lines(*ARTICLES))
        assert fed.code == 0, fed.err
        yield index, forest


@pytest.fixture
def ask(online: Run, names: tuple[str, str]) -> Ask:
    """Run a command on the index, and return its JSON."""

    def ask(command: str, *options: object, stdin: bytes | None = None) -> Any:
        done = online(command, "--index", names[0], *options, "--json", stdin=stdin)
        assert (done.code, done.err) == (0, "")
        return done.json

    return ask


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["d", "c"]),
        (["--sort", "oldest"], ["a", "d"]),
        (["--sort", "similar-desc"], ["c", "d"]),
        (["--sort", "similar-asc"], ["d", "c"]),
        (["--sort", "oldest", "--head", "newest"], ["c", "d"]),
        (["--head", "earliest"], ["d", "a"]),
        (["--query", "rain"], ["d"]),
        (["--query", "late"], ["c"]),
        (["--since", "2026-01-04"], ["d"]),
        (["--until", "2026-01-01"], ["a"]),
        (["--source", "South"], ["b"]),
        (["--source", "South", "--source", "East"], ["d", "b"]),
        (["--where", "desk:sea"], ["b"]),
        (["--where", "desk:sea", "--where", "desk:land", "--source", "North"], ["c"]),
        (["--min-similar", 1], ["c"]),
        (["--no-dedup"], ["d", "c", "b", "a"]),
        (["--no-dedup", "--size", 3, "--page", 2], ["a"]),
        (["--sort", "newest"], ["d", "c"]),
        # The titles of "a" and "b" consist of this word alone, and the text of "a" is one word shorter.
        (["--sort", "relevance", "--query", "ferry"], ["a"]),
        (["--sort", "relevance", "--query", "ferry", "--head", "newest"], ["c"]),
        (["--sort", "newest", "--query", "ferry", "--head", "best"], ["a"]),
        (["--head", "longest"], ["d", "b"]),
    ],
    ids=lambda each: " ".join(map(str, each)) or "none",
)
def test_list_options_select_and_sort_rows(ask: Ask, options: list[object], ids: list[str]) -> None:
    assert [row["id"] for row in ask("list", *options)["rows"]] == ids


def test_list_counts_whole_clusters(ask: Ask) -> None:
    counted = ask("list", "--sort", "similar-desc", "--source", "North")
    assert [row["similar"] for row in counted["rows"]] == [2]
    assert counted["total_articles"] == 2
    first = ask("list", "--size", 1)
    assert [row["id"] for row in ask("list", "--size", 1, "--after", first["next"])["rows"]] == ["c"]


def test_similar_options_select_articles(ask: Ask, names: tuple[str, str]) -> None:
    def ids(*options: object, stdin: bytes | None = None) -> list[str]:
        return [article["id"] for article in ask("similar", *options, stdin=stdin)["rows"]]

    assert ids("--id", "a") == ["c", "b"]
    assert ids("--id", "a", "--other-sources") == ["b"]
    assert ids("--id", "a", "--size", 1, "--page", 2) == ["b"]
    first = ask("similar", "--id", "a", "--size", 1)
    assert ids("--id", "a", "--size", 1, "--after", first["next"]) == ["b"]
    text = json.dumps({"body": STORY}).encode()
    assert ids("--text", "-", "--forest", names[1], stdin=text) == ["c", "b", "a"]
    by_source = ask("similar", "--id", "a", "--by-source")
    assert {each["source"]: each["articles"] for each in by_source["sources"]} == {"North": 1, "South": 1}
    second = ask("similar", "--id", "a", "--by-source", "--size", 1, "--page", 2)
    assert (second["page"], second["total_sources"]) == (2, 2)
    assert second["sources"] == by_source["sources"][1:]


def test_setup_creates_shards_and_routes_by_root(online: Run, es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("routed"), index_name("forest")
    made = online("setup", index, "--shards", 3, "--route-by-root", "--json")
    assert made.json == {"index": index, "made": True}
    assert online("setup", index, "--route-by-root", "--json").json["made"] is False
    assert es.indices.get_settings(index=index)[index]["settings"]["index"]["number_of_shards"] == "3"
    article = {"id": "1", "text": LONG}
    fed = online("index", "-", "--index", index, "--forest", forest, stdin=lines(article))
    assert fed.code == 0
    (hit,) = es.search(index=index)["hits"]["hits"]
    assert hit["_routing"] == hit["_source"]["dedup"]["root"]


def test_setup_refuses_a_changed_number_of_shards(online: Run, index_name: Names) -> None:
    index = index_name("shards")
    assert online("setup", index, "--shards", 2).code == 0
    assert online("setup", index, "--shards", 2).code == 0
    refused = online("setup", index, "--shards", 3)
    assert refused.code == 3
    assert "exists already, and its number of shards is 2" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--query", " "], "the query has no words"),
        (["list", "--no-dedup", "--head", "best"], "without dedup each article is a row of its own"),
        (["serve", "--forest", ""], "is not a valid name for an index"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_invalid_options_are_refused_with_a_reason(
    online: Run, names: tuple[str, str], arguments: list[str], message: str
) -> None:
    refused = online(*arguments, "--index", names[0])
    assert refused.code == 2
    assert message in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--dedup-field", "other"], "esdedup setup INDEX --dedup-field other"),
        (["list"], "esdedup setup INDEX` adds the fields"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_commands_on_an_index_without_setup_suggest_setup(
    online: Run, es: Elasticsearch, index_name: Names, arguments: list[str], message: str
) -> None:
    index = index_name("plain")
    es.indices.create(index=index)
    refused = online(*arguments, "--index", index)
    assert refused.code == 3
    assert message.replace("INDEX", index) in refused.err


def test_maintenance_and_explain_use_custom_field_names(ask: Ask, names: tuple[str, str]) -> None:
    forest = ["--forest", names[1]]
    assert ask("stats", *forest)["nodes"] == 3
    assert ask("verify", *forest)["violations"] == {}
    assert ask("rebuild", *forest) == {"forest": names[1], "nodes": 3}
    assert ask("explain", "a", "b", *forest)["same_cluster"] is True
