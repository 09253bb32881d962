"""The form in which a caller wants an answer: what is left of it, its layout, its content type. Pure."""

import dataclasses
import json
import re
from typing import Any
from urllib.parse import unquote_plus

import orjson

from esdedup.sidecar.filter_path import filtered
from esdedup.sidecar.refusals import RequestRefused

JSON = "application/json"

# Which of Elasticsearch's parameters are applied here if an answer is put together here. `human` changes
# nothing in these answers, and `error_trace` is for errors of Elasticsearch, which come with their traces.
_OURS = frozenset(("filter_path", "format", "pretty"))
_SEPARATOR = re.compile(rb"([&;])")
_VERSION = re.compile(r"compatible-with=(\d+)", re.ASCII)
_VERSIONED_JSON = re.compile(r"application/vnd\.elasticsearch\+(?:x-nd)?json\s*;\s*compatible-with=\d+", re.I)
# Empty objects and arrays; strings are found, too, because what is in them is none.
_EMPTY = re.compile(r'("(?:[^"\\]++|\\.)*+")|\{\}|\[\]')


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """How an answer that is put together here is written: always as JSON, whatever format is asked for."""

    # See `filter_path.filtered`; empty: everything is left.
    filter_path: str = ""
    is_pretty: bool = False
    content_type: str = JSON

    def write(self, answer: dict[str, Any]) -> bytes:
        """Return an answer as bytes.

        Args:
            answer: As parsed from JSON.
        """
        if self.filter_path:
            answer = filtered(answer, self.filter_path)
        return self.write_error(answer)

    def write_error(self, error: dict[str, Any]) -> bytes:
        """Return an error as bytes: of those nothing is left out."""
        if self.is_pretty:
            text = json.dumps(error, indent=2, separators=(",", " : "), ensure_ascii=False)
            # Elasticsearch puts a space into what is empty. Half a character becomes its escape.
            return (_EMPTY.sub(_spaced, text) + "\n").encode(errors="backslashreplace")
        try:
            return orjson.dumps(error)
        except TypeError:
            # An id may have half a character.
            return json.dumps(error, separators=(",", ":")).encode()


def read_form(query: bytes, accept: str | None) -> tuple[AnswerForm, bytes]:
    """Read from a request in which form its answer is wanted.

    Args:
        query: As it came, without the question mark.
        accept: The header of that name.

    Returns:
        The form, and the query for Elasticsearch to answer whole and as JSON: its other parts stay as they
        came.

    Raises:
        RequestRefused: A value means nothing, as Elasticsearch would say.
    """
    query = query.partition(b"#")[0]
    given: dict[str, str] = {}
    others = []
    for part in _SEPARATOR.split(query)[::2]:
        name, _, value = part.partition(b"=")
        decoded = unquote_plus(name.decode(errors="replace"))
        if decoded in _OURS:
            # The last one counts.
            given[decoded] = unquote_plus(value.decode(errors="replace"))
        elif part:
            others.append(part)
    pretty = given.get("pretty", "false")
    if pretty not in ("", "false", "true"):
        raise RequestRefused(
            400,
            "illegal_argument_exception",
            f"Failed to parse value [{pretty}] as only [true] or [false] are allowed.",
        )
    form = AnswerForm(
        filter_path=given.get("filter_path", ""),
        is_pretty=pretty != "false",
        content_type=_content_type(accept),
    )
    return form, b"&".join(others)


def json_accept(accept: str | None) -> str:
    """Return the header `Accept` with which Elasticsearch answers as JSON, of the version that is wanted."""
    return (
        accept if accept is not None and _VERSIONED_JSON.fullmatch(accept.strip()) else _content_type(accept)
    )


def _content_type(accept: str | None) -> str:
    versioned = None if accept is None else _VERSION.search(accept)
    return f"application/vnd.elasticsearch+json;compatible-with={versioned[1]}" if versioned else JSON


def _spaced(found: re.Match[str]) -> str:
    return found[1] or f"{found[0][0]} {found[0][1]}"
