"""Editors' changes to stories, and the story of each article that results from them."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import pydantic

EditKind = Literal["merge", "split", "move", "name", "undo"]


class Edit(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True):
    """A change of stories by an editor."""

    number: int
    """The number of the edit, from 1, in the order in which edits were made."""
    kind: EditKind
    by: str
    """The name of the editor."""
    at_ms: int
    """The time of the edit, in milliseconds since 1970."""
    why: str = ""
    """The reason; empty if none was given."""
    request_id: str = ""
    """The id of the request, by which a repeated request is recognised."""
    into: str | None = None
    """The story to which articles are moved, or that is named; null if the edit undoes another edit."""
    stories: tuple[str, ...] = ()
    """For a merge: the stories that are merged into `into`."""
    texts: tuple[str, ...] = ()
    """For a split or a move: the texts moved to `into`, by fingerprint, or by root if they have none."""
    undoes: int | None = None
    """For an undo: the number of the edit that is undone."""
    name: str = ""
    """The name that the story `into` gets; empty if a name is removed."""
    note: str = ""
    """The note about the story `into`."""


def text_key(root: str, fingerprint: str | None) -> str:
    """Return the name of an article's text: its fingerprint, or its root if it has no fingerprint."""
    return fingerprint or root


def new_story(number: int, *, at_ms: int) -> str:
    """Return the name of the story that a split creates, which differs from all roots."""
    digest = hashlib.blake2b(f"{number}/{at_ms}".encode(), digest_size=8)
    return f"story-{digest.hexdigest()}"


class Stories:
    """The story of each article: its root, unless an edit changes it.

    An edit that is undone is ignored; later edits still apply unchanged.
    """

    def __init__(self, edits: Sequence[Edit] = ()) -> None:
        self._texts: dict[str, str] = {}
        # By story, the story into which it was merged, which may have been merged in turn. There are no
        # cycles, since only stories that were not merged before are merged.
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
        """Return the story into which a story was finally merged, or the story itself."""
        end = story
        while end in self._merged:
            end = self._merged[end]
        # Shorten the chain for later calls.
        while story != end:
            self._merged[story], story = end, self._merged[story]
        return end

    def changed_since(self, before: "Stories") -> tuple[set[str], set[str]]:
        """Return the roots and texts whose articles may have had a different story according to `before`."""
        merged, texts = self._merged.keys() | before._merged.keys(), self._texts.keys() | before._texts.keys()
        return (
            {each for each in merged if self.end_of(each) != before.end_of(each)},
            {each for each in texts if self._of_text(each) != before._of_text(each)},
        )

    def _of_text(self, text: str) -> str | None:
        return self.end_of(self._texts[text]) if text in self._texts else None


NO_STORIES = Stories()
"""The stories of a forest without edits, in which each root is a story."""
