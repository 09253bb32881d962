"""Prints messages to standard error, and escapes characters that are unsafe in a terminal."""

import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import typer

from esdedup.errors import ArticleRejected

# Characters that control a terminal or disguise a line: control characters, line and paragraph separators,
# and overrides of the writing direction; also lone surrogates, which cannot be encoded.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Replace each unsafe character with its escape, such as ``\x1b``."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(message: str) -> None:
    """Print a message to standard error, or log it if the log is JSON."""
    if any(isinstance(each.formatter, _JsonFormatter) for each in logging.getLogger().handlers):
        logging.getLogger("esdedup").error(message)
    else:
        typer.echo(visible(message), err=True)


# Called in reverse order when the command is interrupted.
_last_words: list[Callable[[], None]] = [lambda: say("interrupted: run the command again to continue")]


@contextlib.contextmanager
def said_if_interrupted(words: Callable[[], None]) -> Iterator[None]:
    """Call `words` if the body is interrupted."""
    _last_words.append(words)
    yield
    _last_words.pop()


def say_last_words() -> None:
    """Print the messages of an interrupted command: what was done, and how to continue."""
    while _last_words:
        _last_words.pop()()


def say_cut(name: str) -> None:
    """Print that a text was truncated."""
    say(f"{name}: only the beginning of its text is fingerprinted (--max-text-length)")


def say_rejected(rejected: ArticleRejected) -> None:
    """Print why an article was rejected."""
    say(f"{rejected.article}: {rejected.reason}")


def json_line(value: dict[str, Any]) -> str:
    """Return a JSON object on one line, with characters unsafe in a terminal as JSON escapes."""
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(value, ensure_ascii=False))


class VisibleFormatter(logging.Formatter):
    """Adds time and level, and escapes unsafe characters in log messages, which may quote the server."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted message."""
        return visible(super().format(record))


class _JsonFormatter(VisibleFormatter):
    def format(self, record: logging.LogRecord) -> str:
        written = {
            "time": self.formatTime(record, self.datefmt),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            written["exception"] = self.formatException(record.exc_info)
        return json_line(written)


def log_as(form: Literal["text", "json"]) -> None:
    """Log lines of text, or a JSON object for each message."""
    for each in logging.getLogger().handlers:
        each.setFormatter(_JsonFormatter() if form == "json" else VisibleFormatter())
