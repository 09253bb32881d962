"""Enriches and indexes lines in bulk, and accounts for every article."""

import collections
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pydantic
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import Line

from esdedup.elastic.client import patient
from esdedup.elastic.errors import translated
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.errors import ArticleRejected
from esdedup.forest import Assignment, Kind

_CHUNK_ARTICLES = 500
_CHUNK_BYTES = 20 << 20


class Summary(pydantic.BaseModel, frozen=True):
    """The outcome of a run: each article that was read was either indexed or failed."""

    read: int
    indexed: int
    failed: int
    # The indexed ones, by what the forest decided.
    new_roots: int
    joined: int
    known: int
    without_fingerprint: int
    seconds: float


class Load:
    """One run of articles into an index."""

    def __init__(self, *, on_rejected: Callable[[ArticleRejected], None]) -> None:
        self._on_rejected = on_rejected
        self._read = self._failed = 0
        self._indexed: collections.Counter[Kind] = collections.Counter()
        self._seconds = 0.0
        # Articles that Elasticsearch has not acknowledged, by id, and what the forest decided for them.
        self._lines: dict[str, Line] = {}
        self._kinds: dict[str, Kind] = {}

    @property
    def summary(self) -> Summary:
        """The run so far; after an error, unacknowledged articles count as failed."""
        return Summary(
            read=self._read,
            indexed=self._indexed.total(),
            failed=self._failed,
            new_roots=self._indexed[Kind.NEW_ROOT],
            joined=self._indexed[Kind.JOINED],
            known=self._indexed[Kind.KNOWN],
            without_fingerprint=self._indexed[Kind.WITHOUT_FINGERPRINT],
            seconds=self._seconds,
        )

    def run(
        self,
        client: Elasticsearch,
        dedup: Dedup,
        lines: Iterable[Line | ArticleRejected],
        *,
        index: str,
        backfill: bool = False,
    ) -> None:
        """Index articles.

        Args:
            client: Closed by the caller.
            dedup: Enriches the articles.
            lines: Articles, and rejections of what could not be read.
            index: Where the articles go.
            backfill: Take the forest's time from the articles instead of the clock.

        Raises:
            EsdedupError: The run cannot continue.
        """
        started = time.monotonic()
        actions = dedup.enrich(
            self._actions(lines, index),
            backfill=backfill,
            on_rejected=self._reject_by_id,
            on_assigned=self._assigned,
        )
        try:
            with translated(f"index into {index!r}"):
                for ok, result in helpers.streaming_bulk(
                    patient(client),
                    actions,
                    chunk_size=_CHUNK_ARTICLES,
                    max_chunk_bytes=_CHUNK_BYTES,
                    max_retries=5,
                    initial_backoff=0.5,
                    max_backoff=10,
                    retry_on_status=tuple(BUSY_STATUSES),
                    raise_on_error=False,
                    raise_on_exception=False,
                ):
                    self._acknowledge(ok, result["index"])
        finally:
            self._failed = self._read - self._indexed.total()
            self._seconds = round(time.monotonic() - started, 3)

    def _actions(self, lines: Iterable[Line | ArticleRejected], index: str) -> Iterator[dict[str, Any]]:
        for line in lines:
            self._read += 1
            if isinstance(line, ArticleRejected):
                self._reject(line)
                continue
            self._lines[line.id] = line
            yield {"_index": index, "_id": line.id, "_source": line.article}

    def _assigned(self, article: ArticleAction, assignment: Assignment) -> None:
        self._kinds[article.name] = assignment.kind

    def _acknowledge(self, ok: bool, result: dict[str, Any]) -> None:
        article_id = result["_id"]
        kind = self._kinds.pop(article_id)
        if ok:
            del self._lines[article_id]
            self._indexed[kind] += 1
        else:
            self._reject_by_id(ArticleRejected(article_id, f"Elasticsearch refuses it: {_reason(result)}"))

    def _reject_by_id(self, rejected: ArticleRejected) -> None:
        self._reject(ArticleRejected(self._lines.pop(rejected.article).name, rejected.reason))

    def _reject(self, rejected: ArticleRejected) -> None:
        self._failed += 1
        self._on_rejected(rejected)


def _reason(result: dict[str, Any]) -> str:
    error = result.get("error")
    if isinstance(error, dict):
        cause = error.get("caused_by") or {}
        # The reason names the field; a preview after it would quote the article.
        reason = str(error.get("reason", "")).split(" Preview of", 1)[0]
        return f"{reason} [{cause.get('type', error.get('type'))}]"
    return str(error)[:200]
