"""Which clusters grow beyond what is plausible."""

from collections.abc import Iterator

import pytest

from esdedup.forest import Assignment, Kind
from esdedup.forest.growth import MOST_PLAUSIBLE_LEAVES, Growth


def joined(root: str, count: int) -> Iterator[Assignment]:
    return (Assignment(Kind.JOINED, f"{seq:016x}", root, seq, 0, b"") for seq in range(count))


def test_the_limit_is_inclusive_and_told_once() -> None:
    counted = Growth()
    assert counted.add(joined("a", MOST_PLAUSIBLE_LEAVES)) == []
    assert counted.add(joined("b", MOST_PLAUSIBLE_LEAVES + 1)) == [("b", MOST_PLAUSIBLE_LEAVES)]
    assert counted.add(joined("b", MOST_PLAUSIBLE_LEAVES - 1)) == []
    assert counted.add(joined("a", 1)) == [("a", MOST_PLAUSIBLE_LEAVES)]
    assert counted.add(joined("b", 1)) == [("b", 2 * MOST_PLAUSIBLE_LEAVES)]
    assert counted.add(joined("b", 2 * MOST_PLAUSIBLE_LEAVES)) == [("b", 4 * MOST_PLAUSIBLE_LEAVES)]


@pytest.mark.parametrize("kind", [Kind.NEW_ROOT, Kind.KNOWN, Kind.WITHOUT_FINGERPRINT])
def test_copies_and_new_clusters_add_nothing(kind: Kind) -> None:
    others = (Assignment(kind, "b", "a", seq, 0, b"") for seq in range(2 * MOST_PLAUSIBLE_LEAVES))
    assert Growth().add(others) == []


def test_slow_clusters_are_forgotten() -> None:
    counted = Growth(max_clusters=10)
    counted.add(joined("large", MOST_PLAUSIBLE_LEAVES))
    for each in range(100):
        counted.add(joined(f"small-{each}", 2))
    assert counted.add(joined("large", 1)) == [("large", MOST_PLAUSIBLE_LEAVES)]
