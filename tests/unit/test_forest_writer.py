"""The writer of a forest waits for its writes, even if the future of a write is lost."""

import contextlib
import threading
from typing import Any
from unittest.mock import MagicMock

import pytest

from esdedup.elastic.forest import writer as module
from esdedup.elastic.forest.batch import Batch
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.serial_thread import SerialThread


class Writer(ForestWriter):
    """A writer whose writes take effect once they may."""

    def __init__(self) -> None:
        index = MagicMock()
        index.meta.is_log, index.meta.shards, index.setting.return_value = False, 1, "1"
        index.run.side_effect = [index.meta, Batch()]
        super().__init__(index)
        self.may_write = threading.Event()
        self.count = 0

    def _put(self, documents: Any) -> None:
        self.may_write.wait()
        self.count += 1


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.setattr(module, "Lease", MagicMock())
    return Writer()


def test_an_idle_thread_is_not_woken(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.may_write.set()
    writer.write([])
    monkeypatch.delattr(SerialThread, "begin")
    writer.flush()
    assert writer.count == 1


def interrupted(*given: Any, begin: Any = SerialThread.begin) -> None:
    """Begin a job, but lose its future."""
    begin(*given)
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_write_in_progress_is_waited_for(
    writer: Writer, is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.may_write.set()
    writer.write([])
    writer.may_write.clear()
    with monkeypatch.context() as context:
        if is_lost:
            context.setattr(SerialThread, "begin", interrupted)
        with contextlib.suppress(KeyboardInterrupt):
            writer.begin([])
    threading.Timer(0.05, writer.may_write.set).start()
    writer.flush()
    assert writer.count == 2
