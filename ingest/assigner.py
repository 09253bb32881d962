"""`Assigner`: articles are fingerprinted, and assigned by a forest; `Assigned` writes that into them."""

import base64
import dataclasses
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from esdedup.ingest.actions import ArticleAction, enriched
from esdedup.ingest.arrive import ComputesFingerprints, arrive
from esdedup.ingest.fingerprint_processes import FingerprintProcesses
from esdedup.ingest.leaps import warn_of_leaps

from esdedup.boilerplate.pins import Pins
from esdedup.elastic.article_indices import WritableIndex
from esdedup.elastic.forest.stored import page_name
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Assignment, Forest
from esdedup.forest.growth import Growth
from esdedup.forest.model import NO_PAGE
from esdedup.neighbours.relation import relation_of
from esdedup.neighbours.representatives import terms_of_rows

log = logging.getLogger("esdedup")


@dataclasses.dataclass(frozen=True)
class Assigned:
    """An article with what was decided for it."""

    article: ArticleAction
    assignment: Assignment
    # The dedup fields that come from its page and its node.
    fingerprint: Mapping[str, Any]
    # Of its text, as far as it is fingerprinted.
    letters: int
    # The label of the profile.
    profile: str
    # Whether old articles are expected.
    is_backfill: bool

    def enriched(self, index: WritableIndex) -> dict[str, Any]:
        """Return the action with the dedup object in its document.

        Args:
            index: Where it is written to.
        """
        return enriched(
            self.article,
            self.assignment,
            self.fingerprint,
            letters=self.letters,
            fields=index.fields,
            index=index.name,
            profile=self.profile,
            nonce=secrets.token_hex(16),
            backfill=self.is_backfill,
            route_by_root=index.is_routed_by_root,
        )


class Assigner:
    """Assigns the articles of batches. Not thread-safe."""

    def __init__(
        self, profile: Profile, *, pins: Pins, most_plausible_leaves: int, processes: int = 0
    ) -> None:
        """Assign with a profile.

        Args:
            profile: How texts are fingerprinted.
            pins: Which passages are boilerplate or text, whatever was learned.
            most_plausible_leaves: A warning is logged when a cluster grows beyond this.
            processes: How many others fingerprint texts; 0: this one does.
        """
        self._fingerprinter: ComputesFingerprints = (
            FingerprintProcesses(profile, processes) if processes else Fingerprinter(profile)
        )
        self._profile = profile
        self._pins = pins
        self._relation = relation_of(profile)
        # Counts only what this process adds, so it needs no request.
        self._growth = Growth(most_plausible_leaves=most_plausible_leaves)

    def assign(
        self, articles: Sequence[ArticleAction], *, forest: Forest, now_ms: int, backfill: bool = False
    ) -> list[Assigned]:
        """Return the articles with what was decided for them; it has been stored by then.

        Args:
            articles: In the order of arrival.
            forest: Of this profile.
            now_ms: The clock.
            backfill: Take the forest's time from the articles instead of the clock.
        """
        time_before_ms = forest.time_ms
        fingerprints, assignments = arrive(
            [article.text for article in articles],
            times_ms=[article.dated_ms if backfill else now_ms for article in articles],
            fingerprinter=self._fingerprinter,
            forest=forest,
            now_ms=now_ms,
            pins=self._pins,
            sites=[article.site for article in articles],
            articles=[article.id for article in articles],
        )
        warn_of_leaps(articles, assignments, time_before_ms=time_before_ms, aging=forest.aging)
        self._warn_of_growth(assignments)
        return [
            Assigned(
                dataclasses.replace(article, is_cut=is_cut),
                assignment,
                own,
                letters,
                self._profile.label,
                backfill,
            )
            for article, assignment, own, letters, is_cut in zip(
                articles,
                assignments,
                self._fingerprint_fields(fingerprints.pages.tolist(), assignments),
                fingerprints.letters.tolist(),
                fingerprints.are_cut.tolist(),
                strict=True,
            )
        ]

    def _warn_of_growth(self, assignments: Sequence[Assignment]) -> None:
        for root, leaves in self._growth.add(assignments):
            log.warning(
                "the cluster %s has grown by more than %s distinct texts since this process started: it "
                "may be a template, or boilerplate in many articles; `esdedup stats` shows what they share",
                root,
                f"{leaves:,}",
            )

    def _fingerprint_fields(
        self, pages: Sequence[int], assignments: Sequence[Assignment]
    ) -> Iterator[dict[str, Any]]:
        """Yield the dedup fields that come from each article's page and node, if it has them.

        The fingerprint of a page that is remembered may be another one by now, or may be missing.
        """
        signatures = np.frombuffer(b"".join(each.signature for each in assignments), self._relation.dtype)
        bands = terms_of_rows(
            self._relation.representatives(signatures),
            self._relation.are_distinct(signatures),
            self._relation,
            self._profile.layout,
        )
        for page, assignment, own in zip(pages, assignments, bands, strict=True):
            of_page = {} if page == NO_PAGE else {"page": page_name(page)}
            if assignment.node is None:
                yield of_page
                continue
            yield {
                "fingerprint": assignment.node,
                "signature": base64.b64encode(assignment.signature).decode(),
                "bands": own,
                **of_page,
            }
