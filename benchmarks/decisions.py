"""What decisions are worth: folding scripts, the number of keywords, saturated keys, hot halves."""

import dataclasses
from datetime import timedelta

import numpy as np
import opencc

from benchmarks import articles, detectors
from benchmarks.rows import Row, processor_s
from benchmarks.score import Score
from benchmarks.signatures import Signatures, arrivals_of, random_ones
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.neighbours.relation import relation_of

_BATCH = 1_000
_CHINESE = ("zh_news", "zh_short")
# OpenCC's configurations: characters alone, and also the words that Taiwan uses.
_SCRIPTS = {"s2t": "traditional characters", "s2twp": "traditional characters and Taiwan's words"}
_KEYWORD_COUNTS = (20, 40, 80)
_WITH_FOOTER = 5_000
_MILLION = 1_000_000
_UNLIMITED = 2**31


def scripts() -> list[Row]:
    """Count Chinese articles that are near their own conversion to traditional script."""
    rows = []
    for name in _CHINESE:
        texts = [each["text"] for each in articles.articles_of(name).values()]
        for configuration, meaning in _SCRIPTS.items():
            convert = opencc.OpenCC(configuration).convert
            share = _near_each_other(VERIFIED, texts, [convert(text) for text in texts])
            rows.append(Row(table="scripts", case=f"{name}, {meaning}", ours=100 * share, unit="%"))
    return rows


def keywords() -> list[Row]:
    """Score the profile `keywords` with other numbers of words."""
    rows = []
    for name in ("zh_news", "en_wire"):
        for count in _KEYWORD_COUNTS:
            roots = detectors.ours(articles.path_of(name), KEYWORDS.with_changes(keyword_count=count))
            score = Score.of(roots, articles.labels_of(name))
            for what, share in (("precision", score.precision), ("recall", score.recall)):
                rows.append(
                    Row(table="keywords", case=f"{name}, {count} words, {what}", ours=share.value, unit="")
                )
    return rows


def saturated() -> list[Row]:
    """Measure a batch whose articles share one footer, with and without saturated keys, in processor time."""
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


def hot() -> list[Row]:
    """Measure the processor time of a search among a million simhashes that share one 32-bit half."""
    random = np.random.default_rng(1)
    index = relation_of(CLASSIC).new_index()
    for _ in range(0, _MILLION, 50_000):
        index.add(random.integers(0, 2**32, 50_000, np.uint64))
    batches = [random.integers(0, 2**32, _BATCH, np.uint64) for _ in range(5)]
    spent_s = [processor_s(lambda batch=batch: index.search(batch)) for batch in batches]
    case = f"search of {_BATCH:,} among a million simhashes that share one half"
    return [Row(table="hot", case=case, ours=1_000 * float(np.median(spent_s)), unit="ms")]


def _near_each_other(profile: Profile, texts: list[str], others: list[str]) -> float:
    """Return the share of texts with a fingerprint that are near the other text of the same row."""
    fingerprinter, relation = Fingerprinter(profile), relation_of(profile)
    near = total = 0
    for at in range(0, len(texts), _BATCH):
        one = fingerprinter.fingerprint(texts[at : at + _BATCH])
        other = fingerprinter.fingerprint(others[at : at + _BATCH])
        index = relation.new_index()
        index.add(relation.mark_indexed(one.signatures, relation.are_distinct(one.signatures)))
        matches = index.search(other.signatures)
        own = np.unique(matches.rows[matches.rows == matches.positions])
        near += int(one.exists[own].sum())
        total += int(one.exists.sum())
    return near / total


def _last_batch_s(profile: Profile) -> float:
    """Assign articles with one representative in common and nothing else, and time the last batch."""
    relation = relation_of(profile)
    forest = Forest(MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation))
    random = np.random.default_rng(1)

    def batch() -> Signatures:
        signatures = random_ones(profile, _BATCH, random)
        signatures["representatives"][:, 1] = 1
        return relation.mark_indexed(signatures, relation.are_distinct(signatures))

    for _ in range(0, _WITH_FOOTER, _BATCH):
        forest.assign(arrivals_of(profile, batch()), now_ms=0)
    last = arrivals_of(profile, batch())
    return processor_s(lambda: forest.assign(last, now_ms=0))
