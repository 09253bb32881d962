"""The command `esdedup` as a whole, and what its errors and exit codes are."""

import logging
import os
import sys
from importlib import metadata
from typing import Annotated, NoReturn

import typer

from esdedup.cli import demo, explain, feed, maintenance, node, offline, output, read, serve
from esdedup.errors import ArticleNotFound, ArticleRejected, EsdedupError, SettingError

_SOME_FAILED, _USAGE, _UNAVAILABLE = 1, 2, 3

app = typer.Typer(
    name="esdedup",
    help="The near-duplicate layer for Elasticsearch: one row a cluster, and who else published it.",
    epilog=(
        "Exit codes: 0 all well, 1 some articles failed or were not found, or laws are broken, 2 usage, "
        "3 server or forest not available."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(node.app, name="node")
app.command()(feed.setup)
app.command()(feed.index)
app.command(name="list")(read.list_rows)
app.command()(read.similar)
app.command()(serve.serve)
app.command()(explain.explain)
app.command()(maintenance.stats)
app.command()(maintenance.expire)
app.command()(maintenance.verify)
app.command()(maintenance.rebuild)
app.command()(offline.cluster)
app.command()(offline.fingerprint)
app.command()(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"esdedup {metadata.version('esdedup')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> NoReturn:
    """Run the command line; never ends with a traceback for what the user can mend."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    # The client tells every failed attempt; what matters of it comes as our own error.
    logging.getLogger("elastic_transport").setLevel(logging.CRITICAL)
    code = 0
    try:
        try:
            app()
        except SystemExit as finished:
            code = finished.code if isinstance(finished.code, int) else 0
        sys.stdout.flush()
    except EsdedupError as error:
        output.say(f"esdedup: {error}")
        code = _exit_code(error)
    except BrokenPipeError:
        # Whoever read the output has enough of it.
        _forget_output()
    except OSError as error:
        _forget_output()
        output.say(f"esdedup: cannot write: {error.strerror}")
        code = _UNAVAILABLE
    sys.exit(code)


def _forget_output() -> None:
    """Keep Python from complaining when it flushes at its end what nobody takes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: EsdedupError) -> int:
    if isinstance(error, ArticleNotFound | ArticleRejected):
        return _SOME_FAILED
    return _USAGE if isinstance(error, SettingError) else _UNAVAILABLE
