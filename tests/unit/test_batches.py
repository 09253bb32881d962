"""Batches end by number, by size and by time, and lose nothing."""

import itertools
import threading
from collections.abc import Iterator

import pytest
from esdedup.ingest.batches import MAX_BATCH_SIZE, batches

NEVER_S = 3_600.0


def no_size(_: object) -> int:
    return 0


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
def test_number_and_size_end_a_batch(flush_interval_s: float | None) -> None:
    def sizes(items: list[int], most: int) -> list[list[int]]:
        found = batches(items, most=most, size_of=int, flush_interval_s=flush_interval_s)
        return [each for each in found if each]

    whole, half = MAX_BATCH_SIZE, MAX_BATCH_SIZE // 2
    assert sizes([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert sizes([half, half, 1, half, 9 * whole, whole, 1], 100) == [
        [half, half],
        [1, half, 9 * whole],
        [whole],
        [1],
    ]
    assert sizes([], 2) == []


def test_an_empty_list_comes_before_what_has_to_be_waited_for() -> None:
    may_go_on = threading.Event()

    def items() -> Iterator[int]:
        yield from range(5)
        may_go_on.wait(10)
        yield 5

    found = batches(items(), most=2, size_of=no_size, flush_interval_s=NEVER_S)
    seen = list(itertools.takewhile(bool, found))
    assert seen in ([[0, 1], [2, 3]], [[0, 1]], [])
    may_go_on.set()
    assert [each for batch in (*seen, *found) for each in batch] == [*range(6)]


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
def test_an_error_comes_after_the_items_before_it(flush_interval_s: float | None) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError("broken")

    found = batches(items(), most=3, size_of=no_size, flush_interval_s=flush_interval_s)
    assert next(found) == [0, 1, 2]
    with pytest.raises(KeyError, match="broken"):
        next(found)


def test_a_trickle_is_flushed_while_it_waits_for_more() -> None:
    more = threading.Event()

    def trickle() -> Iterator[int]:
        yield from (1, 2)
        # Ends by itself if the batch never comes.
        assert more.wait(60)
        yield 3

    found = batches(trickle(), most=1_000, size_of=no_size, flush_interval_s=0.2)
    first = next(found)
    more.set()
    assert [*first, *itertools.chain.from_iterable(found)] == [1, 2, 3]
    assert first


def test_the_thread_reads_one_batch_ahead_and_ends_with_its_reader() -> None:
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    found = batches(endless(), most=10, size_of=no_size, flush_interval_s=NEVER_S)
    assert next(found) == list(range(1, 11))
    (thread,) = [each for each in threading.enumerate() if each.name == "esdedup-reader"]
    found.close()  # type: ignore[attr-defined]
    thread.join(60)
    assert not thread.is_alive()
    assert taken <= 10 + 10 + 2
