"""The differences between two versions of a text, word by word. Pure."""

import dataclasses
import re
from typing import Literal

from rapidfuzz.distance import Indel, Opcode

# A word, a run of white space, or any other character, such as a Chinese one.
_TOKEN = re.compile(r"[^\W\u2e80-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]+|\s+|.", re.DOTALL)
# A longer comparison would take too long for a page.
MAX_TOKENS = 10_000

Kind = Literal["same", "removed", "added"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """A passage that is in both versions, or in only one."""

    kind: Kind
    text: str


def differences(before: str, after: str) -> list[Piece]:
    """Return the passages of both texts in order: those only in `before` are removed, only in `after` added.

    The first 10,000 words, spaces and Chinese characters of each text are compared.
    """
    one, other = (_TOKEN.findall(text)[:MAX_TOKENS] for text in (before, after))
    pieces: list[Piece] = []
    removed = added = ""
    for step in Indel.opcodes(one, other):
        before, after = ("".join(each) for each in _of_step(one, other, step))
        if step.tag != "equal" or (not before.strip() and (removed or added)):
            # White space between two changes joins them, so that a changed phrase reads as one.
            removed, added = removed + before, added + after
            continue
        pieces += _changed(removed, added)
        pieces.append(Piece(kind="same", text=before))
        removed = added = ""
    return [*pieces, *_changed(removed, added)]


def is_cut(before: str, after: str) -> bool:
    """Return whether one of the texts is too long to be compared to its end."""
    return any(len(_TOKEN.findall(text)) > MAX_TOKENS for text in (before, after))


def _of_step(one: list[str], other: list[str], step: Opcode) -> tuple[list[str], list[str]]:
    return one[step.src_start : step.src_end], other[step.dest_start : step.dest_end]


def _changed(removed: str, added: str) -> list[Piece]:
    pieces: list[Piece] = []
    if removed:
        pieces.append(Piece(kind="removed", text=removed))
    if added:
        pieces.append(Piece(kind="added", text=added))
    return pieces
