"""Lines for people, on standard error; and what no line may contain."""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator

import typer

from esdedup.errors import ArticleRejected

# What steers a terminal, or makes a line read otherwise than it is written: control characters, line and
# paragraph separators, overrides of the writing direction, and halves of characters, which cannot be written.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def visible(text: str, *, written: Callable[[str], str] = _escape) -> str:
    r"""Replace what could steer a terminal by what `written` returns, like ``\x1b``; keep tabs and lines."""
    return _UNSAFE.sub(lambda found: written(found[0]), text)


def say(message: str) -> None:
    """Print a line for people to standard error."""
    typer.echo(visible(message), err=True)


# The messages of an interrupted command, the last one first.
_last_words: list[Callable[[], None]] = [lambda: say("interrupted: run the command again, it goes on")]


@contextlib.contextmanager
def said_if_interrupted(words: Callable[[], None]) -> Iterator[None]:
    """Say what was done if the body is interrupted."""
    _last_words.append(words)
    yield
    _last_words.pop()


def say_last_words() -> None:
    """Print what was done, and how to continue."""
    while _last_words:
        _last_words.pop()()


def say_cut(name: str) -> None:
    """Print that only the beginning of a text is compared."""
    say(f"{name}: only the beginning of its text is fingerprinted (--max-text-length)")


def say_rejected(rejected: ArticleRejected) -> None:
    """Print why an article was left out."""
    say(f"{rejected.article}: {rejected.reason}")


class VisibleFormatter(logging.Formatter):
    """Makes log messages harmless: those of the server may contain anything."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        return visible(super().format(record))
