"""Compares the speed of our default profile with that of other packages, from raw text to all stored data."""

import dataclasses
import logging
import statistics
from collections.abc import Callable, Sequence

import jieba
import mmh3
import rjieba
from datasketch import MinHash
from rensa import RMinHash
from simhash import Simhash

from benchmarks import articles
from benchmarks.articles import SHINGLE_LETTERS, SHINGLE_WORDS
from benchmarks.processes import microseconds_by_step
from benchmarks.rows import Row, more_is_better, processor_s
from benchmarks.server import Run
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.neighbours.relation import relation_of

_TEXTS = 2_000
# The size of batches in `esdedup cluster` and `esdedup index`.
_BATCH = 1_000
_ROUNDS = 7
# The usual number of permutations; fewer would be faster, but less accurate.
_PERMUTATIONS = 128
_TABLE, _STEPS_TABLE, _UNIT = "fingerprint", "fingerprint-steps", "documents/s"

Work = Callable[[Sequence[str]], None]
"""Processes texts and discards the result."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Runner:
    name: str
    work: Work
    # A slow runner processes only one in this many documents.
    every: int = 1


class _Ours:
    """Runs all steps: boilerplate, signatures, node ids, band keys."""

    def __init__(self, profile: Profile) -> None:
        self._fingerprinter = Fingerprinter(profile)
        self._relation = relation_of(profile)

    def batches(self, texts: Sequence[str]) -> None:
        self._all(texts, size=_BATCH)

    def one_by_one(self, texts: Sequence[str]) -> None:
        self._all(texts, size=1)

    def _all(self, texts: Sequence[str], *, size: int) -> None:
        boilerplate = Boilerplate()
        for at in range(0, len(texts), size):
            boilerplate.begin()
            signatures = self._fingerprinter.fingerprint(
                texts[at : at + size], passage_filter=boilerplate.filter()
            ).signatures
            boilerplate.keep()
            self._relation.ids(signatures)
            self._relation.terms(signatures.tobytes(), ARTICLES, are_indexed=False)


def fingerprint(run: Run) -> list[Row]:
    """Compare rates on all sets, and time our steps."""
    # jieba logs how long its dictionary took to load.
    jieba.setLogLevel(logging.WARNING)
    rows = []
    for name, meaning in articles.SETS.items():
        texts = articles.texts_of(name)[: run.size(_TEXTS)]
        rows += _compared(meaning, texts, is_chinese=name in articles.CHINESE)
        rows += _steps(meaning, texts)
    return rows


def _compared(meaning: str, texts: Sequence[str], *, is_chinese: bool) -> list[Row]:
    default = _Runner(name=f"{DEFAULT.name}, batches of {_BATCH:,}", work=_Ours(DEFAULT).batches)
    whole = _Runner(
        name=f"{DEFAULT.name}, pages kept whole, batches of {_BATCH:,}",
        work=_Ours(DEFAULT.with_changes(keep_boilerplate=True)).batches,
    )
    single = _Runner(name=f"{DEFAULT.name}, one at a time", work=_Ours(DEFAULT).one_by_one, every=4)
    peers = _Peers(is_chinese=is_chinese)
    others = peers.runners()
    cutting = _Runner(name="cutting the shingles, in Python", work=peers.cut)
    rates = _rates([default, whole, single, *others, cutting], texts)
    rows = [
        more_is_better(
            _TABLE, f"{meaning}, {ours.name}", rates[ours.name], peer.name, rates[peer.name], _UNIT
        )
        for ours, compared in ((default, others), (whole, others[:1]), (single, others[:1]))
        for peer in compared
    ]
    share = rates[others[0].name] / rates[cutting.name]
    case = f"{meaning}, {cutting.name}: share of the peer's time"
    return [*rows, Row(table=_TABLE, case=case, against=others[0].name, theirs=100 * share, unit="%")]


def _steps(meaning: str, texts: Sequence[str]) -> list[Row]:
    ours = _Ours(DEFAULT)
    return [
        Row(table=_STEPS_TABLE, case=f"{meaning}, {step}, {size}", ours=each, unit="µs/document")
        for size, work in ((f"batches of {_BATCH:,}", ours.batches), ("one at a time", ours.one_by_one))
        for step, each in microseconds_by_step(lambda work=work: work(texts), len(texts)).items()
    ]


def _rates(runners: Sequence[_Runner], texts: Sequence[str]) -> dict[str, float]:
    """Return documents per second of processor time: the median of rounds in which runners take turns."""
    durations_s: dict[str, list[float]] = {runner.name: [] for runner in runners}
    for runner in runners:
        # Load tables and dictionaries before the measurement.
        runner.work(texts[: _BATCH : runner.every])
    for _ in range(_ROUNDS):
        for runner in runners:
            chosen = texts[:: runner.every]
            durations_s[runner.name].append(
                processor_s(lambda work=runner.work, chosen=chosen: work(chosen)) / len(chosen)
            )
    return {name: 1 / statistics.median(each) for name, each in durations_s.items()}


class _Peers:
    """Other packages, with shingles that suit the language, and fast hash functions where possible."""

    def __init__(self, *, is_chinese: bool) -> None:
        self._is_chinese = is_chinese
        self._shingles = f"{SHINGLE_LETTERS}-character" if is_chinese else f"{SHINGLE_WORDS}-word"

    def runners(self) -> list[_Runner]:
        """Return the peers, the fastest MinHash first."""
        return [
            _Runner(
                name=f"rensa RMinHash({_PERMUTATIONS}).update, {self._shingles} shingles", work=self._rensa
            ),
            _Runner(
                name=f"rensa RMinHash.digest_matrix_from_token_sets({_PERMUTATIONS}), {self._shingles} "
                f"shingles, batches of {_BATCH:,}",
                work=self._rensa_batches,
            ),
            _Runner(
                name=f"datasketch MinHash.bulk({_PERMUTATIONS}), mmh3, distinct {self._shingles} shingles",
                work=self._datasketch,
                every=8,
            ),
            _Runner(name="simhash Simhash(text), mmh3, its own 4-character features", work=_simhash, every=8),
            *(_CHINESE_WORDS if self._is_chinese else _ENGLISH_WORDS),
        ]

    def cut(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._cut(text)

    def _cut(self, text: str) -> Sequence[str]:
        """Return shingles of the text as it is; cleaning the text would take more time in Python."""
        if self._is_chinese:
            starts = range(max(1, len(text) - SHINGLE_LETTERS + 1))
            return [text[at : at + SHINGLE_LETTERS] for at in starts]
        words = text.split()
        starts = range(max(1, len(words) - SHINGLE_WORDS + 1))
        return [" ".join(words[at : at + SHINGLE_WORDS]) for at in starts]

    def _rensa(self, texts: Sequence[str]) -> None:
        for text in texts:
            # rensa processes repeated shingles faster than Python removes the repetitions.
            minhash = RMinHash(num_perm=_PERMUTATIONS, seed=1)
            minhash.update(self._cut(text))
            minhash.digest()

    def _rensa_batches(self, texts: Sequence[str]) -> None:
        for at in range(0, len(texts), _BATCH):
            shingles = [self._cut(text) for text in texts[at : at + _BATCH]]
            RMinHash.digest_matrix_from_token_sets(shingles, _PERMUTATIONS, 1)

    def _datasketch(self, texts: Sequence[str]) -> None:
        shingles = ([each.encode() for each in set(self._cut(text))] for text in texts)
        MinHash.bulk(shingles, num_perm=_PERMUTATIONS, hashfunc=_hash32)


def _hash32(data: bytes) -> int:
    return mmh3.hash(data, signed=False)


def _hash64(data: bytes) -> bytes:
    return mmh3.hash_bytes(data)[:8]


def _simhash(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(text, hashfunc=_hash64)


def _simhash_words(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(text.split(), hashfunc=_hash64)


def _simhash_rjieba(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(rjieba.cut(text), hashfunc=_hash64)


def _simhash_jieba(texts: Sequence[str]) -> None:
    for text in texts:
        Simhash(jieba.lcut(text), hashfunc=_hash64)


def _rjieba(texts: Sequence[str]) -> None:
    for text in texts:
        rjieba.cut(text)


_CHINESE_WORDS = (
    _Runner(name="simhash Simhash(words), mmh3, cut by rjieba", work=_simhash_rjieba, every=8),
    _Runner(name="simhash Simhash(words), mmh3, cut by jieba", work=_simhash_jieba, every=16),
    _Runner(name="rjieba.cut only, result discarded", work=_rjieba),
)
_ENGLISH_WORDS = (_Runner(name="simhash Simhash(text.split()), mmh3", work=_simhash_words, every=8),)
