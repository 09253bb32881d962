"""Fixtures that other test folders use too, and a directory for the data of servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import browser, run, run_process
from tests.integration.conftest import feeding, sidecar
from tests.support import server

__all__ = ["browser", "feeding", "run", "run_process", "sidecar"]


@pytest.fixture(scope="module")
def data_directory() -> Iterator[Path]:
    with server.data_directory() as data:
        yield data
