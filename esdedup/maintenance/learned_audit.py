"""Checks what a forest has learned about boilerplate."""

from collections.abc import Iterator

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import EVERY_DOCUMENT, LearnedLog, read_learned
from esdedup.errors import ForestDamaged
from esdedup.maintenance.violations import Remedy, RepairableViolation, Violation, ViolationKind


def damaged_learning(index: ForestIndex) -> Iterator[Violation]:
    """Yield the first flaw in the documents of what was learned, if there is one.

    A repair forgets all of it: each document tells what changed after those before it.
    """
    try:
        LearnedLog(index.name, index.run(read_learned(index.name)))
    except ForestDamaged as error:
        yield RepairableViolation(
            kind=ViolationKind.LEARNED_DAMAGED,
            subject=error.document,
            detail=f"it is {error.flaw}; a repair forgets what was learned; stored articles keep their roots",
            remedy=Remedy(forgotten=EVERY_DOCUMENT),
        )
