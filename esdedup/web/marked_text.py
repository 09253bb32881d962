"""The parts of a shown text: boilerplate and the rest, within the differences from another text. Pure."""

import dataclasses
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from esdedup.text.left_out import Span
from esdedup.web.differences import Kind, Piece


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a text, or of one of two texts."""

    kind: Kind
    text: str
    is_left_out: bool


def parts(pieces: Iterable[Piece], *, ours: Sequence[Span] = (), theirs: Sequence[Span] = ()) -> list[Part]:
    """Cut pieces where boilerplate begins and ends.

    Args:
        pieces: An article's text, or the differences between it and another one's.
        ours: What is left out of the article's text.
        theirs: What is left out of the other text. What both texts have is marked as it is in the article.
    """
    found: list[Part] = []
    our_edges, their_edges = _edges(ours), _edges(theirs)
    our_place = their_place = 0
    for piece in pieces:
        is_added = piece.kind == "added"
        place, edges = (their_place, their_edges) if is_added else (our_place, our_edges)
        end = place + len(piece.text)
        first = bisect_right(edges, place)
        bounds = [place, *edges[first : bisect_left(edges, end)], end]
        found += [
            # After an odd number of edges.
            Part(kind=piece.kind, text=piece.text[a - place : b - place], is_left_out=number % 2 == 1)
            for number, (a, b) in enumerate(itertools.pairwise(bounds), first)
        ]
        our_place += 0 if is_added else len(piece.text)
        their_place += 0 if piece.kind == "removed" else len(piece.text)
    return found


def _edges(spans: Sequence[Span]) -> list[int]:
    return [edge for span in spans for edge in (span.start, span.end)]
