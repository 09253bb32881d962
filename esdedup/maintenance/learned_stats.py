"""How much a forest has learned about boilerplate."""

import pydantic

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedLog, read_learned
from esdedup.errors import ForestDamaged


class LearnedStats(pydantic.BaseModel, frozen=True):
    """What a forest has learned, and what that takes."""

    # Pages that have been seen so far, and those of them that are remembered.
    pages: int
    remembered_pages: int
    # Passages that are boilerplate.
    boilerplate: int
    # In each process that knows it.
    memory_bytes: int
    # In the forest's index, as they are sent to it.
    documents: int
    document_bytes: int


def learned_stats(index: ForestIndex) -> LearnedStats | None:
    """Measure what a forest has learned; None if that is damaged, as `verify` tells."""
    try:
        found = index.run(read_learned(index.name))
        boilerplate = LearnedLog(index.name, found).boilerplate
    except ForestDamaged:
        return None
    return LearnedStats(
        pages=boilerplate.last_page,
        remembered_pages=boilerplate.last_page - boilerplate.window.former_from + 1,
        boilerplate=len(boilerplate.learned()),
        memory_bytes=boilerplate.size_bytes,
        documents=sum(each.last - each.first + 1 for each in found),
        document_bytes=sum(each.size_bytes for each in found),
    )
