"""How sidecars share several forests: whoever has too few asks the one that has most for one of its. Pure.

Who is there need not be known, only who owns what, which the leases say. A forest that nobody owns is taken
by the first that sees it; from there on it moves only if that makes the shares more equal, and so only after
sidecars have come or gone. (Kinesis' client library shares its leases in the same way.)
"""

from collections.abc import Mapping
from typing import NamedTuple

from esdedup.sidecar.owner import Ownership


class Wanted(NamedTuple):
    """A forest that this process asks for."""

    url: str
    forest: str
    # How many forests this process owns.
    owned: int


def wanted(ownerships: Mapping[str, Ownership]) -> Wanted | None:
    """Return which forest to ask for; None if the shares are equal, or forests are changing hands.

    Args:
        ownerships: Of each forest, whether this process owns it, by name.
    """
    if any(each.is_changing_hands for each in ownerships.values()):
        return None
    owned = sum(each.is_owner for each in ownerships.values())
    others: dict[str, list[str]] = {}
    for name, ownership in ownerships.items():
        if ownership.url is not None:
            others.setdefault(ownership.url, []).append(name)
    most = max(sorted(others), key=lambda url: len(others[url]), default=None)
    if most is None or not is_fair(owned=len(others[most]), asker_owns=owned):
        return None
    return Wanted(most, max(others[most]), owned)


def is_fair(*, owned: int, asker_owns: int) -> bool:
    """Return whether one more forest for who asks, and one less for who is asked, is more equal."""
    return owned >= asker_owns + 2
