"""The benchmarks can be imported, and measure functions that exist."""

import subprocess
import sys

from benchmarks.steps import STEPS


def test_every_step_that_is_timed_exists() -> None:
    for places in STEPS.values():
        for owner, name in places:
            assert callable(getattr(owner, name)), name


def test_every_benchmark_can_be_imported() -> None:
    """In a process of its own, since the packages to compare with are large and print what they like."""
    command = [sys.executable, "-m", "benchmarks", "--help"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "elastic-classic" in " ".join(shown.stdout.split())
