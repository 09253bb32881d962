"""Unit costs: the measured cost of one article, node or content hash, with place and date of measurement."""

import dataclasses
import math
from importlib import resources
from typing import Annotated, Self

import pydantic

from esdedup.errors import SettingError
from esdedup.fingerprint.bands import NODES
from esdedup.fingerprint.profile import PROFILES, Profile, get_profile

FORMAT = 1
SHIPPED = "unit_costs.json"

_Cost = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
_Positive = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class _Model(pydantic.BaseModel, frozen=True, extra="forbid"):
    pass


class Measured(_Model, frozen=True):
    """The machine, time and versions of a measurement."""

    # The day, as ISO 8601 has it.
    on: str
    machine: str
    # By name: Python, packages, the server.
    versions: dict[str, str]


class PerText(_Model, frozen=True):
    """Processor time by a text's length."""

    us_a_text: _Cost
    us_a_character: _Cost

    def us(self, characters: float) -> float:
        """Return microseconds for a text of a number of characters."""
        return self.us_a_text + characters * self.us_a_character


class Deciding(_Model, frozen=True):
    """Processor time of an arrival by the number of nodes in memory: linear in the number's logarithm."""

    us_at_first: _Cost
    first_nodes: Annotated[int, pydantic.Field(gt=0)]
    # Added for each doubling of the number of nodes.
    us_a_doubling: _Cost
    # The largest number of nodes measured.
    measured_nodes: Annotated[int, pydantic.Field(gt=0)]

    def us(self, nodes: int) -> float:
        """Return microseconds for an arrival among a number of nodes."""
        return self.us_at_first + self.us_a_doubling * max(0.0, math.log2(max(1, nodes) / self.first_nodes))


class ServerWork(_Model, frozen=True):
    """Processor time and heap that dedup costs Elasticsearch."""

    # Processor time for what an arrival writes to the forest, merges included.
    us_an_arrival: _Cost
    # Processor time for what the dedup object adds to an article.
    us_an_article: _Cost
    # A refresh rebuilds the global ordinals of the roots of a shard: time and heap for each root.
    refresh_us_a_root: _Cost
    heap_bytes_a_root: _Cost
    # The numbers of nodes, articles and roots measured.
    measured_nodes: int
    measured_articles: int
    measured_roots: int


class ServerCosts(_Model, frozen=True):
    """Sizes in Elasticsearch, and the cost of writing."""

    # Bytes on disk in the forest's index, merged to one segment.
    node_bytes: _Positive
    page_bytes: _Positive
    # Bytes on disk that the dedup object adds to an article, merged.
    article_bytes: _Cost
    # Processor time of the owner for an arrival, excluding the decision in memory.
    us_a_commit: _Cost
    # Measured with one owner that waits for the server after each batch of 1,000.
    arrivals_a_second: _Positive
    # Requests of the forest for a batch of 1,000 arrivals.
    requests_a_batch: _Positive
    # None in files of earlier versions.
    work: ServerWork | None = None


def costs_key(profile: Profile) -> str:
    """Return the key of a profile's costs: words and keywords matter, boilerplate and lengths do not."""
    standard = get_profile(profile.name) if profile.name in PROFILES else profile
    plain = dataclasses.replace(
        profile, keep_boilerplate=standard.keep_boilerplate, max_text_length=standard.max_text_length
    )
    return profile.name if plain.label == standard.label else plain.label


class UnitCosts(_Model, frozen=True):
    """The costs of one profile."""

    # As `costs_key` names it.
    profile: str
    # The layout of nodes' keys. Files of earlier versions may have costs of others too.
    layout: str
    # Fingerprints of whole texts, and of texts without their boilerplate; the latter without `omitting`.
    whole: PerText
    without_boilerplate: PerText
    # Finding and learning boilerplate, by the owner of the forest.
    omitting: PerText
    deciding: Deciding
    # In the memory of the owner, including its document, excluding the table of content hashes.
    node_bytes: _Positive
    # The largest memory of a process that fingerprints and assigns batches of 1,000, without its nodes.
    process_bytes: _Positive
    # Memory of a process that opens the forest, beyond what it keeps: with no node, and for each.
    opening_bytes: _Cost
    opening_bytes_a_node: _Cost
    server: ServerCosts


class LearnedCosts(_Model, frozen=True):
    """The most that learned boilerplate takes: both of its periods full."""

    measured: Measured
    memory_bytes: _Positive
    disk_bytes: _Positive


class CostsFile(_Model, frozen=True):
    """Unit costs as they are saved."""

    format: int = FORMAT
    measured: Measured
    costs: tuple[UnitCosts, ...]
    learned: LearnedCosts

    @classmethod
    def read(cls, text: str, *, name: str) -> Self:
        """Read saved costs from JSON; raises `SettingError`, which names the file, for anything else."""
        try:
            found = cls.model_validate_json(text)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise SettingError(
                f"{name} has no unit costs as `python -m benchmarks unit-costs` writes them: "
                f"{f'{where}: ' if where else ''}{first['msg']}"
            ) from None
        if found.format != FORMAT:
            raise SettingError(f"{name} has unit costs in format {found.format}; this version reads {FORMAT}")
        return found

    def of(self, profile: Profile, *, name: str) -> UnitCosts:
        """Return the costs of a profile; raises `SettingError` if they were not measured."""
        key = costs_key(profile)
        for each in self.costs:
            if (each.profile, each.layout) == (key, NODES.name):
                return each
        known = ", ".join(dict.fromkeys(each.profile for each in self.costs))
        raise SettingError(
            f"{name} has no unit costs of {key}, but of {known}: measure with `python -m benchmarks`"
        )


def shipped() -> CostsFile:
    """Return the unit costs in the package, which `python -m benchmarks unit-costs --keep` writes."""
    text = resources.files("esdedup.plan").joinpath(SHIPPED).read_text(encoding="utf-8")
    return CostsFile.read(text, name=SHIPPED)
