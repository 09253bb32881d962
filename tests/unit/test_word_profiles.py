"""Profiles with another segmenter or hash of words: their bits, their labels, what contradicts them."""

import pickle
import zlib

import pytest

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile, SettingError
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import simhash
from esdedup.text.hashing import TOKEN_HASHES, TokenHash
from esdedup.text.segmenters import CustomSegmenter, Jieba, NGrams, UnicodeWords
from esdedup.text.weights import WEIGHT_SCALE
from tests.unit.test_fingerprinter import EN, ZH, names

SPLIT = CustomSegmenter("split", str.split)
ADLER = TokenHash("adler32", zlib.adler32, bits=32)
CHANGED = {
    "classic words": (CLASSIC.with_changes(segmenter=UnicodeWords()), "2c53040806018108", "f3c8460383427068"),
    "classic 2-grams": (CLASSIC.with_changes(segmenter=NGrams(2)), "3c6c717fadc97b0f", "72149b3e346cf6d2"),
    "classic split": (CLASSIC.with_changes(segmenter=SPLIT), "06db81511bf40801", "f3c8460383427068"),
    "keywords words": (
        KEYWORDS.with_changes(segmenter=UnicodeWords()), "2d5fed18061b8179", "639a6206834040ca",
    ),
    "keywords 2-grams": (KEYWORDS.with_changes(segmenter=NGrams(2)), "3c647173a9817def", "72549b3f342676f2"),
    "classic crc32": (
        CLASSIC.with_changes(token_hash=TOKEN_HASHES["crc32"]), "121c6619dd20b0be", "00f2a4deca63ea2d",
    ),
    "classic java31": (
        CLASSIC.with_changes(token_hash=TOKEN_HASHES["java31"]), "3a41e0a8ae3609c4", "8a62c41867f27df4",
    ),
    "classic times33": (
        CLASSIC.with_changes(token_hash=TOKEN_HASHES["times33"]), "7cd640f50e7be28c", "fac22bd6c545bccf",
    ),
    "classic adler32": (CLASSIC.with_changes(token_hash=ADLER), "747a1a3ea51d83b5", "722d0efd29ed2c3d"),
    "keywords times33": (
        KEYWORDS.with_changes(token_hash=TOKEN_HASHES["times33"]), "6c7e04f50ffbee9c", "6ee4a392c9553cc9",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("profile", "zh", "en"), CHANGED.values(), ids=CHANGED)
def test_fingerprints_are_the_golden_vectors(profile: Profile, zh: str, en: str) -> None:
    """As in `test_fingerprinter.py`: a change here is a change of bits."""
    assert names(Fingerprinter(profile), [ZH, EN]) == [zh, en]


@pytest.mark.parametrize("name", ["classic 2-grams", "keywords times33", "classic adler32"])
def test_fingerprints_are_simhashes_of_the_words_shown(name: str) -> None:
    """By the simhash of weighted tokens, which takes any hash."""
    profile = CHANGED[name][0]
    fingerprinter = Fingerprinter(profile)
    for text in (ZH, EN):
        again = simhash(
            ((each.word, round(each.weight * WEIGHT_SCALE)) for each in fingerprinter.features(text)),
            token_hash=lambda token: int(profile.token_hash.of([token.decode()])[0]),
        )
        assert [f"{again:016x}"] == names(fingerprinter, [text])


def test_labels_tell_segmenters_and_hashes_apart_and_do_not_change() -> None:
    assert CLASSIC.with_changes(segmenter=Jieba(), token_hash=TOKEN_HASHES["murmur3"]).label == "classic-2"
    labels = {name: profile.label for name, (profile, *_) in CHANGED.items()}
    assert len(set(labels.values())) == len(labels)
    assert labels["classic words"] == "classic-2-7f70cc34"
    assert labels["classic 2-grams"] == "classic-2-2dcca1e3"
    assert labels["classic split"] == "classic-2-25b14b0f"
    assert labels["classic crc32"] == "classic-2-8020db9f"
    assert labels["classic adler32"] == "classic-2-08f7ecbc"
    # The same function, said to have more bits, gives others.
    longer = CLASSIC.with_changes(token_hash=TokenHash("adler32", zlib.adler32))
    assert longer.label != labels["classic adler32"]


def test_verified_has_no_words() -> None:
    with pytest.raises(SettingError, match=r"the segmenter 'words' contradicts .* use 'longest-sentence'"):
        VERIFIED.with_changes(segmenter=UnicodeWords())
    with pytest.raises(
        SettingError, match=r"the hash 'crc32' contradicts .* 'halves', which does not hash words"
    ):
        VERIFIED.with_changes(token_hash=TOKEN_HASHES["crc32"])
    # What is the default anyway contradicts nothing.
    assert VERIFIED.with_changes(segmenter=Jieba()) == VERIFIED


def test_no_name_has_two_meanings() -> None:
    class Words:
        name = "words"

        def cut(self, text: str) -> list[str]:
            return text.split()

        def can_yield(self, word: str) -> bool:
            return True

    with pytest.raises(SettingError, match="the segmenter 'words' exists"):
        CLASSIC.with_changes(segmenter=Words())
    with pytest.raises(SettingError, match="the hash 'crc32' exists"):
        CLASSIC.with_changes(token_hash=TokenHash("crc32", zlib.adler32, bits=32))


@pytest.mark.parametrize("name", CHANGED)
def test_a_profile_survives_pickling(name: str) -> None:
    profile = CHANGED[name][0]
    assert pickle.loads(pickle.dumps(profile)).label == profile.label


def test_a_function_that_fails_leaves_no_half_learned_words() -> None:
    def fails_once(token: bytes) -> int:
        return failures.pop() if failures else zlib.adler32(token)

    failures: list[int] = [-1]
    fingerprinter = Fingerprinter(CLASSIC.with_changes(token_hash=TokenHash("adler32", fails_once, bits=32)))
    with pytest.raises(SettingError, match="returned -1"):
        names(fingerprinter, [EN])
    assert names(fingerprinter, [EN]) == [CHANGED["classic adler32"][2]]
