"""Warns of articles that expired every cluster before them, since a date or a clock may be wrong."""

import logging
from collections.abc import Sequence

from esdedup.ingest.actions import ArticleAction

from esdedup.forest import Aging, Assignment
from esdedup.forest.model import NO_TIME
from esdedup.times import iso

log = logging.getLogger("esdedup")


def warn_of_leaps(
    articles: Sequence[ArticleAction],
    assignments: Sequence[Assignment],
    *,
    time_before_ms: int,
    aging: Aging,
) -> None:
    """Log a warning for each article that moved the forest's time by more than the retention.

    Args:
        articles: Of a batch, in their order.
        assignments: Theirs.
        time_before_ms: The forest's time before them; NO_TIME if it had none.
        aging: The forest's.
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
