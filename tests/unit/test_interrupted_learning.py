"""Exceptions in the middle of learning, as signal handlers raise them: nothing is half learned unnoticed."""

import contextlib
import copy
from types import FrameType

import pytest

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.lesson import Lesson
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.neighbours.key_table import Keys
from esdedup.text.passages import Passages
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
    return module.startswith(("esdedup.boilerplate", "esdedup.neighbours"))


def learn(boilerplate: Boilerplate, batch: tuple[Passages, Keys]) -> None:
    """Abandon a batch, and learn from it when it comes again."""
    for end in (boilerplate.undo, boilerplate.keep):
        boilerplate.begin()
        Lesson(boilerplate).omit(*batch)
        end()


def test_what_is_half_changed_is_torn_and_all_else_can_be_undone() -> None:
    interrupts, boilerplate = Interrupts(is_learning), Boilerplate(block_pages=5, period_records=40)
    were_torn = set[bool]()
    for batch in BATCHES:
        after = copy.deepcopy(boilerplate)
        learn(after, batch)
        before, expected = contents(boilerplate), contents(after)
        is_learned = False
        while not is_learned:
            tried = copy.deepcopy(boilerplate)
            with contextlib.suppress(Interrupted), interrupts.one():
                learn(tried, batch)
                is_learned = True
            were_torn.add(tried.is_torn)
            if tried.is_torn:
                continue
            is_open = tried.has_begun
            while tried.has_begun:
                tried.undo()
            assert contents(tried) in ([before] if is_open else [before, expected])
        boilerplate = after
    assert boilerplate.window.former_from > 1
    assert were_torn == {True, False}
    assert interrupts.functions >= {
        *("Tables.put", "Tables.begin_period", "Tables.undo", "Tables.keep"),
        *("Boilerplate.begin", "Boilerplate.end_block", "Boilerplate.undo", "Boilerplate.keep"),
        *("KeyTable.put", "Lesson.omit"),
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
