"""What is random in tests: new in every run, shown in its header, and to be had again by its seed.

``ESDEDUP_TEST_SEED`` gives a run the seed of another one. ``ESDEDUP_TEST_EFFORT`` multiplies the number of
random examples: 1 suits every change, `make nightly` takes more, and then kills processes at every request.
"""

import os
import random
import secrets
from typing import Any

import hypothesis

# In the environment, so that all processes of a run have the same.
SEED = int(os.environ.setdefault("ESDEDUP_TEST_SEED", str(secrets.randbelow(2**32))))
EFFORT = int(os.environ.setdefault("ESDEDUP_TEST_EFFORT", "1"))
HEADER = f"ESDEDUP_TEST_SEED={SEED} ESDEDUP_TEST_EFFORT={EFFORT}"
_EXAMPLES = 100


def load_profile() -> None:
    """Let Hypothesis explore anew, and take its time."""
    hypothesis.settings.register_profile(
        "esdedup",
        max_examples=_EXAMPLES * EFFORT,
        deadline=None,
        print_blob=True,
        derandomize=False,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("esdedup")


def examples(count: int, **settings: Any) -> hypothesis.settings:
    """Decorate a test whose random examples shall be that many, times the effort."""
    return hypothesis.settings(max_examples=count * EFFORT, **settings)


def new_random(name: str) -> random.Random:
    """Return random numbers that are new in every run; two names give two sequences."""
    return random.Random(f"{SEED} {name}")
