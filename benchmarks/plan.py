"""Compares predictions of `esdedup plan` with measurements, at one and ten million nodes."""

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.measure import AGING, Sizes, us_of_batches
from benchmarks.month.arrivals import Month
from benchmarks.processes import in_new_process, peak_bytes
from benchmarks.rows import Row
from benchmarks.server import Run
from benchmarks.signatures import Held
from benchmarks.unit_costs import bytes_of, measure
from esdedup.elastic.client import connect
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import StoredNode, hash_name
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import begin
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import UnitCosts
from esdedup.plan.model import BATCH
from tests import sample

_MILLION, _LARGE = 1_000_000, 10_000_000
_FOREST = "benchmark-plan"
_BATCHES = 20
_MEMORY_BYTES = 2**40
_PAUSE_S = 0.1
_PATIENCE_S = 600.0
_PAGES = 3_000
# Not the seed of the texts with which unit costs are measured.
_SEED = 7
_MEGABYTE = 1e6
_PREDICTED = "the prediction"


class Opened(NamedTuple):
    """The cost of opening a large forest and assigning some batches."""

    # The memory of nodes and content hashes.
    kept_bytes: float
    # The growth of the process's peak memory until all nodes were in memory.
    grown_bytes: float
    # Microseconds of processor time per arrival, including the writes to Elasticsearch.
    owner_us: float


def plan(run: Run) -> list[Row]:
    """Predict and then measure the costs of one million nodes."""
    return _rows("plan", run, run.size(_MILLION))


def plan_large(run: Run) -> list[Row]:
    """Predict and then measure the costs of ten million nodes."""
    return _rows("plan-large", run, run.size(_LARGE))


def _rows(table: str, run: Run, count: int) -> list[Row]:
    """Measure unit costs, then the forest."""
    with server.client(run, lifetime_s=6 * 3_600, heap="2g") as client:
        url = server.url_of(client)
        costs = measure(VERIFIED, functools.partial(connect, url), Sizes())
        client.options(ignore_status=404).indices.delete(index=_FOREST)
        try:
            in_new_process(_fill, url, count)
            # Measure this before further arrivals add to the index.
            disk_bytes = _disk_bytes(client)
            opened = in_new_process(_open, url, count)
        finally:
            client.options(ignore_status=404).indices.delete(index=_FOREST)
    deciding_us = in_new_process(_deciding_us, count)
    kept, us = count * costs.node_bytes, costs.deciding.us(count)
    opening = kept + costs.opening_bytes + count * costs.opening_bytes_a_node
    found = [
        ("memory of nodes and hashes", kept / _MEGABYTE, opened.kept_bytes / _MEGABYTE, "MB"),
        ("memory to open the forest, at most", opening / _MEGABYTE, opened.grown_bytes / _MEGABYTE, "MB"),
        ("disk of the forest", count * costs.server.node_bytes / _MEGABYTE, disk_bytes / _MEGABYTE, "MB"),
        ("assigning an article, in memory", us, deciding_us, "µs"),
        ("assigning an article, with writes", us + costs.server.us_a_commit, opened.owner_us, "µs"),
    ]
    rows = [_row(table, f"{count:,} nodes, {what}", *values) for what, *values in found]
    return [*rows, *_fingerprinting(table, costs)]


def _row(table: str, case: str, predicted: float, measured: float, unit: str) -> Row:
    """Return a row whose ratio is the measured value divided by the prediction."""
    ratio = measured / predicted
    return Row(
        table=table, case=case, ours=measured, against=_PREDICTED, theirs=predicted, ratio=ratio, unit=unit
    )


def _fill(url: str, count: int) -> None:
    """Write `count` nodes as the owner does, but make every node a root, without looking for neighbours."""
    pack = relation_of(VERIFIED).core.pack
    with connect(url) as client, ElasticStore(client, forest=_FOREST, profile=VERIFIED, aging=AGING) as store:
        for nodes in _nodes(count):
            store.writer.begin([pack(each) for each in nodes])
        store.writer.flush()


def _nodes(count: int) -> Iterator[list[StoredNode]]:
    held = Held.random(VERIFIED, count, np.random.default_rng(count))
    for at in range(0, count, BATCH):
        arrivals = held.arrivals(at, min(at + BATCH, count))
        columns = (
            arrivals.ids,
            arrivals.signatures,
            arrivals.times_ms.tolist(),
            AGING.round_up(arrivals.times_ms).tolist(),
            arrivals.content_hashes.tolist(),
        )
        yield [
            StoredNode(node_id, node_id, signature.tobytes(), seq, made_ms, seen_ms, hash_name(each), seen_ms)
            for seq, (node_id, signature, made_ms, seen_ms, each) in enumerate(
                zip(*columns, strict=True), at + 1
            )
            if node_id is not None
        ]


def _open(url: str, count: int) -> Opened:
    """Open the forest as its next owner, and assign batches."""
    with connect(url) as client:
        ForestIndex.find(client, _FOREST)
        before_bytes = peak_bytes()
        with ElasticStore(
            client, forest=_FOREST, profile=VERIFIED, aging=AGING, memory_bytes=_MEMORY_BYTES
        ) as store:
            contents = store.contents()
            grown_bytes = peak_bytes() - before_bytes
            random = np.random.default_rng(count)
            held = Held.random(VERIFIED, count, random)
            us = us_of_batches(store, held, random, _BATCHES)
    return Opened(
        kept_bytes=contents.memory_bytes - contents.learned_bytes, grown_bytes=grown_bytes, owner_us=fmean(us)
    )


def _disk_bytes(client: Elasticsearch) -> float:
    client.indices.flush(index=_FOREST)
    time.sleep(Sizes().kept_for_recovery_s)
    return bytes_of(client, _FOREST)


def _deciding_us(count: int) -> float:
    random = np.random.default_rng(count)
    held = Held.random(VERIFIED, count, random)
    store = MemoryStore(aging=AGING, relation=relation_of(VERIFIED))
    held.fill(store)
    return median(us_of_batches(store, held, random, _BATCHES))


def _fingerprinting(table: str, costs: UnitCosts) -> Iterator[Row]:
    """Compare predicted with measured times, for news with another seed and for pages in eight scripts."""
    news = list(sample.articles(_PAGES, seed=_SEED))
    (month,) = Month(_PAGES).days(1)
    yield from _of_texts(table, costs, "news", news)
    yield from _of_texts(table, costs, "a page in one of eight scripts", [each.article for each in month])


def _of_texts(
    table: str, costs: UnitCosts, what: str, articles: Sequence[Mapping[str, str]]
) -> Iterator[Row]:
    texts = [each["text"] for each in articles]
    sites = [each["source"] for each in articles]
    length, fingerprinter = fmean(map(len, texts)), Fingerprinter(VERIFIED)
    learning = begin(MemoryStore(aging=AGING, relation=relation_of(VERIFIED)), sites=sites)
    whole = Fingerprinter(VERIFIED.with_changes(keep_boilerplate=True))

    def us(work: Fingerprinter, leaves_out: bool) -> float:
        # Load tables before the measurement.
        work.fingerprint(texts[:1])
        started = time.process_time()
        work.fingerprint(texts, passage_filter=learning if leaves_out else None)
        return (time.process_time() - started) / len(texts) * 1e6

    case = f"fingerprint of {what}, {length:,.0f} characters"
    yield _row(table, f"{case}, boilerplate kept", costs.whole.us(length), us(whole, leaves_out=False), "µs")
    learned = costs.without_boilerplate.us(length) + costs.omitting.us(length)
    yield _row(table, f"{case}, boilerplate left out", learned, us(fingerprinter, leaves_out=True), "µs")
