"""From lines to an index: enrich, bulk, and account for every article."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.actions import Candidate
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import Line

from esdedup.elastic.client import patient
from esdedup.elastic.errors import translated
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.errors import ArticleRejected
from esdedup.forest import Assignment, Kind

_CHUNK_ARTICLES = 500
_CHUNK_BYTES = 20 << 20


@dataclasses.dataclass(kw_only=True)
class Summary:
    """What became of the articles of a run. Every one that was read is in exactly one of the others."""

    read: int = 0
    indexed: int = 0
    failed: int = 0
    # Of those indexed:
    new_roots: int = 0
    joined: int = 0
    known: int = 0
    without_fingerprint: int = 0
    seconds: float = 0.0


_COUNTER = {
    Kind.NEW_ROOT: "new_roots",
    Kind.JOINED: "joined",
    Kind.KNOWN: "known",
    Kind.WITHOUT_FINGERPRINT: "without_fingerprint",
}


class Load:
    """One run of articles into an index."""

    def __init__(self, *, on_rejected: Callable[[ArticleRejected], None]) -> None:
        self.summary = Summary()
        self._on_rejected = on_rejected
        # The articles under way, by id, and what the forest said of them.
        self._lines: dict[str, Line] = {}
        self._kinds: dict[str, Kind] = {}

    def run(
        self,
        client: Elasticsearch,
        dedup: Dedup,
        lines: Iterable[Line | ArticleRejected],
        *,
        index: str,
        backfill: bool = False,
    ) -> None:
        """Index the articles; `summary` is right at every moment, also after an error.

        Raises:
            EsdedupError: The run cannot go on; what was under way counts as failed.
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
            self.summary.failed = self.summary.read - self.summary.indexed
            self.summary.seconds = round(time.monotonic() - started, 3)

    def _actions(self, lines: Iterable[Line | ArticleRejected], index: str) -> Iterator[dict[str, Any]]:
        for line in lines:
            self.summary.read += 1
            if isinstance(line, ArticleRejected):
                self._reject(line)
                continue
            self._lines[line.id] = line
            yield {"_index": index, "_id": line.id, "_source": line.article}

    def _assigned(self, candidate: Candidate, assignment: Assignment) -> None:
        self._kinds[candidate.name] = assignment.kind

    def _acknowledge(self, ok: bool, result: dict[str, Any]) -> None:
        article_id = result["_id"]
        kind = self._kinds.pop(article_id)
        if ok:
            del self._lines[article_id]
            self.summary.indexed += 1
            counter = _COUNTER[kind]
            setattr(self.summary, counter, getattr(self.summary, counter) + 1)
        else:
            self._reject_by_id(ArticleRejected(article_id, f"Elasticsearch refuses it: {_reason(result)}"))

    def _reject_by_id(self, rejected: ArticleRejected) -> None:
        self._reject(ArticleRejected(self._lines.pop(rejected.article).name, rejected.reason))

    def _reject(self, rejected: ArticleRejected) -> None:
        self.summary.failed += 1
        self._on_rejected(rejected)


def _reason(result: dict[str, Any]) -> str:
    error = result.get("error")
    if isinstance(error, dict):
        cause = error.get("caused_by") or {}
        # The reason names the field; what follows may quote the article's own words.
        reason = str(error.get("reason", "")).split(" Preview of", 1)[0]
        return f"{reason} [{cause.get('type', error.get('type'))}]"
    return str(error)[:200]
