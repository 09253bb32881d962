"""What is boilerplate on each site, as a file of pins."""

import html
from collections.abc import Iterator

import typer

from esdedup.cli.output import json_line, printable
from esdedup.maintenance import BoilerplateBySite, SiteBoilerplate


def print_as_pins(found: BoilerplateBySite) -> None:
    """Print what is boilerplate as a file of pins, with all else in its comments."""
    typer.echo(f"# What is boilerplate in the latest {found.articles:,} articles, as pins.")
    if not found.is_complete:
        typer.echo("# There are so many different passages that not all were counted.")
    for site in found.sites:
        for line in _lines(site):
            typer.echo(line)


def _lines(found: SiteBoilerplate) -> Iterator[str]:
    name = "no site" if found.site is None else printable(found.site)
    yield ""
    yield f"# {name}: {found.articles:,} articles, {found.learned:,} passages are boilerplate"
    for passage in found.passages:
        yield f"# in {passage.articles:,} articles" + (
            ": too long for a line" if passage.text is None else ""
        )
        if passage.text is not None:
            # A pin may have markup; this text has none.
            pin = {"boilerplate": html.escape(passage.text, quote=False)}
            yield json_line(pin if found.site is None else pin | {"site": found.site})
    more = found.learned - len(found.passages)
    if more:
        yield f"# and {more:,} more passages"
