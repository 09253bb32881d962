"""What every released version stored and wrote is read by this one, and fed on with the same roots."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import Maintenance, Overrides
from esdedup.maintenance import Violation
from tests.support import released
from tests.support.forests import roots
from tests.support.released import name_of

VERSIONS = sorted(path for path in released.FIXTURES.iterdir() if path.name[0].isdigit())


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest, es: Elasticsearch) -> Iterator[Path]:
    """The files of a version, whose indices are in the server."""
    found: Path = request.param
    released.remove(es, found)
    released.restore(es, found)
    yield found
    released.remove(es, found)


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    """What that version answered."""
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return found


def violations(es: Elasticsearch, folder: Path, what: str) -> list[Violation]:
    """Verify a forest and its articles."""
    return list(Maintenance(es, forest=name_of(folder, f"{what}-forest")).verify([name_of(folder, what)]))


def test_it_is_read_and_a_page_goes_on_at_its_cursor(
    es: Elasticsearch, folder: Path, expected: dict[str, Any]
) -> None:
    found = json.loads(json.dumps(released.answers(es, folder)))
    names = ("list", "second", "wire", "words", "article", "similar", "similar_to_text", "left_out")
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert found["words"]
    # Boilerplate that was learned, not only what is a list.
    assert any("Harbour Mail" in passage for passage in found["left_out"])
    rows = released.second_page(es, folder, expected["cursor"])
    assert [[row.id, row.root, row.similar] for row in rows] == expected["second"]


def test_nothing_violates_the_laws_of_this_version(es: Elasticsearch, folder: Path) -> None:
    for what in ("news", "wire"):
        assert violations(es, folder, what) == []


def test_it_is_fed_on_with_the_roots_that_the_version_gave(
    es: Elasticsearch, folder: Path, expected: dict[str, Any]
) -> None:
    news, wire = name_of(folder, "news"), name_of(folder, "wire")
    before = {index: roots(es, index) for index in (news, wire)}
    with released.dedup_of(es, folder, "wire") as dedup:
        # What comes again keeps its root, whatever its fingerprint would be today.
        assert released.feed(dedup, wire, released.stored_articles(folder, "wire"), es=es) == before[wire]
    with released.dedup_of(es, folder, "news") as dedup:
        assert released.feed(dedup, news, released.stored_articles(folder, "news"), es=es) == before[news]
        assert released.feed(dedup, news, released.later_articles(folder), es=es) == expected["later"]
    # Reprints and new stories, or little is shown.
    joined = set(expected["later"].values()) & set(before[news].values())
    assert len(joined) > 5
    assert len(set(expected["later"].values()) - joined) > 5
    assert violations(es, folder, "news") == []


def test_the_forest_is_rebuilt_from_its_articles(es: Elasticsearch, folder: Path) -> None:
    news = name_of(folder, "news")
    before = roots(es, news)
    maintenance = Maintenance(es, forest=name_of(folder, "news-forest"))
    nodes = maintenance.stats().nodes
    assert maintenance.rebuild([news], replace=True) == nodes
    assert violations(es, folder, "news") == []
    assert roots(es, news) == before


def test_texts_are_looked_up_by_its_articles(es: Elasticsearch, folder: Path) -> None:
    news = name_of(folder, "news")
    before = roots(es, news)
    Maintenance(es, forest=name_of(folder, "news-forest")).rebuild([news], replace=True, lookup="memory")
    assert violations(es, folder, "news") == []
    reader, found = released.reader_of(es, folder), 0
    for article in list(released.stored_articles(folder, "news"))[-40:]:
        edited = article["text"] + " Reported once more by the Evening Post."
        found += reader.similar_to_text(news, edited).root == before[article["_id"]]
    assert found > 30


def test_its_files_are_read(folder: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    assert released.fingerprint(folder) == expected["fingerprint"]
    with (folder / "pins.jsonl").open("rb") as lines:
        assert Overrides.of_lines(lines) != Overrides.of([])
    config = str(folder / "sidecar.toml")
    assert released.command("sidecar", "--config", config, "--print-config").count("\n") > 10
    plan = released.command("plan", "--costs", str(folder / "costs.json"), "--json")
    assert json.loads(plan)
