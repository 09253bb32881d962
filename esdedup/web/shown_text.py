"""The visible text of an article, alone or compared with the text of another article."""

import asyncio
import dataclasses
import html
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

from rapidfuzz.distance import Indel

from esdedup import _core
from esdedup.reading.results import FullArticle
from esdedup.text.left_out import LeftOut, Span
from esdedup.web.context import Context
from esdedup.web.formats import MAX_SHOWN_TEXT, MAX_SPANS, bounded_spans, language, own_language

# A word, a run of white space, or any other character, such as a Chinese character.
_TOKEN = re.compile(r"[^\W\u2e80-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]+|\s+|.", re.DOTALL)
# The maximum number of tokens compared in each text; more would take too long for a page.
MAX_TOKENS = 10_000

Kind = Literal["same", "removed", "added"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a text, or of a comparison of two texts; `kind` says which of the two texts contain it."""

    kind: Kind
    text: str
    is_left_out: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShownText:
    """The visible text of an article, or its comparison with another text."""

    # Empty if unknown.
    language: str
    # The parts of the text, or of the comparison.
    parts: list[Piece]
    # Whether the texts are equal apart from white space, whose differences are not marked.
    is_same: bool
    # Whether only the beginning of the text is shown.
    is_cut: bool
    # Whether a text is too long to be compared as a whole.
    is_compared_in_part: bool
    # The boilerplate in the text, or why it is unknown.
    left_out: LeftOut | str
    # Whether only a part of the boilerplate is marked.
    is_marked_in_part: bool


async def shown_text(context: Context, article: FullArticle, other: FullArticle | None = None) -> ShownText:
    """Prepare the text of an article to be shown, compared with the text of `other` if given."""
    own_text, own_left_out = await _marked_text(context, article)
    other_text, other_left_out = (None, None) if other is None else await _marked_text(context, other)

    def shown() -> ShownText:
        text, compared = own_text[:MAX_SHOWN_TEXT], other_text and other_text[:MAX_SHOWN_TEXT]
        pieces = [Piece(kind="same", text=text)] if compared is None else differences(text, compared)
        return ShownText(
            language=own_language(article) or language(text),
            parts=parts(pieces, ours=_spans(own_left_out), theirs=_spans(other_left_out)),
            is_same=all(piece.kind == "same" or not piece.text.strip() for piece in pieces),
            is_cut=len(own_text) > MAX_SHOWN_TEXT,
            is_compared_in_part=compared is not None and (is_long(text) or is_long(compared)),
            left_out=own_left_out,
            is_marked_in_part=isinstance(own_left_out, LeftOut) and len(own_left_out.spans) > MAX_SPANS,
        )

    # Long texts would block the event loop.
    return await asyncio.to_thread(shown)


async def _marked_text(context: Context, article: FullArticle) -> tuple[str, LeftOut | str]:
    """Return the beginning of the visible text, and its boilerplate or the reason why that is unknown."""
    visible = await asyncio.to_thread(_core.visible_text, article.text, max_length=MAX_SHOWN_TEXT)
    # Pass on the visible text, since parsing the markup again might take seconds.
    raw = html.escape(visible, quote=False)
    return visible, await context.marking.left_out(raw, site=article.site)


def _spans(left_out: LeftOut | str | None) -> Sequence[Span]:
    return bounded_spans(left_out).spans if isinstance(left_out, LeftOut) else ()


def parts(pieces: Iterable[Piece], *, ours: Sequence[Span] = (), theirs: Sequence[Span] = ()) -> list[Piece]:
    """Cut an article's text, or a comparison, where boilerplate begins and ends."""
    found: list[Piece] = []
    our_edges, their_edges = _edges(ours), _edges(theirs)
    our_place = their_place = 0
    for piece in pieces:
        is_added = piece.kind == "added"
        place, edges = (their_place, their_edges) if is_added else (our_place, our_edges)
        end = place + len(piece.text)
        first = bisect_right(edges, place)
        bounds = [place, *edges[first : bisect_left(edges, end)], end]
        found += [
            # Boilerplate lies after an odd number of edges.
            Piece(kind=piece.kind, text=piece.text[a - place : b - place], is_left_out=number % 2 == 1)
            for number, (a, b) in enumerate(itertools.pairwise(bounds), first)
        ]
        our_place += 0 if is_added else len(piece.text)
        their_place += 0 if piece.kind == "removed" else len(piece.text)
    return found


def _edges(spans: Sequence[Span]) -> list[int]:
    return [edge for span in spans for edge in (span.start, span.end)]


def differences(before: str, after: str) -> list[Piece]:
    """Return both texts as removed, added and equal passages; the first 10,000 tokens are compared."""
    one, other = (_tokens(text)[:MAX_TOKENS] for text in (before, after))
    pieces: list[Piece] = []
    removed: list[str] = []
    added: list[str] = []
    for step in Indel.opcodes(one, other):
        ours, theirs = one[step.src_start : step.src_end], other[step.dest_start : step.dest_end]
        if step.tag != "equal" or (not "".join(ours).strip() and (removed or added)):
            # Join changes that only white space separates.
            removed += ours
            added += theirs
            continue
        pieces += _changed(removed, added)
        pieces.append(Piece(kind="same", text="".join(ours)))
        removed, added = [], []
    return [*pieces, *_changed(removed, added)]


def is_long(text: str) -> bool:
    """Return whether a text is too long to be compared as a whole."""
    return len(_tokens(text)) > MAX_TOKENS


def _tokens(text: str) -> list[str]:
    """Return the first tokens of a text: at most one more than are compared."""
    return [match[0] for match in itertools.islice(_TOKEN.finditer(text), MAX_TOKENS + 1)]


def _changed(removed: list[str], added: list[str]) -> list[Piece]:
    kinds: list[tuple[Kind, list[str]]] = [("removed", removed), ("added", added)]
    return [Piece(kind=kind, text="".join(tokens)) for kind, tokens in kinds if tokens]
