"""The program `esdedup`: its commands, how it reports errors, and its exit codes."""

import _thread
import collections
import importlib
import logging
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from esdedup.cli.advice import advice
from esdedup.cli.command import new_app, require_extra
from esdedup.cli.messages import VisibleFormatter, say, say_last_words
from esdedup.elastic.closing import ENDING
from esdedup.errors import ArticleNotFound, ArticleRejected, EsdedupError, FieldsNotFound, SettingError

_SOME_FAILED, _USAGE, _UNAVAILABLE = 1, 2, 3
# Packages whose versions may change the bits of fingerprints.
DECIDE_FINGERPRINTS = ("jieba", "rjieba", "mmh3", "numpy")
# How long an interrupted command may take to exit.
_END_S = 1.5
# The exit codes of the signals received.
_exit_codes: list[int] = []

# The commands of each module in this package.
_MODULES = {
    "node": ("node",),
    "feed": ("setup", "index", "learn"),
    "in_place": ("adopt", "migrate", "remove"),
    "edit": ("merge", "split", "move", "name", "edits"),
    "read": ("list", "similar", "show"),
    "explain": ("explain",),
    "serve": ("serve",),
    "sidecar": ("sidecar",),
    "maintenance": ("stats", "expire", "verify", "rebuild"),
    "cluster": ("cluster", "weights"),
    "fingerprint": ("fingerprint",),
    "plan": ("plan",),
    "demo": ("demo",),
}
# A command's function has its name, with these exceptions.
_FUNCTIONS = {"node": "app", "list": "list_rows"}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


class _Imported(collections.UserDict[str, Any]):
    """Imports the module of a command only when the command is run or described."""

    def __getitem__(self, key: str) -> Any:
        module = importlib.import_module(f"esdedup.cli.{self.data[key]}")
        return typer.main.get_command(getattr(module, _FUNCTIONS.get(key, key)))


class _Commands(TyperGroup):
    """The commands in `_PLACES`."""

    def __init__(self, **others: Any) -> None:
        super().__init__(**others)
        # Typer suggests these names for a mistyped command.
        self.commands = _Imported(_PLACES)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        return list(_PLACES)


app = new_app(
    name="esdedup",
    cls=_Commands,
    add_completion=True,
    help="The near-duplicate layer for Elasticsearch: one row per cluster, and who else published it.",
    epilog=(
        "Exit codes: 0 success; 1 some articles failed or were not found, or a forest violates its laws; "
        "2 usage error; 3 server or forest not available; 130 interrupted, 143 by SIGTERM."
    ),
    no_args_is_help=True,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        for line in versions():
            typer.echo(line)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version, and the versions of its dependencies.",
        ),
    ] = False,
) -> None:
    del version


def main() -> NoReturn:
    """Run the command line, then exit; errors of esdedup are printed without a traceback."""
    log = logging.StreamHandler()
    log.setFormatter(VisibleFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[log])
    # These loggers report every failed attempt; the final failure is raised as an `EsdedupError`.
    for name in ("elastic_transport", "urllib3.connection"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _handle_signals(_interrupt)
    code = 0
    try:
        try:
            app(prog_name="esdedup")
        except SystemExit as finished:
            code = finished.code if isinstance(finished.code, int) else 0
        sys.stdout.flush()
    except EsdedupError as error:
        say("\n".join([f"esdedup: {error}", *advice(error)]))
        is_of_articles = isinstance(error, ArticleNotFound | ArticleRejected | FieldsNotFound)
        code = _USAGE if isinstance(error, SettingError) else _UNAVAILABLE
        code = _SOME_FAILED if is_of_articles else code
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has closed it.
        _discard_output()
    except OSError as error:
        _discard_output()
        say(f"esdedup: cannot write: {error.strerror}")
        code = _UNAVAILABLE
    # Interrupted commands exit with the signal's code; servers that a signal has stopped exit with code 0.
    if _exit_codes and not code:
        _exit_codes[0] = code
    elif _exit_codes:
        say_last_words()
        code = _exit_codes[0] or code
    _handle_signals(signal.SIG_DFL)
    sys.exit(code)


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(number: int, _: object) -> None:
    """Let the command finish within two seconds; exit immediately on a second signal."""
    _handle_signals(signal.SIG_DFL)
    # A server that has received the signal itself has stopped as it should.
    _exit_codes.append(0 if ENDING.is_set() else 128 + number)
    # Do not use `threading`, since interrupted code may hold its locks.
    _thread.start_new_thread(_end_late, ())
    raise KeyboardInterrupt


def _end_late() -> None:
    ENDING.set()
    time.sleep(_END_S)
    try:
        if _exit_codes[0]:
            say_last_words()
        sys.stdout.flush()
    finally:
        os._exit(_exit_codes[0])


def _discard_output() -> None:
    """Redirect the broken standard output, which Python would fail to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def versions() -> Iterator[str]:
    """Yield a line for each component; the first line has only the name and version of the package."""
    # These imports are slow, and needed only here.
    from importlib import metadata

    from esdedup.elastic.forest.meta import FORMAT
    from esdedup.fingerprint.profile import PROFILES

    yield f"esdedup {metadata.version('esdedup')}"
    yield f"profiles {', '.join(profile.label for profile in PROFILES.values())}"
    yield f"forest format {FORMAT}"
    yield f"fingerprints by {', '.join(f'{name} {metadata.version(name)}' for name in DECIDE_FINGERPRINTS)}"
    yield f"Elasticsearch client {metadata.version('elasticsearch')}"
    try:
        require_extra("node")
    except SettingError:
        yield "no embedded Elasticsearch: pip install 'esdedup[node]'"
    else:
        from esdedup.node import DEFAULT_VERSION

        yield f"embedded Elasticsearch {DEFAULT_VERSION}"
    yield f"{platform.python_implementation()} {platform.python_version()} on {platform.platform(terse=True)}"
