"""The differences between two versions of a text, word by word. Pure."""

import dataclasses
import itertools
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
    one, other = (_tokens(text)[:MAX_TOKENS] for text in (before, after))
    pieces: list[Piece] = []
    removed: list[str] = []
    added: list[str] = []
    for step in Indel.opcodes(one, other):
        ours, theirs = _of_step(one, other, step)
        if step.tag != "equal" or (not "".join(ours).strip() and (removed or added)):
            # White space between two changes joins them, so that a changed phrase reads as one.
            removed += ours
            added += theirs
            continue
        pieces += _changed(removed, added)
        pieces.append(Piece(kind="same", text="".join(ours)))
        removed, added = [], []
    return [*pieces, *_changed(removed, added)]


def is_long(text: str) -> bool:
    """Return whether a text is too long to be compared to its end."""
    return len(_tokens(text)) > MAX_TOKENS


def _tokens(text: str) -> list[str]:
    """Return the first tokens of a text, up to one more than are compared."""
    return [match[0] for match in itertools.islice(_TOKEN.finditer(text), MAX_TOKENS + 1)]


def _of_step(one: list[str], other: list[str], step: Opcode) -> tuple[list[str], list[str]]:
    return one[step.src_start : step.src_end], other[step.dest_start : step.dest_end]


def _changed(removed: list[str], added: list[str]) -> list[Piece]:
    pieces: list[Piece] = []
    if removed:
        pieces.append(Piece(kind="removed", text="".join(removed)))
    if added:
        pieces.append(Piece(kind="added", text="".join(added)))
    return pieces
