"""What is left out of a text, as places in the text that readers see."""

import sys
import unicodedata
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.lesson import Lesson
from esdedup.text.left_out import LocatedPassages, left_out
from esdedup.text.normalise import NormalTexts
from esdedup.text.places import places_of_points
from tests.support.site_pages import HARBOUR, MENU, article, page

NOTHING_LEARNED = Lesson(Boilerplate()).omit
# What ends sentences, combines, unfolds, is dropped, or is markup.
CHARACTERS = st.sampled_from(
    "e1. 。!\n\u0301\u0323\u200d\u00ad\u2026\ufdfa\u2488\u1100\u1161\u81fa\u0130&<>p/;"
)
TEXTS = st.text(CHARACTERS | st.characters())


@given(TEXTS)
@example("")
@example("\u0301a\u0301")
@example("a\u2026\u2026b\u3099")
def test_each_point_comes_from_a_place_in_the_text(text: str) -> None:
    visible = (
        text.replace("<", "").replace("&", "").replace("\r", "").replace("\u202d", "").replace("\u202e", "")
    )
    points = NormalTexts.of([visible], max_length=sys.maxsize).points
    places = places_of_points(visible)
    assert len(places) == len(points)
    assert (np.diff(places) >= 0).all()
    assert places[-1] == len(visible)
    assert (places[:-1] < len(visible)).all()


@given(
    st.lists(
        st.sampled_from(
            ["Zuerst ", "e\u0301te\u0301", "12", "<p>", "&amp;", "。", ". ", "\n\n", "\u2026", "臺北", "! "]
        )
    )
)
def test_each_passage_is_where_it_is_said_to_be(pieces: list[str]) -> None:
    found = LocatedPassages.of("".join(pieces), max_length=10_000)
    assert (found.starts < found.ends).all()
    assert (found.ends <= len(found.visible)).all()
    for number, expected in enumerate(found.passages.hashes.tolist()):
        alone = LocatedPassages.of(found.text(number).replace("&", "&amp;"), max_length=10_000)
        assert alone.passages.hashes.tolist() == [expected]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_what_is_left_out_is_told_in_the_text_without_markup(form: Literal["NFC", "NFD"]) -> None:
    text = unicodedata.normalize(form, f"<p>Économie &amp; été\n\nÀ propos</p>\n{article(1)}<!-- no --> Fin…")
    found = left_out(text, NOTHING_LEARNED, max_length=10_000)
    assert [span.text for span in found.spans] == [
        unicodedata.normalize(form, "Économie & été\n\nÀ propos"),
        "Fin…",
    ]
    assert (found.passages, found.of_passages) == (3, 9)
    assert found.letters == sum(map(str.isalnum, "Économie & été À propos Fin"))


def test_only_what_is_fingerprinted_is_told() -> None:
    whole = page(article(1), HARBOUR)
    found = left_out(f"{whole}\n\n{MENU}", NOTHING_LEARNED, max_length=len(whole) + 10)
    assert found.spans[-1].end <= len(whole) + 10
    assert found.of_letters < sum(map(str.isalnum, f"{whole}{MENU}"))
