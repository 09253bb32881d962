"""What is random in tests: new in every run, shown in its header, and to be had again by its seed.

``ESDEDUP_TEST_SEED`` gives a run the seed of another one. ``ESDEDUP_TEST_EFFORT`` multiplies the number of
random examples: `make test` takes 25 where a test does not say otherwise, `make check` fewer, `make nightly`
80 times as many, and then kills processes at every request, for more than the default profile.
"""

import os
import random
import secrets
from typing import Any

import hypothesis

from esdedup import CLASSIC, VERIFIED

# In the environment, so that all processes of a run have the same.
SEED = int(os.environ.setdefault("ESDEDUP_TEST_SEED", str(secrets.randbelow(2**32))))
EFFORT = float(os.environ.setdefault("ESDEDUP_TEST_EFFORT", "1"))
HEADER = f"ESDEDUP_TEST_SEED={SEED} ESDEDUP_TEST_EFFORT={EFFORT:g}"
_EXAMPLES = 25
PROFILES = [VERIFIED] if EFFORT <= 1 else [VERIFIED, CLASSIC]
"""For tests that take a minute."""


def times_effort(count: int) -> int:
    """Return how many examples are tried instead of so many, at least one."""
    return max(1, round(count * EFFORT))


def load_profile() -> None:
    """Let Hypothesis explore anew, and take its time."""
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
    """Decorate a test whose random examples shall be that many, times the effort."""
    return hypothesis.settings(max_examples=times_effort(count), **settings)


def new_random(name: str) -> random.Random:
    """Return random numbers that are new in every run; two names give two sequences."""
    return random.Random(f"{SEED} {name}")
