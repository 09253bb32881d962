"""Prints messages to standard error, and escapes characters that are unsafe in a terminal."""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator

import typer

from esdedup.errors import ArticleRejected

# Characters that control a terminal or disguise a line: control characters, line and paragraph separators,
# and overrides of the writing direction; also lone surrogates, which cannot be encoded.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def visible(text: str, *, written: Callable[[str], str] = _escape) -> str:
    r"""Replace each unsafe character with the escape that `written` returns, such as ``\x1b``."""
    return _UNSAFE.sub(lambda found: written(found[0]), text)


def say(message: str) -> None:
    """Print a message to standard error."""
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


class VisibleFormatter(logging.Formatter):
    """Escapes unsafe characters in log messages, which may quote the server."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted message."""
        return visible(super().format(record))
