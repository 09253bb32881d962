"""Ids that come again are found, in memory that has a limit."""

import tracemalloc

from esdedup.ingest.files import SeenIds


def test_the_latest_ids_are_known() -> None:
    seen = SeenIds(generation=40, unsorted=7)
    for number in range(1_000):
        assert seen.add(str(number))
        assert not seen.add(str(max(0, number - 40)))
    assert seen.add("0")


def test_an_id_takes_some_bytes_only() -> None:
    count = 20_000
    tracemalloc.start()
    try:
        seen = SeenIds(unsorted=2_000)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            seen.add(f"https://example.com/articles/{number}")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / count < 16
