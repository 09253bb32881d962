"""Versions of an article, and copies that arrive after the retention, with a real server."""

from datetime import timedelta
from typing import Any

from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Maintenance
from tests.support.forests import in_each_way, nodes, roots
from tests.support.names import Names
from tests.support.wording import words

PAGE = "https://news.example/fire-at-the-quay"


@in_each_way
def test_versions_join_live_stories(es: Elasticsearch, index_name: Names, lookup: dict[str, Any]) -> None:
    index, forest = index_name("news"), index_name("forest")
    story = words(1_000, 1)
    versions = [" ".join(story[at : at + 300]) for at in (0, 80, 140, 190)]
    other, unrelated = words(400, 2), words(300, 3)
    others = enumerate([" ".join(each) for each in (other[:300], unrelated, other[66:366])], 5)
    date = "2026-01-01"
    actions: list[dict[str, Any]] = [
        {"_id": "1", "url": PAGE, "text": versions[0], "published_at": date},
        # A crawler stores each version under another id; an update has no address.
        {"_id": "2", "url": PAGE, "text": versions[1], "published_at": date},
        {"_op_type": "update", "_id": "2", "doc": {"text": versions[2], "published_at": date}},
        {"_id": "3", "url": PAGE, "text": versions[3], "published_at": date},
        {"_id": "elsewhere", "url": f"{PAGE}-2", "text": versions[3] + " indeed", "published_at": date},
        # These articles are not versions of each other, since an unrelated text has the same address. Their
        # texts are not near each other, either.
        *({"_id": f"{at}", "url": f"{PAGE}-3", "text": text, "published_at": date} for at, text in others),
        {"_id": "march", "url": PAGE, "text": versions[0], "published_at": "2026-03-01"},
    ]
    maintenance = Maintenance(es, forest=forest)
    for number, batch in enumerate([actions[:1], actions[1:2], actions[2:3], actions[3:-1], actions[-1:]]):
        # Each batch has a new owner, which knows only the stored forest.
        with Dedup(es, forest=forest, retention=timedelta(days=7), **lookup) as dedup:
            dedup.setup(index)
            helpers.bulk(
                es, dedup.enrich([{"_index": index, **each} for each in batch], backfill=True), refresh=True
            )
        if number == 1:
            neighbour = maintenance.explain(index, "1", "2").other.neighbour
            assert (neighbour and (neighbour.article, neighbour.way)) == ("1", "address")
        if number == 3:
            # All nodes are still live.
            assert list(maintenance.verify([index])) == []
            assert not maintenance.repair([index]).total()
    found = roots(es, index)
    assert found["1"] == found["2"] == found["3"]
    assert len(set(found.values())) == 6
    assert list(maintenance.verify([index])) == []
    nodes_before = nodes(es, forest)
    maintenance.rebuild([index])
    assert list(maintenance.verify([index])) == []
    march = nodes(es, forest)[found["march"]]
    assert march.signature == nodes_before[march.id].signature
    with Dedup(es, forest=forest, **lookup) as dedup:
        later = {"_index": index, "_id": "4", "url": PAGE, "text": versions[2], "published_at": "2026-03-02"}
        helpers.bulk(es, dedup.enrich([later], backfill=True), refresh=True)
    assert roots(es, index) == found | {"4": found["march"]}
