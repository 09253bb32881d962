"""Control characters in texts and titles do not reach a terminal."""

import json
import logging

import pytest
from rich.table import Table
from rich.text import Text

from esdedup.cli import output
from esdedup.cli.messages import VisibleFormatter, say, visible

HOSTILE = "a\x1b[31mb\x9bc\x07d\u202ee\x7ff\u2028g\rh\ud800"


def test_control_characters_are_escaped() -> None:
    assert visible(HOSTILE) == r"a\x1b[31mb\x9bc\x07d\u202ee\x7ff\u2028g\rh\ud800"
    for harmless in ("one line\nand another\tline", "Straße 三月 😀", "می‌خواهم", "a\u3000b"):
        assert visible(harmless) == harmless


def test_all_kinds_of_output_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    output.print_json({"title": HOSTILE})
    output.print_counts(HOSTILE, {HOSTILE: 1})
    screen = output.console()
    screen.print(HOSTILE, markup=False)
    screen.print(Text(HOSTILE))
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    screen.print(table)
    record = logging.LogRecord("esdedup", logging.WARNING, "", 0, "%s", (HOSTILE,), None)
    logged = VisibleFormatter().format(record)
    written = capsys.readouterr()
    assert not set(HOSTILE) - set("abcdefgh[31m") & set(written.out + written.err + logged)
    assert json.loads(written.out.splitlines()[0]) == {"title": HOSTILE}


def test_our_own_colours_remain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    output.console().print("[bold]title[/bold]")
    assert "\x1b[1m" in capsys.readouterr().out
