"""From raw text to everything stored of it, on one core: our default profile and the peers."""

import dataclasses
import logging
import statistics
from collections.abc import Callable, Sequence

import jieba
import rjieba
from datasketch import MinHash
from rensa import RMinHash
from simhash import Simhash

from benchmarks import articles
from benchmarks.rows import Row, more_is_better, processor_s
from benchmarks.steps import microseconds_by_step
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.neighbours.relation import relation_of

_SET = "zh_news"
# As `esdedup cluster` and `index` take articles.
_BATCH = 1_000
_ROUNDS = 7
_PERMUTATIONS = 128
_SHINGLE = 6
_TABLE, _STEPS_TABLE, _UNIT = "fingerprint", "fingerprint-steps", "documents/s"

Work = Callable[[Sequence[str]], None]
"""Processes texts and drops the result."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Runner:
    name: str
    work: Work
    # Slow ones process only every so many-th document.
    every: int = 1


class _Ours:
    """The whole way: signatures, ids of nodes, band keys."""

    def __init__(self) -> None:
        self._fingerprinter = Fingerprinter(DEFAULT)
        self._relation = relation_of(DEFAULT)

    def batches(self, texts: Sequence[str]) -> None:
        for at in range(0, len(texts), _BATCH):
            self._batch(texts[at : at + _BATCH])

    def one_by_one(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._batch([text])

    def _batch(self, texts: Sequence[str]) -> None:
        signatures = self._fingerprinter.fingerprint(texts).signatures
        self._relation.ids(signatures)
        DEFAULT.layout.terms(self._relation.simhashes(signatures).ravel())


def fingerprint() -> list[Row]:
    """Compare rates over the long Chinese articles as they are, and time the steps of ours."""
    # It logs how long its dictionary took to load.
    jieba.setLogLevel(logging.WARNING)
    texts = [article["text"] for article in articles.articles_of(_SET).values()]
    ours = _Ours()
    batches = _Runner(name="batches", work=ours.batches)
    one_by_one = _Runner(name="one by one", work=ours.one_by_one, every=4)
    rates = _rates([batches, one_by_one, *_PEERS], texts)
    rows = [
        more_is_better(
            _TABLE, f"batches of {_BATCH}", rates[batches.name], peer.name, rates[peer.name], _UNIT
        )
        for peer in _PEERS
    ]
    rows.append(
        more_is_better(
            _TABLE, "one at a time", rates[one_by_one.name], _RENSA.name, rates[_RENSA.name], _UNIT
        )
    )
    return rows + [
        Row(table=_STEPS_TABLE, case=f"{step}, batches of {size}", ours=each, unit="µs/document")
        for size, work in ((_BATCH, ours.batches), (1, ours.one_by_one))
        for step, each in microseconds_by_step(lambda work=work: work(texts), len(texts)).items()
    ]


def _rates(runners: Sequence[_Runner], texts: Sequence[str]) -> dict[str, float]:
    """Return documents a second of processor time, from the median of rounds in which all take turns."""
    durations_s: dict[str, list[float]] = {runner.name: [] for runner in runners}
    for runner in runners:
        # Loads tables and dictionaries before the measurement.
        runner.work(texts[:_BATCH])
    for _ in range(_ROUNDS):
        for runner in runners:
            chosen = texts[:: runner.every]
            durations_s[runner.name].append(
                processor_s(lambda work=runner.work, chosen=chosen: work(chosen)) / len(chosen)
            )
    return {name: 1 / statistics.median(each) for name, each in durations_s.items()}


def _shingles(text: str) -> list[str]:
    return [text[at : at + _SHINGLE] for at in range(max(1, len(text) - _SHINGLE + 1))]


def _rensa(texts: Sequence[str]) -> None:
    for text in texts:
        # It takes repeated shingles faster than Python makes a set of them.
        minhash = RMinHash(num_perm=_PERMUTATIONS, seed=1)
        minhash.update(_shingles(text))
        minhash.digest()


def _rensa_batches(texts: Sequence[str]) -> None:
    for at in range(0, len(texts), _BATCH):
        shingles = [_shingles(text) for text in texts[at : at + _BATCH]]
        RMinHash.digest_matrix_from_token_sets(shingles, _PERMUTATIONS, 1)


def _datasketch(texts: Sequence[str]) -> None:
    for text in texts:
        minhash = MinHash(num_perm=_PERMUTATIONS)
        minhash.update_batch([shingle.encode() for shingle in set(_shingles(text))])


def _simhash(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(text)


def _simhash_rjieba(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(rjieba.cut(text))


def _simhash_jieba(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(jieba.lcut(text))


def _rjieba(texts: Sequence[str]) -> None:
    for text in texts:
        rjieba.cut(text)


_RENSA = _Runner(name="rensa RMinHash(128).update, 6-character shingles", work=_rensa)
_PEERS = (
    _RENSA,
    _Runner(
        name=f"rensa RMinHash.digest_matrix_from_token_sets(128), the same, batches of {_BATCH}",
        work=_rensa_batches,
    ),
    _Runner(
        name="datasketch MinHash(128).update_batch, distinct 6-character shingles",
        work=_datasketch,
        every=12,
    ),
    _Runner(name="simhash Simhash(text), its own 4-character features", work=_simhash, every=12),
    _Runner(name="simhash Simhash(words), cut by rjieba", work=_simhash_rjieba, every=12),
    _Runner(name="simhash Simhash(words), cut by jieba", work=_simhash_jieba, every=24),
    _Runner(name="rjieba.cut of the whole text, words dropped", work=_rjieba),
)
