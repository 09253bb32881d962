"""The metadata of a forest's index, and checks that refuse an unsuitable forest."""

import contextlib
import dataclasses
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final, Literal, get_args

from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.requests import ReadMappings, Requests
from esdedup.errors import ForestMismatch, ForestMissing, IndexNotReady, SettingError
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import LAYOUTS, PAIRS, TRIPLES, Layout
from esdedup.fingerprint.profile import Profile
from esdedup.neighbours.relation import Relation

FORMAT = 14
"""The format of a forest's index; forests of another format are refused."""

SHARDED_FORMAT = 15
"""The format of a forest with several shards. Versions that know only format 14 must not write to it."""

Lookup = Literal["memory", "search"]
"""How a forest's owner finds nodes: in its memory, which has all nodes, or by searching for keys."""
LOOKUPS: Final = get_args(Lookup)

REBUILT_SUFFIX = "-rebuilt"
"""A forest that is being rebuilt is made in an index with the forest's name and this suffix."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Meta:
    """The metadata of a forest's index."""

    format: int = FORMAT
    # The label of the profile that made the fingerprints.
    profile: str
    # The maximum distance between near simhashes, inclusive.
    max_distance_bits: int
    # The conditions under which whole texts agree; None disables this comparison.
    agreement: Agreement | None
    lookup: Lookup = "memory"
    # The number of primary shards; a log has one.
    shards: int = 1
    # The name of the `Layout` that the nodes' keys have.
    layout: str

    @classmethod
    def of(cls, profile: Profile, *, lookup: Lookup | None = None, shards: int = 1) -> "Meta":
        """Return the metadata of a new forest. Without `lookup`, it is `memory` only for one shard."""
        most = 1 if lookup == "memory" else MAX_SHARDS
        if not 1 <= shards <= most:
            raise SettingError(f"forest_shards is {shards}; for this lookup, it must be 1 to {most:,}")
        lookup = lookup or ("memory" if shards == 1 else "search")
        return cls(
            format=FORMAT if shards == 1 else SHARDED_FORMAT,
            shards=shards,
            lookup=lookup,
            layout=(TRIPLES if lookup == "search" else PAIRS).name,
            profile=profile.label,
            max_distance_bits=profile.max_distance_bits,
            agreement=profile.agreement,
        )

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Meta":
        """Read metadata from a dict that `dataclasses.asdict` made."""
        agreement = Agreement(**values["agreement"]) if values["agreement"] else None
        # A template may have added other values.
        own = values.keys() & {each.name for each in dataclasses.fields(cls)}
        return cls(**{name: values[name] for name in own} | {"agreement": agreement})

    @property
    def is_log(self) -> bool:
        """Whether the forest's nodes are in a log, instead of one document each."""
        return self.lookup == "memory"

    @property
    def key_layout(self) -> Layout:
        """The layout of the keys of nodes."""
        return LAYOUTS[self.layout]

    @property
    def relation(self) -> Relation:
        """The relation by which the forest compares signatures."""
        return Relation(max_distance_bits=self.max_distance_bits, agreement=self.agreement)


def read_meta(name: str, *, is_fresh: bool = True) -> Requests[Meta | None]:
    """Read a forest's metadata, which may be cached unless `is_fresh`; None if there is no such index."""
    mappings: dict[str, dict[str, Any]] = yield ReadMappings(index=name, is_fresh=is_fresh)
    if not mappings:
        return None
    if name not in mappings:
        raise ForestMismatch(
            f"{name!r} is an alias of {', '.join(mappings)}: name the index itself", forest=name
        )
    found = mappings[name].get("_meta", {}).get("esdedup", {})
    if "format" not in found:
        raise ForestMismatch(
            f"the index {name!r} is not a forest of esdedup; name a forest", forest=name, supported=FORMAT
        )
    rules = found.get("agreement")
    is_known = rules is None or rules.keys() == {field.name for field in dataclasses.fields(Agreement)}
    is_known &= found["format"] in (FORMAT, SHARDED_FORMAT)
    if found.get("layout") not in LAYOUTS or not is_known:
        raise ForestMismatch(
            f"the forest {name!r} was made by another version of esdedup (format {found['format']}, profile "
            f"{found.get('profile')}; this version reads {FORMAT}): `esdedup migrate` moves its articles "
            "to another forest",
            forest=name,
            found=found["format"],
            supported=FORMAT,
        )
    return Meta.read(found)


@contextlib.contextmanager
def noticing_deletion(name: str) -> Iterator[None]:
    """Raise `ForestMissing` if the forest was deleted after its metadata was read."""
    try:
        yield
    except IndexNotReady as error:
        if error.index == name and error.status == HTTPStatus.NOT_FOUND:
            raise ForestMissing.of(name) from error
        raise


def refuse_others(
    name: str, meta: Meta, profile: Profile, *, lookup: Lookup | None = None, shards: int | None = None
) -> None:
    """Raise unless the forest was made with the given profile and, if given, lookup and shards."""
    if meta != dataclasses.replace(
        Meta.of(profile, lookup=meta.lookup, shards=meta.shards), layout=meta.layout
    ):
        raise ForestMismatch(
            f"the forest {name!r} was made with profile {meta.profile!r}, and the "
            f"requested profile is {profile.label!r}: fingerprints of different profiles cannot be compared; "
            "name another forest, or move the articles to it with `esdedup migrate`",
            forest=name,
            found=meta.profile,
            supported=profile.label,
        )
    if lookup not in {None, meta.lookup} or shards not in {None, meta.shards}:
        raise ForestMismatch(
            f"the forest {name!r} has the lookup {meta.lookup!r}, and its number of shards is "
            f"{meta.shards:,}: omit these settings, or rebuild the forest with them",
            forest=name,
        )
