import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.text.parsed import ParsedTexts
from tests.unit.test_page_ids import page_ids, words

texts = st.lists(st.text(st.sampled_from("ab1 2.,:中文。\n"), max_size=25), min_size=1, max_size=5)


RUN_UNITS = 4


def parsed(*batch: str) -> ParsedTexts:
    return ParsedTexts.of(batch, max_length=1_000)


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
    assert words(text) == expected
    assert len(set(page_ids(text, " ".join(expected), "-".join(expected)))) == 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Vowel signs and accents belong to their words.
        ("यह हिन्दी है", ["यह", "हिन्दी", "है"]),
        ("e\u0323\u0301x y", ["e\u0323\u0301x", "y"]),
        # Without spaces between words, each letter is a token.
        ("ตลาด ข่าว", list("ตลาดข่าว")),
    ],
)
def test_tokens_of_scripts_with_marks_or_without_spaces(text: str, tokens: list[str]) -> None:
    """Between East Asian characters and the like, spaces do not count; between words they do."""
    first, spaced, cut = page_ids(text, " ".join(tokens), " ".join("".join(tokens)))
    assert first == spaced
    assert (spaced == cut) == (max(map(len, tokens)) == 1)


@given(texts, texts)
def test_runs_are_equal_where_their_tokens_are(ones: list[str], others: list[str]) -> None:
    """Counted as for an explanation: runs without a number, and runs with one."""
    for one, other in zip(ones, others, strict=False):
        ours, theirs = (set(runs(words(text), RUN_UNITS)) for text in (one, other))
        ((of_words, of_numbers),) = parsed(one).core.overlap(b"", parsed(other).core, b"")
        for has_number, found in ((False, of_words), (True, of_numbers)):
            mine, yours = (
                {run for run in each if any(word[0].isdigit() for word in run) == has_number}
                for each in (ours, theirs)
            )
            assert found == (len(mine & yours), len(mine), len(yours))


def hashes_of_words(chosen: list[str]) -> npt.NDArray[np.uint64]:
    """Return the hash of each word alone, which is its simhash where it is a whole sentence."""
    return ParsedTexts.of(chosen, max_length=1_000).passages.hashes


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
    together = parsed(*batch).passages
    alone = [parsed(text).passages for text in batch]
    assert together.hashes.tolist() == [each for one in alone for each in one.hashes.tolist()]
    assert together.have_figures.tolist() == [each for one in alone for each in one.have_figures.tolist()]
