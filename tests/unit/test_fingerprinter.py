import dataclasses
import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, KEYWORDS, Profile, SettingError, get_profile, sample
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import PROFILES, VERIFIED
from esdedup.fingerprint.simhash import simhash
from esdedup.neighbours.relation import relation_of
from esdedup.text.normalise import normalise
from esdedup.text.parsed import Passages
from esdedup.text.segmenters import JIEBA
from esdedup.text.weights import WEIGHT_SCALE, Tf, WordTable

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
        ("verified", ZH, "ff773b1fab3c0d0091048b619e046738"),
        ("verified", EN, "ae6fe3acc8cb093f8ba8f9bd43ea20d5"),
        ("classic", ZH, "f8ecc0f1a8e9d775"),
        ("classic", EN, "f3c8460383427068"),
        ("keywords", ZH, "f83440b36a618f6d"),
        ("keywords", EN, "639a6206834040ca"),
    ],
    ids=["verified-zh", "verified-en", "classic-zh", "classic-en", "keywords-zh", "keywords-en"],
)
def test_fingerprints_are_the_golden_vectors(profile: str, text: str, fingerprint: str) -> None:
    """A change here is a change of bits: every index made before no longer compares."""
    assert one(Fingerprinter(get_profile(profile)), text) == fingerprint


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_pages_are_the_golden_vectors(profile: Profile) -> None:
    """As above: a change here lets a forest forget every page. They do not depend on the profile."""
    golden = {
        EN: 0x2AC33490CF679926,
        ZH: 0x4DE6689D1FAB0601,
        "\U00020000 wide": 0x9276F1904407E735,
        "": 0,
        "<p>\u00dcn\u00ef</p>": 0xEE26B3F3842BB957,
    }
    found = Fingerprinter(profile).fingerprint([*golden, *reversed(golden)]).pages.tolist()
    assert found == [*golden.values(), *reversed(golden.values())]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_a_profile_that_keeps_boilerplate_leaves_nothing_out(profile: Profile) -> None:
    def everything(passages: Passages, pages: object) -> np.ndarray:
        return np.ones(len(passages.hashes), bool)

    texts = [each["text"] for each in sample.articles(5)]
    whole = Fingerprinter(profile).fingerprint(texts)
    kept = Fingerprinter(profile.with_changes(keep_boilerplate=True)).fingerprint(texts, omit=everything)
    assert kept.signatures.tobytes() == whole.signatures.tobytes()
    assert not Fingerprinter(profile).fingerprint(texts, omit=everything).exists.any()


def test_a_page_is_the_words_that_readers_see() -> None:
    texts = [EN, f"<p>{EN.upper()}</p>\n", EN.replace(". ", " "), EN + "7", EN + "慡"]
    pages = Fingerprinter(VERIFIED).fingerprint(texts).pages.tolist()
    assert pages[0] == pages[1] == pages[2]
    assert len(set(pages[2:])) == 3


def test_golden_vector_of_the_sample_corpus() -> None:
    """As above, and with the grammar of the sample: who changes that alone writes new ones here."""
    texts = [article["text"] for article in sample.articles(300)]
    sketched = Fingerprinter(VERIFIED).fingerprint(texts).signatures.tobytes()
    assert mmh3.hash_bytes(sketched).hex() == "aa433965903fccf8f077f5702d0335dd"
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
def test_texts_that_tell_nothing_have_none(profile: object, text: str) -> None:
    assert one(Fingerprinter(profile), text) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "好" * 1_000_000, "x\x00" * 100, "\ud800text that is long enough"]
)
def test_odd_texts_have_one(text: str) -> None:
    for profile in PROFILES.values():
        assert one(Fingerprinter(profile), text) is not None


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_only_the_beginning_of_a_long_text_is_fingerprinted(profile: Profile) -> None:
    fingerprinter = Fingerprinter(profile.with_changes(max_text_length=len(EN)))
    # Markup does not count, and one character may unfold into 18.
    texts = [EN, f"{EN} More. And more.", f"<b>{EN}</b>", EN[:-1] + "\ufdfa", ""]
    found = fingerprinter.fingerprint(texts)
    assert found.are_cut.tolist() == [False, True, False, True, False]
    assert found.signatures[0] == found.signatures[1]
    assert found.letters.tolist() == [*[sum(map(str.isalnum, EN))] * 4, 0]
    assert fingerprinter.passages(texts[1]) == fingerprinter.passages(EN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["\ufdfa", "x", "好。", "a1 "], ids=["unfolds", "letter", "sentence", "numbers"]
)
@pytest.mark.parametrize(("count", "length"), [(4, 1_000_000), (48, 4_000)])
def test_memory_is_bounded_however_long_the_texts(unit: str, count: int, length: int) -> None:
    """Twice the figure in the docstring of `MAX_TEXT_LENGTH`, and room for the visible texts."""
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


def test_traditional_and_simplified_full_and_half_width_meet() -> None:
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
def test_what_is_shown_of_a_long_sentence_is_what_is_hashed(sentence: str, hashed: str) -> None:
    fingerprinter = Fingerprinter(dataclasses.replace(VERIFIED, max_sentence_length=3))
    texts = [f"Before it. {each}." for each in (sentence, hashed)]
    assert fingerprinter.passages(texts[0]) == ["before it", hashed]
    whole, shown = fingerprinter.fingerprint(texts).signatures["representatives"][:, 1]
    assert whole == shown


def test_features_add_up_to_the_fingerprint() -> None:
    for profile in (CLASSIC, KEYWORDS):
        fingerprinter = Fingerprinter(profile)
        for text in (ZH, EN):
            features = fingerprinter.features(text)
            again = simhash((each.word, round(each.weight * WEIGHT_SCALE)) for each in features)
            assert f"{again:016x}" == one(fingerprinter, text)


def test_keywords_takes_the_heaviest() -> None:
    text = "apple apple banana cherry date elderberry"
    few = Fingerprinter(
        KEYWORDS.with_changes(keyword_count=2, weighting=WordTable({"apple": 2, "date": 5}, default=1))
    )
    assert [(each.word, each.count, each.weight) for each in few.features(text)] == [
        ("date", 1, 5.0),
        ("apple", 2, 4.0),
    ]


def test_a_weighting_decides_the_weight_of_words() -> None:
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


def test_unknown_words_weigh_the_median() -> None:
    features = Fingerprinter(CLASSIC).features("zyxwvut qwertzuiop asdfgh")
    assert {round(each.weight, 6) for each in features} == {11.954768}


@pytest.mark.parametrize(
    "weights", [{"a": -1}, {"a": "1"}, {"a": float("nan")}, {"a": True}, {"a": 1e9}, {"a": 1e-7}]
)
def test_weights_that_do_not_add_up_exactly_are_refused(weights: dict[str, float]) -> None:
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
def test_compounds_are_cut_like_jieba(jieba_cut: Callable[[str], list[str]], text: str) -> None:
    assert JIEBA.cut(text) == jieba_cut(text)


@pytest.mark.slow
def test_real_text_is_cut_like_jieba(jieba_cut: Callable[[str], list[str]], shared: Path) -> None:
    for name, every in (("zh_news", 12), ("zh_short", 5), ("en_wire", 40)):
        with (shared / "data" / f"{name}.jsonl").open(encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines][::every]
        for text in normalise(texts):
            assert JIEBA.cut(text) == jieba_cut(text)
