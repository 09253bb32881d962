"""The feeder in memory adds the same dedup objects as a real one."""

from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, ArticleRejected, Dedup, Profile
from esdedup.testing import InMemoryDedup
from tests import sample
from tests.support import stream
from tests.support.names import Names
from tests.support.pages import pages


def actions(index: str, profile: Profile) -> Iterator[dict[str, Any]]:
    """Articles, versions and pages with boilerplate; and updates, deletions and articles without a text."""
    for number, article in enumerate([*stream.articles(150, profile), *pages(150), *sample.articles(150)]):
        whole = {"published_at": f"2026-{1 + number // 60:02d}-01T00:00:{number % 60:02d}Z", **article}
        yield {"_index": index, "_id": article["id"], "_source": whole}
        if number % 20 == 0:
            yield {"_op_type": "update", "_index": index, "_id": article["id"], "doc": {"text": "!!!"}}
            yield {"_op_type": "delete", "_index": index, "_id": f"{number}"}
            yield {"_index": index, "_id": f"{number}", "title": "no text"}


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=repr)
@pytest.mark.parametrize("backfill", [True, False])
def test_both_feeders_enrich_actions_equally(
    es: Elasticsearch, index_name: Names, profile: Profile, backfill: bool
) -> None:
    index, forest = index_name("news"), index_name("forest")
    rejected: list[list[ArticleRejected]] = [[], []]
    with Dedup(es, forest=forest, profile=profile, batch_size=70) as real:
        feeders = (real, InMemoryDedup(forest=forest, profile=profile, batch_size=110))
        found = []
        for dedup, reasons in zip(feeders, rejected, strict=True):
            assert dedup.setup(index)
            given = actions(index, profile)
            found.append(list(dedup.enrich(given, backfill=backfill, on_rejected=reasons.append)))
    assert list(map(str, rejected[0])) == list(map(str, rejected[1])) != []
    expected, mine = found if backfill else map(without_times, found)
    assert list(mine) == list(expected)


def without_times(enriched: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield the actions without the times of arrival, which differ."""
    for action in enriched:
        source = action.get("_source", {})
        for part in (source, source.get("doc", {})):
            if isinstance(part.get("dedup"), dict):
                part["dedup"] = {
                    name: each for name, each in part["dedup"].items() if name not in {"seen", "published"}
                }
        yield action
