"""Segmenting and hashing words, and profiles that change the defaults."""

import pickle
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile, SettingError
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import signed_sums, simhash
from esdedup.text.hashing import (
    TOKEN_HASHES,
    TokenHash,
    crc32,
    get_token_hash,
    mixed,
    murmur64,
    python2,
    times33,
)
from esdedup.text.segmenters import CustomSegmenter, Jieba, NGrams, Segmenter, UnicodeWords, get_segmenter
from esdedup.text.weights import WEIGHT_SCALE, Tf
from tests.support.normal_forms import normalise
from tests.unit.test_fingerprinter import EN, ZH, names


@pytest.mark.parametrize(
    ("segmenter", "text", "words"),
    [
        (Jieba(), "地铁开通了 long-term", ["地铁", "开通", "了", " ", "long", "-", "term"]),
        (Jieba(), "Äpfel", ["apfel"]),
        (UnicodeWords(), "cat's 1,000.5 m² on 3rd st.", ["cat", "s", "1,000.5", "m2", "on", "3rd", "st"]),
        (UnicodeWords(), "Überall: naïve ΣΊΣΥΦΟΣ!", ["uberall", "naive", "σισυφοσ"]),
        (UnicodeWords(), "हिन्दी में", ["हिन्दी", "में"]),
        (UnicodeWords(), "地铁开通了，真好", ["地铁开通了", "真好"]),
        (UnicodeWords(), "snake_case a--b , ,", ["snake", "case", "a", "b"]),
        (UnicodeWords(), "", []),
        (NGrams(3), "How r u?", ["how", "owr", "wru"]),
        (NGrams(3), "€ 1,000.5", ["100", "000", "005"]),
        (NGrams(2), "地铁，开通", ["地铁", "铁开", "开通"]),
        (NGrams(1), "ab", ["a", "b"]),
        (NGrams(5), "abc", ["abc"]),
        (NGrams(5), "...", []),
        (CustomSegmenter("lines", str.split), "a b c", ["a", "b", "c"]),
    ],
)  # fmt: skip
def test_texts_are_cut_into_the_expected_words(segmenter: Segmenter, text: str, words: list[str]) -> None:
    (normal,) = normalise([text])
    assert list(segmenter.cut(normal)) == words


@given(st.text())
def test_unicode_words_cover_each_alphanumeric_once_in_order(text: str) -> None:
    (normal,) = normalise([text])
    words = UnicodeWords().cut(normal)
    assert all(words)
    # Words may contain marks, and punctuation within numbers; they must contain all letters and digits.
    kept = [each for word in words for each in word if each.isalnum()]
    assert kept == [each for each in normal if each.isalnum()]


@given(st.text(), st.integers(1, 5))
def test_n_grams_overlap_in_all_letters_but_one(text: str, size: int) -> None:
    (normal,) = normalise([text])
    grams = NGrams(size).cut(normal)
    joined = "".join([each[0] for each in grams] + [each[1:] for each in grams[-1:]])
    # N-grams may contain marks; they must contain all letters and digits.
    assert [each for each in joined if each.isalnum()] == [each for each in normal if each.isalnum()]
    assert len(grams) <= 1 or {len(each) for each in grams} == {size}


@pytest.mark.parametrize("segmenter", [Jieba(), UnicodeWords(), NGrams(3), NGrams(64)])
def test_a_segmenter_is_found_by_its_name(segmenter: Segmenter) -> None:
    assert get_segmenter(segmenter.name) == segmenter


@pytest.mark.parametrize("name", ["", "3-gram", "0-grams", "65-grams", "03-grams", "Jieba", "spaces"])
def test_an_unknown_segmenter_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="jieba, words, and 1-grams to 64-grams"):
        get_segmenter(name)


@pytest.mark.parametrize("size", [0, 65, -1])
def test_invalid_lengths_of_n_grams_are_refused(size: int) -> None:
    with pytest.raises(SettingError, match="from 1 to 64"):
        NGrams(size)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "needs a name"),
        ("jieba", "exists"),
        ("jieba-1", "exists"),
        ("words", "exists"),
        ("2-grams", "exists"),
    ],
)
def test_a_custom_segmenter_needs_a_unique_name(name: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        CustomSegmenter(name, str.split)


def test_a_segmenter_must_return_a_list_of_strings() -> None:
    with pytest.raises(SettingError, match=r"'bytes' returned b'a', which is not a string"):
        CustomSegmenter("bytes", lambda text: [text.encode()]).cut("a")  # type: ignore[list-item]
    with pytest.raises(SettingError, match="'whole' returned 'a b', which is not a list of words"):
        CustomSegmenter("whole", lambda text: text).cut("a b")
    with pytest.raises(SettingError, match="'none' returned None, which is not a list of words"):
        CustomSegmenter("none", lambda _: None).cut("a b")  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("function", "token", "value"),
    [
        # From the reference implementation: MurmurHash3_x64_128 with seed 0.
        (murmur64, "hello", 0xCBD8A7B341BD9B02),
        # The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
        (crc32, "123456789", 0xCBF43926),
        (crc32, "", 0),
        # As printed by 64-bit Python 2; the value of "abc" is also in CPython's test_hash.py.
        (python2, "", 0),
        (python2, "a", 12_416_037_344),
        (python2, "abc", 1_453_079_729_188_098_211),
        (python2, "hello", 840_651_671_246_116_861),
        # Computed by the hash's definition; the emoji is one code point, not two UTF-16 units or four bytes.
        (python2, "😀", (1_000_003 * (0x1F600 << 7) ^ 0x1F600) ^ 1),
        # Published with implementations of djb2.
        (times33, "", 5381),
        (times33, "Algorithms", 3_782_405_311),
        (times33, "scramble bits", 1_609_059_040),
    ],
)
def test_hashes_have_their_published_values(function: Callable[[bytes], int], token: str, value: int) -> None:
    assert function(token.encode()) == value


def test_murmur3s_finalizer_extends_32_bit_hashes() -> None:
    # Values of `fmix64` in the reference implementation.
    assert mixed(np.array([0, 1], np.uint64)).tolist() == [0, 0xB456BCFC34C2CB2C]
    hashes = TOKEN_HASHES["times33"].of(["", "Algorithms"])
    assert hashes.tolist() == mixed(np.array([5381, 3_782_405_311], np.uint64)).tolist()
    # A hash of 64 bits is used unchanged.
    assert TOKEN_HASHES["murmur3"].of(["hello"]).tolist() == [0xCBD8A7B341BD9B02]


@given(st.sets(st.integers(0, 2**32 - 1), min_size=2))
def test_different_32_bit_hashes_stay_different(values: set[int]) -> None:
    ours = TokenHash("own", int, bits=32)
    assert len(set(ours.of([str(value) for value in values]).tolist())) == len(values)


@pytest.mark.slow
def test_every_bit_of_an_extended_hash_is_balanced() -> None:
    """Each bit is set in half of the hashes, within 5 standard errors, also if 32 bits were extended to 64.

    Python 2's 64-bit hash is the exception: it is used unchanged, and words with the same beginning have
    similar upper bits.
    """
    words = [f"word {number}" for number in range(4_000)]
    for token_hash in TOKEN_HASHES.values():
        ones = [np.mean(token_hash.of(words) >> np.uint64(bit) & np.uint64(1)) for bit in range(64)]
        is_fair = np.abs(np.array(ones) - 0.5).max() < 5 * 0.5 / len(words) ** 0.5
        assert is_fair == (token_hash.name != "python2"), token_hash.name


@pytest.mark.parametrize("value", [-1, 1 << 8, 1.0, True, None])
def test_hash_values_out_of_range_are_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"the hash 'own' returned .* for 'a': .* from 0 to 2\^8 - 1"):
        TokenHash("own", lambda token: value, bits=8).of(["a"])  # type: ignore[arg-type,return-value]


def test_invalid_names_and_sizes_of_hashes_are_refused() -> None:
    with pytest.raises(SettingError, match="needs a name"):
        TokenHash("", crc32)
    for bits in (0, 65):
        with pytest.raises(SettingError, match="1 to 64"):
            TokenHash("own", crc32, bits=bits)
    with pytest.raises(SettingError, match="no hash 'md5'; there are murmur3, crc32, python2, times33"):
        get_token_hash("md5")


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
    "classic python2": (
        CLASSIC.with_changes(token_hash=TOKEN_HASHES["python2"]), "25c0d08785dc0809", "817768342ec36a71",
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
def test_fingerprints_match_the_golden_vectors(profile: Profile, zh: str, en: str) -> None:
    """As in `test_fingerprinter.py`, a change here makes existing fingerprints incomparable."""
    assert names(Fingerprinter(profile), [ZH, EN]) == [zh, en]


@pytest.mark.parametrize("name", ["classic 2-grams", "keywords times33", "classic adler32"])
def test_fingerprints_are_simhashes_of_the_words_shown(name: str) -> None:
    """The simhashes are computed independently, from the weighted words and the token hash."""
    profile = CHANGED[name][0]
    fingerprinter = Fingerprinter(profile)
    for text in (ZH, EN):
        again = simhash(
            ((each.word, round(each.weight * WEIGHT_SCALE)) for each in fingerprinter.features(text)),
            token_hash=profile.token_hash.of_bytes,
        )
        assert [f"{again:016x}"] == names(fingerprinter, [text])


@pytest.mark.parametrize("zero_bit", [0, 1])
def test_the_profile_determines_bits_whose_weights_cancel(zero_bit: int) -> None:
    sums = signed_sums([("apple", 1), ("pear", 1)])
    assert set(sums) == {-2, 0, 2}
    words = CLASSIC.with_changes(segmenter=UnicodeWords(), weighting=Tf())
    expected = "".join("1" if each > -zero_bit else "0" for each in sums)
    found = names(Fingerprinter(words.with_changes(zero_bit=zero_bit)), ["apple pear"])
    assert found == [f"{int(expected, 2):016x}"]


def test_profile_labels_are_distinct_and_never_change() -> None:
    assert CLASSIC.with_changes(segmenter=Jieba(), token_hash=TOKEN_HASHES["murmur3"]).label == "classic-4"
    labels = {name: profile.label for name, (profile, *_) in CHANGED.items()}
    assert len(set(labels.values())) == len(labels)
    assert labels["classic words"] == "classic-4-1a3ed58f"
    assert labels["classic 2-grams"] == "classic-4-2162f912"
    assert labels["classic split"] == "classic-4-92fb22da"
    assert labels["classic crc32"] == "classic-4-e8a12b91"
    assert labels["classic adler32"] == "classic-4-8011fd2a"
    # If the same function is declared with more bits, the label is different.
    longer = CLASSIC.with_changes(token_hash=TokenHash("adler32", zlib.adler32))
    assert longer.label != labels["classic adler32"]


def test_verified_accepts_no_segmenter_or_token_hash() -> None:
    with pytest.raises(SettingError, match=r"the segmenter 'words' contradicts .* use 'longest-sentence'"):
        VERIFIED.with_changes(segmenter=UnicodeWords())
    with pytest.raises(
        SettingError, match=r"the hash 'crc32' contradicts .* 'halves', which does not hash words"
    ):
        VERIFIED.with_changes(token_hash=TOKEN_HASHES["crc32"])
    # The default segmenter is accepted.
    assert VERIFIED.with_changes(segmenter=Jieba()) == VERIFIED


def test_names_of_built_in_choices_cannot_be_reused() -> None:
    class Words:
        name = "words"

        def cut(self, text: str) -> list[str]:
            return text.split()

    with pytest.raises(SettingError, match="the segmenter 'words' already exists"):
        CLASSIC.with_changes(segmenter=Words())
    with pytest.raises(SettingError, match="the hash 'crc32' already exists"):
        CLASSIC.with_changes(token_hash=TokenHash("crc32", zlib.adler32, bits=32))


@pytest.mark.parametrize("name", CHANGED)
def test_a_profile_survives_pickling(name: str) -> None:
    profile = CHANGED[name][0]
    assert pickle.loads(pickle.dumps(profile)).label == profile.label


def test_a_failing_hash_leaves_no_partial_state() -> None:
    def fails_once(token: bytes) -> int:
        return failures.pop() if failures else zlib.adler32(token)

    failures: list[int] = [-1]
    fingerprinter = Fingerprinter(CLASSIC.with_changes(token_hash=TokenHash("adler32", fails_once, bits=32)))
    with pytest.raises(SettingError, match="returned -1"):
        names(fingerprinter, [EN])
    assert names(fingerprinter, [EN]) == [CHANGED["classic adler32"][2]]
