"""Measures unit costs on this machine: fingerprints, decisions and memory, without a server.

Times are processor times, which other processes disturb less than wall times.
"""

import dataclasses
import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from esdedup.ingest.assigner import arrive

from benchmarks.processes import in_new_process, peak_bytes
from benchmarks.signatures import NOW_MS, Held, random_ones
from esdedup.elastic.forest.stored import StoredNode
from esdedup.elastic.limits import MAX_HITS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import NO_TIME, Aging, Nodes, Store, begin
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import PerNodes, PerText
from esdedup.plan.model import BATCH
from tests import sample
from tests.support.assign import assign

AGING = Aging.of(retention=timedelta(days=30))

# The lengths of measured texts, as multiples of an article of the sample corpus.
_LENGTHS = (0.5, 1, 2, 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of measurements, which take about a minute by default."""

    # The number of texts per length, and the number of rounds.
    texts: int = 300
    rounds: int = 3
    # The ascending numbers of nodes in memory at which deciding is measured, and the batches per number.
    nodes: Sequence[int] = (25_000, 50_000, 100_000, 200_000)
    batches: int = 8
    # The number of articles with which the memory of a process is measured.
    articles: int = 3_000
    # The sizes of the two forests that are opened.
    opened_nodes: tuple[int, int] = (50_000, 200_000)
    # For measurements in Elasticsearch: the numbers of nodes, batches, content hashes, articles and roots.
    stored_nodes: int = 40_000
    stored_batches: int = 20
    stored_hashes: int = 20_000
    stored_articles: int = 12_000
    stored_roots: int = 500_000
    # The numbers of nodes and of shards with which forests are searched.
    searched_nodes: Sequence[int] = (20_000, 160_000)
    searched_shards: Sequence[int] = (1, 3)
    # Elasticsearch keeps the whole source of new documents for replicas that have fallen behind, and checks
    # every 30 seconds for such replicas. Merges then drop the source, which is half of a node's bytes.
    kept_for_recovery_s: float = 35.0


def measure_without_server(profile: Profile, sizes: Sizes) -> dict[str, Any]:
    """Measure the part of `UnitCosts` that needs no server."""
    whole = _fingerprinting(profile.with_changes(keep_boilerplate=True), sizes)[0]
    without, omitting = _fingerprinting(dataclasses.replace(profile, keep_boilerplate=False), sizes)
    return {
        "whole": whole,
        "without_boilerplate": without,
        "omitting": omitting,
        "deciding": _deciding(profile, sizes),
        "node_bytes": _node_bytes(profile, sizes.nodes[-1]),
        "process_bytes": in_new_process(_process_bytes, profile, sizes.articles),
        **_opening(profile, sizes.opened_nodes),
    }


def _fingerprinting(profile: Profile, sizes: Sizes) -> tuple[PerText, PerText]:
    """Return the time for fingerprints, and the time for finding and learning boilerplate."""
    fingerprinter = Fingerprinter(profile)
    lengths, fingerprinting, omitting = list[float](), list[float](), list[float]()
    for texts, sites in _texts(sizes):
        rounds = [_timed(fingerprinter, texts, sites) for _ in range(sizes.rounds)]
        lengths.append(float(np.mean([len(text) for text in texts])))
        for spent, found in zip(zip(*rounds, strict=True), (fingerprinting, omitting), strict=True):
            found.append(median(spent) / len(texts) * 1e6)
    return _per_text(lengths, fingerprinting), _per_text(lengths, omitting)


def _texts(sizes: Sizes) -> list[tuple[list[str], list[str]]]:
    """Return texts of several lengths, and their sites."""
    articles = list(sample.articles(max(sizes.texts, sample.COUNT)))
    sites = [article["source"] for article in articles[: sizes.texts]]
    found = []
    for length in _LENGTHS:
        texts = []
        for at in range(sizes.texts):
            joined = [articles[(at + other) % len(articles)]["text"] for other in range(max(1, int(length)))]
            text = "\n\n".join(joined)
            texts.append(text if length >= 1 else text[: int(len(text) * length)])
        found.append((texts, sites))
    return found


def _timed(fingerprinter: Fingerprinter, texts: list[str], sites: list[str]) -> tuple[float, float]:
    """Return the seconds of fingerprinting outside `passage_filter`, and the seconds inside it."""
    omitting_s = 0.0
    if not fingerprinter.profile.keep_boilerplate:
        learning = begin(_store(fingerprinter.profile), sites=sites)
        parts = list(fingerprinter.parsed(texts))
        started = time.process_time()
        for parsed in parts:
            parsed.left_out(learning)
        omitting_s = time.process_time() - started
    learning = begin(_store(fingerprinter.profile), sites=sites)
    started = time.process_time()
    fingerprinter.fingerprint(texts, passage_filter=learning)
    return time.process_time() - started - omitting_s, omitting_s


def _per_text(lengths: Sequence[float], us: Sequence[float]) -> PerText:
    """Fit a line by least squares of relative errors; neither coefficient is negative."""
    if not all(us):
        return PerText(us_a_text=0.0, us_a_character=0.0)
    a_text = 1 / np.array(us)
    first, slope = fitted([a_text, a_text * lengths], [1.0] * len(us))
    return PerText(us_a_text=first, us_a_character=slope)


def fitted(columns: Sequence[npt.NDArray[np.float64]], values: Sequence[float]) -> list[float]:
    """Fit coefficients by least squares; columns with a negative coefficient get 0."""
    found, kept = [0.0] * len(columns), [at for at, column in enumerate(columns) if column.any()]
    while kept:
        chosen = np.stack([columns[at] for at in kept], axis=1)
        solved = np.linalg.lstsq(chosen, np.array(values), rcond=None)[0].tolist()
        if min(solved) >= 0:
            for at, value in zip(kept, solved, strict=True):
                found[at] = value
            break
        del kept[solved.index(min(solved))]
    return found


def _deciding(profile: Profile, sizes: Sizes) -> PerNodes:
    """Assign batches of copies, near copies and new articles at growing sizes, in memory."""
    random = np.random.default_rng(1)
    held = Held.random(profile, sizes.nodes[-1], random)
    store = _store(profile)
    filled, number, us = 0, 0, list[float]()
    for nodes in sizes.nodes:
        held.fill(store, filled, nodes)
        filled = nodes
        us.append(median(us_of_batches(store, held, random, sizes.batches, first=number)))
        number += sizes.batches
    first, slope = fitted([np.ones(len(us)), np.log2(np.array(sizes.nodes) / sizes.nodes[0])], us)
    return PerNodes(
        us_at_first=first, first_nodes=sizes.nodes[0], us_a_doubling=slope, measured_nodes=sizes.nodes[-1]
    )


def us_of_batches(
    store: Store, held: Held, random: np.random.Generator, count: int, *, first: int = 0
) -> list[float]:
    """Assign batches of arrivals; return the microseconds of processor time per arrival for each batch.

    Args:
        store: A store that contains the nodes of `held`.
        held: Nodes; some of the arrivals are near a node.
        random: The generator that draws the arrivals.
        count: The number of batches of 1,000.
        first: The number of earlier batches.
    """
    us = []
    for number in range(first, first + count):
        arrivals = held.arrivals_after(held.batch(BATCH, random), number)
        started = time.process_time()
        assign(store, arrivals, now_ms=NOW_MS)
        us.append((time.process_time() - started) / BATCH * 1e6)
    return us


def _node_bytes(profile: Profile, count: int) -> float:
    held, store = Held.random(profile, count, np.random.default_rng(2)), _store(profile)
    held.fill(store)
    return store.size_bytes / len(store)


def _opening(profile: Profile, sizes: tuple[int, int]) -> dict[str, float]:
    """Return the memory for opening a forest as a constant plus bytes per node, fitted to two forests."""
    found = [in_new_process(_opening_bytes, profile, count) for count in sizes]
    constant, a_node = fitted([np.ones(len(sizes)), np.array(sizes, float)], found)
    return {"opening_bytes": constant, "opening_bytes_a_node": a_node}


def _opening_bytes(profile: Profile, count: int) -> float:
    """Load nodes as if from Elasticsearch; return the peak memory of loading, minus the nodes' own memory."""
    relation, random = relation_of(profile), np.random.default_rng(6)
    pack, nodes = relation.core.pack, Nodes(relation, AGING)
    before = peak_bytes()
    for start in range(0, count, MAX_HITS):
        signatures = random_ones(profile, min(MAX_HITS, count - start), random)
        ids, hashes = relation.ids(signatures), random.integers(1, 2**64, len(signatures), np.uint64)
        each = zip(ids, signatures, hashes.tolist(), strict=True)
        loaded = [
            pack(StoredNode(node_id, node_id, signature.tobytes(), at, 0, 0, f"{number:016x}", 0))
            for at, (node_id, signature, number) in enumerate(each, start)
        ]
        nodes.load(loaded, live_since_ms=NO_TIME)
    nodes.settle()
    return float(peak_bytes() - before - nodes.size_bytes)


def _process_bytes(profile: Profile, count: int) -> float:
    """Return the peak memory of this process after some batches, without nodes and learned boilerplate."""
    store, fingerprinter = _store(profile), Fingerprinter(profile)
    articles = list(sample.articles(count))
    for start in range(0, count, BATCH):
        some = articles[start : start + BATCH]
        arrive(
            [article["text"] for article in some],
            times_ms=[NOW_MS] * len(some),
            fingerprinter=fingerprinter,
            store=store,
            now_ms=NOW_MS,
            sites=[article["source"] for article in some],
        )
    return float(peak_bytes() - store.size_bytes)


def _store(profile: Profile) -> MemoryStore:
    return MemoryStore(aging=AGING, relation=relation_of(profile))
