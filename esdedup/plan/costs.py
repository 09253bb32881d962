"""Unit costs: measured costs of an article, a node and a content hash, and how they were measured."""

import dataclasses
import math
from importlib import resources
from typing import Annotated, Any, Self

import pydantic

from esdedup.errors import SettingError
from esdedup.fingerprint.bands import PAIRS, TRIPLES
from esdedup.fingerprint.profile import PROFILES, Profile

FORMAT = 1
SHIPPED = "unit_costs.json"

_Cost = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
_Positive = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
_Count = Annotated[int, pydantic.Field(gt=0)]


class Measured(pydantic.BaseModel, frozen=True):
    """The date, machine and versions of a measurement."""

    # The date in ISO 8601.
    on: str
    machine: str
    # The versions of Python, packages and the server, by name.
    versions: dict[str, str]


class PerText(pydantic.BaseModel, frozen=True):
    """Processor time as a function of a text's length."""

    us_a_text: _Cost
    us_a_character: _Cost

    def us(self, characters: float) -> float:
        """Return the microseconds for a text of this many characters."""
        return self.us_a_text + characters * self.us_a_character


class PerNodes(pydantic.BaseModel, frozen=True):
    """Processor time of an arrival by the number of nodes."""

    us_at_first: _Cost
    first_nodes: _Count
    # The time added by each doubling of the number of nodes, and by each million, for their candidates.
    us_a_doubling: _Cost
    us_a_million: _Cost = 0.0
    # The largest number of nodes measured.
    measured_nodes: _Count

    def us(self, nodes: float) -> float:
        """Return the microseconds for an arrival among this many nodes."""
        doublings = math.log2(max(1.0, nodes / self.first_nodes))
        return self.us_at_first + self.us_a_doubling * doublings + self.us_a_million * nodes / 1e6


class Searching(pydantic.BaseModel, frozen=True):
    """The costs of a forest whose nodes are searched for in Elasticsearch."""

    # Bytes on disk of a node, in an index that was merged to one segment.
    node_bytes: _Positive
    # The part of a node that searches read, so that it should be in file caches; 0 if it is unknown.
    cached_bytes: _Cost = 0.0
    # Elasticsearch's processor time to search in one shard, by the number of nodes in the shard.
    shard: PerNodes
    # Other processor time of Elasticsearch for an arrival.
    server_us: _Cost
    # The owner's processor time, without the fingerprint; and for the candidates that a million nodes add.
    owner_us: _Cost
    owner_us_a_million: _Cost = 0.0
    requests_a_batch: _Positive
    measured_shards: _Count
    # None if measured together with the other costs.
    measured: Measured | None = None


class ServerWork(pydantic.BaseModel, frozen=True):
    """Processor time and heap that Elasticsearch needs for dedup."""

    # Processor time for writing an arrival to the forest, including merges of segments.
    us_an_arrival: _Cost
    # Processor time for indexing the dedup object of an article.
    us_an_article: _Cost
    # Time and heap for each root in a shard, whose global ordinals every refresh rebuilds.
    refresh_us_a_root: _Cost
    heap_bytes_a_root: _Cost
    # The numbers of nodes, articles and roots in the measurement.
    measured_nodes: int
    measured_articles: int
    measured_roots: int


class ServerCosts(pydantic.BaseModel, frozen=True):
    """Sizes in Elasticsearch, and the cost of writing."""

    # Bytes on disk of a node, and of a content hash, in a forest's index that was merged to one segment.
    node_bytes: _Positive
    page_bytes: _Positive
    # Bytes on disk that the dedup object adds to an article, after merging.
    article_bytes: _Cost
    # The owner's processor time per arrival, excluding the assignment in memory.
    us_a_commit: _Cost
    # Requests to the forest for each batch of 1,000 arrivals.
    requests_a_batch: _Positive
    work: ServerWork
    searching: Searching


def costs_key(profile: Profile) -> str:
    """Return the key of a profile's costs, which ignores settings for boilerplate and text length."""
    standard = PROFILES.get(profile.name, profile)
    plain = dataclasses.replace(
        profile, keep_boilerplate=standard.keep_boilerplate, max_text_length=standard.max_text_length
    )
    return profile.name if plain.label == standard.label else plain.label


class UnitCosts(pydantic.BaseModel, frozen=True):
    """The costs of one profile."""

    # The profile's key (`costs_key`).
    profile: str
    # The layout of nodes' keys. Files from earlier versions may also contain costs for other layouts.
    layout: str
    # Fingerprinting whole texts; and fingerprinting texts without their boilerplate, excluding `omitting`.
    whole: PerText
    without_boilerplate: PerText
    # Finding and learning boilerplate, in the owner of the forest.
    omitting: PerText
    deciding: PerNodes
    # The owner's memory per node, including the node's document, excluding the table of content hashes.
    node_bytes: _Positive
    # Peak memory of a process that fingerprints and assigns batches of 1,000, excluding its nodes.
    process_bytes: _Positive
    # Temporary memory of a process while it opens the forest: a constant, and an amount for each node.
    opening_bytes: _Cost
    opening_bytes_a_node: _Cost
    server: ServerCosts

    @pydantic.model_validator(mode="before")
    @classmethod
    def _complete(cls, values: Any) -> Any:
        """Add the package's costs of a profile to a file of an earlier version, which lacks some."""
        server = values.get("server") if isinstance(values, dict) else None
        if not isinstance(server, dict) or {"work", "searching"} <= server.keys():
            return values
        usual = next((each.server for each in shipped().costs if each.profile == values.get("profile")), None)
        added = {} if usual is None else {"work": usual.work, "searching": usual.searching}
        return values | {"server": added | server}


class LearnedCosts(pydantic.BaseModel, frozen=True):
    """The maximum memory and disk space of learned boilerplate, when both its periods are full."""

    measured: Measured
    memory_bytes: _Positive
    disk_bytes: _Positive


class CostsFile(pydantic.BaseModel, frozen=True):
    """The contents of a file of unit costs."""

    # The file's name in messages.
    name: str = pydantic.Field(default=SHIPPED, exclude=True)
    format: int = FORMAT
    measured: Measured
    costs: tuple[UnitCosts, ...]
    learned: LearnedCosts

    @classmethod
    def read(cls, text: str, *, name: str) -> Self:
        """Parse saved costs; raises `SettingError`, which names the file, if invalid."""
        try:
            found = cls.model_validate_json(text)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise SettingError(
                f"{name} has no unit costs in the format of `python -m benchmarks unit-costs`: "
                f"{f'{where}: ' if where else ''}{first['msg']}"
            ) from None
        if found.format != FORMAT:
            raise SettingError(f"{name} has unit costs in format {found.format}; this version reads {FORMAT}")
        return found.model_copy(update={"name": name})

    def of(self, profile: Profile) -> UnitCosts:
        """Return the costs of a profile; raises `SettingError` if they were not measured."""
        key = costs_key(profile)
        # Files of earlier versions have the costs of an earlier layout.
        for layout in (TRIPLES, PAIRS):
            for each in self.costs:
                if (each.profile, each.layout) == (key, layout.name):
                    return each
        known = ", ".join(dict.fromkeys(each.profile for each in self.costs))
        raise SettingError(
            f"{self.name} has no unit costs for {key}, only for {known}: measure with `python -m benchmarks`"
        )


def shipped() -> CostsFile:
    """Return the unit costs that are included in the package."""
    text = resources.files("esdedup.plan").joinpath(SHIPPED).read_text(encoding="utf-8")
    return CostsFile.read(text, name=SHIPPED)
