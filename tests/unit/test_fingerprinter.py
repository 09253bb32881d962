"""Fingerprints of texts: simhashes, sketches, minhashes and content hashes."""

import dataclasses
import json
import re
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile, SettingError, get_profile
from esdedup._core import PassageFilter
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.overrides import Overrides
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import PROFILES
from esdedup.fingerprint.signature import Signatures
from esdedup.fingerprint.simhash import (
    from_hex,
    simhash,
    to_hex,
)
from esdedup.neighbours.relation import relation_of
from esdedup.text.hashing import murmur64
from esdedup.text.parsed import ParsedTexts
from esdedup.text.segmenters import JIEBA
from esdedup.text.weights import Tf, WordTable
from tests import sample
from tests.support.comparison import resemblance, unshared
from tests.support.normal_forms import normalise
from tests.support.wording import numbers, words

ZH = "云陵市地铁七号线昨天清晨开始试运行。首班列车五时五十分从北郊车辆段发出，乘坐iPhone扫码即可进站！"
EN = "The ferry line has ordered four electric ships. Each of them will carry ninety cars & 400 passengers."


def one(fingerprinter: Fingerprinter, text: str) -> str | None:
    return names(fingerprinter, [text])[0]


def names(fingerprinter: Fingerprinter, texts: list[str]) -> list[str | None]:
    result = fingerprinter.fingerprint(texts)
    ids = relation_of(fingerprinter.profile).ids(result.signatures)
    return [name if exists else None for name, exists in zip(ids, result.exists, strict=True)]


@pytest.mark.parametrize(
    ("profile", "text", "fingerprint"),
    [
        ("verified", ZH, "e98ce0c88ca4ed7a2ff689ebb6e9b6d9"),
        ("verified", EN, "5edd9d49961d8bc2d5bb135547b40811"),
        ("classic", ZH, "f8ecc0f1a8e9d775"),
        ("classic", EN, "f3c8460383427068"),
        ("keywords", ZH, "f83440b36a618f6d"),
        ("keywords", EN, "639a6206834040ca"),
    ],
    ids=["verified-zh", "verified-en", "classic-zh", "classic-en", "keywords-zh", "keywords-en"],
)
def test_fingerprints_match_the_golden_vectors(profile: str, text: str, fingerprint: str) -> None:
    """A change here makes the fingerprints of existing indices incomparable with new ones."""
    assert one(Fingerprinter(get_profile(profile)), text) == fingerprint


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_content_hashes_match_the_golden_vectors(profile: Profile) -> None:
    """The hashes are the same in every profile. A change here makes forests forget every content hash."""
    golden = {
        EN: 0x2AC33490CF679926,
        ZH: 0x4DE6689D1FAB0601,
        "\U00020000 wide": 0x9276F1904407E735,
        "": 0,
        "<p>\u00dcn\u00ef</p>": 0xB6B8D6C94D1C9112,
    }
    found = Fingerprinter(profile).fingerprint([*golden, *reversed(golden)]).content_hashes.tolist()
    assert found == [*golden.values(), *reversed(golden.values())]


def everything(texts: list[str]) -> PassageFilter:
    """Return a filter that omits all passages of these texts."""
    hashes = ParsedTexts.of(texts, max_length=10_000).passages.hashes.tolist()
    return Boilerplate().filter(overrides=Overrides(dict.fromkeys([(each, None) for each in hashes], True)))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_a_profile_that_keeps_boilerplate_leaves_nothing_out(profile: Profile) -> None:
    texts = [each["text"] for each in sample.articles(5)]
    whole = Fingerprinter(profile).fingerprint(texts)
    kept = Fingerprinter(profile.with_changes(keep_boilerplate=True)).fingerprint(
        texts, passage_filter=everything(texts)
    )
    assert kept.signatures.tobytes() == whole.signatures.tobytes()
    emptied = Fingerprinter(profile).fingerprint(texts, passage_filter=everything(texts))
    assert not emptied.alphanumerics.any()
    assert emptied.exists.tolist() == [profile is VERIFIED] * len(texts)


def test_pure_boilerplate_resembles_only_its_copies() -> None:
    texts = [EN, EN.upper(), EN + " 7", "¡Hola, mundo!", "12345"]
    whole = Fingerprinter(VERIFIED).fingerprint(texts)
    emptied = Fingerprinter(VERIFIED).fingerprint(texts, passage_filter=everything(texts))
    assert emptied.content_hashes.tolist() == whole.content_hashes.tolist()
    assert emptied.exists.tolist() == whole.exists.tolist() == [True, True, True, True, False]
    assert emptied.signatures[0] == emptied.signatures[1]
    found = {key for each in (whole, emptied) for key in each.signatures["representatives"][:4].ravel()}
    assert len({*emptied.signatures["representatives"][:4].ravel()}) == 3
    assert len(found) == 3 + len({*whole.signatures["representatives"][:4].ravel()})


def test_the_sample_corpus_matches_its_golden_vectors() -> None:
    """If only the grammar of the sample corpus has changed, update the vectors here."""
    texts = [article["text"] for article in sample.articles(300)]
    sketched = Fingerprinter(VERIFIED).fingerprint(texts).signatures.tobytes()
    assert mmh3.hash_bytes(sketched).hex() == "2155847f78731d970aaa4432e428874b"
    for profile, expected in (("classic", "ae26d91dad3e9fca"), ("keywords", "2a03da28af14af66")):
        bits = Fingerprinter(get_profile(profile)).fingerprint(texts).signatures
        assert (
            f"{np.bitwise_xor.reduce(bits * np.arange(1, len(bits) + 1, dtype=np.uint64)):016x}" == expected
        )


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
@given(batch=st.lists(st.text(st.sampled_from("云陵地铁开通. abc dog 12。\n<p>&"), max_size=60), max_size=10))
def test_a_fingerprint_depends_on_its_text_alone(profile: object, batch: list[str]) -> None:
    fingerprinter = Fingerprinter(profile)  # type: ignore[arg-type]
    fresh = Fingerprinter(profile)  # type: ignore[arg-type]
    assert [one(fresh, text) for text in batch] == names(fingerprinter, batch)


@pytest.mark.parametrize("text", ["", "   \n", "!!! ???", "😀😀😀😀😀😀😀", "ok", "转发微博", "12345"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_texts_without_content_have_no_fingerprint(profile: object, text: str) -> None:
    assert one(Fingerprinter(profile), text) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "好" * 1_000_000, "x\x00" * 100, "\ud800text that is long enough"]
)
def test_unusual_texts_have_a_fingerprint(text: str) -> None:
    for profile in PROFILES.values():
        assert one(Fingerprinter(profile), text) is not None


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_only_the_beginning_of_a_long_text_is_fingerprinted(profile: Profile) -> None:
    fingerprinter = Fingerprinter(profile.with_changes(max_text_length=len(EN)))
    # Markup does not count towards the length, and one character may expand into 18.
    texts = [EN, f"{EN} More. And more.", f"<b>{EN}</b>", EN[:-1] + "\ufdfa", ""]
    found = fingerprinter.fingerprint(texts)
    assert found.are_cut.tolist() == [False, True, False, True, False]
    assert found.signatures[0] == found.signatures[1]
    assert found.alphanumerics.tolist() == [*[sum(map(str.isalnum, EN))] * 4, 0]
    assert fingerprinter.passages(texts[1]) == fingerprinter.passages(EN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["\ufdfa", "x", "好。", "a1 "], ids=["expands", "letter", "sentence", "numbers"]
)
@pytest.mark.parametrize(("count", "length"), [(4, 1_000_000), (48, 4_000)])
def test_memory_is_bounded_for_long_texts(unit: str, count: int, length: int) -> None:
    """The bound is twice the figure documented at `MAX_TEXT_LENGTH`, plus the size of the visible texts."""
    fingerprinter = Fingerprinter(VERIFIED)
    fingerprinter.fingerprint([unit * 10_000])
    texts = [unit * (length // len(unit))] * count
    tracemalloc.start()
    try:
        fingerprinter.fingerprint(texts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6


def test_script_and_width_variants_get_equal_fingerprints() -> None:
    fingerprinter = Fingerprinter(CLASSIC)
    assert one(fingerprinter, "雲陵市地鐵七號線昨天清晨開始試運行") == one(
        fingerprinter, "云陵市地铁七号线昨天清晨开始试运行"
    )
    assert one(fingerprinter, "ＡＢＣ １２３ ｗｏｒｄｓ") == one(fingerprinter, "abc 123 words")
    assert one(fingerprinter, "<p>Fish &amp; chips for <b>dinner</b></p>") == one(
        fingerprinter, "fish & chips for dinner"
    )


@pytest.mark.parametrize(
    ("sentence", "hashed"),
    [
        ("extraordinary circumstances everywhere and after", "extraordinary circumstances everywhere"),
        ("云陵市地铁七号线昨天清晨开始试运行", "云陵市"),
        ("1,000.5 (one thousand and a half) tons", "1,000.5 (one thousand"),
        ("only two", "only two"),
    ],
)
def test_long_sentences_are_shown_as_they_are_hashed(sentence: str, hashed: str) -> None:
    fingerprinter = Fingerprinter(dataclasses.replace(VERIFIED, max_sentence_length=3))
    texts = [f"Before it. {each}." for each in (sentence, hashed)]
    assert fingerprinter.passages(texts[0]) == ["before it", hashed]
    whole, shown = fingerprinter.fingerprint(texts).signatures["representatives"][:, 1]
    assert whole == shown


def test_keywords_uses_the_heaviest_words() -> None:
    text = "apple apple banana cherry date elderberry"
    few = Fingerprinter(
        KEYWORDS.with_changes(keyword_count=2, weighting=WordTable({"apple": 2, "date": 5}, default=1))
    )
    assert [(each.word, each.count, each.weight) for each in few.features(text)] == [
        ("date", 1, 5.0),
        ("apple", 2, 4.0),
    ]


def test_a_weighting_determines_the_weights_of_words() -> None:
    tf = Fingerprinter(CLASSIC.with_changes(weighting=Tf()))
    assert {each.word: each.weight for each in tf.features("one two two three")} == {
        "one": 1,
        "two": 2,
        "three": 1,
    }
    table = Fingerprinter(CLASSIC.with_changes(weighting=WordTable({"two": 0.5})))
    assert [(each.word, each.weight) for each in table.features("one two two three")] == [("two", 1.0)]
    folded = Fingerprinter(CLASSIC.with_changes(weighting=WordTable({"ＨＥＬＬＯ": 2})))
    assert [each.word for each in folded.features("Hello there")] == ["hello"]
    idf = {each.word: each.weight for each in Fingerprinter(CLASSIC).features("我们讨论蛋白质结构问题")}
    assert idf["蛋白质"] > idf["问题"]


def test_unknown_words_get_the_median_weight() -> None:
    features = Fingerprinter(CLASSIC).features("zyxwvut qwertzuiop asdfgh")
    assert {round(each.weight, 6) for each in features} == {11.954768}


@pytest.mark.parametrize(
    "weights", [{"a": -1}, {"a": "1"}, {"a": float("nan")}, {"a": True}, {"a": 1e9}, {"a": 1e-7}]
)
def test_weights_that_cannot_be_added_exactly_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        WordTable(weights)


@pytest.fixture(scope="module")
def jieba_cut() -> Callable[[str], list[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba

        jieba.setLogLevel("ERROR")
        jieba.initialize()
    return jieba.lcut  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "text",
    ["学习c++和c#语言 at&t", "长期long-term利率3.14%上升 a_b u.s. 2019-ncov", "1,000.5元-2.5%", "a..b --c"],
)
def test_compounds_are_segmented_as_in_jieba(jieba_cut: Callable[[str], list[str]], text: str) -> None:
    assert JIEBA.cut(text) == jieba_cut(text)


@pytest.mark.slow
def test_real_text_is_segmented_as_in_jieba(jieba_cut: Callable[[str], list[str]], shared: Path) -> None:
    for name, every in (("zh_news", 12), ("zh_short", 5), ("en_wire", 40)):
        with (shared / "data" / f"{name}.jsonl").open(encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines][::every]
        for text in normalise(texts):
            assert JIEBA.cut(text) == jieba_cut(text)


fingerprints = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=12), st.integers(1, 64))
def test_simhash_is_the_sign_of_the_signed_sums(tokens: list[tuple[str, int]], width: int) -> None:
    tokens = [(token, weight) for token, weight in tokens if token.isprintable()]
    expected = 0
    for bit in reversed(range(width)):
        total = sum(weight if murmur64(token.encode()) >> bit & 1 else -weight for token, weight in tokens)
        expected = expected << 1 | (total > 0)
    assert simhash(tokens, width=width) == expected


@given(st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 9))), st.randoms())
def test_the_order_of_tokens_does_not_matter(tokens: list[tuple[str, int]], random: object) -> None:
    shuffled = list(tokens)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert simhash(shuffled) == simhash(tokens)


def test_a_simhash_may_have_128_bits() -> None:
    assert simhash([("x", 1)], width=128, token_hash=lambda token: 1 << 127 | 5) == 1 << 127 | 5


@given(st.lists(fingerprints))
def test_hex_conversion_is_reversible(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    assert to_hex(array) == [f"{value:016x}" for value in values]
    assert from_hex(to_hex(array)).tolist() == values


def signatures(*texts: list[str]) -> Signatures:
    """Return the signatures of texts that consist of one sentence each."""
    return Fingerprinter(VERIFIED).fingerprint([f"{' '.join(text)}." for text in texts]).signatures


def test_estimated_resemblance_is_near_the_true_resemblance() -> None:
    errors = []
    for seed in range(300):
        size = (20, 60, 150, 1_000)[seed % 4]
        shared = size * (1 + seed % 9) // 10
        run = words(2 * size - shared + 1, seed)
        sketches = signatures(run[: size + 1], run[size - shared :])["sketch"]
        errors.append(resemblance(sketches[:1], sketches[1:])[0] - shared / (2 * size - shared))
    assert np.sqrt(np.mean(np.square(errors))) < 0.055
    assert abs(np.mean(errors)) < 0.01


def test_figures_that_differ_are_counted() -> None:
    """Every occurrence of a figure counts; the estimate tends to be too low."""
    text, figures = words(300, 1), numbers(40, 2)
    errors = []
    for count in (1, 2, 3, 5, 8, 12):
        for seed in range(3, 23):
            found = signatures(text + figures, text + numbers(count, seed) + figures[count:])
            assert found["figures"].tolist() == [40, 40]
            assert found["units"].tolist() == [680, 680]
            (ours, theirs) = found["figure_sketch"]
            errors.append(unshared(ours[None], theirs[None])[0] / 2 - count)
            if count == 1:
                assert errors[-1] in {-1, 0}
    assert -2 < np.mean(errors) < 0
    assert max(errors) <= 2
    often, once = signatures(["7", "7", "7", *text], ["7", *text])["figure_sketch"]
    assert (int(often) ^ int(once)).bit_count() == 2


def test_minhashes_are_equal_as_often_as_three_runs() -> None:
    shared = trials = 0
    for seed in range(300):
        run = words(141, seed)
        # Three runs are equal in both texts with probability (100 / 140)^3 = 0.36. The minhashes come after
        # the sentence and the four long runs.
        minhashes = signatures(run[:121], run[20:])["representatives"][:, 5:]
        shared += int((minhashes[0] == minhashes[1]).sum())
        trials += minhashes.shape[1]
    assert 0.3 < shared / trials < 0.42


def test_two_runs_are_enough_for_a_minhash() -> None:
    def count(run: list[str]) -> int:
        minhashes = signatures(run)["representatives"][0, 1:]
        return int(np.count_nonzero(minhashes & np.uint64(1)))

    shared = sum(count(words(13, seed)) for seed in range(100))
    # Twelve runs reach one given group of 24 with probability 0.4, two groups with 0.16, three with 0.06.
    assert 0.11 < shared / 100 / 8 < 0.21


@pytest.mark.parametrize(("share", "least"), [(0.5, 0.95), (0.35, 0.82)])
def test_an_excerpt_shares_a_long_run_with_its_text(share: float, least: float) -> None:
    """The excerpt contains one of five long runs with probability 1 - 0.5^5 = 0.97 or 1 - 0.65^5 = 0.88."""
    found = 0
    for seed in range(300):
        text = words(500, seed)
        size = round(share * len(text))
        start = seed * 13 % (len(text) - size)
        whole, part = signatures(text, text[start : start + size])["representatives"].tolist()
        found += bool(set(whole[1:6]) & set(part[1:6]))
    assert found / 300 >= least


# A word or a number.
WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_\u2e80-\U0010ffff]+|[\u2e80-\u9fff]")
# Punctuation, letters and digits of one to four bytes, and a digit beyond 16 bits.
texts = st.text(st.sampled_from("ab1 2.,:中文。\n\u0301\U00020000\U00011066"), max_size=12)


def hashed_words(text: str) -> list[str]:
    return [word for word in WORD.findall(text) if word[0].isalnum()]


def content_hashes(*batch: str) -> list[int]:
    ids: list[int] = ParsedTexts.of(batch, max_length=1_000).content_hashes.tolist()
    return ids


def test_a_text_cannot_be_forged_to_match_a_hash() -> None:
    """The last characters were chosen so that a mere sum of hashes is d6bee666a468af90 for both texts."""
    story = "The ferry to Greyholm is cancelled until Monday."
    forged = "Buy your new car today 暪懆湬煤戻吹惋咷夷煃楾楮变嗁婱囸"
    one, other = content_hashes(story, forged)
    assert one != other


@given(batch=st.lists(texts, max_size=5))
def test_a_content_hash_depends_on_its_text_alone(batch: list[str]) -> None:
    assert content_hashes(*batch) == [each for text in batch for each in content_hashes(text)]


@given(one=st.text(st.sampled_from("ab1 2.,:中文。"), max_size=9), data=st.data())
def test_texts_with_the_same_words_share_a_hash(one: str, data: st.DataObject) -> None:
    """Most of the drawn pairs differ only in the order of their characters."""
    other = data.draw(st.permutations(one).map("".join) | st.text(st.sampled_from("ab1 中"), max_size=9))
    spaced = " ".join(hashed_words(other))
    assert len(set(content_hashes(other, spaced, f"<p>{other}</p>!"))) == 1
    first, second = content_hashes(one, other)
    assert (first == second) == (hashed_words(one) == hashed_words(other))
