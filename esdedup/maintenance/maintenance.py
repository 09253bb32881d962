"""`Maintenance`: inspecting, expiring, repairing and rebuilding a forest."""

import collections
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

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
from esdedup.elastic.patience import patient
from esdedup.errors import ForestError, SettingError
from esdedup.fields import Fields
from esdedup.forest.model import Aging
from esdedup.maintenance.inspection import Inspection, OnProgress, ignore
from esdedup.maintenance.repair import Rebuild, Repair, Repaired
from esdedup.reading.clusters import ForestScope

# Random damage to a third of all nodes took three at most; the last of them found nothing.
_MOST_PASSES = 10


class Maintenance(Inspection):
    """Maintains one forest. Methods that change it hold its lease until they return.

    Raises:
        ForestError: There is no such forest; or, where it is changed, another process owns it.
        ForestMismatch: Articles belong to another forest.
        ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
        IndexNotReady: An index is missing, or lacks the fields.
        SettingError: `indices` is a string, or contains an empty name, or is empty where it is needed; or a
            number is below 1.
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
            client: Closed by the caller.
            forest: Name of its index; None: the one that the articles' indices keep, else ``esdedup-forest``.
            fields: The names of the articles' fields; None: those that the indices keep, which must agree.
            wait_s: How long to wait while another process owns the forest.

        Raises:
            SettingError: An argument has a wrong type, the forest's name is invalid, or `wait_s` is negative.
        """
        if not wait_s >= 0:
            raise SettingError(f"wait_s is {wait_s}; it must be at least 0")
        self._client = patient(client)
        self._scope = ForestScope(fields=fields, given_forest=forest)
        self._wait_s = wait_s

    def expire(self, *, dry_run: bool = False, on_progress: OnProgress | None = None) -> Expired:
        """Delete the nodes that have expired.

        Args:
            dry_run: Only count them; needs no lease.
            on_progress: Called with the number of nodes in each step.

        Raises:
            ForestAhead: Its time is in the future.
        """
        index = ForestIndex.find(self._client, self.forest_of())
        Clock(index).check(index.status().state)
        if dry_run:
            return expiry.count_expired(index, index.status().aging)
        with ForestWriter(index, terms=LeaseTerms(wait_s=self._wait_s)) as writer:
            return expiry.expire(writer, index.status().aging, on_progress=on_progress or ignore)

    def repair(self, indices: Sequence[str] = (), *, on_progress: OnProgress | None = None) -> Repaired:
        """Repair every violation that can be repaired; may be interrupted and run again.

        First, times in the future, which a clock that was ahead has left, are set back to the forest's last
        time before them. Next, articles whose node is missing get it back, with the root they have. Then a
        tree whose root has an older neighbour joins that neighbour's tree. Last, articles get the root of
        their node. One repair may uncover another, so all this is repeated until nothing is left to repair.

        Args:
            indices: The indices of all articles that this forest assigned. Empty: only the forest is
                repaired.
            on_progress: Called with the number of nodes or articles in each step.

        Returns:
            How many violations of each kind were repaired, as a `collections.Counter`.

        Raises:
            ForestError: Also if there was something to repair still after many passes.
        """
        index = ForestIndex.find(self._client, self.forest_of(indices))
        records, clock = self._own_records(index, indices), Clock(index)
        repaired: Repaired = collections.Counter()
        with ForestWriter(index, terms=LeaseTerms(wait_s=self._wait_s)) as writer:
            repair = Repair(writer=writer, records=records, on_progress=on_progress or ignore)
            for _ in range(_MOST_PASSES):
                found = repair.run_once(clock.latest_ms())
                if not found.total():
                    return repaired
                repaired += found
        raise ForestError(
            f"after {_MOST_PASSES} passes, a repair of the forest {index.name!r} still finds "
            f"{found.total():,} violations: verify it, and repair it again",
            forest=index.name,
        )

    def rebuild(
        self,
        indices: Sequence[str],
        *,
        replace: bool | Literal["larger"] = False,
        retention: timedelta | None = None,
        change_retention: bool = False,
        lookup: Lookup | None = None,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Rebuild the forest from articles alone; each article keeps its root.

        Articles whose node would have expired are left out, and so are those with an invalid record, which a
        warning counts. The forest cannot be used until the rebuild has ended; after an interruption, another
        run continues it.

        Args:
            indices: The indices of all articles that this forest assigned.
            replace: Delete an existing forest of that name first; only with "larger" also one that has more
                than these articles account for.
            retention: How long nodes live. None: as in the replaced forest, or the indices, or 30 days.
            change_retention: Whether that may be shorter than it was.
            lookup: How its owner finds nodes, as for `Dedup`. None: as in the forest that is replaced, or in
                memory.
            on_progress: Called with the number of articles in each step.

        Returns:
            How many nodes the forest has.

        Raises:
            RetentionShorter: Nodes would live shorter than before, and `change_retention` is false.
            ForestExists: There is a forest already and `replace` is false; or it has more.
            ForestMismatch: Also if the articles are of several profiles, or of an unknown one.
            IndexNotReady: Also if none of the articles was indexed through esdedup.
        """
        check_type("retention", retention, timedelta | None, taker="Maintenance.rebuild")
        name = self._scope.given_forest
        # Indices of another forest may be given to a new one, once that has their articles.
        if name is None or ((found := execute(self._client, read_meta(name))) and not found.rebuilding):
            name = self.forest_of(indices)
        return Rebuild(
            client=self._client,
            # What could not be read is found out before anything is deleted.
            indices=execute(self._client, self._scope.ready(",".join(indices))).mappings,
            name=name,
            records=self._records(indices),
            aging=None if retention is None else Aging.of(retention=retention),
            change_retention=change_retention,
            lookup=lookup,
            replace=replace,
            wait_s=self._wait_s,
            on_progress=on_progress or ignore,
        ).run()
