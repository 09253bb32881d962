"""What a forest's index says of itself, and which indices are refused."""

import dataclasses
from typing import Any

from elasticsearch import Elasticsearch, NotFoundError

from esdedup.elastic.errors import translated
from esdedup.errors import ForestIncomplete, ForestMismatch
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import Profile

FORMAT = 3
"""Of the forest's index; an index of another format is refused."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Meta:
    """What a forest's index says of itself."""

    format: int = FORMAT
    # The label of the profile that made the fingerprints.
    profile: str
    # The name of the layout of the nodes' keys.
    layout: str
    # Two simhashes are near up to this distance, inclusive.
    max_distance_bits: int
    # When two whole texts agree; None: that nobody asks.
    agreement: Agreement | None
    # Made anew from articles, and not complete yet: of no use to anybody else.
    rebuilding: bool = False

    @classmethod
    def of(cls, profile: Profile) -> "Meta":
        """Describe a forest of that profile."""
        return cls(
            profile=profile.label,
            layout=profile.layout.name,
            max_distance_bits=profile.max_distance_bits,
            agreement=profile.agreement,
        )

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Meta":
        """Read what was written as a dict."""
        agreement = values["agreement"]
        return cls(**values | {"agreement": None if agreement is None else Agreement(**agreement)})


def read_meta(client: Elasticsearch, name: str) -> Meta | None:
    """Return what the index says of itself, None if there is none.

    Raises:
        ForestMismatch: That index is no forest, or of an unknown format.
    """
    with translated(f"open the forest {name!r}"):
        try:
            answer = client.indices.get_mapping(index=name)
        except NotFoundError:
            return None
    return meta_of({index: each["mappings"] for index, each in answer.items()}, name=name)


def meta_of(mappings: dict[str, dict[str, Any]], *, name: str) -> Meta:
    """Read what an index says of itself, from the mappings behind its name.

    Raises:
        ForestMismatch: That index is no forest, or of an unknown format.
    """
    if name not in mappings:
        raise ForestMismatch(
            f"{name!r} is an alias of {', '.join(mappings)}: name the index itself", forest=name
        )
    found = mappings[name].get("_meta", {}).get("esdedup", {})
    if "format" not in found:
        raise ForestMismatch(
            f"the index {name!r} is no forest of esdedup; name another one", forest=name, supported=FORMAT
        )
    if found["format"] != FORMAT:
        raise ForestMismatch(
            f"the forest {name!r} has format {found['format']}; this version of esdedup reads "
            f"format {FORMAT}: use the version that made it, or name another forest",
            forest=name,
            found=found["format"],
            supported=FORMAT,
        )
    return Meta.read(found)


def refuse_incomplete(name: str, meta: Meta) -> None:
    """Make sure that no rebuild of the forest has begun and not ended.

    Raises:
        ForestIncomplete: One has.
    """
    if meta.rebuilding:
        raise ForestIncomplete(
            f"the forest {name!r} is being rebuilt from articles; if that was interrupted, run it again",
            forest=name,
        )


def refuse_others(name: str, meta: Meta, profile: Profile) -> None:
    """Make sure that the forest is complete, and was made with that profile.

    Raises:
        ForestIncomplete: A rebuild has not ended.
        ForestMismatch: It was made with another profile.
    """
    refuse_incomplete(name, meta)
    if meta != Meta.of(profile):
        raise ForestMismatch(
            f"the forest {name!r} was made with profile {meta.profile!r}, and this is "
            f"{profile.label!r}: fingerprints of two profiles do not compare; name another forest",
            forest=name,
            found=meta.profile,
            supported=profile.label,
        )
