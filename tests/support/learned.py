"""Learned boilerplate in a form that tests can compare, and faster learning."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from elasticsearch import Elasticsearch

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import COLUMNS, Changes
from esdedup.elastic.execute import execute
from esdedup.elastic.forest import learned as documents_of_learned
from esdedup.elastic.forest import writer
from esdedup.elastic.forest.learned import LearnedLog, read_learned

# The flag that is added to the page number in "passages_values" if the passage is boilerplate.
LEARNED = 1 << 31
TABLES = ("pages", "sites", "passages", "contexts")
# The number of columns that describe the pages of a site, in a row of "contexts".
SITE_COLUMNS = 5


@dataclasses.dataclass(frozen=True)
class Pace:
    """How soon boilerplate is learned from pages, and how soon it is forgotten."""

    block_pages: int = 4
    period_records: int = 90
    document_bytes: int = 1_000
    # Larger changes are split into several documents, which are written two at a time.
    part_bytes: int = 1_000_000

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Learn at this pace in this process."""
        with pytest.MonkeyPatch.context() as patch:
            defaults = Boilerplate.__new__.__kwdefaults__ or {}
            patch.setitem(defaults, "block_pages", self.block_pages)
            patch.setitem(defaults, "period_records", self.period_records)
            patch.setattr(documents_of_learned, "_ENOUGH_BYTES", self.document_bytes)
            patch.setattr(documents_of_learned, "_MAX_BYTES", self.part_bytes)
            patch.setattr(writer, "_LEARNED_AT_ONCE", 2)
            yield


def arrays_of(changes: Changes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `COLUMNS` names."""
    return {
        name: np.frombuffer(content, dtype).reshape((-1,) if width is None else (-1, width))
        for (name, (dtype, width)), content in zip(COLUMNS.items(), changes.columns(), strict=True)
    }


def last_learned_page(boilerplate: Boilerplate) -> int:
    """Return the number of the last page that was learned from."""
    return int(arrays_of(boilerplate.everything())["numbers"][0])


def contents(boilerplate: Boilerplate) -> dict[str, Any]:
    """Return all data that determines which passages of later pages are omitted."""
    arrays, periods = arrays_of(boilerplate.everything()), boilerplate.periods
    found: dict[str, Any] = {
        "last page": last_learned_page(boilerplate),
        "periods": periods,
        **{name: arrays[name].tolist() for name in ("marks", "origins", "hashes", "letters", "counts")},
    }
    for name in TABLES:
        keys, values = arrays[f"{name}_keys"], arrays[f"{name}_values"]
        is_valid = values & ~np.uint32(LEARNED) >= boilerplate.former_from
        # The first value of a row is a page. In "contexts", each value after the site's columns is a page
        # too.
        counts = {"sites": 2, "contexts": SITE_COLUMNS}.get(name, 1)
        is_valid[:, :counts] = is_valid[:, :1]
        values = np.where(is_valid, values, 0)
        found[name] = {key: own for key, own in zip(keys.tolist(), values.tolist(), strict=True) if any(own)}
    return found


def learned(es: Elasticsearch, forest: str) -> dict[str, Any]:
    """Return the boilerplate that the documents of a forest contain."""
    es.indices.refresh(index=forest)
    return contents(LearnedLog(forest, execute(es, read_learned(forest))).boilerplate)


def documents(es: Elasticsearch, forest: str) -> list[str]:
    """Return the ids of the documents of learned boilerplate, in order."""
    es.indices.refresh(index=forest)
    query = {"exists": {"field": "learned"}}
    hits = es.search(index=forest, query=query, sort=["learned"], size=1_000)["hits"]["hits"]
    return [hit["_id"] for hit in hits]
