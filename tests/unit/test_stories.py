"""Edits of stories agree with a model that examines all articles."""

import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.elastic.stories import Edits, touched_since
from esdedup.errors import SettingError
from esdedup.forest.stories import Edit, Stories, new_story, text_key
from esdedup.maintenance.editor import EditRequest, names_of
from tests.support.story_model import Text, by_model

# Texts with their roots: r1 is a root's text, r1.a and r1.b are texts of its leaves; ~x has no fingerprint.
TEXTS: list[Text] = [
    ("r1", "r1"),
    ("r1", "r1.a"),
    ("r1", "r1.b"),
    ("r2", "r2"),
    ("r2", "r2.a"),
    ("r3", "r3"),
    ("~x", None),
]


@st.composite
def edit_lists(draw: st.DrawFn) -> list[Edit]:
    edits: list[Edit] = []
    for number in range(1, draw(st.integers(1, 9))):
        stories = Stories(edits)
        kind = draw(st.sampled_from(("merge", "split", "move", "name", "undo")))
        one, other = draw(st.permutations(TEXTS))[:2]
        values: dict[str, Any] = {"number": number, "kind": kind, "by": "A. Chen", "at_ms": number}
        if kind == "undo":
            left = [edit.number for edit in edits if edit.number not in stories.undone]
            if left:
                edits.append(Edit(**values, undoes=draw(st.sampled_from(left))))
        elif kind == "name":
            edits.append(Edit(**values, into=stories.of(*one), name=f"name {number}"))
        elif kind == "merge":
            edits.append(Edit(**values, into=stories.of(*one), stories=(stories.of(*other),)))
        else:
            into = new_story(number, at_ms=number) if kind == "split" else stories.of(*other)
            edits.append(Edit(**values, into=into, texts=(text_key(*one),)))
    # An edit of kind "undo" with nothing to undo was left out, so its number is missing.
    renumbered = {edit.number: at for at, edit in enumerate(edits, 1)}
    return [
        edit.model_copy(
            update={
                "number": renumbered[edit.number],
                "undoes": None if edit.undoes is None else renumbered[edit.undoes],
            }
        )
        for edit in edits
    ]


@given(edit_lists())
def test_stories_match_the_model(edits: list[Edit]) -> None:
    stories = Stories(edits)
    assert {(root, text): stories.of(root, text) for root, text in TEXTS} == by_model(edits, TEXTS)


@given(edit_lists(), st.integers(0, 8))
def test_articles_that_edits_may_have_changed_are_found(edits: list[Edit], known: int) -> None:
    known = min(known, len(edits))
    roots, texts = touched_since(edits, known)
    for root, text in TEXTS:
        # Articles back in their previous story count too: a process may still write the intermediate story.
        if len({Stories(edits[:at]).of(root, text) for at in range(known, len(edits) + 1)}) > 1:
            assert root in roots or text_key(root, text) in texts
    assert touched_since(edits, len(edits)) == (set(), set())


@given(edit_lists())
def test_the_last_name_of_a_story_counts(edits: list[Edit]) -> None:
    found, stories = names_of(Edits(tuple(edits), Stories(edits))), Stories(edits)
    naming = [each for each in edits if each.kind == "name" and each.number not in stories.undone]
    assert found.keys() == {stories.end_of(each.into or "") for each in naming}
    for story, named in found.items():
        of_story = [each for each in naming if stories.end_of(each.into or "") == story]
        own = [each for each in of_story if each.into == story]
        assert named == (own or of_story)[-1]


def test_an_empty_name_removes_the_name() -> None:
    names = [("Fire", ""), ("", ""), ("", "a note")]
    edits = [
        Edit(number=number, kind="name", by="A", at_ms=number, into="r1", name=name, note=note)
        for number, (name, note) in enumerate(names, 1)
    ]
    found = [names_of(Edits(tuple(edits[:at]), Stories(edits[:at]))) for at in range(4)]
    assert found == [{}, {"r1": edits[0]}, {}, {"r1": edits[2]}]


@pytest.mark.parametrize("field", ["name", "note"])
def test_names_and_notes_are_one_visible_line(field: str) -> None:
    def named(text: str) -> EditRequest:
        given: dict[str, Any] = {"kind": "name", "to": "1", field: text}
        return EditRequest(**given)

    for text in (" Fire\n", "\u3000火灾 2", "👩\u200d🚒", "\u3164x", " ", ""):
        assert getattr(named(text), field) == text.strip()
    for text in ("a\nb", "a\u2028b", "a\x1b[31m", "\u200b", "\u200b \u3164", "\u2800"):
        with pytest.raises(SettingError, match=f"^{field}: must be one line of visible text"):
            named(text)


def test_a_long_chain_of_merges_is_followed_quickly() -> None:
    edits = [
        Edit(
            number=number, kind="merge", by="A", at_ms=number, into=f"r{number}", stories=(f"r{number - 1}",)
        )
        for number in range(1, 40_001)
    ]
    began_s = time.monotonic()
    roots, _ = touched_since(edits, 0)
    assert len(roots) == 40_000
    # A quadratic number of steps would take minutes.
    assert time.monotonic() - began_s < 20


def test_circular_merges_resolve_to_one_story() -> None:
    values = [("r1", "r2"), ("r2", "r1"), ("r3", "r1")]
    edits = [
        Edit(number=number, kind="merge", by="A", at_ms=number, into=into, stories=(story,))
        for number, (into, story) in enumerate(values, 1)
    ]
    for some in itertools.permutations(edits):
        assert len({Stories(some).of(each, each) for each in ("r1", "r2", "r3")}) == 1
