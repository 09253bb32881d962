"""How texts are cut into words: each segmenter, and one of the user's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import SettingError
from esdedup.text.normalise import normalise
from esdedup.text.segmenters import CustomSegmenter, Jieba, NGrams, Segmenter, UnicodeWords, get_segmenter


@pytest.mark.parametrize(
    ("segmenter", "text", "words"),
    [
        (Jieba(), "地铁开通了 long-term", ["地铁", "开通", "了", " ", "long", "-", "term"]),
        (Jieba(), "Äpfel", ["ä", "pfel"]),
        (UnicodeWords(), "cat's 1,000.5 m² on 3rd st.", ["cat", "s", "1,000.5", "m2", "on", "3rd", "st"]),
        (UnicodeWords(), "Überall: naïve ΣΊΣΥΦΟΣ!", ["überall", "naïve", "σίσυφοσ"]),
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
def test_known_cuts(segmenter: Segmenter, text: str, words: list[str]) -> None:
    (normal,) = normalise([text])
    assert list(segmenter.cut(normal)) == words


@given(st.text())
def test_unicode_words_have_every_letter_and_digit_once_in_order(text: str) -> None:
    (normal,) = normalise([text])
    words = UnicodeWords().cut(normal)
    assert all(words)
    # Marks and signs within numbers may be in words; letters and digits must be.
    kept = [each for word in words for each in word if each.isalnum()]
    assert kept == [each for each in normal if each.isalnum()]


@given(st.text(), st.integers(1, 5))
def test_n_grams_overlap_in_all_letters_but_one(text: str, size: int) -> None:
    (normal,) = normalise([text])
    grams = NGrams(size).cut(normal)
    joined = "".join([each[0] for each in grams] + [each[1:] for each in grams[-1:]])
    # Marks may be in grams; letters and digits must be.
    assert [each for each in joined if each.isalnum()] == [each for each in normal if each.isalnum()]
    assert len(grams) <= 1 or {len(each) for each in grams} == {size}


@pytest.mark.parametrize("segmenter", [Jieba(), UnicodeWords(), NGrams(3), NGrams(64)])
def test_a_segmenter_is_found_by_its_name(segmenter: Segmenter) -> None:
    assert get_segmenter(segmenter.name) == segmenter


@pytest.mark.parametrize("name", ["", "3-gram", "0-grams", "65-grams", "03-grams", "Jieba", "spaces"])
def test_an_unknown_segmenter(name: str) -> None:
    with pytest.raises(SettingError, match="jieba, words, and 1-grams to 64-grams"):
        get_segmenter(name)


@pytest.mark.parametrize("size", [0, 65, -1])
def test_n_grams_of_no_sensible_length(size: int) -> None:
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
def test_a_segmenter_of_ones_own_has_a_name_of_its_own(name: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        CustomSegmenter(name, str.split)


def test_a_segmenter_that_returns_no_words_is_refused() -> None:
    with pytest.raises(SettingError, match=r"'bytes' returned b'a', which is not a string"):
        CustomSegmenter("bytes", lambda text: [text.encode()]).cut("a")  # type: ignore[list-item]
    with pytest.raises(SettingError, match="'whole' returned 'a b', which is no list of words"):
        CustomSegmenter("whole", lambda text: text).cut("a b")
    with pytest.raises(SettingError, match="'none' returned None, which is no list of words"):
        CustomSegmenter("none", lambda _: None).cut("a b")  # type: ignore[arg-type, return-value]
