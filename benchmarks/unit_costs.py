"""Measures the unit costs of all profiles, which the package ships for `esdedup plan`.

Measurements in Elasticsearch use temporary indices.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.dedup import Dedup

from benchmarks import server
from benchmarks.measure import AGING, Sizes, fitted, measure_without_server
from benchmarks.processes import in_new_process
from benchmarks.results import ROOT, Cells, Result
from benchmarks.server import Run
from benchmarks.signatures import NOW_MS, Held
from esdedup.elastic.client import connect
from esdedup.elastic.errors import refused, translated
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import Stored, StoredHash
from esdedup.fingerprint.bands import TRIPLES
from esdedup.fingerprint.profile import PROFILES, VERIFIED, Profile
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import (
    SHIPPED,
    CostsFile,
    LearnedCosts,
    Measured,
    PerNodes,
    Searching,
    ServerCosts,
    ServerWork,
    UnitCosts,
    costs_key,
    shipped,
)
from esdedup.plan.model import BATCH
from tests import sample
from tests.support.assign import assign

Connect = Callable[[], Elasticsearch]
"""Makes a client, which the caller must close. The function can be pickled."""

_LAST = "last"
_ALL_MEMORY = 2**62
_MERGE_TIMEOUT_S = 1_800
_REFRESHES = 9


def measure_server(profile: Profile, deciding: PerNodes, connect: Connect, sizes: Sizes) -> ServerCosts:
    """Measure the costs that need a server; `deciding` was measured in memory on this machine."""
    with connect() as client, _indices(client) as (forest, searched, hashes, articles, plain, warm, roots):
        nodes, batches = sizes.stored_nodes, sizes.stored_batches
        spent = in_new_process(_assigning, connect, forest, profile, nodes, batches, 0)
        found = _searched(client, connect, searched, profile, sizes)
        _write_hashes(client, hashes, profile, sizes.stored_hashes)
        with translated("measure"):
            client.indices.flush(index=[forest, searched, hashes])
        written_s = time.monotonic()
        with Dedup(client, profile=profile, forest=f"{forest}-of-articles") as dedup:
            dedup.setup(articles)
            enriched = list(dedup.enrich(_actions(articles, sizes.stored_articles)))
            # The first measurement is always slower, so its result is dropped.
            _article_costs(client, dedup, warm, list(_actions(warm, sizes.stored_articles)))
            article_us, article_bytes = _article_costs(client, dedup, articles, enriched)
            plain_us, plain_bytes = _article_costs(
                client, dedup, plain, list(_actions(plain, sizes.stored_articles))
            )
            dedup.setup(roots)
        refresh_us, heap_bytes = _of_roots(client, roots, sizes.stored_roots)
        time.sleep(max(0.0, written_s + sizes.kept_for_recovery_s - time.monotonic()))
        return ServerCosts(
            node_bytes=bytes_of(client, forest) / spent.nodes,
            page_bytes=bytes_of(client, hashes) / sizes.stored_hashes,
            article_bytes=max(0.0, article_bytes - plain_bytes),
            us_a_commit=max(0.0, spent.owner_us - deciding.us(sizes.stored_nodes)),
            requests_a_batch=spent.requests,
            searching=searching_of(found, node_bytes=bytes_of(client, searched) / found[-1].nodes),
            work=ServerWork(
                us_an_arrival=spent.server_us,
                us_an_article=max(0.0, article_us - plain_us),
                refresh_us_a_root=refresh_us,
                heap_bytes_a_root=heap_bytes,
                measured_nodes=sizes.stored_nodes,
                measured_articles=sizes.stored_articles,
                measured_roots=sizes.stored_roots,
            ),
        )


@contextlib.contextmanager
def _indices(client: Elasticsearch) -> Iterator[Sequence[str]]:
    """Yield names for indices; delete the indices at the end."""
    prefix = f"esdedup-plan-{uuid.uuid4().hex[:12]}"
    kinds = ("forest", "searched", "pages", "articles", "plain", "warm", "roots")
    names = [f"{prefix}-{kind}" for kind in kinds]
    try:
        yield names
    finally:
        client.options(ignore_status=404).indices.delete(
            index=[*names, f"{names[0]}-of-articles"], ignore_unavailable=True
        )


class Spent(NamedTuple):
    """The costs of arrivals, and the forest after them."""

    # The number of shards that are searched; 0 if nodes are in memory.
    shards: int
    nodes: int
    # Microseconds of processor time per arrival.
    server_us: float
    owner_us: float
    # Requests per batch.
    requests: float


def _assigning(connect: Connect, name: str, profile: Profile, nodes: int, batches: int, shards: int) -> Spent:
    """Assign batches, with all writes, to a forest of some nodes; with `shards`, nodes are searched for."""
    random = np.random.default_rng(3)
    held = Held.random(profile, nodes, random)
    how: dict[str, Any] = {"forest": name, "profile": profile, "aging": AGING}
    if shards:
        how |= {"lookup": "search", "forest_shards": shards}
    with connect() as client:
        with ElasticStore(client, **how, memory_bytes=_ALL_MEMORY) as store:
            held.fill(store)
        client.indices.forcemerge(index=name, max_num_segments=10)
        # Nodes are in memory from the beginning, or never.
        with ElasticStore(client, **how, memory_bytes=0 if shards else _ALL_MEMORY) as store:
            arrivals = [held.arrivals_after(held.batch(BATCH, random), number) for number in range(batches)]
            with _counted(client) as counted:
                # Read the server's clock before the other clocks, because reading it takes a second.
                server_s = server.processor_s(client)
                processor_s = time.process_time()
                for batch in arrivals:
                    assign(store, batch, now_ms=NOW_MS)
                processor_s = time.process_time() - processor_s
            client.indices.forcemerge(index=name, max_num_segments=10)
            server_s = server.processor_s(client) - server_s
            node_count = store.contents().nodes
    us = 1e6 / (BATCH * batches)
    return Spent(shards, node_count, server_s * us, processor_s * us, counted.call_count / batches)


def _searched(
    client: Elasticsearch, connect: Connect, name: str, profile: Profile, sizes: Sizes
) -> list[Spent]:
    """Assign batches in forests of several sizes and numbers of shards; the last of these remains."""
    found = list[Spent]()
    chosen = list(itertools.product(sorted(sizes.searched_shards, reverse=True), sizes.searched_nodes))
    # The first measurement is always slower, so its result is dropped.
    for shards, nodes in [chosen[0], *chosen]:
        client.options(ignore_status=404).indices.delete(index=name)
        found.append(in_new_process(_assigning, connect, name, profile, nodes, sizes.stored_batches, shards))
    return found[1:]


def searching_of(found: Sequence[Spent], *, node_bytes: float) -> Searching:
    """Fit the costs of searching by least squares: a shard's search takes what each further shard adds."""
    shards = np.array([each.shards for each in found], float)
    millions = np.array([each.nodes for each in found]) / 1e6
    doublings = np.log2(millions / shards)
    doublings -= (least := float(doublings.min()))
    # Few nodes have no candidates by chance.
    by_candidates = millions if millions.max() >= 1 else 0 * millions
    ones = np.ones_like(shards)
    server_us = fitted([ones, shards, shards * doublings, by_candidates], [each.server_us for each in found])
    owner_us = fitted([ones, by_candidates], [each.owner_us for each in found])

    def rounded(value: float) -> float:
        return float(f"{max(0.0, value):.{_DIGITS}g}")

    return Searching(
        node_bytes=rounded(node_bytes),
        shard=PerNodes(
            us_at_first=rounded(server_us[1]),
            first_nodes=round(2**least * 1e6),
            us_a_doubling=rounded(server_us[2]),
            us_a_million=rounded(server_us[3]),
            measured_nodes=max(each.nodes for each in found),
        ),
        server_us=rounded(server_us[0]),
        owner_us=rounded(owner_us[0]),
        owner_us_a_million=rounded(owner_us[1]),
        requests_a_batch=rounded(max(each.requests for each in found)),
        measured_shards=max(each.shards for each in found),
    )


@contextlib.contextmanager
def _counted(client: Elasticsearch) -> Iterator[mock.Mock]:
    """Count the requests of a client, and of clients derived from it."""
    transport = client.transport
    counted = mock.Mock(side_effect=transport.perform_request)
    with mock.patch.object(transport, "perform_request", counted):
        yield counted


def _write_hashes(client: Elasticsearch, name: str, profile: Profile, count: int) -> None:
    random, relation = np.random.default_rng(4), relation_of(profile)
    held = Held.random(profile, count, random)
    hashes = random.integers(1, 2**64, count, np.uint64).tolist()
    stored: list[Stored] = [
        StoredHash(content_hash=f"{number:016x}", node=node, seen_ms=at * 1_000)
        for at, (number, node) in enumerate(zip(hashes, relation.ids(held.signatures), strict=True))
    ]
    pack = relation.core.pack
    with ElasticStore(client, forest=name, profile=profile, aging=AGING) as store:
        for at in range(0, count, BATCH):
            store.writer.write([pack(each) for each in stored[at : at + BATCH]])


def _article_costs(
    client: Elasticsearch, dedup: Dedup, name: str, actions: Sequence[dict[str, Any]]
) -> tuple[float, float]:
    """Return the server's microseconds for indexing and merging an article, and the bytes per article."""
    dedup.setup(name)
    before_s = server.processor_s(client)
    _bulk(client, name, actions)
    size_bytes = bytes_per_document(client, name)
    return (server.processor_s(client) - before_s) / len(actions) * 1e6, size_bytes


def _of_roots(client: Elasticsearch, name: str, count: int) -> tuple[float, float]:
    """Return how many microseconds of a refresh and bytes of heap each of `count` roots adds."""
    random = np.random.default_rng(5)

    def roots(count: int) -> Iterator[dict[str, Any]]:
        for _ in range(count):
            yield {"_index": name, "_source": {"dedup": {"root": random.bytes(16).hex()}}}

    def refresh_us() -> float:
        took_us = []
        for _ in range(_REFRESHES):
            _bulk(client, name, roots(1))
            started_s = time.perf_counter()
            client.indices.refresh(index=name)
            took_us.append((time.perf_counter() - started_s) * 1e6)
        return median(took_us)

    # Avoid automatic refreshes.
    client.indices.put_settings(index=name, settings={"refresh_interval": "1h"})
    few_us = refresh_us()
    _bulk(client, name, roots(count))
    client.indices.refresh(index=name)
    many_us = refresh_us()
    stats = client.indices.stats(index=name, metric="fielddata", fields="dedup.root")["_all"]["primaries"]
    return max(0.0, many_us - few_us) / count, stats["fielddata"]["memory_size_in_bytes"] / count


def _bulk(client: Elasticsearch, name: str, actions: Iterable[dict[str, Any]]) -> None:
    with translated("measure"):
        for is_written, item in helpers.streaming_bulk(client, actions, raise_on_error=False):
            if not is_written:
                (answer,) = item.values()
                raise refused("measure", answer, status=answer["status"], index=name)


def _actions(index: str, count: int) -> Iterator[dict[str, Any]]:
    for article in sample.articles(count):
        yield {"_index": index, "_id": article["id"], "_source": article}


def bytes_per_document(client: Elasticsearch, name: str) -> float:
    """Merge an index; return the bytes per document."""
    size_bytes = bytes_of(client, name)
    with translated("measure"):
        return size_bytes / int(client.count(index=name)["count"])


def bytes_of(client: Elasticsearch, name: str) -> int:
    """Merge each shard of an index to one segment; return the bytes of the index."""
    patient = client.options(request_timeout=_MERGE_TIMEOUT_S)
    with translated("measure"):
        # Add a document, because Elasticsearch would not rewrite a single segment.
        patient.index(index=name, id=_LAST, document={}, refresh=True)
        patient.indices.flush(index=name)
        patient.indices.forcemerge(index=name, max_num_segments=1)
        patient.indices.flush(index=name)
        primaries = patient.indices.stats(index=name, metric="store")["_all"]["primaries"]
    return int(primaries["store"]["size_in_bytes"])


PATH = ROOT / "esdedup/plan" / SHIPPED
MEASURE = ("unit-costs", "boilerplate")
"""The benchmarks that measure unit costs."""

_TABLE = "unit-costs"
_MEGABYTE = 1e6
# The number of significant digits of a cost; further digits differ from run to run.
_DIGITS = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """One cost, by its path in `UnitCosts`."""

    table: str
    profile: str
    cost: str
    value: float

    def cells(self) -> dict[str, str]:
        return {"profile": self.profile, "cost": self.cost, "value": f"{self.value:.{_DIGITS}g}"}


def unit_costs(run: Run) -> Sequence[Cost]:
    """Measure the unit costs of each profile."""
    sizes = _scaled(Sizes(), run)
    found = []
    with server.client(run, lifetime_s=7_200) as client:
        connecting = functools.partial(connect, server.url_of(client))
        for profile in PROFILES.values():
            costs = measure(profile, connecting, sizes)
            found += [
                Cost(table=_TABLE, profile=profile.name, cost=cost, value=value)
                for cost, value in _flat(costs.model_dump(exclude={"profile", "layout"}, exclude_none=True))
            ]
    return found


def measure(profile: Profile, connecting: Callable[[], Elasticsearch], sizes: Sizes) -> UnitCosts:
    """Measure the costs of a profile in a minute or two, in temporary indices."""
    in_memory = measure_without_server(profile, sizes)
    stored = measure_server(profile, in_memory["deciding"], connecting, sizes)
    return UnitCosts(profile=costs_key(profile), layout=TRIPLES.name, **in_memory, server=stored)


def write(results: Mapping[str, Result], path: Path) -> None:
    """Update a file of costs with measured costs; a new file begins with the package's costs."""
    found = _read(path) if path.exists() else shipped()
    if _TABLE in results:
        costs = tuple(_costs(results[_TABLE].tables[_TABLE], found))
        found = found.model_copy(update={"measured": _measured(results[_TABLE]), "costs": costs})
    if "boilerplate" in results:
        rows = results["boilerplate"].tables["boilerplate"]
        learned = LearnedCosts(
            measured=_measured(results["boilerplate"]),
            memory_bytes=_megabytes(rows, "the tables"),
            disk_bytes=_megabytes(rows, "on disk"),
        )
        found = found.model_copy(update={"learned": learned})
    _save(found, path)


def _read(path: Path) -> CostsFile:
    return CostsFile.read(path.read_text(encoding="utf-8"), name=str(path))


def _save(found: CostsFile, path: Path) -> None:
    path.write_text(found.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8")


def keep_scale(log: str, measured: Measured, path: Path = PATH) -> None:
    """Keep what `python -m benchmarks.scale` printed as the costs of searching with `verified`."""
    found = list[Spent]()
    for each in map(json.loads, re.findall(r"^\S+ (\{$.*?^\})$", log, re.DOTALL | re.MULTILINE)):
        if each["forest"].startswith("memory"):
            continue
        _, nodes, shards = each["forest"].split("-")
        server_us, owner_us = (
            each[f"{what}, µs of processor time an arrival"] for what in ("server", "owner")
        )
        requests = sum(each["requests a batch"].values())
        found.append(Spent(int(shards), int(nodes), server_us, owner_us, requests))
    costs = _read(path).model_dump(exclude_none=True)
    server = next(each["server"] for each in costs["costs"] if each["profile"] == VERIFIED.name)
    searching = searching_of(found, node_bytes=server["searching"]["node_bytes"])
    server["searching"] = searching.model_dump() | {"measured": measured.model_dump()}
    _save(CostsFile.model_validate(costs), path)


def _costs(rows: Sequence[Cells], before: CostsFile) -> Iterator[UnitCosts]:
    """Yield measured costs; costs of searching in large forests, which are not measured again, are kept."""
    by_profile: dict[str, dict[str, Any]] = {}
    for row in rows:
        *parents, last = row["cost"].split(".")
        costs = by_profile.setdefault(row["profile"], {})
        for parent in parents:
            costs = costs.setdefault(parent, {})
        costs[last] = float(row["value"])
    searching = {each.profile: each.server.searching for each in before.costs}
    for profile, costs in by_profile.items():
        old = searching.get(profile)
        if old is not None and old.measured is not None:
            costs["server"]["searching"] = old
        elif old is not None:
            # The number of candidates is measured in large forests only.
            costs["server"]["searching"]["owner_us_a_million"] = old.owner_us_a_million
        yield UnitCosts.model_validate({"profile": profile, "layout": TRIPLES.name, **costs})


def _flat(costs: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    for name, value in costs.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _measured(result: Result) -> Measured:
    names = ("Python", "numpy", "Elasticsearch")
    versions = {name: result.measured.versions[name] for name in names if name in result.measured.versions}
    return Measured(on=result.measured.on, machine=result.measured.machine, versions=versions)


def _megabytes(rows: Sequence[Cells], what: str) -> float:
    (cell,) = [row["ours"] for row in rows if row["case"].endswith(f", {what}") and row["unit"] == "MB"]
    return float(cell.replace(",", "")) * _MEGABYTE


def _scaled(sizes: Sizes, run: Run) -> Sizes:
    counts: dict[str, Any] = {
        name: run.size(value) for name, value in dataclasses.asdict(sizes).items() if isinstance(value, int)
    }
    return dataclasses.replace(
        sizes,
        nodes=[run.size(each) for each in sizes.nodes],
        searched_nodes=[run.size(each) for each in sizes.searched_nodes],
        opened_nodes=(run.size(sizes.opened_nodes[0]), run.size(sizes.opened_nodes[1])),
        **counts,
    )
