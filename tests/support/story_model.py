"""Reference model of edits: applies each edit to every text, one after the other."""

from collections.abc import Sequence

from esdedup.forest.stories import Edit

Text = tuple[str, str | None]
"""The root of a text, and the text's fingerprint, if it has one."""


def by_model(edits: Sequence[Edit], texts: Sequence[Text]) -> dict[Text, str]:
    """Return the stories of all texts, after applying every edit that was not undone."""
    undone: set[int] = set()
    for edit in reversed(edits):
        if edit.undoes and edit.number not in undone:
            undone.add(edit.undoes)
    # Every name that a root or a split ever had, with the story that it refers to now.
    names = {root: root for root, _ in texts} | {edit.into: edit.into for edit in edits if edit.into}
    names |= {story: story for edit in edits for story in edit.stories}
    own: dict[str, str] = {}
    for edit in edits:
        if edit.number in undone or edit.into is None:
            continue
        into = names[edit.into]
        own |= dict.fromkeys(edit.texts, into)
        merged = {names[each] for each in edit.stories}
        names = {name: into if story in merged else story for name, story in names.items()}
        own = {text: into if story in merged else story for text, story in own.items()}
    return {(root, text): own.get(text or root, names[root]) for root, text in texts}
