"""Articles with their roots into Elasticsearch, against plain bulk requests of the same articles."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.rows import Row, less_is_better
from benchmarks.run import Run
from esdedup import VERIFIED, Dedup, Profile, sample

Action = dict[str, Any]
Send = Callable[[Iterable[Action]], object]

INDEX, FOREST = "benchmark-articles", "benchmark-forest"
PLAIN = "helpers.bulk of the articles as they are"
COUNT = 12_000
ROUNDS = 5
_CHUNK = 500
_KEPT_WHOLE = VERIFIED.with_changes(keep_boilerplate=True)


class Spent(NamedTuple):
    """What feeding takes."""

    wall_s: float
    # Of all processes: of this one, of Elasticsearch, and of a sidecar.
    processor_s: float


def ingest(run: Run) -> list[Row]:
    """Feed the sample corpus into empty indices, by each way in turn."""
    actions = actions_of(run.size(COUNT))
    ways = {"embedded": (VERIFIED, 2), "one thread": (VERIFIED, 1), "pages kept whole": (_KEPT_WHOLE, 2)}
    spent: dict[str, list[Spent]] = {name: [] for name in (PLAIN, *ways)}
    with server.client(run, lifetime_s=3_600) as client:
        for _ in range(run.size(ROUNDS)):
            empty(client)
            spent[PLAIN].append(spent_by(client, lambda: bulk(client, actions)))
            for name, (profile, workers) in ways.items():
                spent[name].append(_embedded(client, actions, profile, workers))
    return [
        row
        for name in ways
        for row in compared("ingest", f"{len(actions):,} articles, {name}", spent[name], spent[PLAIN])
    ]


def spent_by(
    client: Elasticsearch, work: Callable[[], object], *, sidecar_s: Callable[[], float] = lambda: 0.0
) -> Spent:
    """Do something, and return what it takes.

    Args:
        client: Of the server that works too.
        work: What is done.
        sidecar_s: Returns the processor time of a sidecar so far.
    """

    def processor_s() -> float:
        nodes = client.nodes.stats(metric="process")["nodes"].values()
        server_ms = sum(each["process"]["cpu"]["total_in_millis"] for each in nodes)
        return time.process_time() + server_ms / 1_000 + sidecar_s()

    before_s, began_s = processor_s(), time.perf_counter()
    work()
    wall_s = time.perf_counter() - began_s
    return Spent(wall_s, processor_s() - before_s)


def compared(table: str, case: str, ours: Sequence[Spent], plain: Sequence[Spent]) -> Iterator[Row]:
    """Compare medians with those of plain bulk requests."""
    for part, name in ((case, "wall_s"), (f"{case}, processor time of all", "processor_s")):
        ours_s, plain_s = (median(getattr(each, name) for each in some) for some in (ours, plain))
        yield less_is_better(table, part, ours_s, PLAIN, plain_s, "s")


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


def _embedded(client: Elasticsearch, actions: list[Action], profile: Profile, workers: int) -> Spent:
    empty(client)
    with Dedup(client, forest=FOREST, profile=profile, workers=workers) as dedup:
        dedup.setup(INDEX)
        # A process opens its forest once, and makes it if it is new.
        list(dedup.enrich([{"_id": "first", "text": "The first article of all."}]))
        return spent_by(client, lambda: bulk(client, dedup.enrich({**action} for action in actions)))
