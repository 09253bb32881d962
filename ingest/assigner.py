"""`Assigner`: articles are fingerprinted, and assigned by a forest."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.arrive import arrive, look_up
from esdedup.ingest.assigned import Assigned, assigned_articles

from esdedup.boilerplate.pins import Pins
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Assignment, Forest
from esdedup.forest.growth import Growth
from esdedup.forest.model import NO_TIME
from esdedup.forest.store import completed
from esdedup.times import iso

log = logging.getLogger("esdedup")

# So many articles are decided while those before them are written.
_PART = 512


class AssignedBatch(NamedTuple):
    """Articles with what was decided for them."""

    articles: list[Assigned]
    # Waits until that is durable, before which nobody may rely on it; raises why it could not be written.
    written: Future[None]


class Assigner:
    """Assigns the articles of batches. Not thread-safe."""

    def __init__(self, profile: Profile, *, pins: Pins, most_plausible_leaves: int, threads: int = 1) -> None:
        """Assign with a profile.

        Args:
            profile: How texts are fingerprinted.
            pins: Which passages are boilerplate or text, whatever was learned.
            most_plausible_leaves: A warning is logged when a cluster grows beyond this.
            threads: How many fingerprint texts.
        """
        self._fingerprinter = Fingerprinter(profile, threads=threads)
        self._profile = profile
        self._pins = pins
        # Counts only what this process adds, so it needs no request.
        self._growth = Growth(most_plausible_leaves=most_plausible_leaves)

    def assign(self, articles: Sequence[ArticleAction], *, forest: Forest, now_ms: int) -> AssignedBatch:
        """Return the articles with what is decided for them.

        Args:
            articles: In the order of arrival.
            forest: Of this profile.
            now_ms: The clock.
        """
        batch = AssignedBatch([], completed())
        for start in range(0, len(articles), _PART):
            part = self._assign_part(articles[start : start + _PART], forest=forest, now_ms=now_ms)
            batch = AssignedBatch(batch.articles + part.articles, part.written)
        return batch

    def look_up(self, text: str, *, site: str | None, forest: Forest, now_ms: int) -> Assignment:
        """Return what would be decided for a text that came now, and change nothing.

        Raises:
            TextFailed: The text met a fault in the core.
        """
        return look_up(
            text, site=site, fingerprinter=self._fingerprinter, forest=forest, now_ms=now_ms, pins=self._pins
        )

    def _assign_part(
        self, articles: Sequence[ArticleAction], *, forest: Forest, now_ms: int
    ) -> AssignedBatch:
        time_before_ms = forest.time_ms
        fingerprints, (assignments, written) = arrive(
            [article.text for article in articles],
            times_ms=[article.dated_ms if article.is_backfill else now_ms for article in articles],
            fingerprinter=self._fingerprinter,
            forest=forest,
            now_ms=now_ms,
            pins=self._pins,
            sites=[article.site for article in articles],
            articles=[article.id for article in articles],
        )
        _warn_of_leaps(articles, assignments, time_before_ms=time_before_ms, aging=forest.aging)
        self._warn_of_growth(assignments)
        return AssignedBatch(
            assigned_articles(articles, fingerprints, assignments, profile=self._profile), written
        )

    def _warn_of_growth(self, assignments: Sequence[Assignment]) -> None:
        for root, leaves in self._growth.add(assignments):
            log.warning(
                "the cluster %s has grown by more than %s distinct texts since this process started: it "
                "may be a template, or boilerplate in many articles; `esdedup stats` shows what they share",
                root,
                f"{leaves:,}",
            )


def _warn_of_leaps(
    articles: Sequence[ArticleAction], assignments: Sequence[Assignment], *, time_before_ms: int, aging: Aging
) -> None:
    """Log a warning for each article that moved the forest's time by more than the retention.

    A date or a clock may be wrong, since all clusters before it have expired.
    """
    for article, assignment in zip(articles, assignments, strict=True):
        if time_before_ms != NO_TIME and assignment.time_ms - time_before_ms > aging.retention_ms:
            log.warning(
                "%s: moved the forest's time from %s to %s, by more than the retention: all clusters before "
                "it have expired. If its date is wrong (in a backfill) or a clock is ahead, stop, and set it "
                "right; see `If a clock or a date was wrong` in the README",
                article.name,
                iso(time_before_ms),
                iso(assignment.time_ms),
            )
        time_before_ms = assignment.time_ms
