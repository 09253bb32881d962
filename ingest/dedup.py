"""`Dedup`: assigns articles to clusters before a program indexes them."""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import BulkAction
from esdedup.ingest.batches import BATCH_SIZE, check_batch_size, check_flush_interval
from esdedup.ingest.enricher import Enricher, OnAssigned, OnRejected, log_rejected
from esdedup.ingest.learn import OnLearned, refuse_to_keep, valid_pages
from esdedup.ingest.owner import EXPIRE_EVERY_S, Owner, OwnerSettings
from esdedup.ingest.remote_owner import PATIENCE_S, RemoteOwner, SidecarConnection

from esdedup.arguments import checked
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.article_indices import Articles
from esdedup.elastic.client import credentials_of, is_inherited, refuse_inherited
from esdedup.elastic.closing import Closing
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.lease import DEFAULT_TTL_S
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.meta import WritableIndex, forest_of, saved_forest
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.elastic.patience import await_first_answer, patient
from esdedup.elastic.stories import settle
from esdedup.errors import ArticleRejected, IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint import WORKERS
from esdedup.fingerprint.profile import DEFAULT, Profile, get_profile
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES
from esdedup.maintenance.records import refuse_strangers
from esdedup.reading.reader import Reader, asking_owner
from esdedup.reading.scope import Scope, mappings_of
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")


class Dedup(Closing):
    """Assigns each article to a cluster before it is indexed.

    The forest, which stores the clusters, lives in the same Elasticsearch. Enriching the first article opens
    the forest and acquires its lease; `close` releases it. Threads may share a `Dedup`; their batches are
    assigned one after another. Only one process at a time may feed a forest, so a forked process cannot use
    its parent's `Dedup`. For several processes, run `esdedup sidecar`, and pass its address to each `Dedup`.

    Raises:
        ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
        ForestError: The forest is owned by another process, has another profile, is damaged, or has
            a time in the future.
        ServerError: Elasticsearch does not respond or rejects a request.
        SettingError: An argument is out of range, or a name is invalid.

    Attributes:
        reader: A `Reader` for the same Elasticsearch, which never takes the lease. While this object owns the
            forest, the reader looks texts up in this object's memory.
    """

    @checked
    def __init__(
        self,
        client: Elasticsearch,
        *,
        profile: Profile | str = DEFAULT,
        fields: Fields | None = None,
        forest: str = DEFAULT_FOREST,
        retention: timedelta | None = None,
        change_retention: bool = False,
        batch_size: int = BATCH_SIZE,
        wait_s: float = 0.0,
        lease_ttl_s: float = DEFAULT_TTL_S,
        lookup: Lookup | None = None,
        forest_shards: int | None = None,
        memory_bytes: int | None = None,
        most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES,
        overrides: Overrides = NO_OVERRIDES,
        workers: int = WORKERS,
        expire_every_s: float | None = EXPIRE_EVERY_S,
        sidecar: str | Sequence[str] | None = None,
        sidecar_token: str | None = None,
        sidecar_ca_certs: Path | None = None,
        sidecar_patience_s: float = PATIENCE_S,
    ) -> None:
        """Create a feeder; no request is sent yet.

        Args:
            client: An Elasticsearch client, which the caller must close.
            profile: The profile that the forest was created with, or the name of a standard profile.
                The profile determines how texts are fingerprinted.
            fields: The names of the articles' fields; `setup` records them in an index's mapping. None uses
                the recorded names, or the default names if none are recorded.
            forest: The name of the forest's index. Several article indices may share a forest.
            retention: How long a cluster accepts articles after its latest one. None keeps the forest's
                retention, which is 30 days in a new forest. A longer retention does not revive expired nodes.
            change_retention: Whether `retention` may be shorter than the forest's current retention.
            batch_size: How many articles are assigned together, 1 to 5,000.
            wait_s: How long to wait while another process owns the forest, or while the server is starting.
            lease_ttl_s: If this process dies without releasing the forest, another process may take over the
                forest after this many seconds; at least 1.
            lookup: How a new forest finds nodes: `memory` or `search`. With `memory`, all nodes are loaded
                before the first batch. With `search`, nodes need not fit into memory, but take longer to
                write and use more disk space. None uses the forest's lookup, `memory` in a new forest.
            forest_shards: The number of primary shards of a new forest, 1 to 1,024. More than one requires
                the lookup `search`. None uses the forest's number, 1 in a new forest.
            memory_bytes: The maximum memory for nodes; a node needs about 300 bytes. If nodes need more,
                `memory` raises `ForestFull`. With `search`, nodes are also held in memory as long as they all
                fit, which makes feeding faster; 0 disables this. None allows half of the machine's memory.
            most_plausible_leaves: A warning is logged when a cluster grows beyond this many distinct texts;
                must be a power of two.
            overrides: Passages declared boilerplate or text. They override learned boilerplate, and
                apply to articles that are enriched from now on.
            workers: How many threads fingerprint texts, 1 to 256, with the same results. Segmenting texts
                into words, which is most of the work in `classic` and `keywords`, uses a single thread.
            expire_every_s: Seconds between runs that delete expired nodes, in steps after each batch. The
                first run starts after this many seconds. None leaves the deletion to `expire`.
            sidecar: The address of a sidecar, such as ``http://localhost:9500``, or several addresses: one of
                these sidecars owns the forest. The owner assigns the articles, and is sent the credentials
                that the client sends to Elasticsearch. The forest's settings then belong to the sidecar and
                cannot be given here; the profile and the forest's name must match the sidecar's.
            sidecar_token: The token that the sidecars require in the header `X-Esdedup-Token`.
            sidecar_ca_certs: A file or directory with the certificate authority of the sidecars.
            sidecar_patience_s: How long to retry a batch while no sidecar accepts it, for example after the
                owner has died and before another sidecar takes over.

        Raises:
            SettingError: A value is out of range or of the wrong type, such as an asynchronous client.
        """
        profile = get_profile(profile)
        check_batch_size(batch_size)
        check_index_name(forest)
        settings = OwnerSettings(
            retention=retention,
            change_retention=change_retention,
            wait_s=wait_s,
            lease_ttl_s=lease_ttl_s,
            lookup=lookup,
            forest_shards=forest_shards,
            memory_bytes=memory_bytes,
            most_plausible_leaves=most_plausible_leaves,
            overrides=overrides,
            workers=workers,
            expire_every_s=expire_every_s,
        )
        await_first_answer(client, wait_s)
        self.reader = Reader(client, fields=fields, forest=forest, profile=profile, overrides=overrides)
        self._client = client
        self._fields = fields
        self._profile = profile
        self._forest_name = forest
        self._articles = Articles(patient(client), fields=fields)
        self._scope = Scope(fields=fields)
        self._owner: Owner | RemoteOwner
        if sidecar is None:
            self._owner = Owner(client, settings, forest=forest, profile=profile)
            self.reader = asking_owner(self.reader, self._owner.look_up)
        else:
            settings.refuse_for_sidecar()
            connection = SidecarConnection(
                [sidecar] if isinstance(sidecar, str) else sidecar,
                token=sidecar_token,
                credentials=credentials_of(client),
                ca_certs=sidecar_ca_certs,
                patience_s=sidecar_patience_s,
            )
            self._owner = RemoteOwner(connection, forest=forest, profile=profile, fields=fields or Fields())
        self._batch_size = batch_size

    def close(self) -> None:
        """Release the forest, or close the connections to a sidecar; the next article reopens them.

        In a forked process this does nothing: the parent process still owns the forest.
        """
        if not is_inherited(self._client):
            self._owner.close()

    def open(self) -> None:
        """Open the forest now rather than with the first article; raises the same errors as `enrich`."""
        if isinstance(self._owner, Owner):
            self._owner.open()

    def setup(
        self,
        index: str,
        *,
        shards: int | None = None,
        route_by_root: bool = False,
        language: str | None = None,
        forest: str | None = None,
        editorial: bool = False,
        keyword_fields: Collection[str] = (),
    ) -> bool:
        """Add the fields that esdedup writes to an index; create the index if it does not exist.

        Args:
            index: The name of the index.
            shards: The number of shards, which only a new index can choose. None uses the server's default.
            route_by_root: Store all articles of a cluster on one shard, so that sorting by count is exact
                with any number of shards; only for a new index. Recommended only for append-only indices:
                getting, updating or deleting an article by its id needs its root as routing; an article
                indexed again with another text may leave its old copy on another shard; bulk actions must
                name their index; and very large clusters make shards uneven.
            language: The language of titles and texts, such as ``en`` or ``zh``, which only a new index can
                choose. Searches then match all forms of a word or, in Chinese, pairs of characters. None
                matches words only as they are written.
            forest: The only forest that may assign the index's articles from now on. None changes nothing; a
                new index will belong to the forest that assigns its first article.
            editorial: Let editors merge and split stories (`Editor`); not for an index that is routed by
                root. In an existing index, this call gives each article a story; while it runs, only
                processes that were started after the call began may feed the index.
            keyword_fields: Further fields, such as ``language``, that readers can filter by, unless the index
                maps them already. Articles that it already contains must be indexed again.

        Returns:
            Whether the index was created.

        Raises:
            IndexNotReady: The index has an incompatible mapping, is a forest, is closed, has another number
                of shards or another language, is not routed by root as requested, or contains articles that
                the forest does not know.
            FieldsNotFound: The index contains articles whose field names differ from the given names.
            SettingError: An argument is invalid, or Elasticsearch has no analyzer for the language.
        """
        if index in {self._forest_name, forest}:
            raise SettingError(f"{index!r} is the forest, which holds no articles: name another index")
        is_new = self._articles.setup(
            index, shards=shards, route_by_root=route_by_root, language=language, is_editorial=editorial
        )
        if keyword_fields:
            self._articles.map_keywords(index, keyword_fields)
        is_edited = editorial and not is_new
        if forest is None and not is_edited:
            return is_new
        fields = execute(self._client, self._scope.fields_of(index))
        mappings = execute(self._client, mappings_of(index))
        owner = forest or forest_of(mappings, given=None, usual=self._forest_name)
        # Editors may change articles only once their forest is recorded.
        if forest is not None or self._articles.have_roots(index, fields):
            check_index_name(owner)
            for name, mapping in mappings.items():
                if saved_forest(mapping) != owner:
                    refuse_strangers(patient(self._client), name, fields=fields, forest=owner)
            self._articles.setup(index, forest=owner)
        if is_edited:
            without_story = {"bool": {"must_not": {"exists": {"field": fields.cluster}}}}
            execute(self._client, settle(owner, [index], fields, only=without_story))
        return is_new

    def setup_template(
        self,
        name: str,
        *,
        forest: str | None = None,
        editorial: bool = False,
        keyword_fields: Collection[str] = (),
    ) -> None:
        """Add the fields to an index template or component template, for indices created from it later.

        Args:
            name: The name of an existing template. If both kinds have that name, the index template changes.
            forest: The only forest that may assign the articles of these indices.
            editorial: Let editors merge and split stories in these indices; see `setup`.
            keyword_fields: As for `setup`.

        Raises:
            IndexNotReady: There is no such template, or its mapping is incompatible.
        """
        self._articles.setup_template(
            name, forest=forest, is_editorial=editorial, keyword_fields=keyword_fields
        )

    def require_ready(self, index: str) -> Fields:
        """Raise an error unless articles can be written to an index. `enrich` checks each index itself.

        Returns:
            The names of the articles' fields.

        Raises:
            IndexNotReady: The index is missing, lacks the fields that `setup` adds, or belongs to another
                forest.
        """
        return self._check_index(index).fields

    def enrich(
        self,
        actions: Iterable[BulkAction],
        *,
        backfill: bool = False,
        on_rejected: OnRejected | None = None,
        on_assigned: OnAssigned | None = None,
        flush_interval_s: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield bulk actions with the dedup object added to their articles, lazily, batch by batch.

        An action's cluster has been stored by the time the action is yielded. Before the actions of a batch
        are yielded, the next batch is read; it is assigned while the caller uses the actions. Deletions,
        and updates that contain neither a text nor a date, are yielded unchanged and in order.

        Args:
            actions: Actions as ``elasticsearch.helpers.bulk`` accepts them. If an action does not name its
                index, its article's fields must have the names given to this object, or the default names.
            backfill: Take the forest's time from the articles instead of the clock. The forest's time never
                goes back, so articles older than the retention start new clusters when they are fed again.
            on_rejected: Called for each article that is left out because it cannot be indexed; the default
                logs a warning.
            on_assigned: Called with each article and its assignment just before its action is yielded; the
                default logs a warning if only the beginning of the text was fingerprinted (`is_cut`).
            flush_interval_s: For actions that arrive slowly: assign a batch this long after its first action
                even if it is not full. The actions are then read in another thread. None reads the actions
                in the calling thread, and yields nothing until two batches have been read. Pass the
                same value to ``elasticsearch.helpers.streaming_bulk`` as ``flush_after_seconds``.

        Raises:
            ClientForked: This is a forked process, and its parent has used the client or has started to
                iterate over the result.
            IndexNotReady: The index of an action is missing or closed, lacks the fields, belongs to another
                forest, has recorded field names other than the given names, or was deleted before all actions
                were yielded. If the index is deleted later, while the last bulk request is being
                written, only another call of `require_ready` raises this.
            SidecarError: No sidecar accepts the articles, or a sidecar refuses them.
        """
        check_flush_interval(flush_interval_s)
        enricher = self._enricher(backfill=backfill, on_rejected=on_rejected, on_assigned=on_assigned)
        return enricher.enrich(actions, flush_interval_s=flush_interval_s)

    def learn(
        self,
        texts: Iterable[str | RawPage | ArticleRejected],
        *,
        on_rejected: OnRejected | None = None,
        on_learned: OnLearned = lambda *_: None,
    ) -> int:
        """Learn boilerplate from pages before articles are enriched, without assigning roots to the pages.

        Pages that were learned from or enriched before are skipped, so an interrupted call may be repeated.
        The learned boilerplate is stored after each batch. While articles are enriched, pages are learned
        from in blocks of 32; this call also learns from the last, incomplete block.

        Args:
            texts: Texts with or without markup, in order of arrival. A `RawPage` also gives the site and the
                article's path or id; without both, passages that a site repeats in all its articles may never
                be learned. `Maintenance.texts` yields the texts of an index, and a rejection for each article
                without a text.
            on_rejected: Called for each item without a valid text; the default logs a warning.
            on_learned: Called after each batch with the numbers of new and of previously seen pages.

        Returns:
            How many pages had not been seen before.

        Raises:
            SettingError: The profile keeps boilerplate.
            SidecarError: No sidecar accepts the pages, or a sidecar refuses them.
        """
        self._check_process()
        refuse_to_keep(self._profile)
        pages = valid_pages(texts, on_rejected or log_rejected)
        return self._owner.learn(pages, batch_size=self._batch_size, on_learned=on_learned)

    def expire(self) -> Expired:
        """Delete all expired nodes from the forest that this object feeds.

        `Maintenance.expire` does the same for a forest that no process is feeding. Processes that feed for
        hours rarely need either method: they delete expired nodes while they feed (`expire_every_s`).

        Raises:
            SettingError: A sidecar owns the forest, and deletes expired nodes by itself.
        """
        if isinstance(self._owner, RemoteOwner):
            raise SettingError("the sidecar owns the forest, and deletes expired nodes by itself")
        return self._owner.expire()

    def _enricher(
        self, *, backfill: bool, on_rejected: OnRejected | None, on_assigned: OnAssigned | None
    ) -> Enricher:
        return Enricher(
            assign=self._owner.assign,
            fields=self._fields,
            check_process=self._check_process,
            check_index=self._check_index,
            batch_size=self._batch_size,
            max_text_length=self._profile.max_text_length,
            backfill=backfill,
            on_rejected=on_rejected,
            on_assigned=on_assigned,
        )

    def _check_process(self) -> None:
        refuse_inherited(self._client)

    def _check_index(self, name: str) -> WritableIndex:
        index = self._articles.check(name)
        if (refusal := index.refusal(self._forest_name)) is not None:
            raise IndexNotReady(refusal, index=name)
        return index
