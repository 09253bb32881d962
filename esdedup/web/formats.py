"""Formats values and addresses, and limits the length of values. Pure."""

import itertools
import json
import math
import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from esdedup.fingerprint import MAX_TEXT_LENGTH
from esdedup.reading.results import Article, FullArticle, Result
from esdedup.text.left_out import LeftOut, Span
from esdedup.times import iso, time_ms

MAX_VALUE = 1_000
"""The maximum number of characters of a title, source, time or address; cursors and ids are shorter."""
MAX_SHOWN_TEXT = MAX_TEXT_LENGTH
"""The maximum number of characters shown of a text; by default, no more are fingerprinted."""
MAX_ENTRIES = 1_000
"""The maximum number of entries of a list: a page of results and the keys of an article have no more."""
MAX_SPANS = 1_000
"""The maximum number of spans marked in a text; a text that consists of menus has a few hundred."""

_Result = TypeVar("_Result", bound=Result)

_LONGEST_LINE = 300
# A length that all browsers and servers accept.
_LONGEST_LINK = 2_000
# A language tag, such as de or zh-Hans.
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
# By language, whether a letter belongs to the language's script.
_SCRIPTS: dict[str, Callable[[str], bool]] = {
    "zh": lambda letter: "\u3400" <= letter <= "\u9fff",
    "ja": lambda letter: "\u3040" <= letter <= "\u30ff",
    "ko": lambda letter: "\uac00" <= letter <= "\ud7af",
}


def shortened(text: str) -> str:
    """Cut a text to fit on a line; a title may be as long as an article."""
    return cut(text, _LONGEST_LINE)


def machine_time(value: object) -> str:
    """Write an article's time as ISO 8601, for the `datetime` attribute of HTML."""
    milliseconds = time_ms(value)
    return "" if milliseconds is None else iso(milliseconds)


def joined(value: object, write: Callable[[object], object] = str, *, comma: str = ", ") -> str:
    """Write the values of a field, separated by commas; empty if it has none."""
    values = value if isinstance(value, list) else [value]
    return comma.join(str(write(each)) for each in values if each is not None)


def source_names(value: object, *, comma: str = ", ") -> str:
    """Write an article's sources on a line; empty if their names are blank."""
    return shortened(joined(value, comma=comma).strip())


def link(value: str | None) -> str | None:
    """Return an address if it is a safe link: to a web page, and not to a script."""
    if not value or len(value) > _LONGEST_LINK:
        return None
    try:
        return value if urlsplit(value.strip()).scheme.lower() in {"http", "https"} else None
    except ValueError:
        return None


def thumbnail(included: dict[str, object] | None) -> str | None:
    """Return the address of a row's picture, if the row has a picture that pages may load."""
    found = next(iter((included or {}).values()), None)
    # A field may have several values.
    first = found[0] if isinstance(found, list) and found else found
    return first if isinstance(first, str) and first.startswith("https://") and link(first) else None


def address(path: str, **parameters: object) -> str:
    """Return an address with the parameters that have a value."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", False, [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def article_address(served: str, article: Article, **parameters: object) -> str:
    """Return the address of an article's page; it names the index unless that is `served`."""
    index = None if article.index == served else article.index
    return address("/article", id=article.id, index=index, **parameters)


def comparison_address(one: Article, other: Article, **parameters: object) -> str:
    """Return the address of the page that compares two articles; the earlier article is A."""
    earlier, later = sorted((one, other), key=_published)
    return address("/compare", one=place(earlier), other=place(later), **parameters)


def place(article: Article) -> str:
    """Return the index and id of an article as one value of a form."""
    return f"{article.index}/{article.id}"


def later_ms(article: Article, earliest: Article) -> int | None:
    """Return how long after `earliest` an article was published; None if not later, or a time is unknown."""
    one_ms, earliest_ms = _published(article), _published(earliest)
    if one_ms == math.inf or earliest_ms == math.inf or one_ms <= earliest_ms:
        return None
    return int(one_ms - earliest_ms)


def _published(article: Article) -> float:
    published_ms = time_ms(article.arrived_at or article.published_at)
    return math.inf if published_ms is None else published_ms


def is_day(text: str) -> bool:
    """Return whether a date input can show a text."""
    return not text or _DAY.fullmatch(text) is not None


def own_language(article: Article) -> str:
    """Return the language that an article names; empty if it names none in a form that browsers accept."""
    named = (article.included or {}).values()
    return next((each for each in named if isinstance(each, str) and _LANGUAGE.fullmatch(each)), "")


def language(text: str | None) -> str:
    """Guess the language of a text from the script of its first letters; empty if ambiguous, as for Latin."""
    letters = [each for each in (text or "")[:200] if each.isalpha()]
    counts = {name: sum(map(has, letters)) for name, has in _SCRIPTS.items()}
    if counts["ja"] or counts["ko"]:
        # Japanese and Korean texts contain Chinese characters too.
        return max(("ja", "ko"), key=lambda name: counts[name])
    # A Chinese text may have many foreign names, which need more letters than Chinese words.
    return "zh" if 4 * counts["zh"] > len(letters) else ""


def cut(text: str, length: int = MAX_VALUE) -> str:
    """Cut a text that is longer than `length`; it then ends in an ellipsis."""
    return text if len(text) <= length else f"{text[:length]}…"


def encodable(text: str) -> str:
    """Replace a text's lone surrogates, which other programs may index, but which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def bounded(result: _Result) -> _Result:
    """Return a result with every long value cut, except the text of an article."""
    short = result.model_copy(update={name: _bounded(value) for name, value in result})
    if isinstance(result, Article) and result.included is not None:
        each_short = {name: _bounded(value) for name, value in result.included.items()}
        short = short.model_copy(update={"included": each_short})
    if isinstance(result, FullArticle):
        short = short.model_copy(update={"text": encodable(cut(result.text, MAX_SHOWN_TEXT))})
    return short


def bounded_spans(left_out: LeftOut) -> LeftOut:
    """Limit the boilerplate of a text to the part of the text that is shown."""
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
        # Values stored in the article may have any size and depth.
        case list() | dict():
            return _bounded_json(value)
        case _:
            return value


def _bounded_json(value: object) -> object:
    """Return a value as it is if its JSON is short, otherwise the beginning of its JSON."""
    # Encode only as much as is needed; every piece has at least one character.
    pieces = json.JSONEncoder(ensure_ascii=False).iterencode(value)
    beginning = "".join(itertools.islice(pieces, MAX_VALUE + 1))
    readable = encodable(beginning)
    if len(beginning) > MAX_VALUE:
        return cut(readable)
    return value if readable == beginning else json.loads(readable)
