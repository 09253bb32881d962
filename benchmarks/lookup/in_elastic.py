"""Measures each scheme of `schemes` in Elasticsearch, with the keys of fingerprints as indexed terms."""

import statistics
from collections.abc import Callable, Iterator

import numpy as np
from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.lookup import fingerprints
from benchmarks.lookup.rows import ELASTIC, Lookup
from benchmarks.lookup.schemes import ALL_VARIANTS, EXHAUSTIVE, EXPANSION, TABLES, Fingerprints, Scheme
from benchmarks.rows import duration_s
from benchmarks.server import Run
from esdedup.elastic.execute import hit_pages
from esdedup.elastic.limits import MAX_HITS, MAX_TERMS
from esdedup.elastic.requests import Query
from esdedup.fingerprint.simhash import to_hex

_HUNDRED_THOUSAND, _MILLION, _LARGE = 100_000, 1_000_000, 10_000_000
_INDEX = "benchmark-schemes"
_BATCH, _ROUNDS = 1_000, 5
# The number of arrivals in a request, for slow schemes.
_FEWER = {EXHAUSTIVE: 1, EXPANSION: 1}
# The number of fingerprints for which all variants can be stored.
_WITH_VARIANTS = 100
_BULK, _BULK_WITH_VARIANTS = 5_000, 5
_MAX_BULK_BYTES, _RETRIES = 20_000_000, 8
_MAPPINGS = {
    "dynamic": False,
    "_source": {"enabled": False},
    "properties": {
        "keys": {"type": "keyword", "doc_values": False},
        "value": {"type": "long", "index": False},
    },
}
# For exhaustive search: the server compares bit vectors one by one if their index is flat.
_BITS = {"type": "dense_vector", "element_type": "bit", "dims": 64, "index_options": {"type": "flat"}}
_NEAREST = 100


def layouts_elastic(run: Run) -> list[Lookup]:
    """Measure each scheme at 100,000 fingerprints."""
    with server.client(run, lifetime_s=4 * 3_600, heap="2g") as client:
        rows = _schemes(client, run.size(_HUNDRED_THOUSAND))
        for kind, draw in fingerprints.kinds().items():
            rows.append(_measured(client, ALL_VARIANTS, kind, draw, _WITH_VARIANTS))
        return rows


def layouts_elastic_million(run: Run) -> list[Lookup]:
    """Measure the schemes with tables of keys, at a million real fingerprints."""
    return _tables(run, _MILLION)


def layouts_elastic_large(run: Run) -> list[Lookup]:
    """Measure the schemes with tables of keys, at ten million real fingerprints."""
    return _tables(run, _LARGE)


def _tables(run: Run, usual: int) -> list[Lookup]:
    with server.client(run, lifetime_s=12 * 3_600, heap="2g") as client:
        draw = fingerprints.kinds()["real"]
        return [_measured(client, scheme, "real", draw, run.size(usual)) for scheme in TABLES]


def _schemes(client: Elasticsearch, count: int) -> list[Lookup]:
    return [
        _measured(client, scheme, kind, draw, count)
        for kind, draw in fingerprints.kinds().items()
        for scheme in (EXHAUSTIVE, EXPANSION, *TABLES)
    ]


def _measured(
    client: Elasticsearch, scheme: Scheme, kind: str, draw: fingerprints.Draw, count: int
) -> Lookup:
    held = draw(count, np.random.default_rng(count))
    stored_s = duration_s(lambda: _store(client, scheme, held))
    client.options(request_timeout=3_600).indices.forcemerge(index=_INDEX, max_num_segments=1)
    usage = client.options(request_timeout=3_600).perform_request(
        "POST", f"/{_INDEX}/_disk_usage?run_expensive_tasks=true"
    )
    # A copy of each document, for replicas that have to catch up, is on disk until a later merge drops it.
    size_bytes = sum(
        field["total_in_bytes"]
        for name, field in usage[_INDEX]["fields"].items()
        if name != "_recovery_source"
    )
    random, size = np.random.default_rng(3), _FEWER.get(scheme, min(_BATCH, count))
    counts: list[int] = []
    spent_s = []
    # The first round warms up.
    for _ in range(1 + _ROUNDS):
        batch = fingerprints.arriving(held, draw, size, random)
        spent_s.append(duration_s(lambda batch=batch: counts.append(_search(client, scheme, batch))))
    client.indices.delete(index=_INDEX)
    return Lookup(
        table=ELASTIC,
        kind=kind,
        scheme=scheme.name,
        fingerprints=count,
        candidates=count if scheme.layout is None else sum(counts[1:]) / (size * _ROUNDS),
        lookup_us=statistics.median(spent_s[1:]) / size * 1e6,
        store_us=stored_s / count * 1e6,
        bytes_each=size_bytes / count,
    )


def _store(client: Elasticsearch, scheme: Scheme, held: Fingerprints) -> None:
    client.options(ignore_status=404).indices.delete(index=_INDEX)
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    client.indices.create(index=_INDEX, mappings=_MAPPINGS, settings=settings)
    if scheme.layout is None:
        client.indices.put_mapping(index=_INDEX, properties={"bits": _BITS})
    at_once = _BULK_WITH_VARIANTS if scheme == ALL_VARIANTS else _BULK

    def actions() -> Iterator[dict[str, object]]:
        for at in range(0, len(held), at_once):
            some = held[at : at + at_once]
            for value, found_by in zip(some.view(np.int64).tolist(), _found_by(scheme, some), strict=True):
                yield {"_index": _INDEX, "_source": {"value": value, **found_by}}

    helpers.bulk(client, actions(), chunk_size=at_once, max_chunk_bytes=_MAX_BULK_BYTES, max_retries=_RETRIES)
    client.indices.refresh(index=_INDEX)


def _search(client: Elasticsearch, scheme: Scheme, batch: Fingerprints) -> int:
    """Search for a batch, check the first arrival's result, and return how many fingerprints were read."""
    values: set[int] = set()
    for query in _queries(scheme, batch):
        body = {"query": query, "docvalue_fields": ["value"]}
        # Exhaustive search matches everything, and gives the nearest fingerprints the highest scores.
        pages = (
            [client.search(index=_INDEX, size=_NEAREST, **body)["hits"]["hits"]]
            if scheme.layout is None
            else hit_pages(client, _INDEX, {"size": MAX_HITS, "sort": ["_doc"], **body})
        )
        for hits in pages:
            values.update(hit["fields"]["value"][0] for hit in hits)
    # The first arrival, and then every second arrival, is near a stored fingerprint.
    read = np.array(sorted(values), np.int64).view(np.uint64)
    assert len(read)
    assert np.bitwise_count(batch[0] ^ read).min() <= 3
    return len(read)


def _queries(scheme: Scheme, batch: Fingerprints) -> Iterator[Query]:
    if scheme.layout is None:
        for one in to_hex(batch):
            yield {"knn": {"field": "bits", "query_vector": one, "k": _NEAREST, "num_candidates": _NEAREST}}
        return
    terms = sorted({term for own in _terms(scheme, batch, scheme.asked) for term in own})
    for at in range(0, len(terms), MAX_TERMS):
        yield {"bool": {"filter": {"terms": {"keys": terms[at : at + MAX_TERMS]}}}}


def _found_by(scheme: Scheme, some: Fingerprints) -> Iterator[dict[str, object]]:
    """Yield the indexed field of each fingerprint."""
    if scheme.layout is None:
        yield from ({"bits": one} for one in to_hex(some))
    else:
        yield from ({"keys": own} for own in _terms(scheme, some, scheme.stored))


def _terms(
    scheme: Scheme, some: Fingerprints, keys_of: Callable[[Fingerprints, int], Fingerprints]
) -> list[list[str]]:
    """Return the terms of each fingerprint; a term is a letter for the table, followed by a key."""
    assert scheme.layout is not None
    columns = [
        [[f"{chr(ord('a') + table)}{key:x}" for key in own] for own in keys_of(some, table).tolist()]
        for table in range(len(scheme.layout.tables))
    ]
    return [[term for own in each for term in own] for each in zip(*columns, strict=True)]
