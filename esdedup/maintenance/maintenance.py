"""`Maintenance`: inspects, expires, repairs and rebuilds a forest."""

import dataclasses
from collections.abc import Sequence
from datetime import timedelta

from elasticsearch import Elasticsearch

from esdedup.arguments import check_type, checked
from esdedup.elastic.execute import execute
from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lease import LeaseTerms
from esdedup.elastic.forest.meta import Lookup, read_meta
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.patience import await_first_answer, patient
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.forest.model import Aging
from esdedup.maintenance.inspection import Inspection, OnProgress, check_named, ignore
from esdedup.maintenance.rebuild import Rebuild, Repaired
from esdedup.reading.clusters import ForestScope


class Maintenance(Inspection):
    """Maintains one forest. Methods that change it hold its lease, `repair` and `rebuild` only at their end.

    Raises:
        ForestError: The forest does not exist; or the method changes the forest, and another process owns it.
        ForestMismatch: Articles belong to another forest.
        ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
        IndexNotReady: An index is missing, or lacks the fields of esdedup.
        SettingError: `indices` is a string, contains an empty name, or is empty where indices are required;
            or a number is below 1.
    """

    @checked
    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str | None = None,
        fields: Fields | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Use a forest; nothing is sent yet.

        Args:
            client: The caller must close it.
            forest: The name of the forest's index. None means the articles' forest, or ``esdedup-forest``.
            fields: The names of the articles' fields. None means the indices' own names, which must agree.
            wait_s: How long to wait while another process owns the forest, or while the server is starting.

        Raises:
            SettingError: An argument has a wrong type, the forest's name is invalid, or `wait_s` is negative.
        """
        if not wait_s >= 0:
            raise SettingError(f"wait_s is {wait_s}; it must be at least 0")
        await_first_answer(client, wait_s)
        self._client = patient(client)
        self._scope = ForestScope(fields=fields, given_forest=forest)
        self._wait_s = wait_s

    def expire(self, *, dry_run: bool = False, on_progress: OnProgress | None = None) -> Expired:
        """Delete the nodes that have expired.

        Args:
            dry_run: Only count these nodes, which needs no lease.
            on_progress: Called with the number of nodes in each batch.

        Raises:
            ForestAhead: The forest's time is in the future.
        """
        index = ForestIndex.find(self._client, self.forest_of())
        Clock(index).check(index.status().state)
        if dry_run:
            return expiry.count_expired(index, index.status().aging)
        with ForestWriter(index, terms=LeaseTerms(wait_s=self._wait_s)) as writer:
            return expiry.expire(writer, index.status().aging, on_progress=on_progress or ignore)

    def repair(self, indices: Sequence[str] = (), *, on_progress: OnProgress | None = None) -> Repaired:
        """Verify the forest; if there are violations that can be repaired, rebuild it without them.

        Times in the future, caused by a clock that was ahead, are replaced by the forest's latest plausible
        time. Missing nodes of articles are restored, with the articles' roots. Then each tree whose root has
        an older neighbour joins that neighbour's tree. Finally, articles get the root of their node. If a
        repair is interrupted, run it again.

        Args:
            indices: The indices of all articles that this forest assigned. If empty, only the forest is
                repaired, and must not be in use meanwhile.
            on_progress: Called with the number of nodes or articles in each batch.

        Returns:
            How many violations of each kind were repaired, as a `collections.Counter`. A kind that repairs
            reveal several times is counted by the largest of these numbers.

        Raises:
            ForestError: As for the class; or violations remain after ten passes.
        """
        found = self.verify(indices, on_progress=on_progress)
        repaired = Repaired(violation.kind for violation in found if violation.can_be_repaired)
        if repaired:
            repaired |= self._rebuild(indices, on_progress, rename=False).run()[1]
        return repaired

    def rebuild(
        self,
        indices: Sequence[str],
        *,
        articles_only: bool = False,
        retention: timedelta | None = None,
        change_retention: bool = False,
        lookup: Lookup | None = None,
        forest_shards: int | None = None,
        rename: bool = False,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Rebuild the forest from its nodes and its articles, and repair it as `repair` does.

        If the forest is lost, it is rebuilt from its articles alone. Then articles whose node would have
        expired are left out. Articles with an invalid record are also left out, and their number is logged.
        With `wait_s`, the forest may be in use until a warning says that the new forest has caught up. If a
        rebuild is interrupted, run it again.

        Args:
            indices: The indices of all articles that this forest assigned.
            articles_only: Whether to leave out the forest's own nodes, and so the nodes of articles that
                were deleted.
            retention: How long nodes live. None means the retention stored in the replaced forest or in the
                indices, or else 30 days.
            change_retention: Whether nodes may live for less time than before.
            lookup: How the owner finds nodes. None means the lookup of the replaced forest, or else `memory`.
            forest_shards: The number of shards, 1 to 1,024; more than one requires the lookup `search`. None
                means the number of the replaced forest, or else 1.
            rename: Whether the given forest may be a new one, although the indices belong to another.
            on_progress: Called with the number of nodes or articles in each batch.

        Returns:
            The number of nodes in the forest.

        Raises:
            RetentionShorter: Nodes would live for less time than before, and `change_retention` is false.
            ForestMismatch: As for the class; or the articles of a lost forest have several profiles, or an
                unknown one.
            IndexNotReady: As for the class; or none of the articles was indexed through esdedup.
        """
        check_type("retention", retention, timedelta | None, taker="Maintenance.rebuild")
        check_named(indices)
        rebuild = dataclasses.replace(
            self._rebuild(indices, on_progress, rename=rename),
            articles_only=articles_only,
            aging=None if retention is None else Aging.of(retention=retention),
            change_retention=change_retention,
            lookup=lookup,
            shards=forest_shards,
        )
        return rebuild.run()[0]

    def _rebuild(self, indices: Sequence[str], on_progress: OnProgress | None, *, rename: bool) -> Rebuild:
        name = self._scope.given_forest if rename else None
        if name is None or execute(self._client, read_meta(name)):
            name = self.forest_of(indices)
        # Check that the indices can be read before anything is deleted.
        scope = execute(self._client, self._scope.check(",".join(indices))) if indices else None
        return Rebuild(
            client=self._client,
            indices=scope.mappings if scope else {},
            name=name,
            records=self._records(indices) if indices else None,
            wait_s=self._wait_s,
            on_progress=on_progress or ignore,
        )
