"""What is left out of a text, as places in the text that readers see."""

import unicodedata
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.text.left_out import LocatedPassages, left_out
from esdedup.text.normalise import normal_form
from tests.support.site_pages import HARBOUR, MENU, article, page

NOTHING_LEARNED = Boilerplate().omit
# What ends sentences, combines, unfolds, is dropped, or is markup.
CHARACTERS = st.sampled_from(
    "e1. 。!\n\u0301\u0323\u200d\u00ad\u2026\ufdfa\u2488\u1100\u1161\u81fa\u0130&<>p/;"
)
TEXTS = st.text(CHARACTERS | st.characters())


@given(TEXTS)
@example("")
@example("\u0301a\u0301")
@example("a\u2026\u2026b\u3099")
def test_each_passage_has_its_letters_in_the_text(text: str) -> None:
    """One character may be the end of a passage and the beginning of the next: `\u2488` is `1.`."""
    found = LocatedPassages.of(text, max_length=10_000)
    assert (np.diff(found.starts) >= 0).all()
    assert (np.diff(found.ends) >= 0).all()
    for start, end, letters in zip(
        found.starts.tolist(), found.ends.tolist(), found.passages.letters.tolist(), strict=True
    ):
        assert 0 <= start < end <= len(found.visible)
        assert sum(map(str.isalnum, normal_form(found.visible[start:end]))) >= letters


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
