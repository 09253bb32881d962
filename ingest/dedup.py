"""`Dedup`: assigns articles to clusters before a program indexes them."""

import logging
from collections.abc import Iterable, Iterator, Sequence
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
from esdedup.elastic.kept import WritableIndex, forest_of, kept_forest
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.elastic.patience import patient
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

    The forest of clusters lives in the same Elasticsearch. The first article opens it and takes its
    lease; `close` releases it. Threads may share one `Dedup` (their batches are assigned one after the
    other); processes may not, even by a fork: one process at a time feeds a forest. For several, run
    `esdedup sidecar`, and give each process a `Dedup` with its address.

    Raises:
        ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
        ForestError: Another process owns the forest, or it has another profile, or is damaged, or its time is
            in the future.
        ServerError: Elasticsearch does not answer, or refuses a request.
        SettingError: An argument is out of its range, or a name is invalid.

    Attributes:
        reader: Reads the same Elasticsearch; it never takes the lease. While this object owns the forest, it
            looks texts up in its memory.
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
        """Feed with a client. Nothing is sent yet.

        Args:
            client: Closed by the caller.
            profile: How texts are fingerprinted, or the name of a standard profile; must be the profile that
                the forest was made with.
            fields: The names of the articles' fields, which `setup` records in an index's mapping. None:
                those recorded there, else the default names.
            forest: The forest's index. Several article indices may share one.
            retention: How long a cluster accepts articles after its last one. None keeps the
                forest's retention, 30 days in a new forest. A longer retention does not revive expired nodes.
            change_retention: Whether it may be shorter than the forest's.
            batch_size: How many articles are assigned together, 1 to 5,000.
            wait_s: How long to wait while another process owns the forest.
            lease_ttl_s: If this process dies without releasing the forest, another may take the forest over
                after this many seconds; at least 1.
            lookup: How a new forest's nodes are found: `memory` or `search`. In memory, all are loaded before
                the first batch. With `search`, nodes take longer to write and more disk space, but need
                not fit into memory. None: as the forest has it, a new one in memory.
            memory_bytes: What the forest's nodes may take in memory, some 300 bytes each. If they
                need more, `memory` raises `ForestFull`. With `search`, they are in memory too while they
                need no more, which makes feeding faster; 0 keeps none. None: half of what this machine has.
            most_plausible_leaves: A warning is logged when a cluster grows beyond this many distinct texts;
                a power of two.
            overrides: Which passages of articles are boilerplate or text, whatever was learned. They count
                for articles that come from now on.
            workers: How many threads fingerprint texts, with the same results; 1 to 256. They do not
                segment texts into words, which is most of the work in `classic` and `keywords`.
            expire_every_s: Seconds between runs that delete expired nodes, some after each batch; the first
                run starts this long from now. None: only `expire` deletes them.
            sidecar: Addresses of sidecars, such as ``http://localhost:9500``, of which one owns the forest.
                It gives articles their roots, and receives the client's credentials, as Elasticsearch does.
                The settings of the forest are those of the sidecar then, and cannot be given here; profile
                and name of the forest must be the same.
            sidecar_token: The token that they require in the header `X-Esdedup-Token`.
            sidecar_ca_certs: A file or directory with the authority that signed their certificates.
            sidecar_patience_s: How long a batch is retried while no sidecar accepts it, for example after one
                has died and before another takes over.

        Raises:
            SettingError: A value is out of its range, or of a wrong type, such as an asynchronous client.
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
            memory_bytes=memory_bytes,
            most_plausible_leaves=most_plausible_leaves,
            overrides=overrides,
            workers=workers,
            expire_every_s=expire_every_s,
        )
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
        """Release the forest, or close the connections to a sidecar. The next article opens them again.

        In a forked process, the forest stays with the process that opened it.
        """
        if not is_inherited(self._client):
            self._owner.close()

    def open(self) -> None:
        """Take the forest now, rather than with the first article. Errors are those of `enrich`."""
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
    ) -> bool:
        """Add the fields that esdedup writes to an index, which is created if it does not exist.

        Args:
            index: Its name.
            shards: How many shards the index has; only a new index can be given another number. None
                leaves that to the server.
            route_by_root: Put all articles of a cluster on one shard, so that the order by count is exact
                on any number of shards; only for a new index. It suits indices that are only appended
                to, because it has a price: getting, updating or deleting an article by its id needs
                its root as routing; an article indexed again with another text leaves its old copy on
                another shard; bulk actions must name their index; and very large clusters make shards
                uneven.
            language: The language of titles and texts, such as ``en`` or ``zh``: a search then finds words in
                all their forms, or Chinese by pairs of characters; only a new index can be given one. None
                finds words as they are written.
            forest: The forest that it belongs to from now on: others then refuse its articles. None leaves
                that unchanged; a new index belongs to the forest that takes its first article.
            editorial: Let editors merge and split what readers see as one story (`Editor`). Not for an index
                that is routed by root. In an existing index, each article gets a story; while this call runs,
                feed the index only with processes that were started after the call began.

        Returns:
            Whether the index was created.

        Raises:
            IndexNotReady: Its mapping does not suit; it is a forest, or closed; it exists with another number
                of shards or another language, or is not routed by root as requested; or it has articles
                that the forest does not know.
            FieldsNotFound: The index has articles, and their fields have other names than those given.
            SettingError: Also if Elasticsearch has no analyzer for the language.
        """
        if index in {self._forest_name, forest}:
            raise SettingError(f"{index!r} is the name of the forest, which holds no articles: name another")
        is_new = self._articles.setup(
            index, shards=shards, route_by_root=route_by_root, language=language, is_editorial=editorial
        )
        is_edited = editorial and not is_new
        if forest is None and not is_edited:
            return is_new
        fields = execute(self._client, self._scope.fields_of(index))
        mappings = execute(self._client, mappings_of(index))
        owner = forest or forest_of(mappings, given=None, usual=self._forest_name)
        # Whose articles they are must be known before anybody edits them.
        if forest is not None or self._articles.have_roots(index, fields):
            check_index_name(owner)
            for name, mapping in mappings.items():
                if kept_forest(mapping) != owner:
                    refuse_strangers(patient(self._client), name, fields=fields, forest=owner)
            self._articles.setup(index, forest=owner)
        if is_edited:
            without_story = {"bool": {"must_not": {"exists": {"field": fields.cluster}}}}
            execute(self._client, settle(owner, [index], fields, only=without_story))
        return is_new

    def setup_template(self, name: str, *, forest: str | None = None, editorial: bool = False) -> None:
        """Add the fields to an index template or a component template, for the indices that it makes later.

        Args:
            name: Of a template that exists; if both kinds have the name, the index template is meant.
            forest: The forest that its indices belong to: others then refuse their articles.
            editorial: As for `setup`, for the indices that it makes later.

        Raises:
            IndexNotReady: There is no such template, or its mapping does not suit.
        """
        self._articles.setup_template(name, forest=forest, is_editorial=editorial)

    def require_ready(self, index: str) -> Fields:
        """Raise unless articles can be written to an index. `enrich` does this by itself for each index.

        Returns:
            The names of its articles' fields.

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

        An action's cluster has been stored by the time the action is yielded. The next batch is read before
        the actions of one are yielded, and assigned while they are used. Deletions, and updates
        that contain neither the text nor a date, are yielded unchanged and in their order.

        Args:
            actions: What ``elasticsearch.helpers.bulk`` takes. In an action that does not name its index, the
                fields have the names that this object was given, or the usual ones.
            backfill: Take the forest's time from the articles instead of the clock. Time never goes
                back: articles older than the retention start new clusters when they are fed again.
            on_rejected: Called for each article that cannot be indexed and is left out; by default a
                warning is logged.
            on_assigned: Called with each article and its assignment, just before it is yielded; by default a
                warning is logged for each whose text is longer than is fingerprinted (`is_cut`).
            flush_interval_s: A batch that is not full this long after its first action is assigned as it is;
                for actions that come slowly. They are then read in a thread of their own.
                None: they are read in this one, which waits until a batch is full, and then for the next one
                before it yields anything. Give ``elasticsearch.helpers.streaming_bulk`` the same as its
                ``flush_after_seconds``, since it waits too.

        Raises:
            ClientForked: This is a forked process, and its parent has used the client, or has begun to read
                what this call returned.
            IndexNotReady: The index of an action is missing or closed, lacks the fields, belongs to another
                forest, or keeps other names of fields than those given; or it was deleted before all was
                yielded. If it is deleted after that, while the last bulk request is written, only another
                `require_ready` raises.
            SidecarError: No sidecar takes the articles, or one refuses them.
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
        """Learn from pages what is boilerplate, before others are enriched; they get no root.

        A page that was learned from or enriched before teaches nothing, so an interrupted call may be
        repeated. What has been learned is stored batch by batch. At the end of a call all of its pages have
        taught; while articles are enriched, 32 pages are learned from at a time.

        Args:
            texts: With or without markup, in their order of arrival. A `RawPage` gives the site and the
                article's path or id as well: without both, what a site has in all its articles may never be
                learned.
                `Maintenance.texts` yields those of an index, and rejections of articles without a text.
            on_rejected: Called for each that is not a text; by default a warning is logged.
            on_learned: Called after each batch with how many of its pages had not been seen before, and how
                many had.

        Returns:
            How many pages had not been seen before.

        Raises:
            SettingError: The profile keeps boilerplate.
            SidecarError: No sidecar takes the pages, or one refuses them.
        """
        self._check_process()
        refuse_to_keep(self._profile)
        pages = valid_pages(texts, on_rejected or log_rejected)
        return self._owner.learn(pages, batch_size=self._batch_size, on_learned=on_learned)

    def expire(self) -> Expired:
        """Delete expired nodes from the forest, for a process that feeds it continuously.

        `Maintenance.expire` does the same for a forest that no process is feeding. A process that feeds for
        hours needs neither: see `expire_every_s`.

        Raises:
            SettingError: A sidecar owns the forest, and does it by itself.
        """
        if isinstance(self._owner, RemoteOwner):
            raise SettingError("the sidecar owns the forest, and deletes expired nodes by itself")
        return self._owner.expire()

    def _enricher(
        self, *, backfill: bool, on_rejected: OnRejected | None, on_assigned: OnAssigned | None
    ) -> Enricher:
        return Enricher(
            self._owner.assign,
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
