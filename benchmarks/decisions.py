"""Measures the effects of design decisions: the number of keywords, saturated keys and shared blocks."""

import dataclasses
from datetime import timedelta

import numpy as np

from benchmarks import articles, detectors
from benchmarks.detection import Score
from benchmarks.rows import Row, processor_s
from benchmarks.server import Run
from benchmarks.signatures import Signatures, arrivals_of, as_nodes, random_ones
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, VERIFIED, Profile
from esdedup.forest import Aging
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import NeighbourIndex, relation_of
from tests.support.assign import assign

_BATCH = 1_000
_KEYWORD_COUNTS = (20, 40, 80)
_WITH_FOOTER = 5_000
_MILLION, _FILLED_AT_ONCE = 1_000_000, 50_000
_UNLIMITED = 2**31


def keywords(_: Run) -> list[Row]:
    """Score the profile `keywords` with several numbers of words."""
    rows = []
    for name in ("zh_news", "en_wire"):
        for count in _KEYWORD_COUNTS:
            profile = KEYWORDS.with_changes(keyword_count=count)
            roots = detectors.clustered(articles.articles_of(name), profile)
            score = Score.of(roots, articles.labels_of(name))
            for what, share in (("precision", score.precision), ("recall", score.recall)):
                rows.append(
                    Row(
                        table="keywords",
                        case=f"{articles.SETS[name]}, {count} words, {what}",
                        ours=share.value,
                        unit="",
                    )
                )
    return rows


def saturated(_: Run) -> list[Row]:
    """Measure the processor time of articles that share a footer, with and without saturated keys."""
    assert VERIFIED.agreement is not None
    unlimited = dataclasses.replace(VERIFIED.agreement, max_postings=_UNLIMITED)
    return [
        Row(
            table="saturated",
            case=f"batch of {_BATCH:,} after {_WITH_FOOTER:,} articles with one footer, {what}",
            ours=1_000 * _last_batch_s(profile),
            unit="ms",
        )
        for what, profile in (
            ("as it is", VERIFIED),
            ("without saturated keys", dataclasses.replace(VERIFIED, agreement=unlimited)),
        )
    ]


def hot(run: Run) -> list[Row]:
    """Measure the processor time of a search among a million simhashes that share 32 bits."""
    count, random = run.size(_MILLION), np.random.default_rng(1)
    index = NeighbourIndex(relation_of(CLASSIC))
    for _ in range(0, count, _FILLED_AT_ONCE):
        index.add(random.integers(0, 2**32, min(_FILLED_AT_ONCE, count), np.uint64).tobytes())
    batches = [random.integers(0, 2**32, _BATCH, np.uint64) for _ in range(5)]
    spent_s = [processor_s(lambda batch=batch: index.find_pairs(batch)) for batch in batches]
    case = f"search of {_BATCH:,} among {count:,} simhashes that share 32 bits"
    return [Row(table="hot", case=case, ours=1_000 * float(np.median(spent_s)), unit="ms")]


def _last_batch_s(profile: Profile) -> float:
    """Assign articles that share only one representative; return the processor time of the last batch."""
    relation = relation_of(profile)
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation)
    random = np.random.default_rng(1)

    def batch() -> Signatures:
        signatures = random_ones(profile, _BATCH, random)
        signatures["representatives"][:, 1] = 2
        return as_nodes(signatures)

    for _ in range(0, _WITH_FOOTER, _BATCH):
        assign(store, arrivals_of(batch()), now_ms=0)
    last = arrivals_of(batch())
    return processor_s(lambda: assign(store, last, now_ms=0))
