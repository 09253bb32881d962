"""Worked examples from the literature: the published results compared with those of esdedup."""

import zlib
from collections.abc import Callable, Collection
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.angle import share_of_random_pairs
from esdedup import CLASSIC, KEYWORDS, Profile
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import signed_sums, simhash
from esdedup.text.hashing import TOKEN_HASHES, TokenHash, crc32
from esdedup.text.segmenters import Dictionary, Jieba, NGrams, Segmenter, UnicodeWords
from esdedup.text.weights import WordTable
from tests.support.normal_forms import normalise

CAT_ON_THE_MAT = "the cat sat on the mat"
CAT_ON_A_MAT = "the cat sat on a mat"
ICE_CREAM = "we all scream for ice cream"


def distance_bits(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    distances: npt.NDArray[np.uint8] = np.bitwise_count(one ^ other)
    return distances


def reversed_within_bytes(value: int, *, width: int) -> int:
    """Return a number with the bits of each byte in the opposite order."""
    return int.from_bytes(int(f"{byte:08b}"[::-1], 2) for byte in value.to_bytes(width // 8, "big"))


@pytest.mark.parametrize(
    ("tokens", "published"),
    [
        ("a list of a couple of tokens", "00010011101101101000110101010010"),
        ("a list of a couple of tokens !", "00010001100101101000110101010010"),
    ],
    ids=["seven-tokens", "eight-tokens"],
)
def test_the_token_example_is_reproduced_with_crc32(tokens: str, published: str) -> None:
    """The README of the package `simhash` for node.js (admazely/simhash, 2012), bit by bit.

    The README prints the bits of each byte lowest first, and the highest byte first.
    """
    ours = simhash([(token, 1) for token in tokens.split()], width=32, token_hash=crc32)
    assert f"{reversed_within_bytes(ours, width=32):032b}" == published


def test_the_example_in_the_packages_tests_is_reproduced() -> None:
    """From the tests of the same package; its later version prints all bits lowest first."""
    ours = simhash([(token, 1) for token in ("a", "few", "tokens")], width=32, token_hash=zlib.crc32)
    assert f"{ours:032b}"[::-1] == "11110011101010000100111100010111"


def test_the_six_bit_example_is_reproduced() -> None:
    """Two words of the weighted sentence, 美国 (4) and 51区 (5), with made-up hashes."""
    hashes = {"美国".encode(): 0b100101, "51区".encode(): 0b101011}
    words = [("美国", 4), ("51区", 5)]
    # Each word alone, then both together.
    one, other, both = (
        signed_sums(each, width=6, token_hash=hashes.__getitem__) for each in (words[:1], words[1:], words)
    )
    assert (one, other) == ([4, -4, -4, 4, -4, 4], [5, -5, 5, -5, 5, 5])
    assert both == [9, -9, 1, -1, 1, 9]
    assert simhash([("美国", 4), ("51区", 5)], width=6, token_hash=hashes.__getitem__) == 0b101011


SENTENCE = "美国“51区”雇员称内部有9架飞碟，曾看见灰色外星人"
SENTENCE_WEIGHTS = {
    "美国": 4,
    "51区": 5,
    "雇员": 3,
    "称": 1,
    "内部": 2,
    "有": 1,
    "9架": 3,
    "飞碟": 5,
    "曾": 1,
    "看见": 3,
    "灰色": 4,
    "外星人": 5,
}


def test_the_weighted_sentence_gives_its_words_and_weights() -> None:
    """The example that the popular Chinese write-ups share (lanceyan.com, 2013).

    jieba does not know two of its words, 51区 and 9架. The write-ups print invented hashes of six bits for
    two words (`test_the_six_bit_example_is_reproduced`), but no simhash of the sentence.
    """
    words = Jieba(Dictionary.of_words(["51区", "9架"]))
    profile = CLASSIC.with_changes(segmenter=words, weighting=WordTable(SENTENCE_WEIGHTS))
    (normal,) = normalise([SENTENCE])
    assert [word for word in words.cut(normal) if word.isalnum()] == list(SENTENCE_WEIGHTS)
    features = Fingerprinter(profile).features(SENTENCE)
    assert {each.word: each.weight for each in features} == SENTENCE_WEIGHTS
    assert {each.count for each in features} == {1}
    # Our simhash has the signs of the same sums, but with our hash of words.
    expected = simhash(SENTENCE_WEIGHTS.items())
    assert Fingerprinter(profile).fingerprint([SENTENCE]).signatures.tolist() == [expected]


def test_jieba_alone_splits_words_of_the_weighted_sentence() -> None:
    """jieba alone splits the words 51区 and 9架, so their weights have no effect."""
    features = Fingerprinter(CLASSIC.with_changes(weighting=WordTable(SENTENCE_WEIGHTS))).features(SENTENCE)
    assert {each.word for each in features} == SENTENCE_WEIGHTS.keys() - {"51区", "9架"}


JULY = "CSDN博客结构之法算法之道的作者July"
JULY_WORDS = ["CSDN", "博客", "结构", "之", "法", "算法", "之", "道", "的", "作者", "July"]
JULY_WEIGHTS = dict(zip(JULY_WORDS, [4, 5, 3, 1, 2, 3, 1, 2, 1, 5, 5], strict=True))


def test_the_sentence_of_july_gives_its_eleven_weights() -> None:
    """The other weighted sentence of the write-ups (blog.csdn.net/v_JULY_v), which contains 之 twice.

    jieba takes 之道 for a word; a dictionary that gives it the frequency 0 splits it. The write-ups print
    invented hashes of six bits for two words, and their sums.
    """
    (normal,) = normalise([JULY])
    expected = [word.casefold() for word in JULY_WORDS]
    words = Jieba(Dictionary.of_lines(["之道 0"], name="july.txt"))
    assert words.cut(normal) == expected
    assert Jieba().cut(normal) == [*expected[:6], "之道", *expected[8:]]
    profile = CLASSIC.with_changes(segmenter=words, weighting=WordTable(JULY_WEIGHTS))
    counted = {each.word: (each.count, each.weight) for each in Fingerprinter(profile).features(JULY)}
    weights = {word.casefold(): weight for word, weight in JULY_WEIGHTS.items()}
    assert counted == {word: (1, weight) for word, weight in weights.items()} | {"之": (2, 2)}
    # Our simhash has the signs of the same sums, but with our hash of words.
    ours = simhash((word, weights[word]) for word in expected)
    assert Fingerprinter(profile).fingerprint([JULY]).signatures.tolist() == [ours]
    hashes = {b"CSDN": 0b100101, "博客".encode(): 0b101011}
    sums = signed_sums([("CSDN", 4), ("博客", 5)], width=6, token_hash=hashes.__getitem__)
    assert sums == [9, -9, 1, -1, 1, 9]
    assert simhash([("CSDN", 4), ("博客", 5)], width=6, token_hash=hashes.__getitem__) == 0b101011


def shingles(phrase: str) -> set[str]:
    """Return the set of pairs of adjacent characters of a phrase, including spaces, as in the example."""
    return {"".join(pair) for pair in pairwise(phrase)}


def test_the_cat_example_has_the_published_features() -> None:
    assert shingles(CAT_ON_THE_MAT) == {
        *("th", "he", "e ", " c", "ca", "at", "t ", " s", "sa", " o", "on", "n ", " t", " m", "ma")
    }


@pytest.mark.parametrize("token_hash", TOKEN_HASHES.values(), ids=TOKEN_HASHES)
@pytest.mark.parametrize("width", ["as the hash", 64])
@pytest.mark.parametrize("features", [shingles, str.split], ids=["shingles", "words"])
def test_cats_are_nearer_to_cats_than_to_ice_cream(
    features: Callable[[str], Collection[str]], width: int | str, token_hash: TokenHash
) -> None:
    """All features and hashes are tested, at the width of the hash and at the width of fingerprints."""

    bits, function = (64, token_hash.of_bytes) if width == 64 else (token_hash.bits, token_hash.function)
    mat, other_mat, ice = (
        simhash([(each, 1) for each in features(phrase)], width=bits, token_hash=function)
        for phrase in (CAT_ON_THE_MAT, CAT_ON_A_MAT, ICE_CREAM)
    )
    assert (mat ^ other_mat).bit_count() < min((mat ^ ice).bit_count(), (other_mat ^ ice).bit_count())


@pytest.mark.parametrize("profile", [CLASSIC, KEYWORDS], ids=lambda profile: profile.name)
@pytest.mark.parametrize("segmenter", [Jieba(), UnicodeWords(), NGrams(2)], ids=lambda each: each.name)
def test_fingerprints_of_cats_are_nearer_than_ice_cream(profile: Profile, segmenter: Segmenter) -> None:
    phrases = [CAT_ON_THE_MAT, CAT_ON_A_MAT, ICE_CREAM]
    found = Fingerprinter(profile.with_changes(segmenter=segmenter)).fingerprint(phrases).signatures
    assert distance_bits(found[0], found[1]) < distance_bits(found[:2], found[2]).min()


@pytest.mark.parametrize("degrees", [2, 10, 30, 60, 90, 120, 150, 178])
def test_share_of_differing_bits_is_proportional_to_the_angle(degrees: int) -> None:
    """Charikar, STOC 2002: P[bit differs] = angle / π; `python -m benchmarks angle` draws this line.

    All bits are independent of each other, since each pair has its own words, so the share has the standard
    error of as many coin tosses. The seeds are fixed, so the test either always or never fails.
    """
    pairs = 150
    random = np.random.default_rng(degrees)
    share = share_of_random_pairs(np.radians(degrees), words=300, pairs=pairs, random=random)
    expected = degrees / 180
    assert abs(share - expected) < 4 * (expected * (1 - expected) / (64 * pairs)) ** 0.5
