"""Checks that each article is indexed once, unchanged, and with the same root as in a replay."""

import contextlib
import dataclasses
import itertools
import re
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psutil
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Maintenance
from tests.support.forests import nodes
from tests.support.sidecar_process import SidecarProcess

Articles = dict[str, dict[str, Any]]
# The maximum number of examples that the description of a fault names.
_MOST_NAMED = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Indices:
    """The names of the indices that a soak test creates."""

    articles: str = "soak"
    forest: str = "soak-forest"
    # The replay's index of articles, which stays empty, and the replay's forest.
    replayed: str = "soak-replayed"
    replay: str = "soak-replay"
    # The index of articles that readers check, and its forest.
    settled: str = "soak-settled"
    settled_forest: str = "soak-settled-forest"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a soak test."""

    figures: dict[str, int]
    faults: list[str]


def outcome_of(
    es: Elasticsearch,
    given: Articles,
    indices: Indices,
    *,
    report: Callable[[str], None],
    name: str = "dedup",
) -> Outcome:
    """Compare an index with the articles that were fed, and its forest with a replay of the articles.

    Args:
        es: A client of Elasticsearch itself.
        given: The articles, by id.
        indices: The names of the indices of articles and of the replay.
        report: Called with the name of each step when it begins.
        name: The name of the object that contains an article's root.
    """
    report("reading the articles")
    es.indices.refresh(index=indices.articles)
    hits = helpers.scan(es, index=indices.articles, size=2_000, _source=["text", name, f"{name}.*"])
    found = {hit["_id"]: hit["_source"] for hit in hits}
    dedups = {id_: each.get(name, {}) for id_, each in found.items()}
    numbers = Counter(each.get("seq") for each in dedups.values())
    roots = {id_: each.get("root") for id_, each in dedups.items()}
    order = _order(es, dedups, indices.forest) if found.keys() <= given.keys() else []
    report("replaying the articles")
    replayed = dict(_replayed(es, [given[id_] for id_ in order], indices))
    report("verifying the forest")
    violations = [str(each) for each in Maintenance(es, forest=indices.forest).verify([indices.articles])]
    faults = {
        "articles missing in the index": sorted(given.keys() - found.keys()),
        "articles indexed but never fed": sorted(found.keys() - given.keys()),
        "articles with a changed text": [
            id_ for id_ in given.keys() & found.keys() if found[id_]["text"] != given[id_]["text"]
        ],
        "articles with fields besides text and dedup": [
            id_ for id_, each in found.items() if each.keys() > {"text", name}
        ],
        "seqs shared by several articles": [str(each) for each, count in numbers.items() if count > 1],
        "articles with a different root than in the replay": [
            f"{id_}: {roots[id_]} != {replayed.get(id_)}" for id_ in order if roots[id_] != replayed.get(id_)
        ],
        "violations of the forest": violations,
    }
    figures = {
        "articles fed": len(given),
        "articles indexed": es.count(index=indices.articles)["count"],
        "roots": len(set(roots.values())),
        "articles replayed": len(replayed),
        **{what: len(each) for what, each in faults.items()},
    }
    return Outcome(
        figures,
        [f"{len(each):,} {what}: {'; '.join(each[:_MOST_NAMED])}" for what, each in faults.items() if each],
    )


def _order(es: Elasticsearch, dedups: Articles, forest: str) -> list[str]:
    """Return the ids of the articles in the order in which their content hashes first arrived.

    An article that was sent again has a later number, but the node that its text made keeps the first number.
    If several articles have that text, the first of these articles gets the node's number.
    """
    made: dict[str, int] = {node.content_hash: node.seq for node in nodes(es, forest).values()}
    places: dict[str, int] = {}
    for id_, dedup in sorted(dedups.items(), key=lambda each: int(each[1].get("seq", 0))):
        seq = int(dedup.get("seq", 0))
        places[id_] = made.pop(dedup.get("page", ""), seq)
    return sorted(places, key=places.__getitem__)


def _replayed(
    es: Elasticsearch, articles: list[dict[str, Any]], indices: Indices
) -> Iterator[tuple[str, str]]:
    """Yield the id and root of each article, fed one after the other to the replay's forest."""
    with Dedup(es, forest=indices.replay) as dedup:
        dedup.setup(indices.replayed)
        for each in dedup.enrich({"_index": indices.replayed, **article} for article in articles):
            yield each["_id"], each["_source"]["dedup"]["root"]


_MIB = 1 << 20
# The time in which a process loads its modules and, as the owner, the forest.
_WARM_S = 30.0
# The memory of a Python process may vary by 15 % and 32 MiB. A leak in each of 100,000 articles exceeds that.
_MOST_GROWTH, _SLACK_BYTES = 1.15, 32 * _MIB
_FOREST = re.compile(rb"^esdedup_forest_memory_bytes\{[^}]*\} (\S+)$", re.MULTILINE)
_OWNED = re.compile(rb"^esdedup_lease_held\{[^}]*\} 1", re.MULTILINE)
_ASK_S = 2.0
# The median of this many first samples is compared with the median of as many last samples.
_SOME = 3


@dataclasses.dataclass(frozen=True)
class Sample:
    """The memory that a process used at one time."""

    at_s: float
    resident_bytes: int
    # The memory used for the forest's nodes and content hashes.
    forest_bytes: int
    is_owner: bool

    @property
    def own_bytes(self) -> int:
        return self.resident_bytes - self.forest_bytes


class Memory:
    """The memory of one process over time."""

    def __init__(self, sidecar: SidecarProcess) -> None:
        self.sidecar = sidecar
        self.samples: list[Sample] = []

    @property
    def is_alive(self) -> bool:
        return self.sidecar.process.poll() is None

    def take(self, now_s: float) -> None:
        """Take a sample if the process is alive and responds."""
        with contextlib.suppress(OSError, psutil.Error):
            with urllib.request.urlopen(f"{self.sidecar.url}/metrics", timeout=_ASK_S) as answer:
                metrics = answer.read()
            resident = psutil.Process(self.sidecar.process.pid).memory_info().rss
            forest_bytes = round(sum(map(float, _FOREST.findall(metrics))))
            self.samples.append(Sample(now_s, resident, forest_bytes, bool(_OWNED.search(metrics))))

    def growth(self, since_s: float) -> tuple[Sample, Sample] | None:
        """Return an early and a late sample to compare; None if the process did not live long enough.

        The early sample is taken after `since_s`, once the process is warm. Taking over a forest uses memory
        that Python keeps, so only samples since the process last gained or lost the forest are used.
        """
        last = self.samples[-1:]
        same = list(
            itertools.takewhile(lambda each: each.is_owner is last[0].is_owner, reversed(self.samples))
        )
        warm = [each for each in same[::-1] if each.at_s >= max(since_s, same[-1].at_s + _WARM_S)]
        return (_middle(warm[:_SOME]), _middle(warm[-_SOME:])) if len(warm) > 2 * _SOME else None


def is_flat(first: Sample, last: Sample) -> bool:
    """Return whether the memory of a process, without the forest, has grown little."""
    return last.own_bytes <= _MOST_GROWTH * first.own_bytes + _SLACK_BYTES


def shown(sample: Sample) -> str:
    return f"{sample.resident_bytes / _MIB:,.0f} MiB (forest {sample.forest_bytes / _MIB:,.0f})"


def _middle(samples: list[Sample]) -> Sample:
    return sorted(samples, key=lambda each: each.own_bytes)[len(samples) // 2]
