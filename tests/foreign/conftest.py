"""Fixtures of the other folders that these tests use, too."""

from tests.acceptance.conftest import browser, run, run_process
from tests.integration.conftest import feeding, sidecar

__all__ = ["browser", "feeding", "run", "run_process", "sidecar"]
