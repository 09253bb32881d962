"""The query for what somebody types into a search box. Pure: a plain dict, nothing is sent."""

import re
import unicodedata

from esdedup.elastic.requests import Query
from esdedup.fields import Fields

# Those of Elasticsearch's simple syntax that people know. It takes whatever is typed, without an error.
_OPERATORS = "AND|ESCAPE|NOT|OR|PHRASE|PRECEDENCE|PREFIX|WHITESPACE"
# A quoted phrase, whose end may be missing; or a word.
_PIECES = re.compile(r'"[^"]*"?|[^\s"]+')
# What stands before and after the letters of a word.
_WORD = re.compile(r"(?P<before>[-+|(]*)(?P<word>.*?)(?P<after>[*)|+]*)")

_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def words(text: str, fields: Fields) -> Query:
    """Return the query for words in title or text.

    All words must occur; ``"quotes"`` hold a phrase, ``a | b`` is either, ``-word`` excludes, ``wor*`` is the
    beginning of a word, and parentheses group. Chinese without spaces is one phrase, and so are words with
    signs between them, such as ``long-term``: the standard analyser would cut both into words anywhere in
    the text. Where there are no words, such as ``!?``, nothing is found.
    """
    if not any(map(_has_words, text)):
        return {"match_none": {}}
    return {
        "simple_query_string": {
            "query": " ".join(_phrased(piece) for piece in _PIECES.findall(text)),
            "fields": [f"{fields.title}^2", fields.text],
            "default_operator": "and",
            "flags": _OPERATORS,
            # A field with another type than text has none of the words.
            "lenient": True,
        }
    }


def _phrased(piece: str) -> str:
    """Return a word that the analyser would cut as a phrase; all else as it is."""
    found = _WORD.fullmatch(piece)
    if piece.startswith('"') or found is None:
        return piece
    before, word, after = found.group("before", "word", "after")
    # A phrase has no beginning of a word in it, and operators within a word stay what they are.
    if after.startswith("*") or any(sign in word for sign in r"|+()*\""):
        return piece
    if _IDEOGRAPH.fullmatch(word):
        # Where Chinese is indexed by pairs, a character is the beginning of those that it is in.
        return f"{before}{word}*{after}"
    is_cut = len(word) > 1 and not (word.isalnum() and word.isascii())
    return f'{before}"{word}"{after}' if is_cut else piece


def _has_words(character: str) -> bool:
    """Return whether Elasticsearch's standard analyser makes words of a character: not of punctuation."""
    category = unicodedata.category(character)
    # Emoji are "other symbols".
    return category[0] in "LN" or category == "So"
