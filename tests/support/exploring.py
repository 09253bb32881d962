"""Random examples in tests: how many, and from which seed.

The seed is 0, so that a run repeats the last one, except by night: `make nightly` draws a new one. The header
of a run shows its seed; ``ESDEDUP_TEST_SEED`` sets it. ``ESDEDUP_TEST_EFFORT`` multiplies the number of
examples: `make test` takes 25 where a test does not say otherwise, `make check` fewer, and `make nightly` 80
times as many. By night, processes are killed at every request, and for more than the default profile; and
tests on a node run in all of their ways, by day in one each (`tests/conftest.py`).
"""

import os
import random
import secrets
from typing import Any

import hypothesis

from esdedup import CLASSIC, VERIFIED

# In the environment, so that all processes of a run have the same.
EFFORT = float(os.environ.setdefault("ESDEDUP_TEST_EFFORT", "1"))
SEED = int(os.environ.setdefault("ESDEDUP_TEST_SEED", str(secrets.randbelow(2**32)) if EFFORT > 1 else "0"))
HEADER = f"ESDEDUP_TEST_SEED={SEED} ESDEDUP_TEST_EFFORT={EFFORT:g}"
_EXAMPLES = 25
PROFILES = [VERIFIED] if EFFORT <= 1 else [VERIFIED, CLASSIC]
"""For tests that take a minute."""


def times_effort(count: int) -> int:
    """Scale a number of examples by the effort; at least one."""
    return max(1, round(count * EFFORT))


def load_profile() -> None:
    """Configure Hypothesis: no deadline, examples by the effort."""
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
