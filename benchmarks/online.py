"""Compares esdedup and the peers in end-to-end clustering, in the order of arrival."""

import dataclasses
import functools
import os
import statistics
from collections.abc import Callable, Sequence
from datetime import timedelta

import mmh3
from datasketch import MinHash, MinHashLSH
from esdedup.ingest.assigner import arrive
from esdedup.ingest.batches import BATCH_SIZE
from gaoya.minhash import MinHashStringIndex
from rensa import RMinHash, RMinHashDeduplicator

from benchmarks import articles, processes
from benchmarks.articles import SHINGLE_LETTERS, SHINGLE_WORDS, Articles, Records, shingles_of
from benchmarks.detection import Roots, Score
from benchmarks.processes import in_new_process
from benchmarks.rows import Row, Shown, processor_s
from benchmarks.server import Run
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import ByHalves, Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.forest import Aging
from esdedup.forest.nodes import Nodes
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.sites import site_of

# The usual number of permutations; more would be more accurate, but slower.
_PERMUTATIONS = 128
# The number of texts whose minhashes are computed in one call, by packages that can do so.
_BATCH = 1_000
_BITS = 32
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)

Cluster = Callable[[Sequence[str], bool, float], list[int]]
"""Takes texts, whether they are Chinese, and a threshold; returns for each text the number of the first text
in its cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Peer:
    """A package with its settings."""

    name: str
    cluster: Cluster


def cut(text: str, is_chinese: bool) -> Sequence[str]:
    """Return lower-case shingles without punctuation, as for labels; peers find most duplicates with them."""
    return shingles_of(text, is_chinese=is_chinese)


def _cut_as_it_is(text: str, is_chinese: bool) -> Sequence[str]:
    """Return shingles of the unchanged text, which takes less time in Python."""
    if is_chinese:
        starts = range(max(1, len(text) - SHINGLE_LETTERS + 1))
        return [text[at : at + SHINGLE_LETTERS] for at in starts]
    words = text.split()
    starts = range(max(1, len(words) - SHINGLE_WORDS + 1))
    return [" ".join(words[at : at + SHINGLE_WORDS]) for at in starts]


def _datasketch(texts: Sequence[str], is_chinese: bool, threshold: float) -> list[int]:
    index = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)
    # A faster hash than the package's own.
    minhashes = MinHash.generator(
        (set(cut(text, is_chinese)) for text in texts),
        num_perm=_PERMUTATIONS,
        hashfunc=functools.partial(mmh3.hash, signed=False),
    )
    held: list[MinHash] = []
    roots: list[int] = []
    for row, minhash in enumerate(minhashes):
        matches = [each for each in index.query(minhash) if minhash.jaccard(held[each]) >= threshold]
        roots.append(roots[min(matches)] if matches else row)
        index.insert(row, minhash)
        held.append(minhash)
    return roots


def _rensa(
    texts: Sequence[str],
    is_chinese: bool,
    threshold: float,
    *,
    shingles: Callable[[str, bool], Sequence[str]],
) -> list[int]:
    # This class checks texts that share a band, and keeps only texts without an earlier match: the roots.
    index = RMinHashDeduplicator(threshold=threshold, num_perm=_PERMUTATIONS, use_lsh=True)
    roots: list[int] = []
    for at in range(0, len(texts), _BATCH):
        minhashes = RMinHash.from_token_sets(
            [shingles(text, is_chinese) for text in texts[at : at + _BATCH]], num_perm=_PERMUTATIONS, seed=42
        )
        for row, minhash in enumerate(minhashes, at):
            matches = index.get_duplicates(minhash)
            if not matches:
                index.add(str(row), minhash)
            roots.append(min(map(int, matches), default=row))
    return roots


def _gaoya(texts: Sequence[str], is_chinese: bool, threshold: float) -> list[int]:
    length = SHINGLE_LETTERS if is_chinese else SHINGLE_WORDS
    index = MinHashStringIndex(
        hash_size=_BITS,
        jaccard_threshold=threshold,
        # gaoya chooses bands that suit the threshold.
        num_bands=None,
        band_size=None,
        num_hashes=_PERMUTATIONS,
        # gaoya cuts shingles in Rust, so none are cut in Python.
        analyzer="char" if is_chinese else "word",
        lowercase=True,
        ngram_range=(length, length),
        # This container suits texts of which few are duplicates.
        id_container="smallvec",
    )
    roots: list[int] = []
    for row, text in enumerate(texts):
        matches = index.query(text)
        roots.append(roots[min(matches)] if matches else row)
        # This call computes the minhash a second time, because no call both queries and inserts.
        index.insert_document(row, text)
    return roots


PEERS = (
    Peer(
        name=f"rensa RMinHashDeduplicator({_PERMUTATIONS}), texts as they are",
        cluster=functools.partial(_rensa, shingles=_cut_as_it_is),
    ),
    Peer(
        name=f"rensa RMinHashDeduplicator({_PERMUTATIONS})", cluster=functools.partial(_rensa, shingles=cut)
    ),
    Peer(name=f"gaoya MinHashStringIndex({_PERMUTATIONS})", cluster=_gaoya),
    Peer(name=f"datasketch MinHashLSH({_PERMUTATIONS}), MinHash.jaccard checked", cluster=_datasketch),
)


# More articles than any set has.
_ARTICLES = 20_000
_ROUNDS = 5
_TABLE, _STEPS_TABLE = "online", "online-steps"
_IN_BATCHES, _SINGLY = "batches of 1,000", "one at a time"

# No listed method calls another.
STEPS: processes.Steps = {
    "fingerprint": [(ByHalves, "fingerprints")],
    "learning": [
        (Boilerplate, "begin"),
        (Boilerplate, "changes"),
        (Boilerplate, "keep"),
    ],
    "deciding": [(Nodes, "assign"), (Nodes, "keep")],
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Online:
    """The results of one method on one set."""

    table: str
    # The name of the set.
    case: str
    method: str
    # The threshold with the highest F1 on this set; None for our profile, which has fixed thresholds.
    threshold: float | None
    articles_per_s: float
    # The rate divided by the fastest peer's rate.
    ratio: float
    score: Score

    def cells(self) -> dict[str, str]:
        score = self.score
        return {
            "set": self.case,
            "method": self.method,
            "threshold": "" if self.threshold is None else f"{self.threshold:g}",
            "articles/s": f"{self.articles_per_s:,.0f}",
            "to the fastest peer": f"{self.ratio:.2f}",
            "precision": f"{score.precision.value:.3f}",
            "recall": f"{score.recall.value:.3f}",
            "F1": f"{score.f1.value:.3f}",
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Method:
    name: str
    cluster: Callable[[], Roots]
    threshold: float | None = None


def online(run: Run) -> list[Shown]:
    """Compare rates and F1 on all sets, and time our steps."""
    return in_new_process(_all_sets, run.size(_ARTICLES))


def _all_sets(most: int) -> list[Shown]:
    # The peers read this variable when they start their threads, which happens later in this new process.
    os.environ["RAYON_NUM_THREADS"] = "1"
    rows: list[Shown] = []
    for name, meaning in (articles.SETS | articles.MORE).items():
        held, labels = _first(most, articles.articles_of(name), articles.labels_of(name))
        ours = Ours(held)
        rows += _compared(meaning, ours, held, labels)
        rows += _parts(meaning, ours, held)
    return rows


def _first(most: int, held: Articles, labels: Records) -> tuple[Articles, Records]:
    """Return the first articles, and the labels of their pairs."""
    chosen = dict(list(held.items())[:most])
    return chosen, {pair: label for pair, label in labels.items() if pair <= chosen.keys()}


class Ours:
    """Clusters texts in memory, in order, in a new forest each time.

    Boilerplate is learned by site; each text comes with the name of its site.
    """

    def __init__(self, held: Articles) -> None:
        self._ids, self._texts = list(held), _texts(held)
        self._sites = [site_of(article, Fields()) for article in held.values()]

    def in_batches(self) -> Roots:
        return self._roots(BATCH_SIZE)

    def singly(self) -> Roots:
        return self._roots(1)

    def _roots(self, at_once: int) -> Roots:
        fingerprinter = Fingerprinter(DEFAULT)
        aging = Aging.of(retention=timedelta(days=30))
        store = MemoryStore(aging=aging, relation=relation_of(DEFAULT))
        roots: dict[str, str | None] = {}
        for at in range(0, len(self._ids), at_once):
            ids = self._ids[at : at + at_once]
            _, decided = arrive(
                self._texts[at : at + at_once],
                times_ms=[None] * len(ids),
                fingerprinter=fingerprinter,
                store=store,
                now_ms=0,
                sites=self._sites[at : at + at_once],
                articles=ids,
            )
            roots.update(zip(ids, (each.root for each in decided.assignments), strict=True))
        return roots


def _compared(meaning: str, ours: Ours, held: Articles, labels: Records) -> list[Online]:
    own = [
        _Method(name=f"{DEFAULT.name}, {_IN_BATCHES}", cluster=ours.in_batches),
        _Method(name=f"{DEFAULT.name}, {_SINGLY}", cluster=ours.singly),
    ]
    # Scoring also warms the methods up before the rounds.
    scores = {each.name: Score.of(each.cluster(), labels) for each in own}
    others = []
    for peer in PEERS:
        tried = [_with_threshold(peer, held, threshold) for threshold in THRESHOLDS]
        found = [Score.of(each.cluster(), labels) for each in tried]
        best = max(range(len(tried)), key=lambda at: found[at].f1.value)
        others.append(tried[best])
        scores[peer.name] = found[best]
    rates = _rates([*own, *others], len(held))
    fastest = max(rates[each.name] for each in others)
    return [
        Online(
            table=_TABLE,
            case=meaning,
            method=each.name,
            threshold=each.threshold,
            articles_per_s=rates[each.name],
            ratio=rates[each.name] / fastest,
            score=scores[each.name],
        )
        for each in (*own, *others)
    ]


def _with_threshold(peer: Peer, held: Articles, threshold: float) -> _Method:
    ids, texts, is_chinese = list(held), _texts(held), _is_chinese(held)

    def cluster() -> Roots:
        roots = peer.cluster(texts, is_chinese, threshold)
        return {article: ids[root] for article, root in zip(ids, roots, strict=True)}

    return _Method(name=peer.name, cluster=cluster, threshold=threshold)


def _rates(methods: Sequence[_Method], count: int) -> dict[str, float]:
    """Return articles per second of processor time: the median of rounds in which methods take turns."""
    durations_s: dict[str, list[float]] = {each.name: [] for each in methods}
    for _ in range(_ROUNDS):
        for each in methods:
            durations_s[each.name].append(processor_s(each.cluster))
    return {name: count / statistics.median(each) for name, each in durations_s.items()}


def _parts(meaning: str, ours: Ours, held: Articles) -> list[Row]:
    """Return the microseconds per article of each of our steps, and of cutting the peers' shingles."""
    rows = []
    for how, work in ((_IN_BATCHES, ours.in_batches), (_SINGLY, ours.singly)):
        rounds = [processes.microseconds_by_step(work, len(held), STEPS) for _ in range(_ROUNDS)]
        rows += [
            Row(
                table=_STEPS_TABLE,
                case=f"{meaning}, {step}, {how}",
                ours=statistics.median(each[step] for each in rounds),
                unit="µs/article",
            )
            for step in rounds[0]
        ]
    texts, is_chinese = _texts(held), _is_chinese(held)
    cutting_s = statistics.median(
        processor_s(lambda: [cut(text, is_chinese) for text in texts]) for _ in range(_ROUNDS)
    )
    case = f"{meaning}, cutting the shingles, in Python"
    return [
        *rows,
        Row(
            table=_STEPS_TABLE,
            case=case,
            against="rensa, datasketch",
            theirs=1e6 * cutting_s / len(held),
            unit="µs/article",
        ),
    ]


def _texts(held: Articles) -> list[str]:
    return [article["text"] for article in held.values()]


def _is_chinese(held: Articles) -> bool:
    return all(article["lang"] == "zh" for article in held.values())
