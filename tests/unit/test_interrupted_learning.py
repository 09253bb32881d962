"""Exceptions in the middle of learning, as signal handlers raise them: nothing is half learned unnoticed."""

import contextlib
from types import FrameType

import numpy as np
import numpy.typing as npt
import pytest

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.text.parsed import Passages
from tests.support.interrupts import Interrupted, Interrupts
from tests.support.learned import contents
from tests.support.pages import pages

TEXTS = [page["text"] for page in pages(40)]
# In which blocks and periods end.
BATCHES = [
    next(Fingerprinter(VERIFIED).passages_and_pages(TEXTS[start : start + 10])) for start in range(0, 40, 10)
]


def is_learning(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith("esdedup.boilerplate")


def learn(boilerplate: Boilerplate, batch: tuple[Passages, npt.NDArray[np.uint64]]) -> None:
    """Abandon a batch, and learn from it when it comes again."""
    for end in (boilerplate.undo, boilerplate.keep):
        boilerplate.begin()
        boilerplate.omit(*batch)
        end()


def taught(batches: list[tuple[Passages, npt.NDArray[np.uint64]]]) -> Boilerplate:
    boilerplate = Boilerplate(block_pages=5, period_records=40)
    for batch in batches:
        learn(boilerplate, batch)
    return boilerplate


def test_whenever_an_exception_comes_what_has_begun_can_be_undone() -> None:
    interrupts = Interrupts(is_learning)
    for count, batch in enumerate(BATCHES):
        before, expected = contents(taught(BATCHES[:count])), contents(taught(BATCHES[: count + 1]))
        is_learned = False
        while not is_learned:
            tried = taught(BATCHES[:count])
            with contextlib.suppress(Interrupted), interrupts.one():
                learn(tried, batch)
                is_learned = True
            assert not tried.is_torn
            is_open = tried.has_begun
            while tried.has_begun:
                tried.undo()
            assert contents(tried) in ([before] if is_open else [before, expected])
    assert taught(BATCHES).window.former_from > 1
    assert interrupts.functions >= {
        *("Boilerplate.begin", "Boilerplate.undo", "Boilerplate.keep", "Boilerplate.omit"),
    }


def test_a_copy_goes_on_after_a_look_up_that_failed() -> None:
    passages, ids = BATCHES[0]
    learned = LearnedCopy()
    expected = learned.omit(passages, ids).tolist()

    def fail(_: object) -> str:
        raise Interrupted

    with pytest.raises(Interrupted):
        learned.omit(passages, ids, sites=map(fail, [None]))
    assert not learned._boilerplate.has_begun
    assert learned.omit(passages, ids).tolist() == expected
