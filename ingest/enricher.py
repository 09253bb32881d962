"""The way of a batch: actions, fingerprints, forest, actions with the dedup object."""

import base64
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from esdedup.ingest.actions import BulkAction, Candidate, enriched, read_action

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Arrivals, Assignment, Forest
from esdedup.forest.growth import Growth
from esdedup.neighbours.relation import relation_of

log = logging.getLogger("esdedup")

OnRejected = Callable[[ArticleRejected], None]
OnAssigned = Callable[[Candidate, Assignment], None]


class Enricher:
    """Assigns the articles in bulk actions, a batch at a time."""

    def __init__(
        self,
        *,
        profile: Profile,
        fields: Fields,
        open_forest: Callable[[], Forest],
        check_index: Callable[[str], bool],
        batch_size: int,
    ) -> None:
        """Prepare.

        Args:
            profile: Decides fingerprints.
            fields: The articles'.
            open_forest: Called for each batch with an article; returns the forest to ask.
            check_index: Called once for each index that articles go to, before the first one; tells
                whether they are routed by their roots there, and raises if they must not go there.
            batch_size: Articles that are assigned together.
        """
        self._profile = profile
        self._fields = fields
        self._open_forest = open_forest
        self._check_index = check_index
        self._batch_size = batch_size
        self._fingerprinter = Fingerprinter(profile)
        self._relation = relation_of(profile)
        # Of each index that was checked: whether articles are routed by their roots.
        self._is_routed: dict[str, bool] = {}
        # Counting what this process adds costs no request.
        self._growth = Growth()

    def enrich(
        self,
        actions: Iterable[BulkAction],
        *,
        backfill: bool,
        on_rejected: OnRejected | None,
        on_assigned: OnAssigned | None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the actions with the dedup object in their articles; see `Dedup.enrich`."""
        numbered = enumerate(actions, 1)
        while batch := list(itertools.islice(numbered, self._batch_size)):
            yield from self._enrich_batch(batch, backfill, on_rejected or _log_rejected, on_assigned)

    def _enrich_batch(
        self,
        batch: list[tuple[int, BulkAction]],
        backfill: bool,
        on_rejected: OnRejected,
        on_assigned: OnAssigned | None,
    ) -> Iterator[dict[str, Any]]:
        actions: list[Candidate | dict[str, Any]] = []
        for position, action in batch:
            try:
                actions.append(read_action(action, self._fields, position=position))
            except ArticleRejected as rejected:
                on_rejected(rejected)
        candidates = [action for action in actions if isinstance(action, Candidate)]
        answers = iter(self._assign(candidates, backfill)) if candidates else iter(())
        for ready in actions:
            if not isinstance(ready, Candidate):
                yield ready
                continue
            assignment, label = next(answers)
            if on_assigned is not None:
                on_assigned(ready, assignment)
            yield enriched(
                ready,
                assignment,
                label,
                fields=self._fields,
                profile=self._profile.label,
                route_by_root=self._is_routed.get(str(ready.action.get("_index")), False),
            )

    def _assign(self, candidates: list[Candidate], backfill: bool) -> list[tuple[Assignment, dict[str, Any]]]:
        indices = {str(index) for each in candidates if (index := each.action.get("_index")) is not None}
        for index in indices - self._is_routed.keys():
            self._is_routed[index] = self._check_index(index)
        now_ms = int(time.time() * 1000)
        arrivals = Arrivals.of(
            self._fingerprinter.fingerprint([candidate.text for candidate in candidates]),
            times_ms=[candidate.published_ms if backfill else now_ms for candidate in candidates],
            relation=self._relation,
        )
        assignments = self._open_forest().assign(arrivals, now_ms=now_ms)
        for root, leaves in self._growth.add(assignments):
            log.warning(
                "the cluster %s has grown by more than %s distinct texts since this process began: it may be "
                "a template, or boilerplate that many share; `esdedup stats` tells what holds it together",
                root,
                f"{leaves:,}",
            )
        return list(zip(assignments, self._labels(arrivals, assignments), strict=True))

    def _labels(self, arrivals: Arrivals, assignments: Iterable[Assignment]) -> Iterator[dict[str, Any]]:
        """Yield of each arrival what its article keeps of its fingerprint."""
        bands = self._profile.layout.terms_of_rows(
            self._relation.simhashes(arrivals.signatures), self._relation.are_distinct(arrivals.signatures)
        )
        for node_id, assignment, own in zip(arrivals.ids, assignments, bands, strict=True):
            yield {
                "fingerprint": node_id,
                "signature": base64.b64encode(assignment.signature).decode(),
                "bands": own,
            }


def _log_rejected(rejected: ArticleRejected) -> None:
    log.warning("article left out: %s", rejected)
