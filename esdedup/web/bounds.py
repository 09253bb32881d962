"""Bounds the size of answers: long values of articles are cut. Pure."""

import itertools
import json
from typing import TypeVar

from esdedup.fingerprint.profile import MAX_TEXT_LENGTH
from esdedup.reading.results import Article, FullArticle, Result
from esdedup.text.left_out import LeftOut, Span

MAX_VALUE = 1_000
"""Of each title, source, time and address, in characters: longer than any cursor and any id."""
MAX_SHOWN_TEXT = MAX_TEXT_LENGTH
"""Of the text of an article, in characters: what decides its fingerprint."""
MAX_ENTRIES = 1_000
"""Of a list: articles on a page are no more, nor the keys of an article that esdedup has written."""
MAX_SPANS = 1_000
"""Of the places in a text that are marked as boilerplate: a text of menus alone has some hundreds."""

_Result = TypeVar("_Result", bound=Result)


def cut(text: str, length: int = MAX_VALUE) -> str:
    """Cut a text that is longer than `length`; it then ends in an ellipsis."""
    return text if len(text) <= length else f"{text[:length]}…"


def encodable(text: str) -> str:
    """Return a text without lone surrogates, which UTF-8 lacks; other programs may have indexed some."""
    return text.encode("utf-8", "replace").decode()


def bounded(result: _Result) -> _Result:
    """Return a result with every long value cut, except the text of an article, which may be longer."""
    short = result.model_copy(update={name: _bounded(value) for name, value in result})
    if isinstance(result, Article) and result.included is not None:
        each_short = {name: _bounded(value) for name, value in result.included.items()}
        short = short.model_copy(update={"included": each_short})
    if isinstance(result, FullArticle):
        short = short.model_copy(update={"text": encodable(cut(result.text, MAX_SHOWN_TEXT))})
    return short


def bounded_spans(left_out: LeftOut) -> LeftOut:
    """Return what is left out of a text, as far as that much of the text is shown."""
    spans = tuple(
        Span(
            start=span.start, end=min(span.end, MAX_SHOWN_TEXT), text=span.text[: MAX_SHOWN_TEXT - span.start]
        )
        for span in left_out.spans[:MAX_SPANS]
        if span.start < MAX_SHOWN_TEXT
    )
    return left_out.model_copy(update={"spans": spans})


def _bounded(value: object) -> object:
    match value:
        case Result():
            return bounded(value)
        case LeftOut():
            return bounded_spans(value)
        case tuple():
            return tuple(map(_bounded, value[:MAX_ENTRIES]))
        case str():
            return cut(encodable(value))
        # As stored in the article, of any size and depth.
        case list() | dict():
            return _bounded_json(value)
        case _:
            return value


def _bounded_json(value: object) -> object:
    """Return a value as it is if its JSON is short, else the beginning of its JSON."""
    # No more of it is written than is needed; every piece has a character or more.
    pieces = json.JSONEncoder(ensure_ascii=False).iterencode(value)
    beginning = "".join(itertools.islice(pieces, MAX_VALUE + 1))
    readable = encodable(beginning)
    if len(beginning) > MAX_VALUE:
        return cut(readable)
    return value if readable == beginning else json.loads(readable)
