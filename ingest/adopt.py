"""Adopts what indices have already: gives each article its fingerprint and root where it is."""

import collections
import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import pydantic
from elasticsearch import Elasticsearch
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import check_again, log_rejected
from esdedup.ingest.files import FileArticle
from esdedup.ingest.learn import first_look, looks
from esdedup.ingest.load import OUTCOMES

from esdedup.elastic.article_indices import check_names
from esdedup.elastic.bulk import ArticleBulk, Written
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.mappings import fields_of, is_routed_by_root, is_set_up, mapping_of, refuse_forests
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Query, refresh
from esdedup.errors import ArticleRejected, IndexBlocked, IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Assignment

_HITS_AT_ONCE = 500
_LATEST = 1_000
_MOST_INDICES = 10_000
# Of an update: the article was written or deleted since it was read.
_CHANGED_STATUSES = frozenset({404, 409})
# Types of fields by which articles are sorted together.
_SORTED = frozenset({"date", "date_nanos", "long", "integer", "unsigned_long", "double"})
_BLOCKS = ("read_only", "read_only_allow_delete", "write", "metadata")


class FoundIndex(pydantic.BaseModel, frozen=True):
    """An index, as it was before its articles were adopted."""

    index: str
    # All that it has, and those of them that esdedup has not enriched.
    articles: int
    without_root: int
    # Of its primary shards.
    size_bytes: int
    is_set_up: bool


class AdoptionSummary(pydantic.BaseModel, frozen=True):
    """The outcome of a run: each article that was read was adopted, has changed, or failed."""

    read: int
    adopted: int
    # Written or deleted by others since it was read. What has no root then was read again.
    changed: int
    failed: int
    # The adopted ones, by what the forest decided.
    new_roots: int
    joined: int
    known: int
    without_fingerprint: int
    seconds: float


class Adoption:
    """Enriches the articles of indices in place, in the order of their own time, whatever index they are in.

    What has been done is seen in the articles themselves: after a run that was killed, another one goes on.
    """

    def __init__(
        self,
        client: Elasticsearch,
        index: str,
        *,
        fields: Fields | None = None,
        on_rejected: Callable[[ArticleRejected], None] = log_rejected,
    ) -> None:
        """Look at the indices behind a name; nothing is written.

        Args:
            client: Closed by the caller.
            index: An index, alias or pattern, or several names, separated by commas.
            fields: The names of the articles' fields. None: those that an index keeps, else the usual ones.
            on_rejected: Called for each article that cannot be enriched, and stays as it is.

        Raises:
            FieldsNotFound: The articles that were looked at have no text under that name, or have another
                field under a name that is more likely.
            IndexBlocked: An index is read-only, and has articles without a root.
            IndexNotReady: There is none, one is a forest or routed by root, its articles cannot be sorted by
                their time, or they keep different names.
        """
        if not index:
            raise SettingError("the name of the index is empty")
        self._client = client
        self._index = index
        self._on_rejected = on_rejected
        self._counts: collections.Counter[str] = collections.Counter()
        self._failed: set[str] = set()
        self._seconds = 0.0
        indices = self._indices()
        mappings = {name: each["mappings"] for name, each in indices.items()}
        ready = {name: each for name, each in mappings.items() if is_set_up(each, given=fields)}
        self.fields = fields_of(ready or mappings, given=fields)
        self.found = self._look(mappings, ready.keys())
        # Of a data stream's index, those of the stream.
        self.templates = self._templates({each.get("data_stream", name) for name, each in indices.items()})
        to_do = {each.index for each in self.found if each.without_root}
        self._refuse_blocked({name: each for name, each in indices.items() if name in to_do})
        missing = check_names(patient(client), index, mappings.keys() - ready.keys(), self.fields)
        self._refuse_unsorted({name: mappings[name] for name in to_do}, has_times="time" not in missing)

    @property
    def summary(self) -> AdoptionSummary:
        """The run so far; after an error, articles that were read and not acknowledged count as failed."""
        counts = {name: self._counts[name] for name in AdoptionSummary.model_fields}
        counts["failed"] = counts["read"] - counts["adopted"] - counts["changed"]
        return AdoptionSummary.model_validate(counts | {"seconds": round(self._seconds, 3)})

    def repeated_of_latest(self, profile: Profile) -> tuple[int, int]:
        """Cluster the latest articles in memory, 1,000 at most.

        Returns:
            How many there were, and how many of them would be in the cluster of an earlier one.
        """
        latest = {"order": "desc", "unmapped_type": "date", "numeric_type": "date"}
        with translated(f"read the latest articles of {self._index!r}", index=self._index):
            answer = patient(self._client).search(
                index=self._index, query=self._without_root, sort=[{self.fields.time: latest}], size=_LATEST
            )
        articles = list(map(_article, reversed(answer["hits"]["hits"])))
        clustering = Clustering(
            profile=profile,
            fields=self.fields,
            use_time=False,
            retention=timedelta(days=1),
            on_rejected=lambda _: None,
        )
        roots = [each.root for each in clustering.cluster(articles) if each.root is not None]
        return len(articles), len(roots) - len(set(roots))

    @property
    def _without_root(self) -> Query:
        return {"bool": {"must_not": {"exists": {"field": self.fields.root}}}}

    def run(
        self,
        dedup: Dedup,
        *,
        backfill: bool = True,
        learn_first: bool = False,
        most_per_s: float | None = None,
        on_read: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Set up the indices and their templates, and enrich what has no root.

        What others write meanwhile stays as they wrote it.

        Args:
            dedup: Made with `fields`. If it has a sidecar, others go on feeding that.
            backfill: Take the forest's time from the articles. A sidecar takes its own, the clock's: then
                all that is adopted counts as seen today, and a cluster may span any time.
            learn_first: Learn from 40,000 articles what is boilerplate before these are enriched.
            most_per_s: How many articles a second, at most, greater than 0; None: as fast as it goes.
            on_read: Called with the number of articles after each request.

        Raises:
            IndexNotReady: An index has fields that do not suit, or was deleted meanwhile.
            ForestError: Another process owns the forest, or it has another profile.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        for each in self.found:
            if not each.is_set_up:
                dedup.setup(each.index)
        for template in self.templates:
            dedup.setup_template(template)
        bulk, started = ArticleBulk(self._client, index=self._index), time.monotonic()
        try:
            read = -1
            # What somebody changed who does not enrich is read again.
            while read != self._counts["read"]:
                read = self._counts["read"]
                execute(patient(self._client), refresh(self._index))
                for first, hits in looks(self._hits, learn_first=learn_first):
                    if learn_first:
                        first_look(dedup, map(_article, first), self.fields)
                    outcomes: dict[tuple[str, str], str] = {}
                    for written in bulk.write(self._updates(dedup, hits, outcomes, backfill)):
                        for index in {each.index for each in written}:
                            check_again(dedup.require_ready, index)
                        self._acknowledge(written, outcomes)
                        on_read(len(written))
                        if most_per_s is not None:
                            due_s = (self._counts["adopted"] + self._counts["changed"]) / most_per_s
                            time.sleep(max(0.0, started + due_s - time.monotonic()))
        finally:
            self._seconds += time.monotonic() - started

    def _indices(self) -> dict[str, dict[str, Any]]:
        with translated(f"look at {self._index!r}", index=self._index):
            found = dict(patient(self._client).indices.get(index=self._index))
        if not found:
            raise IndexNotReady(f"there is no index {self._index!r}", index=self._index, status=404)
        refuse_forests({name: each["mappings"] for name, each in found.items()})
        return found

    def _refuse_blocked(self, indices: dict[str, dict[str, Any]]) -> None:
        for name, each in indices.items():
            blocks = each["settings"]["index"].get("blocks", {})
            if block := next((block for block in _BLOCKS if blocks.get(block) == "true"), None):
                raise IndexBlocked(
                    f"the index {name!r} is read-only (index.blocks.{block}), so its articles cannot be "
                    "adopted: lift the block, or name the others",
                    index=name,
                )
            if is_routed_by_root(each["mappings"]):
                raise IndexNotReady(
                    f"the index {name!r} is routed by root, so its articles cannot be enriched where they "
                    "are: index them again",
                    index=name,
                )

    def _refuse_unsorted(self, mappings: dict[str, dict[str, Any]], *, has_times: bool) -> None:
        """Make sure that articles can be read in the order of their time; those without a time have none."""
        field = self.fields.time
        for name, mapping in mappings.items():
            found = mapping.get("runtime", {}).get(field) or mapping_of(mapping, field)
            if found.get("type") not in _SORTED and (found or has_times):
                raise IndexNotReady(
                    f"the index {name!r} does not map the field {field!r} as a date or a number, so its "
                    "articles cannot be read in the order of their time: add a runtime field of that name "
                    f'(PUT {name}/_mapping with {{"runtime": {{"{field}": {{"type": "date"}}}}}})',
                    index=name,
                )

    def _look(
        self, mappings: dict[str, dict[str, Any]], ready: collections.abc.Set[str]
    ) -> tuple[FoundIndex, ...]:
        client = patient(self._client)
        without = {"missing": {"field": self.fields.root}}
        indices = {"terms": {"field": "_index", "size": _MOST_INDICES}, "aggs": {"without": without}}
        with translated(f"count the articles of {self._index!r}", index=self._index):
            counted = client.search(index=self._index, size=0, aggs={"indices": indices})
            sizes = client.indices.stats(index=self._index, metric="store")["indices"]
        counts = {each["key"]: each for each in counted["aggregations"]["indices"]["buckets"]}
        return tuple(
            FoundIndex(
                index=name,
                articles=counts[name]["doc_count"] if name in counts else 0,
                without_root=counts[name]["without"]["doc_count"] if name in counts else 0,
                size_bytes=sizes[name]["primaries"]["store"]["size_in_bytes"] if name in sizes else 0,
                is_set_up=name in ready,
            )
            for name in sorted(mappings)
        )

    def _templates(self, names: set[str]) -> tuple[str, ...]:
        """Return the index templates that make indices of such names; none that Elasticsearch manages."""
        client = patient(self._client).options(ignore_status=403)
        with translated(f"read the templates of {self._index!r}"):
            templates = client.indices.get_index_template().get("index_templates", [])
        found = set()
        for name in names:
            matching = [
                each
                for each in templates
                if any(fnmatch.fnmatchcase(name, one) for one in each["index_template"]["index_patterns"])
            ]
            strongest = max(
                matching, key=lambda each: each["index_template"].get("priority", 0), default=None
            )
            if strongest and not strongest["index_template"].get("_meta", {}).get("managed"):
                found.add(strongest["name"])
        return tuple(sorted(found))

    def _hits(self) -> Iterator[dict[str, Any]]:
        """Yield what has no root, by its own time; what has none comes first."""
        by_time = {"order": "asc", "missing": "_first", "unmapped_type": "date", "numeric_type": "date"}
        body: Query = {
            "query": self._without_root,
            "sort": [{self.fields.time: by_time}, {"_index": "asc"}],
            "size": _HITS_AT_ONCE,
            "seq_no_primary_term": True,
            "track_total_hits": False,
        }
        for page in hit_pages(patient(self._client), self._index, body):
            yield from (hit for hit in page if hit["_id"] not in self._failed)

    def _updates(
        self,
        dedup: Dedup,
        hits: Iterable[dict[str, Any]],
        outcomes: dict[tuple[str, str], str],
        backfill: bool,
    ) -> Iterator[dict[str, Any]]:
        """Yield the updates of articles as they are now, and note what was decided for each."""
        decided: collections.deque[str] = collections.deque()

        def assigned(_: ArticleAction, assignment: Assignment) -> None:
            decided.append(OUTCOMES[assignment.kind])

        actions = map(self._action, hits)
        enriched = dedup.enrich(actions, backfill=backfill, on_rejected=self._reject, on_assigned=assigned)
        for action in enriched:
            outcomes[action["_index"], action["_id"]] = decided.popleft()
            added = {self.fields.dedup: action["_source"][self.fields.dedup]}
            yield action | {"_op_type": "update", "_source": {"doc": added}}

    def _action(self, hit: dict[str, Any]) -> dict[str, Any]:
        self._counts["read"] += 1
        action = {"_index": hit["_index"], "_id": hit["_id"], "_source": hit["_source"]}
        version = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        return action | version | ({"routing": hit["_routing"]} if "_routing" in hit else {})

    def _acknowledge(self, written: list[Written], outcomes: dict[tuple[str, str], str]) -> None:
        for each in written:
            outcome = outcomes.pop((each.index, each.id))
            if each.refusal is None:
                self._counts.update(["adopted", outcome])
            elif each.status in _CHANGED_STATUSES:
                self._counts["changed"] += 1
            else:
                self._reject(ArticleRejected(each.id, f"Elasticsearch refuses it: {each.refusal}"))

    def _reject(self, rejected: ArticleRejected) -> None:
        self._failed.add(rejected.article)
        self._on_rejected(rejected)


def _article(hit: dict[str, Any]) -> FileArticle:
    return FileArticle(place=hit["_index"], id=hit["_id"], article=hit["_source"], size_bytes=0)
