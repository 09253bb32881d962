"""This version reads and migrates the data of every released version."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.migrate import Migration

from esdedup import Dedup, ForestMismatch, Maintenance, Overrides, Reader
from tests.support import released
from tests.support.names import Names
from tests.support.released import name_of

VERSIONS = sorted(path for path in released.FIXTURES.iterdir() if path.name[0].isdigit())


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest, es: Elasticsearch) -> Iterator[Path]:
    """The folder of a released version, whose indices are restored on the server."""
    found: Path = request.param
    released.remove(es, found)
    released.restore(es, found)
    yield found
    released.remove(es, found)


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    """The results that the released version returned."""
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return found


def test_a_released_index_and_its_cursor_are_read(
    es: Elasticsearch, folder: Path, expected: dict[str, Any]
) -> None:
    found = json.loads(json.dumps(released.answers(es, folder)))
    # Compare only ids, since fingerprints of different versions of the profile are not comparable.
    assert [name for name, _ in found["similar"]] == [name for name, _ in expected["similar"]]
    names = ("list", "second", "wire", "words", "article")
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert found["words"]
    rows = released.second_page(es, folder, expected["cursor"])
    assert [[row.id, row.root, row.similar] for row in rows] == expected["second"]


def test_released_indices_are_fed_after_a_migration(
    es: Elasticsearch, folder: Path, index_name: Names
) -> None:
    news, after = name_of(folder, "news"), index_name("after")
    article = next(released.later_articles(folder))
    with released.dedup_of(es, folder, "news") as dedup, pytest.raises(ForestMismatch, match="migrate"):
        released.feed(dedup, news, iter([article]), es=es)
    before = Reader(es).list(news, sort="newest", size=500)
    migration = Migration(es, news, forest=name_of(folder, "news-forest"), to=after)
    with Dedup(es, forest=after, fields=migration.fields, retention=released.RETENTION) as dedup:
        migration.run(dedup)
        # Until the swap, readers see the data of the released version.
        assert Reader(es).list(news, sort="newest", size=500) == before
        migration.swap(dedup)
        later = [{"_index": news, **each} for each in released.later_articles(folder)]
        helpers.bulk(es, dedup.enrich(later, backfill=True), refresh=True)
    assert list(Maintenance(es, forest=after).verify([news])) == []
    reader = Reader(es)
    listed = reader.list(news, sort="newest", size=500)
    assert listed.not_enriched == before.not_enriched
    stories = {row.root for row in listed.rows}
    assert len(stories) > len(before.rows)
    # Some later articles join migrated articles, and stories are still found by their old roots.
    joined = [each for row in listed.rows for each in reader.similar(news, row.id, size=50).rows]
    assert {each["_id"] for each in later} & {each.id for each in joined}
    assert all(row.root and reader.cluster(news, row.root).total > 0 for row in before.rows)


def test_files_of_a_released_version_are_read(folder: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    # The fingerprint of a plain English text is unchanged; only the label of the profile differs.
    assert released.fingerprint(folder)["fingerprint"] == expected["fingerprint"]["fingerprint"]
    with (folder / "pins.jsonl").open("rb") as lines:
        assert Overrides.of_lines(lines) != Overrides.of([])
    config = str(folder / "sidecar.toml")
    assert released.command("sidecar", "--config", config, "--print-config").count("\n") > 10
    plan = released.command("plan", "--costs", str(folder / "costs.json"), "--json")
    assert json.loads(plan)
