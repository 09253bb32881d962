"""Articles with their roots into Elasticsearch, against plain bulk requests of the same articles."""

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.rows import Row, duration_s, less_is_better
from benchmarks.run import Run
from esdedup import VERIFIED, Dedup, Profile, sample

Action = dict[str, Any]
Send = Callable[[Iterable[Action]], object]

INDEX, FOREST = "benchmark-articles", "benchmark-forest"
PLAIN = "helpers.bulk of the articles as they are"
COUNT = 12_000
ROUNDS = 3
_CHUNK = 500
_KEPT_WHOLE = VERIFIED.with_changes(keep_boilerplate=True)


def ingest(run: Run) -> list[Row]:
    """Feed the sample corpus into empty indices, by each way in turn."""
    actions = actions_of(run.size(COUNT))
    ways = {"embedded": (VERIFIED, 1), "two threads": (VERIFIED, 2), "pages kept whole": (_KEPT_WHOLE, 1)}
    spent_s: dict[str, list[float]] = {name: [] for name in (PLAIN, *ways)}
    with server.client(run, lifetime_s=3_600) as client:
        for _ in range(run.size(ROUNDS)):
            empty(client)
            spent_s[PLAIN].append(duration_s(lambda: bulk(client, actions)))
            for name, (profile, workers) in ways.items():
                spent_s[name].append(_embedded_s(client, actions, profile, workers))
    plain_s = median(spent_s[PLAIN])
    return [
        less_is_better(
            "ingest", f"{len(actions):,} articles, {name}", median(spent_s[name]), PLAIN, plain_s, "s"
        )
        for name in ways
    ]


def actions_of(count: int) -> list[Action]:
    """Return articles of the sample corpus as actions."""
    return [{"_index": INDEX, "_id": article["id"], "_source": article} for article in sample.articles(count)]


def empty(client: Elasticsearch) -> None:
    """Leave an index without articles, like any other, and no forest."""
    for index in (INDEX, FOREST):
        client.options(ignore_status=404).indices.delete(index=index)
    client.indices.create(index=INDEX)


def bulk(client: Elasticsearch, actions: Iterable[Action]) -> None:
    """Send actions."""
    # The helper takes them apart.
    helpers.bulk(client, ({**action} for action in actions), chunk_size=_CHUNK)


def _embedded_s(client: Elasticsearch, actions: list[Action], profile: Profile, workers: int) -> float:
    empty(client)
    with Dedup(client, forest=FOREST, profile=profile, workers=workers) as dedup:
        dedup.setup(INDEX)
        return duration_s(lambda: bulk(client, dedup.enrich({**action} for action in actions)))
