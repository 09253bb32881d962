import re

from hypothesis import given
from hypothesis import strategies as st

from esdedup.text.parsed import ParsedTexts

# A token.
WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_\u2e80-\U0010ffff]+|[\u2e80-\u9fff]")
# Signs, letters and digits of one, two and four bytes, and a digit beyond 16 bits.
texts = st.text(st.sampled_from("ab1 2.,:中文。\n\u0301\U00020000\U00011066"), max_size=12)


def words(text: str) -> list[str]:
    return [word for word in WORD.findall(text) if word[0].isalnum()]


def page_ids(*batch: str) -> list[int]:
    ids: list[int] = ParsedTexts.of(batch, max_length=1_000).pages.tolist()
    return ids


def test_no_text_can_be_calculated_that_has_the_id_of_another() -> None:
    """The last characters solve an equation: with a sum of hashes as the id, both were d6bee666a468af90."""
    story = "The ferry to Greyholm is cancelled until Monday."
    forged = "Buy your new car today 暪懆湬煤戻吹惋咷夷煃楾楮变嗁婱囸"
    one, other = page_ids(story, forged)
    assert one != other


def test_characters_beyond_the_first_plane_are_told_from_those_in_it() -> None:
    deseret, cyrillic = page_ids("\U00010448" * 3, "\u0448" * 3)
    assert deseret != cyrillic


@given(batch=st.lists(texts, max_size=5))
def test_an_id_depends_on_its_text_alone(batch: list[str]) -> None:
    assert page_ids(*batch) == [each for text in batch for each in page_ids(text)]


@given(one=st.text(st.sampled_from("ab1 2.,:中文。"), max_size=9), data=st.data())
def test_texts_have_one_id_if_they_have_the_same_words(one: str, data: st.DataObject) -> None:
    """Most other texts are nearly the same, and differ in signs and spaces."""
    other = data.draw(st.permutations(one).map("".join) | st.text(st.sampled_from("ab1 中"), max_size=9))
    spaced = " ".join(words(other))
    assert len(set(page_ids(other, spaced, f"<p>{other}</p>!"))) == 1
    first, second = page_ids(one, other)
    assert (first == second) == (words(one) == words(other))


def test_signs_and_spaces_matter_only_where_they_part_words_or_numbers() -> None:
    same = page_ids("使用Python编程 3.5 遍", " 使用 Python 编程，3.5遍。", "<b>使用</b>python 编 程 (3.5) 遍")
    assert len(set(same)) == 1
    others = page_ids("to get her", "together", "1 2", "12", "1.2", "12.", "", "...")
    assert len(set(others)) == 6
    assert others[3] == others[5]
    assert others[6:] == [0, 0]
