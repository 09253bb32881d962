"""A few lines of each article's text around the searched words, and these words marked. Pure.

Elasticsearch's highlighter finds them; it marks words in markup too, which readers do not see.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from esdedup.elastic.limits import MAX_HITS
from esdedup.elastic.requests import Query
from esdedup.fields import Fields
from esdedup.reading.hits import Hit
from esdedup.reading.queries import MAX_NAMESAKES
from esdedup.reading.results import Row, Snippet, TextPart
from esdedup.text.markup import visible_text

_LENGTH = 180
# Of a longer text, words are sought in the beginning only.
_MOST_ANALYSED = 100_000
# Around a searched word: characters for private use, which no text that is exchanged has.
_BEGIN, _END = "\ue000", "\ue001"
_MARKS = re.compile(f"([{_BEGIN}{_END}])")
# A full stop, in one script or another, and what may close a sentence after it.
_SENTENCE_END = re.compile(r"""[.!?…。！？｡؟।]["'”’»)\]」』】）]*\Z""")
# A tag whose other part lies outside of what is shown: from its last attribute to its end, or its beginning.
_REST_OF_TAG = re.compile(r"""\A[^<>]*["'/]\s*>|<[a-zA-Z/!][^<>]*\Z""")


def snippets_body(rows: Sequence[Row], query: Query | None, *, fields: Fields) -> Query:
    """Return the search for the snippets of rows; `query` is the user's."""
    text = {"fragment_size": _LENGTH, "number_of_fragments": 1, "no_match_size": _LENGTH}
    return {
        "query": {"ids": {"values": sorted({row.id for row in rows})}},
        # The same ids may be in several indices.
        "size": min(MAX_HITS, MAX_NAMESAKES * len(rows)),
        "_source": False,
        "track_total_hits": False,
        "highlight": {
            "fields": {fields.title: {"number_of_fragments": 0}, fields.text: text},
            "highlight_query": query or {"match_all": {}},
            "max_analyzed_offset": _MOST_ANALYSED,
            "pre_tags": [_BEGIN],
            "post_tags": [_END],
        },
    }


def snippets_of(rows: Sequence[Row], hits: Sequence[Hit], *, fields: Fields) -> list[Snippet]:
    """Return the snippet of each row from the hits of that search."""
    found = {(hit["_index"], hit["_id"]): hit.get("highlight", {}) for hit in hits}
    return [_snippet(row, found.get((row.index, row.id), {}), fields) for row in rows]


def _snippet(row: Row, highlight: dict[str, Any], fields: Fields) -> Snippet:
    # A field may have several values.
    title, *_ = highlight.get(fields.title) or [row.title or ""]
    text, *_ = highlight.get(fields.text) or [""]
    return Snippet(title=tuple(_parts(title)), text=tuple(_parts(_with_ellipses(text))))


def _with_ellipses(fragment: str) -> str:
    """Return a part of a text as readers see it, with ``…`` where it begins or stops in mid-sentence.

    The highlighter does not say so, but cuts a sentence only if it is longer than a snippet. Such a snippet
    has its full length, and begins with a small letter if its script has those.
    """
    letters = _MARKS.sub("", fragment)
    shown = _visible(fragment)
    seen = _MARKS.sub("", shown)
    begins_within = letters != fragment and seen[:1].islower()
    stops_within = len(letters) >= _LENGTH and not _SENTENCE_END.search(seen)
    return "…" * begins_within + shown + "…" * stops_within


def _visible(fragment: str) -> str:
    """Return a part of a text as readers see it, on one line."""
    return " ".join(visible_text(_REST_OF_TAG.sub(" ", fragment)).split())


def _parts(marked: str) -> Iterator[TextPart]:
    is_match = False
    for piece in _MARKS.split(marked):
        if piece in {_BEGIN, _END}:
            is_match = piece == _BEGIN
        elif piece:
            yield TextPart(text=piece, is_match=is_match)
