"""Control characters in texts and titles do not reach a terminal."""

import io
import json
import logging
import re

import pytest
from rich.table import Table
from rich.text import Text

from esdedup.cli import output
from esdedup.cli.messages import VisibleFormatter, log_as, say, visible

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


def test_a_log_of_json_has_time_level_and_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    log = logging.getLogger("esdedup")
    for form in ("text", "json"):
        log_as(form)
        log.error("渡轮 %s", HOSTILE, exc_info=ValueError(HOSTILE))
    text, line = written.getvalue().rsplit("\n", 2)[:2]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERROR esdedup: 渡轮 ", text)
    assert not set(HOSTILE) - set("abcdefgh[31m") & set(written.getvalue())
    found = json.loads(line)
    assert (found["level"], found["logger"], found["message"]) == ("error", "esdedup", f"渡轮 {HOSTILE}")
    assert "ValueError" in found["exception"]
    assert "渡轮" in line
    assert found["time"].endswith("Z")


def test_our_own_colours_remain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    output.console().print("[bold]title[/bold]")
    assert "\x1b[1m" in capsys.readouterr().out
