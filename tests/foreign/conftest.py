"""Fixtures of the other folders that these tests use, too, and a directory for servers of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import browser, run, run_process
from tests.integration.conftest import feeding, sidecar
from tests.support import server

__all__ = ["browser", "feeding", "run", "run_process", "sidecar"]


@pytest.fixture(scope="module")
def data_directory() -> Iterator[Path]:
    """A directory for the data of servers."""
    with server.data_directory() as data:
        yield data
