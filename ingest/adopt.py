"""Adopts what indices have already: gives each article its fingerprint and root where it is."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import KNOWN_MS
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.dates import UNSET_MS
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import log_rejected
from esdedup.ingest.files import FileArticle
from esdedup.ingest.in_place import Hit, InPlace, place_of
from esdedup.ingest.learn import first_pass, two_passes

from esdedup.elastic.article_indices import check_names
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute
from esdedup.elastic.kept import fields_of, mapping_of
from esdedup.elastic.mappings import is_set_up, refuse_unusable
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import refresh
from esdedup.errors import ArticleRejected, IndexNotReady
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import NO_TIME

_LATEST = 1_000
# Sort value of articles without a time.
_LAST = 2**63 - 1
# Types of fields by which articles are sorted together.
_SORTED = frozenset({"date", "date_nanos", "long", "integer", "unsigned_long", "double"})


class Adoption(InPlace):
    """Enriches articles without a root across all indices, in the order of their own time."""

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
        super().__init__(client, index, on_rejected=on_rejected)
        indices = self._indices()
        mappings = {name: each["mappings"] for name, each in indices.items()}
        ready = {name: each for name, each in mappings.items() if is_set_up(each, given=fields)}
        self.fields = fields_of(ready or mappings, given=fields)
        refuse_unusable(mappings, self.fields)
        self.found = self._look(mappings, set_up=ready)
        self.templates = self._templates(indices)
        to_do = {each.index for each in self.found if each.without_root}
        self._refuse_unwritable({name: each for name, each in indices.items() if name in to_do})
        new = mappings.keys() - ready.keys()
        missing = check_names(patient(client), index, new, self.fields, are_given=fields is not None)
        self._refuse_unsorted({name: mappings[name] for name in to_do}, has_times="time" not in missing)

    def repeated_of_latest(self, profile: Profile) -> tuple[int, int]:
        """Cluster the latest 1,000 articles in memory; return how many there were, and how many repeat."""
        latest = {"order": "desc", "unmapped_type": "date", "numeric_type": "date"}
        with translated(f"read the latest articles of {self._index!r}", index=self._index):
            answer = patient(self._client).search(
                index=self._index, query=self._to_do, sort=[{self.fields.time: latest}], size=_LATEST
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

    def run(
        self,
        dedup: Dedup,
        *,
        backfill: bool = True,
        learn_first: bool = False,
        most_per_s: float | None = None,
        on_read: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Set up the indices and their templates, and enrich articles without a root.

        Articles that others write meanwhile stay as they are.

        Args:
            dedup: Made with `fields`. If it has a sidecar, others go on feeding that.
            backfill: Take the forest's time from the articles. A sidecar takes its own, the clock's: then
                all that is adopted counts as seen today, and a cluster may span any time.
            learn_first: Learn from 40,000 articles what is boilerplate before these are enriched.
            most_per_s: How many articles a second, at most, greater than 0; None: as fast as it goes.
            on_read: Called with the number of articles after each request.
        """
        self._set_up(dedup)
        for template in self.templates:
            dedup.setup_template(template)
        read = -1
        # Read again what others changed without enriching it.
        while read != self._counts["read"]:
            read = self._counts["read"]
            execute(patient(self._client), refresh(self._index))
            for first, hits in two_passes(self._by_time, learn_first=learn_first):
                if learn_first:
                    first_pass(dedup, map(_article, first), self.fields)
                self._enrich(dedup, hits, backfill=backfill, most_per_s=most_per_s, on_read=on_read)

    def _set_up(self, dedup: Dedup) -> None:
        for each in self.found:
            if not each.is_set_up:
                dedup.setup(each.index)

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

    def _by_time(self) -> Iterator[Hit]:
        """Yield articles without a root by their own time; last those without a time, or a default one."""
        by_time = {"order": "asc", "missing": "_last", "unmapped_type": "date", "numeric_type": "date"}
        old = {"range": {self.fields.time: {"lt": UNSET_MS[-1].stop, "format": "epoch_millis"}}}
        for query, is_unset in (self._to_do, False), ({"bool": {"filter": [self._to_do, old]}}, True):
            for hit in self._hits(query, {self.fields.time: by_time}):
                if is_unset == any(hit["sort"][0] in each for each in UNSET_MS):
                    own = hit["_source"].get(self.fields.dedup)
                    if own is None or (isinstance(own, dict) and {"root", "seq", "profile"} <= own.keys()):
                        yield hit
                        continue
                    self._counts["read"] += 1
                    why = f"has a field {self.fields.dedup!r} of its own"
                    self._reject(place_of(hit), ArticleRejected(hit["_id"], why))

    def _action(self, hit: Hit) -> dict[str, Any]:
        """Return an article's action, with the time by which Elasticsearch has sorted it."""
        return super()._action(hit) | {KNOWN_MS: NO_TIME if hit["sort"][0] == _LAST else hit["sort"][0]}


def _article(hit: Hit) -> FileArticle:
    return FileArticle(place=hit["_index"], id=hit["_id"], article=hit["_source"], size_bytes=0)
