"""Deletions that begin on time, and go on in steps."""

import time
from collections.abc import Iterator

import pytest
from esdedup.ingest.owner import ExpirySchedule

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import ServerUnavailable


class Deletion:
    """Takes two steps, or fails at the second."""

    def __init__(self) -> None:
        self.begun = 0
        self.fails = False

    def __call__(self) -> Iterator[Expired]:
        self.begun += 1
        yield Expired(leaves=1)
        if self.fails:
            raise ServerUnavailable("no server answers")
        yield Expired(leaves=2)


def leaves(schedule: ExpirySchedule, steps: int) -> list[int | None]:
    found = [schedule.step() for _ in range(steps)]
    return [None if each is None else each.leaves for each in found]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    return now_s


def test_it_deletes_on_schedule(clock: list[float]) -> None:
    schedule = ExpirySchedule(Deletion(), every_s=60, first_after_s=10)
    assert leaves(schedule, 1) == [None]
    clock[0] += 10
    assert leaves(schedule, 4) == [1, 2, None, None]
    # From the beginning of a deletion to that of the next, however long it takes.
    clock[0] += 59
    assert leaves(schedule, 1) == [None]
    clock[0] += 1
    assert leaves(schedule, 1) == [1]
    clock[0] += 60
    assert leaves(schedule, 4) == [2, None, 1, 2]


def test_nothing_goes_on_that_was_abandoned_or_failed(clock: list[float]) -> None:
    deletion = Deletion()
    schedule = ExpirySchedule(deletion, every_s=60)
    assert leaves(schedule, 1) == [1]
    schedule.abandon()
    assert leaves(schedule, 1) == [None]
    deletion.fails = True
    clock[0] += 60
    assert leaves(schedule, 1) == [1]
    with pytest.raises(ServerUnavailable):
        schedule.step()
    assert leaves(schedule, 1) == [None]
    assert deletion.begun == 2
