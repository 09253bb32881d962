"""Measures a searched forest at several sizes and numbers of shards: `python -m benchmarks.scale`.

Loads documents of nodes in bulk, in the format of a forest, which grows from size to size. At each size, once
Elasticsearch has merged as in a forest that was fed, an owner assigns batches, without nodes in memory. The
forest with one shard is made from the other forest by `_shrink`. The bits of simhashes are as
frequent as in real texts, of which half are English and half Chinese: so several times as many nodes share
blocks of a simhash as with random bits. An interrupted run continues where it stopped.
"""

import argparse
import collections
import dataclasses
import functools
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch

from benchmarks.articles import articles_of
from benchmarks.measure import AGING
from benchmarks.server import processor_s
from benchmarks.signatures import NOW_MS, Held, Signatures, random_ones
from esdedup import node
from esdedup.elastic.bulk import Operation, Result, send_bulk
from esdedup.elastic.client import connect
from esdedup.elastic.forest.candidates import CandidateSearch
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import FORMAT, Meta
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import StoredNode, hash_name, json_documents
from esdedup.elastic.mappings import forest_index
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Requests
from esdedup.fingerprint.bands import Layout
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.fingerprint.signature import MINHASH
from esdedup.forest import begin, decide
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from tests.support.assign import assign

_CHUNK, _BULK, _BATCH = 100_000, 2_000, 512
_SENTENCES = 2
# The number of leaves in a chunk; each is a near copy of a root.
_LEAVES = _CHUNK // 5
_LOADERS = 2
_SETS = ("en_wire", "zh_news")
# While nodes are loaded: fewer merges, and no waiting for the disk.
_LOADING = {"merge.policy.segments_per_tier": 10, "translog.durability": "async"}
_WARM = 20
# Merging is over when no segment was merged for this long.
_QUIET_S, _MERGED_WITHIN_S = 5, 900
# Where the server spends time.
_TIMES = {
    "searches": ("search", "query_time_in_millis"),
    "fetches": ("search", "fetch_time_in_millis"),
    "merges": ("merges", "total_time_in_millis"),
    "writes": ("indexing", "index_time_in_millis"),
    "refreshes": ("refresh", "total_time_in_millis"),
}


@functools.cache
def _bits() -> npt.NDArray[np.float32]:
    """Return for each set how often each bit of a simhash is 1, the highest bit first."""
    shares = []
    for name in _SETS:
        texts = [article["text"] for article in articles_of(name).values()]
        found = Fingerprinter(VERIFIED.with_changes(keep_boilerplate=True)).fingerprint(texts)
        sentences = found.signatures["representatives"][found.exists][:, :_SENTENCES]
        simhashes = np.unique(sentences[sentences & MINHASH == 0])
        places = np.arange(63, -1, -1, dtype=np.uint64)
        shares.append((simhashes[:, None] >> places & np.uint64(1)).mean(axis=0))
    return np.array(shares, np.float32)


def _realistic(count: int, random: np.random.Generator) -> Signatures:
    signatures, languages = random_ones(VERIFIED, count, random), random.integers(0, len(_SETS), count)
    for place in range(_SENTENCES):
        bits = random.random((count, 64), np.float32) < _bits()[languages]
        simhashes = np.packbits(bits, axis=1).view(">u8")[:, 0].astype(np.uint64)
        signatures["representatives"][:, place] = simhashes & ~MINHASH
    return signatures


@functools.cache
def _held(chunk: int) -> Held:
    """Return the nodes of a chunk: roots, then near copies of the first roots, which are their leaves."""
    random = np.random.default_rng([56, chunk])
    held = Held(profile=VERIFIED, signatures=_realistic(_CHUNK, random), siblings=0)
    held.make_near(held.signatures[-_LEAVES:], random, originals=held.signatures[:_LEAVES])
    return held


def _operations(chunk: int, layout: Layout) -> Iterator[list[Operation]]:
    """Yield the operations of bulk requests."""
    relation, held = relation_of(VERIFIED), _held(chunk)
    ids, roots = relation.ids(held.signatures), _CHUNK - _LEAVES
    hashes = held.arrivals(0, _CHUNK).content_hashes.tolist()
    seen_ms = AGING.round_up(0)
    for start in range(0, _CHUNK, _BULK):
        packed = []
        for at in range(start, start + _BULK):
            root, content_hash = ids[at if at < roots else at - roots], hash_name(hashes[at])
            signature, seq = held.signatures[at].tobytes(), chunk * _CHUNK + at + 1
            stored = StoredNode(ids[at], root, signature, seq, 0, seen_ms, content_hash, seen_ms)
            packed.append(relation.core.pack(stored))
        documents = json_documents(packed, relation, layout)
        yield [({"index": {"_id": name}}, source) for name, source in documents]


def load(url: str, index: str, chunks: int) -> None:
    """Write the chunks of nodes that are missing, in several processes."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(_LOADERS) as pool:
        for chunk in pool.imap_unordered(functools.partial(_load_chunk, url, index), range(chunks)):
            _log(f"{index}: chunk {chunk} of {chunks} is there")


def _load_chunk(url: str, index: str, chunk: int) -> int:
    with connect(url) as connected:
        client = patient(connected.options(request_timeout=600))
        (last,) = relation_of(VERIFIED).ids(_held(chunk).signatures[-1:])
        if not client.exists(index=index, id=last):
            layout = ForestIndex.find(client, index).meta.key_layout
            for operations in _operations(chunk, layout):
                send_bulk(client, operations, task="load nodes", is_settled=_is_written, alias=index)
            # The server keeps the ids of unrefreshed documents in its heap.
            client.indices.refresh(index=index)
    _held.cache_clear()
    return chunk


def _is_written(result: Result) -> bool:
    return bool(result["status"] < HTTPStatus.MULTIPLE_CHOICES)


def create(client: Elasticsearch, index: str, shards: int) -> None:
    """Create an empty forest, unless it exists."""
    if not client.indices.exists(index=index):
        meta = dataclasses.asdict(Meta.of(VERIFIED, lookup="search", shards=shards))
        body = forest_index(meta=meta)
        client.indices.create(index=index, mappings=body["mappings"], settings=body["settings"] | _LOADING)


def shrink(client: Elasticsearch, index: str, target: str) -> None:
    """Make a forest with one shard, of hard links to the segments of `index`."""
    client.indices.put_settings(index=index, settings={"blocks.write": True})
    settings = {"index.number_of_shards": 1, "index.blocks.write": None}
    client.options(request_timeout=600).indices.shrink(index=index, target=target, settings=settings)
    client.indices.put_settings(index=index, settings={"blocks.write": None})
    meta = client.indices.get_mapping(index=target)[target]["mappings"]["_meta"]["esdedup"]
    meta |= {"shards": 1, "format": FORMAT}
    client.indices.put_mapping(index=target, meta={"esdedup": meta})


class _Requests:
    """Counts a client's requests, and the seconds that they take."""

    def __init__(self, client: Elasticsearch) -> None:
        self.counts, self.spent_s = collections.Counter[str](), collections.defaultdict[str, float](float)
        perform = client.transport.perform_request

        def counted(method: str, target: str, **options: Any) -> Any:
            kind, started_s = target.partition("?")[0].rpartition("/")[2], time.perf_counter()
            try:
                return perform(method, target, **options)
            finally:
                self.counts[kind] += 1
                self.spent_s[kind] += time.perf_counter() - started_s

        client.transport.perform_request = counted  # type: ignore[method-assign]


def _fed(chunks: int, batches: int) -> tuple[Held, list[Signatures]]:
    """Return batches of arrivals, some of them near nodes of the chunks; the first ones warm up."""
    random = np.random.default_rng(time.time_ns())
    some = [
        _held(int(chunk)).signatures[:: _CHUNK // 5_000] for chunk in random.choice(chunks, min(chunks, 8))
    ]
    held = Held(profile=VERIFIED, signatures=np.concatenate(some), siblings=0)
    return held, [
        held.batch(_BATCH, random, fresh=_realistic(_BATCH, random)) for _ in range(_WARM + batches)
    ]


def feed_in_memory(sizes: Sequence[int], batches: int) -> Iterator[dict[str, Any]]:
    """Assign the same arrivals to nodes in memory, without a log; yield what they take at each size."""
    relation = relation_of(VERIFIED)
    store = MemoryStore(aging=AGING, relation=relation)
    done = 0
    for size in sizes:
        for chunk in range(done, done := -(-size // _CHUNK)):
            held = _held(chunk)
            held.fill(store)
            _held.cache_clear()
        held, fed = _fed(done, batches)
        for number, batch in enumerate(fed):
            if number == _WARM:
                owner_s, wall_s = time.process_time(), time.perf_counter()
            assign(store, held.arrivals_after(batch, number), now_ms=NOW_MS)
        count = batches * _BATCH
        yield {
            "forest": f"memory-{len(store)}",
            "arrivals a second": count / (time.perf_counter() - wall_s),
            "owner, µs of processor time an arrival": 1e6 * (time.process_time() - owner_s) / count,
            "bytes": store.size_bytes,
        }


def feed(url: str, index: str, chunks: int, batches: int) -> dict[str, Any]:
    """Assign batches of arrivals; return what an arrival and a batch take after the first batches."""
    held, fed = _fed(chunks, batches)
    candidates, each_s, count = list[int](), list[float](), batches * _BATCH
    find = CandidateSearch.find

    def counted(*given: Any, **options: Any) -> Requests[list[bytes]]:
        found = yield from find(*given, **options)
        candidates.append(len(found))
        return found

    with (
        mock.patch.object(CandidateSearch, "find", counted),
        connect(url) as client,
        ElasticStore(client, forest=index, profile=VERIFIED, memory_bytes=0) as store,
    ):
        requests = _Requests(client)
        for number, batch in enumerate(fed):
            if number == _WARM:
                server_s, owner_s, wall_s = processor_s(client), time.process_time(), time.perf_counter()
                before_ms = _times_ms(_stats(client, index))
                requests.counts.clear()
                requests.spent_s.clear()
                each_s.clear()
                candidates.clear()
            started_s = time.perf_counter()
            begin(store)
            # Each batch is decided while the one before is written.
            written = decide(store, held.arrivals_after(batch, number), now_ms=NOW_MS).written
            each_s.append(time.perf_counter() - started_s)
        written.result()
        spent_s = time.perf_counter() - wall_s, processor_s(client) - server_s, time.process_time() - owner_s
        stats = _stats(client, index)
    wall_s, server_s, owner_s = spent_s
    return {
        "arrivals a second": count / wall_s,
        "candidates an arrival": sum(candidates) / count,
        "ms a batch": 1_000 * median(each_s),
        "server, µs of processor time an arrival": 1e6 * server_s / count,
        "owner, µs of processor time an arrival": 1e6 * owner_s / count,
        "server, µs of threads an arrival": {
            kind: 1_000 * (each - before_ms[kind]) / count for kind, each in _times_ms(stats).items()
        },
        "requests a batch": {kind: each / batches for kind, each in requests.counts.items()},
        "ms of requests a batch": {kind: 1_000 * each / batches for kind, each in requests.spent_s.items()},
        "segments": stats["segments"]["count"],
        "bytes": stats["store"]["size_in_bytes"],
    }


def _stats(client: Elasticsearch, index: str) -> dict[str, Any]:
    stats: dict[str, Any] = client.indices.stats(index=index)["_all"]["total"]
    return stats


def _times_ms(stats: dict[str, Any]) -> dict[str, int]:
    return {kind: stats[part][name] for kind, (part, name) in _TIMES.items()}


def merge(client: Elasticsearch, url: str, index: str, chunks: int) -> None:
    """Let Elasticsearch merge a loaded forest as one that was fed."""
    own = forest_index(meta={})["settings"]
    client.indices.put_settings(index=index, settings={name: own.get(name) for name in _LOADING})
    # Merges begin when a segment is added.
    feed(url, index, chunks, 1)
    client.indices.refresh(index=index)
    last_s, quiet_s = time.monotonic() + _MERGED_WITHIN_S, 0
    while quiet_s < _QUIET_S and time.monotonic() < last_s:
        time.sleep(1)
        quiet_s = 0 if _stats(client, index)["merges"]["current"] else quiet_s + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path("build/scale"), help="the server's folder, which is kept"
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000_000, 10_000_000, 30_000_000])
    parser.add_argument("--shards", type=int, default=5, help="the shards of the larger forest")
    parser.add_argument("--batches", type=int, default=400)
    parser.add_argument("--heap", default="4g")
    parser.add_argument(
        "--memory", action="store_true", help="measure nodes in memory instead, without a server"
    )
    options = parser.parse_args()
    if options.memory:
        for found in feed_in_memory(sorted(options.nodes), options.batches):
            _log_json(found)
        return
    url = node.start(options.data, port=0, heap=options.heap, lifetime_s=12 * 3_600, with_parent=True).url
    forests = {options.shards: f"scale-{options.shards}", 1: "scale-1"}
    several, one = forests.values()
    with connect(url) as connected:
        client = connected.options(request_timeout=600)
        create(client, several, options.shards)
        for count in sorted(options.nodes):
            chunks = -(-count // _CHUNK)
            client.indices.put_settings(index=several, settings=_LOADING)
            load(url, several, chunks)
            client.indices.delete(index=one, ignore_unavailable=True)
            for shards, index in forests.items():
                if index == one:
                    client.indices.flush(index=several)
                    shrink(client, several, one)
                merge(client, url, index, chunks)
                found = feed(url, index, chunks, options.batches)
                _log_json({"forest": f"scale-{count}-{shards}", **found})
    node.stop(options.data)


def _log_json(found: dict[str, Any]) -> None:
    _log(json.dumps(found, indent=1, ensure_ascii=False))


def _log(what: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
