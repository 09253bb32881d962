import itertools
import re

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.text.characters import SEPARATOR, classes, code_points
from esdedup.text.tokens import LONGEST_RUN_UNITS, Tokens, roles_in_tokens

TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_\u2e80-\U0010ffff]+|[\u2e80-\u9fff]")
texts = st.lists(st.text(st.sampled_from("ab1 2.,:中文。\n"), max_size=25), min_size=1, max_size=5)


def tokens_of(batch: list[str]) -> Tokens:
    points = code_points("".join(text + SEPARATOR for text in batch))
    return Tokens.of(points, roles_in_tokens(classes()[points]))


def words(text: str) -> list[str]:
    return [word for word in TOKEN.findall(text) if word[0].isalnum()]


def runs(tokens: list[str], units: int) -> list[tuple[str, ...]]:
    """Return runs of `units` at least, plainly."""
    found = []
    for start in range(len(tokens)):
        stop, length = start, 0
        while stop < len(tokens) and length < units:
            length += 1 if tokens[stop] >= "\u2e80" else 2
            stop += 1
        if length >= units or start == 0:
            found.append(tuple(tokens[start:stop]))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("地铁 7 号线", ["地", "铁", "7", "号", "线"]),
        ("1,234.5 at 10:30, then 2.", ["1,234.5", "at", "10:30", "then", "2"]),
        ("iphone15 pro", ["iphone", "15", "pro"]),
    ],
)
def test_a_text_is_cut_into_characters_words_and_numbers(text: str, expected: list[str]) -> None:
    starts = tokens_of([text]).starts.tolist()[:-1]
    assert words(text) == expected
    assert [text[start:].startswith(word) for start, word in zip(starts, expected, strict=True)]


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        # Vowel signs and accents belong to their words.
        ("यह हिन्दी है", [0, 3, 10]),
        ("e\u0323\u0301x y", [0, 5]),
        # Without spaces between words, each letter is a token.
        ("ตลาด ข่าว", [0, 1, 2, 3, 5, 6, 7, 8]),
    ],
)
def test_tokens_of_scripts_with_marks_or_without_spaces(text: str, starts: list[int]) -> None:
    assert tokens_of([text]).starts.tolist()[:-1] == starts


@given(texts, st.integers(1, LONGEST_RUN_UNITS))
def test_runs_are_equal_where_their_tokens_are(batch: list[str], units: int) -> None:
    tokens = tokens_of(batch)
    expected = [runs(words(text), units) for text in batch]
    found = tokens.runs_of_texts(units=units)
    assert found.counts.tolist() == [len(each) for each in expected]
    flat = [run for each in expected for run in each]
    by_hash = dict(zip(found.hashes.tolist(), flat, strict=True))
    assert [by_hash[each] for each in found.hashes.tolist()] == flat
    assert len(set(flat)) == len(by_hash)
    assert found.have_number.tolist() == [any(word[0].isdigit() for word in run) for run in flat]


@given(texts, st.integers(1, LONGEST_RUN_UNITS))
def test_the_runs_of_a_group_are_those_of_a_text(batch: list[str], units: int) -> None:
    tokens = tokens_of(batch)
    present = np.flatnonzero(tokens.ends > tokens.starts_of_texts)
    found = tokens.runs(units=units, starts=tokens.starts_of_texts[present], stops=tokens.ends[present])
    of_texts = tokens.runs_of_texts(units=units)
    assert found.hashes.tolist() == of_texts.hashes.tolist()
    assert found.have_number.tolist() == of_texts.have_number.tolist()
    assert found.counts.tolist() == of_texts.counts[present].tolist()


def hashes_of_words(chosen: list[str]) -> npt.NDArray[np.uint64]:
    """Return the hash of each word alone, which is its simhash where it is a whole sentence."""
    tokens = tokens_of([" ".join(chosen)])
    return tokens.runs_of_texts(units=2).hashes


def test_words_with_one_key_are_not_found_by_adding_up() -> None:
    """Were a hash the sum of what the parts of a word add, two lists of parts would flood any key.

    The last key of a simhash is its lowest 25 bits. Of a thousand million pairs, thirty have a given key.
    """
    key = (1 << 25) - 1
    parts = ["".join(letters) for letters in itertools.permutations("abcdefghijklmno", 4)]
    fronts = hashes_of_words([f"{part}aaaa" for part in parts]) & np.uint64(key)
    backs = hashes_of_words([f"aaaa{part}" for part in parts])
    differences = (backs - hashes_of_words(["aaaaaaaa"])) & np.uint64(key)
    by_difference = dict(zip(differences.tolist(), parts, strict=True))
    found = [
        front + by_difference[0x5EED - own & key]
        for front, own in zip(parts, fronts.tolist(), strict=True)
        if 0x5EED - own & key in by_difference
    ]
    assert len(found) >= 10
    assert np.count_nonzero(hashes_of_words(found) & np.uint64(key) == 0x5EED) <= 1


@given(texts)
def test_a_hash_does_not_depend_on_the_place(batch: list[str]) -> None:
    def hashes(each: list[str]) -> list[list[int]]:
        tokens = tokens_of(each)
        found = tokens.runs_of_texts(units=2)
        return [part.tolist() for part in np.split(found.hashes, found.counts.cumsum()[:-1])]

    assert hashes(batch) == [hashes([text])[0] for text in batch]
