"""Text in, cluster out, in the order of arrival, on one core: the default profile and peers, on every set."""

import dataclasses
import os
import statistics
from collections.abc import Callable, Sequence
from datetime import timedelta

from esdedup.ingest.arrive import arrive
from esdedup.ingest.batches import BATCH_SIZE

from benchmarks import articles, online_peers, steps
from benchmarks.articles import Articles, Records
from benchmarks.processes import in_new_process
from benchmarks.rows import Row, Shown, processor_s
from benchmarks.run import Run
from benchmarks.score import Roots, Score
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import ByHalves, Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.forest import Aging, Forest
from esdedup.forest.nodes import Nodes
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.sites import site_of
from esdedup.text.parsed import ParsedTexts

# More than any set has.
_ARTICLES = 20_000
_ROUNDS = 5
_TABLE, _STEPS_TABLE = "online", "online-steps"
_IN_BATCHES, _SINGLY = "batches of 1,000", "one at a time"

# None of these functions calls another one.
STEPS: steps.Steps = {
    "fingerprint": [(ParsedTexts, "of"), (ByHalves, "fingerprints")],
    "learning": [
        (Boilerplate, "begin"),
        (Boilerplate, "omit"),
        (Boilerplate, "changes"),
        (Boilerplate, "keep"),
    ],
    "deciding": [(Nodes, "assign"), (Nodes, "keep")],
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Online:
    """One method on one set."""

    table: str
    # The set.
    case: str
    method: str
    # That of all with the highest F1 on this set; None for ours, which has one for all sets.
    threshold: float | None
    articles_per_s: float
    # The rate over that of the fastest peer.
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
    """Compare rates and F1 on all sets, and time the parts of ours."""
    return in_new_process(_all_sets, run.size(_ARTICLES))


def _all_sets(most: int) -> list[Shown]:
    # Read when the peers start their threads, which no other benchmark has done in this process.
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
    """Clusters texts in memory in the order in which they come, in a new forest each time.

    Each comes with the name of its site, by which boilerplate is learned.
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
        forest = Forest(MemoryStore(aging=aging, relation=relation_of(DEFAULT)))
        roots: dict[str, str | None] = {}
        for at in range(0, len(self._ids), at_once):
            ids = self._ids[at : at + at_once]
            arrived = arrive(
                self._texts[at : at + at_once],
                times_ms=[None] * len(ids),
                fingerprinter=fingerprinter,
                forest=forest,
                now_ms=0,
                sites=self._sites[at : at + at_once],
                articles=ids,
            )
            roots.update(zip(ids, (each.root for each in arrived.decided.assignments), strict=True))
        return roots


def _compared(meaning: str, ours: Ours, held: Articles, labels: Records) -> list[Online]:
    own = [
        _Method(name=f"{DEFAULT.name}, {_IN_BATCHES}", cluster=ours.in_batches),
        _Method(name=f"{DEFAULT.name}, {_SINGLY}", cluster=ours.singly),
    ]
    # So they are warm when rounds begin.
    scores = {each.name: Score.of(each.cluster(), labels) for each in own}
    others = []
    for peer in online_peers.PEERS:
        tried = [_with_threshold(peer, held, threshold) for threshold in online_peers.THRESHOLDS]
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


def _with_threshold(peer: online_peers.Peer, held: Articles, threshold: float) -> _Method:
    ids, texts, is_chinese = list(held), _texts(held), _is_chinese(held)

    def cluster() -> Roots:
        roots = peer.cluster(texts, is_chinese, threshold)
        return {article: ids[root] for article, root in zip(ids, roots, strict=True)}

    return _Method(name=peer.name, cluster=cluster, threshold=threshold)


def _rates(methods: Sequence[_Method], count: int) -> dict[str, float]:
    """Return articles a second of processor time, from the median of rounds in which all take turns."""
    durations_s: dict[str, list[float]] = {each.name: [] for each in methods}
    for _ in range(_ROUNDS):
        for each in methods:
            durations_s[each.name].append(processor_s(each.cluster))
    return {name: count / statistics.median(each) for name, each in durations_s.items()}


def _parts(meaning: str, ours: Ours, held: Articles) -> list[Row]:
    """Return the microseconds an article of each part of ours, and of what peers do in Python."""
    rows = []
    for how, work in ((_IN_BATCHES, ours.in_batches), (_SINGLY, ours.singly)):
        rounds = [steps.microseconds_by_step(work, len(held), STEPS) for _ in range(_ROUNDS)]
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
        processor_s(lambda: [online_peers.cut(text, is_chinese) for text in texts]) for _ in range(_ROUNDS)
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
