"""The number and the seed of random examples in tests.

The seed is 0, so that all runs use the same examples; only `make nightly` draws a new seed. The header of
a test run shows the seed, and ``ESDEDUP_TEST_SEED`` sets it. ``ESDEDUP_TEST_EFFORT`` multiplies the number of
examples: `make test` runs 25 unless a test sets another number, `make check` fewer, and `make nightly` 80
times as many. `make nightly` also kills processes at every request and with several profiles, and runs
each test that needs a node with all of its parameters instead of one (`tests/conftest.py`).
"""

import os
import random
import secrets
from typing import Any

import hypothesis

from esdedup import CLASSIC, VERIFIED

# These are set in the environment, so that all processes of a test run use the same values.
EFFORT = float(os.environ.setdefault("ESDEDUP_TEST_EFFORT", "1"))
SEED = int(os.environ.setdefault("ESDEDUP_TEST_SEED", str(secrets.randbelow(2**32)) if EFFORT > 1 else "0"))
HEADER = f"ESDEDUP_TEST_SEED={SEED} ESDEDUP_TEST_EFFORT={EFFORT:g}"
_EXAMPLES = 25
PROFILES = [VERIFIED] if EFFORT <= 1 else [VERIFIED, CLASSIC]
"""The profiles with which to run tests that take a minute."""


def times_effort(count: int) -> int:
    """Multiply a number of examples by the effort; return at least 1."""
    return max(1, round(count * EFFORT))


def load_profile() -> None:
    """Configure Hypothesis: no deadline, and a number of examples that depends on the effort."""
    hypothesis.settings.register_profile(
        "esdedup",
        max_examples=times_effort(_EXAMPLES),
        deadline=None,
        print_blob=True,
        derandomize=False,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("esdedup")


def examples(count: int, **settings: Any) -> hypothesis.settings:
    """Decorate a test to run `count` random examples, times the effort."""
    return hypothesis.settings(max_examples=times_effort(count), **settings)


def new_random(name: str) -> random.Random:
    """Return a generator seeded with the run's seed and a name."""
    return random.Random(f"{SEED} {name}")
