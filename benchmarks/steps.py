"""The time of each step of a fingerprint, measured in place."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

from benchmarks.rows import processor_s
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.fingerprint.bands import Layout
from esdedup.fingerprint.fingerprinter import ByHalves
from esdedup.neighbours.relation import Relation
from esdedup.text.parsed import ParsedTexts

Steps = Mapping[str, Sequence[tuple[Any, str]]]
"""The functions of each step, by what they belong to and by name; none of them calls another one."""
STEPS: Steps = {
    "parse": [(ParsedTexts, "of")],
    "boilerplate": [(Boilerplate, "omit")],
    "signatures": [(ByHalves, "fingerprints")],
    "ids": [(Relation, "ids")],
    "keys": [(Layout, "terms")],
}


def microseconds_by_step(
    work: Callable[[], object], documents: int, steps: Steps = STEPS
) -> dict[str, float]:
    """Do the work; return microseconds a document of each step, of the rest, and of all.

    Args:
        work: Calls the functions of the steps; those of `STEPS` for fingerprints of `verified`, their ids and
            keys.
        documents: How many it is for.
        steps: What is timed.
    """
    spent_s = dict.fromkeys(steps, 0.0)
    with contextlib.ExitStack() as stack:
        for step, places in steps.items():
            for owner, name in places:
                stack.enter_context(_timed(owner, name, step, spent_s))
        all_s = processor_s(work)
    spent_s["the rest"] = all_s - sum(spent_s.values())
    spent_s["all"] = all_s
    return {step: each / documents * 1e6 for step, each in spent_s.items()}


@contextlib.contextmanager
def _timed(owner: Any, name: str, step: str, spent_s: dict[str, float]) -> Iterator[None]:
    call = getattr(owner, name)

    @functools.wraps(call)
    def timed(*args: Any, **named: Any) -> Any:
        started = time.process_time()
        try:
            return call(*args, **named)
        finally:
            spent_s[step] += time.process_time() - started

    with mock.patch.object(owner, name, timed):
        yield
