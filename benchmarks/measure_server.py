"""Measures unit costs in Elasticsearch: disk, requests, and the owner's time for a commit.

Writes to indices of its own, and deletes them.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.dedup import Dedup

from benchmarks.measure import AGING, Sizes
from benchmarks.processes import in_new_process
from benchmarks.signatures import NOW_MS, Held
from esdedup import sample
from esdedup.elastic.errors import refused, translated
from esdedup.elastic.forest.packing import Packing
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import Stored, StoredPage
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Forest
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import Deciding, ServerCosts
from esdedup.plan.model import BATCH

Connect = Callable[[], Elasticsearch]
"""Makes a client, which the caller closes; can be pickled."""

_FILLED_AT_ONCE = 5_000
_LAST = "last"
_ALL_MEMORY = 2**62
_MERGE_TIMEOUT_S = 1_800


def measure_server(profile: Profile, deciding: Deciding, connect: Connect, sizes: Sizes) -> ServerCosts:
    """Measure with a server; `deciding` was measured on this machine before, in memory."""
    with connect() as client, _indices(client) as (forest, pages, articles, plain):
        us, arrivals_a_second, requests, node_count = in_new_process(
            _assigning, connect, forest, profile, sizes
        )
        _write_pages(client, pages, profile, sizes.stored_pages)
        with translated("measure"):
            client.indices.flush(index=[forest, pages])
        written_s = time.monotonic()
        with Dedup(client, profile=profile, forest=f"{forest}-of-articles") as dedup:
            actions = _actions(articles, sizes.stored_articles)
            article_bytes = _article_bytes(client, dedup, articles, dedup.enrich(actions))
            actions = _actions(plain, sizes.stored_articles)
            plain_bytes = _article_bytes(client, dedup, plain, actions)
        time.sleep(max(0.0, written_s + sizes.kept_for_recovery_s - time.monotonic()))
        return ServerCosts(
            node_bytes=bytes_of(client, forest) / node_count,
            page_bytes=bytes_of(client, pages) / sizes.stored_pages,
            article_bytes=max(0.0, article_bytes - plain_bytes),
            us_a_commit=max(0.0, us - deciding.us(sizes.stored_nodes)),
            arrivals_a_second=arrivals_a_second,
            requests_a_batch=requests,
        )


@contextlib.contextmanager
def _indices(client: Elasticsearch) -> Iterator[Sequence[str]]:
    """Yield names of indices, which are deleted at the end."""
    prefix = f"esdedup-plan-{uuid.uuid4().hex[:12]}"
    names = [f"{prefix}-{each}" for each in ("forest", "pages", "articles", "plain")]
    try:
        yield names
    finally:
        client.options(ignore_status=404).indices.delete(
            index=[*names, f"{names[0]}-of-articles"], ignore_unavailable=True
        )


def _assigning(
    connect: Connect, name: str, profile: Profile, sizes: Sizes
) -> tuple[float, float, float, int]:
    """Assign batches by the whole protocol.

    Returns:
        Microseconds of the processor an arrival, arrivals a second, requests a batch, and nodes.
    """
    random = np.random.default_rng(3)
    held = Held.random(profile, sizes.stored_nodes, random)
    # Nodes are in memory from the beginning.
    with (
        connect() as client,
        ElasticStore(client, forest=name, profile=profile, aging=AGING, memory_bytes=_ALL_MEMORY) as store,
    ):
        forest = Forest(store)
        for at in range(0, len(held), _FILLED_AT_ONCE):
            forest.assign(held.arrivals(at, min(at + _FILLED_AT_ONCE, len(held))), now_ms=NOW_MS)
        batches = [
            held.arrivals_after(held.batch(BATCH, random), number) for number in range(sizes.stored_batches)
        ]
        with _counted(client) as counted:
            wall_s, processor_s = time.perf_counter(), time.process_time()
            for batch in batches:
                forest.assign(batch, now_ms=NOW_MS)
            wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
        node_count = store.contents().nodes
    arrivals = BATCH * len(batches)
    requests = counted.call_count / len(batches)
    return processor_s / arrivals * 1e6, arrivals / wall_s, requests, node_count


@contextlib.contextmanager
def _counted(client: Elasticsearch) -> Iterator[mock.Mock]:
    """Count the requests of a client, and of those made from it."""
    transport = client.transport
    counted = mock.Mock(side_effect=transport.perform_request)
    with mock.patch.object(transport, "perform_request", counted):
        yield counted


def _write_pages(client: Elasticsearch, name: str, profile: Profile, count: int) -> None:
    random, relation = np.random.default_rng(4), relation_of(profile)
    held = Held.random(profile, count, random)
    pages = random.integers(1, 2**64, count, np.uint64).tolist()
    stored: list[Stored] = [
        StoredPage(page=f"{page:016x}", node=node, seen_ms=at * 1_000)
        for at, (page, node) in enumerate(zip(pages, relation.ids(held.signatures), strict=True))
    ]
    packing = Packing(relation)
    with ElasticStore(client, forest=name, profile=profile, aging=AGING) as store:
        for at in range(0, count, BATCH):
            store.writer.write([packing.pack(each) for each in stored[at : at + BATCH]])


def _article_bytes(
    client: Elasticsearch, dedup: Dedup, name: str, actions: Iterable[dict[str, Any]]
) -> float:
    dedup.setup(name)
    _bulk(client, name, actions)
    return bytes_a_document(client, name)


def _bulk(client: Elasticsearch, name: str, actions: Iterable[dict[str, Any]]) -> None:
    with translated("measure"):
        for is_written, item in helpers.streaming_bulk(client, actions, raise_on_error=False):
            if not is_written:
                (answer,) = item.values()
                raise refused("measure", answer, status=answer["status"], index=name)


def _actions(index: str, count: int) -> Iterator[dict[str, Any]]:
    for article in sample.articles(count):
        yield {"_index": index, "_id": article["id"], "_source": article}


def bytes_a_document(client: Elasticsearch, name: str) -> float:
    """Merge an index; return the bytes that a document of it takes."""
    size_bytes = bytes_of(client, name)
    with translated("measure"):
        return size_bytes / int(client.count(index=name)["count"])


def bytes_of(client: Elasticsearch, name: str) -> int:
    """Merge an index to one segment a shard; return the bytes that it takes."""
    patient = client.options(request_timeout=_MERGE_TIMEOUT_S)
    with translated("measure"):
        # One segment alone would not be written anew.
        patient.index(index=name, id=_LAST, document={}, refresh=True)
        patient.indices.flush(index=name)
        patient.indices.forcemerge(index=name, max_num_segments=1)
        patient.indices.flush(index=name)
        primaries = patient.indices.stats(index=name, metric="store")["_all"]["primaries"]
    return int(primaries["store"]["size_in_bytes"])
