"""Lines for people, on standard error."""

import typer

from esdedup.errors import ArticleRejected


def say(message: str) -> None:
    """Print a line for people to standard error."""
    typer.echo(message.encode(errors="backslashreplace").decode(), err=True)


def say_rejected(rejected: ArticleRejected) -> None:
    """Print why an article was left out."""
    say(f"{rejected.article}: {rejected.reason}")
