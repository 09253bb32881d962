"""Edits of stories, and the story that an article belongs to because of them."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import pydantic

EditKind = Literal["merge", "split", "move", "undo"]


class Edit(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True):
    """What an editor said."""

    number: int
    """From 1, in the order in which edits were made."""
    kind: EditKind
    by: str
    """Who said it."""
    at_ms: int
    """When, in milliseconds since 1970."""
    why: str = ""
    """The reason; empty if none was given."""
    request_id: str = ""
    """Of the request for it, by which that is recognised when it is sent again."""
    into: str | None = None
    """The story that articles get; null of one that undoes another."""
    stories: tuple[str, ...] = ()
    """Of a merge: the stories that become one with `into`."""
    texts: tuple[str, ...] = ()
    """Of a split or a move: the texts that get the story `into`: their fingerprints, or else their roots."""
    undoes: int | None = None
    """The number of the edit that counts no more."""


def text_key(root: str, fingerprint: str | None) -> str:
    """Return what an article's text is named by: its fingerprint, or else its root, which no other has."""
    return fingerprint or root


def new_story(number: int, *, at_ms: int) -> str:
    """Return the name of the story that a split makes, which no root has."""
    digest = hashlib.blake2b(f"{number}/{at_ms}".encode(), digest_size=8)
    return f"story-{digest.hexdigest()}"


class Stories:
    """The story of each article: its root, unless an edit says otherwise.

    An edit that is undone counts as if it had never been made; those after it stand as they were said.
    """

    def __init__(self, edits: Sequence[Edit] = ()) -> None:
        self._texts: dict[str, str] = {}
        # By story, the one that it was merged into, which may have been merged in turn. There are no
        # cycles: only a story that was not merged becomes part of another.
        self._merged: dict[str, str] = {}
        self.undone: set[int] = set()
        for edit in reversed(edits):
            if edit.undoes is not None and edit.number not in self.undone:
                self.undone.add(edit.undoes)
        for edit in edits:
            if edit.into is not None and edit.number not in self.undone:
                self._add(edit, self.end_of(edit.into))

    def _add(self, edit: Edit, into: str) -> None:
        self._merged |= {story: into for each in edit.stories if (story := self.end_of(each)) != into}
        self._texts |= dict.fromkeys(edit.texts, into)

    def of(self, root: str, fingerprint: str | None) -> str:
        """Return the story of an article."""
        return self.end_of(self._texts.get(text_key(root, fingerprint), root))

    def end_of(self, story: str) -> str:
        """Return the story that one was merged into; itself if it was not."""
        end = story
        while end in self._merged:
            end = self._merged[end]
        # The next time, a long chain is one step.
        while story != end:
            self._merged[story], story = end, self._merged[story]
        return end

    def changed_since(self, before: "Stories") -> tuple[set[str], set[str]]:
        """Return the roots and texts whose articles may have had another story before."""
        merged, texts = self._merged.keys() | before._merged.keys(), self._texts.keys() | before._texts.keys()
        return (
            {each for each in merged if self.end_of(each) != before.end_of(each)},
            {each for each in texts if self._of_text(each) != before._of_text(each)},
        )

    def _of_text(self, text: str) -> str | None:
        return self.end_of(self._texts[text]) if text in self._texts else None


NO_STORIES = Stories()
"""Those of a forest without edits: each root is a story."""
