"""Measures memory, disk space and loading time of the most boilerplate that a forest can remember."""

import contextlib
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks import server
from benchmarks.processes import give_back_memory, in_new_process, resident_bytes
from benchmarks.rows import Row
from benchmarks.server import Run
from esdedup._core import Parsed
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.elastic.client import connect
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.learned import LearnedCopy, LearnedLog, read_learned
from esdedup.elastic.mappings import forest_index

_FOREST = "benchmark-boilerplate"
_TABLE = "boilerplate"
_SITES, _BATCH = 10_000, 1_000
# Per page: the number of passages that all pages of the site have, and of passages that only this page has.
_OF_SITE, _OWN = 40, 25
_FILLED = 0.99
_MEGABYTE = 1e6


def boilerplate(run: Run) -> list[Row]:
    """Fill both periods from 10,000 sites, in batches of 1,000 pages; load the boilerplate."""
    with server.client(run, lifetime_s=3_600) as client:
        url = server.url_of(client)
        client.options(ignore_status=404).indices.delete(index=_FOREST)
        client.indices.create(index=_FOREST, **forest_index(meta={}))
        try:
            figures = in_new_process(_fill, url, run.scale)
            patient = client.options(request_timeout=1_800)
            patient.indices.forcemerge(index=_FOREST, max_num_segments=1)
            patient.indices.flush(index=_FOREST)
            stored = client.indices.stats(index=_FOREST)["_all"]["primaries"]["store"]["size_in_bytes"]
            figures["on disk, MB"] = stored / _MEGABYTE
            figures |= in_new_process(_load_as_owner, url)
            figures |= in_new_process(_load_as_reader, url)
        finally:
            client.indices.delete(index=_FOREST)
    return [
        Row(table=_TABLE, case=f"{_SITES:,} sites, {what}", ours=ours, unit=unit)
        for (what, unit), ours in ((key.rsplit(", ", 1), each) for key, each in figures.items())
    ]


def _fill(url: str, scale: float) -> dict[str, float]:
    random = np.random.default_rng(_SITES)
    sites = random.integers(1, 2**64, (_SITES, _OF_SITE), np.uint64)
    log = LearnedLog(_FOREST, [])
    boilerplate = log.boilerplate
    pages = 0
    with connect(url) as client:
        # Nothing is forgotten before the end of the second period.
        while _records(boilerplate) < _FILLED * scale * 2 * boilerplate.periods[0]:
            boilerplate.begin()
            chosen = random.integers(0, _SITES, _BATCH)
            passage_filter = boilerplate.filter(
                sites=map(str, chosen), articles=map(str, range(pages, pages + _BATCH))
            )
            _parsed(sites[chosen], random).left_out(passage_filter)
            documents = log.add(boilerplate.changes())
            boilerplate.keep()
            pages += _BATCH
            for name, document in documents:
                client.index(index=_FOREST, id=name, document=document)
        client.indices.refresh(index=_FOREST)
    return {
        "both periods, pages": pages,
        "known boilerplate, passages": len(boilerplate.learned()),
        "the tables, MB": boilerplate.size_bytes / _MEGABYTE,
    }


def _records(boilerplate: Boilerplate) -> int:
    """Return the number of records in both periods so far; neither period has been dropped."""
    capacity, count, present_from, _ = boilerplate.periods
    return count + (capacity if present_from > 1 else 0)


def _parsed(of_sites: npt.NDArray[np.uint64], random: np.random.Generator) -> Parsed:
    """Return a batch of pages, given the hashes of their sites' passages."""
    own = random.integers(1, 2**64, (_BATCH, _OWN), np.uint64)
    hashes = np.concatenate((of_sites[:, : _OF_SITE // 2], own, of_sites[:, _OF_SITE // 2 :]), axis=1)
    own_places = range(_OF_SITE // 2, _OF_SITE // 2 + _OWN)
    properties = [
        (120, True, False) if at in own_places else (20, False, False) for at in range(hashes.shape[1])
    ]
    pages = random.integers(1, 2**64, _BATCH, np.uint64).tolist()
    return Parsed.of_passages(
        [
            (page, [(each, *known) for each, known in zip(of_page, properties, strict=True)])
            for page, of_page in zip(pages, hashes.tolist(), strict=True)
        ]
    )


def _load_as_owner(url: str) -> dict[str, float]:
    with connect(url) as client, _measured("the owner loads the boilerplate", figures := {}):
        log = LearnedLog(_FOREST, execute(client, read_learned(_FOREST)))
        assert len(log.boilerplate.learned())
    return figures


def _load_as_reader(url: str) -> dict[str, float]:
    copy = LearnedCopy()
    with connect(url) as client, _measured("a reader loads the boilerplate", figures := {}):
        execute(client, copy.update(_FOREST))
    return figures


@contextlib.contextmanager
def _measured(what: str, figures: dict[str, float]) -> Iterator[None]:
    """Measure the `with` block. Its results must still be in memory when the block ends."""
    before_bytes, started, processor_s = resident_bytes(), time.perf_counter(), time.process_time()
    yield
    figures[f"{what}, s"] = time.perf_counter() - started
    figures[f"{what}: processor time, s"] = time.process_time() - processor_s
    peak_bytes = resident_bytes()
    give_back_memory()
    figures[f"{what}: growth of the process, MB"] = (peak_bytes - before_bytes) / _MEGABYTE
    figures[f"{what}: growth without freed memory, MB"] = (resident_bytes() - before_bytes) / _MEGABYTE
