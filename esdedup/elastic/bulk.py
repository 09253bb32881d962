"""Sends bulk requests, and repeats operations that a busy server refused."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import elastic_transport
import tenacity
from elasticsearch import ApiError, Elasticsearch

from esdedup.elastic.errors import FULL, MORE_FIELDS, is_blocked, is_closed, reason, refused, translated
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import PATIENCE_S, patient, retrying
from esdedup.errors import IndexNotReady, ServerBusy, ServerError, ServerUnavailable

_FIELDS_READ = [
    *("items.*._index", "items.*._id", "items.*.status", "items.*.error"),
    # Present if the whole request was refused.
    *("error", "status"),
]

_CHUNK_ARTICLES = 500
# Maximum size of a request, unless a single article is larger; by default, a server accepts 100 MB.
_CHUNK_BYTES = 10_000_000
_TIMEOUT_S = 60.0
# Give up after this many refusals, which take about a minute with the pauses between them.
_MAX_REFUSALS = 10
# An article larger than this may itself cause refusals, so it is given up after a few seconds.
_LARGE_BYTES = 1_000_000
_MAX_REFUSALS_OF_LARGE = 5
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0
NOTE = "_note"
"""The key in an action for a value that is not sent, but returned with the article's result."""
# After one of these statuses, no article can be written.
_HOPELESS_STATUSES = frozenset({401, 403, 404})
_TARGET = ("_index", "_id", "routing", "if_seq_no", "if_primary_term", "pipeline")
_TOO_MANY_STATUS = 429
_NO_ANSWER_STATUS = 503
# Statuses of a request that may be too large or contain a malformed article; None if it got no response.
_DIVISIBLE_STATUSES = frozenset({400, 413, _TOO_MANY_STATUS, 500, None})
_LOST = (elastic_transport.ConnectionError, elastic_transport.ConnectionTimeout)
# Marks a result that applies to a whole request.
_WHOLE = "is_about_request"

Operation = Sequence[Any]
"""The lines of one operation: the action and, except for deletions, the document."""

Result = dict[str, Any]
"""The response to one operation, with an ``error`` if it failed."""


def send_bulk(
    client: Elasticsearch,
    operations: Iterable[Operation],
    *,
    task: str,
    is_settled: Callable[[Result], bool],
    index: str | None = None,
    alias: str | None = None,
    patience_s: float = PATIENCE_S,
    **options: Any,
) -> list[Result]:
    """Send operations, repeating them while the server is busy; return their results in order.

    Operations must be repeatable. `is_settled` returns False for a result that must raise an error. `task`
    follows "cannot" in messages. `alias` receives the operations that name no index. With a patience of 0,
    nothing is sent a second time.
    """
    pending = dict(enumerate(operations))
    results: dict[int, Result] = {}

    def error_of(result: Result) -> ServerError:
        name = f"{task} ({result['_id']})"
        return refused(name, result, status=result["status"], index=index or result.get("_index"))

    def send_pending() -> None:
        lines = [line for operation in pending.values() for line in operation]
        with translated(task, index=index):
            items = client.bulk(operations=lines, index=alias, filter_path=_FIELDS_READ, **options)["items"]
        busy: Result | None = None
        for at, item in zip(list(pending), items, strict=True):
            (result,) = item.values()
            if patience_s and result["status"] in BUSY_STATUSES and not is_blocked(result):
                busy = result
            elif is_settled(result):
                results[at] = result
                del pending[at]
            else:
                raise error_of(result)
        if busy is not None:
            raise ServerBusy(str(error_of(busy)), status=busy["status"], index=index)

    if pending:
        retrying(tenacity.retry_if_exception_type(ServerUnavailable), patience_s=patience_s)(send_pending)
    return [results[at] for at in sorted(results)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Written:
    """The result of writing an article."""

    index: str
    id: str
    note: Any
    # The reason and status of Elasticsearch's refusal; None if the article is stored.
    refusal: str | None = None
    status: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Article:
    target: dict[str, Any]
    lines: tuple[bytes, bytes]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines))

    @property
    def is_large(self) -> bool:
        return self.size_bytes > _LARGE_BYTES

    def refused(self, result: Result) -> Written:
        refusal, status = _refusal(result["error"]), result["status"]
        return Written(**self.target, refusal=refusal, status=status)


class ArticleBulk:
    """Writes articles. If Elasticsearch refuses an article, all other articles are still written."""

    def __init__(self, client: Elasticsearch, *, index: str, only_existing: bool = False) -> None:
        # Whether indices must exist: a write would recreate a deleted index without its mapping.
        self._only_existing = only_existing
        # Used only in messages, since each action names its own index.
        self._index = index
        self._task = f"index into {index!r}"
        # The client must not retry: this class decides which articles to send again, and in which requests.
        self._client = client.options(request_timeout=_TIMEOUT_S, max_retries=0, retry_on_timeout=False)
        self._patient = patient(client)
        self._serializer = client.transport.serializers.get_serializer("application/json")

    def write(self, actions: Iterable[dict[str, Any]]) -> Iterator[list[Written]]:
        """Write articles, and yield the results of each request.

        `actions` are as for ``elasticsearch.helpers.bulk``; each needs an index and an id. Raises
        `ServerError` if nothing can be written.
        """
        for chunk in _chunks(map(self._article, actions)):
            yield from self._write_chunk(chunk)

    def _write_chunk(self, chunk: list[_Article]) -> Iterator[list[Written]]:
        # Requests to send, and how often each has been refused unchanged.
        pending = [(chunk, 0)]
        while pending:
            articles, refusals = pending.pop()
            written: list[Written] = []
            again: list[_Article] = []
            smaller: list[_Article] = []
            for article, result in zip(articles, self._results(articles), strict=True):
                if "error" not in result:
                    written.append(Written(**article.target))
                elif len(articles) > 1 and _may_be_divided(result):
                    smaller.append(article)
                elif (status := result["status"]) is not None and status not in BUSY_STATUSES:
                    written.append(article.refused(result))
                elif refusals < (_MAX_REFUSALS_OF_LARGE if article.is_large else _MAX_REFUSALS):
                    again.append(article)
                elif article.is_large and len(articles) == 1:
                    written.append(article.refused(result))
                else:
                    status = _NO_ANSWER_STATUS if status is None else status
                    raise refused(self._task, result, status=status, index=self._index)
            yield written
            if again:
                time.sleep(min(_LONGEST_PAUSE_S, _SHORTEST_PAUSE_S * 2**refusals))
                pending.append((again, refusals + 1))
            if smaller:
                half = (len(smaller) + 1) // 2
                pending += [(part, 0) for part in (smaller[half:], smaller[:half]) if part]

    def _results(self, articles: list[_Article]) -> list[Result]:
        """Send a request once; return one result per article (copies of one result if the request failed)."""
        names = sorted({article.target["index"] for article in articles})
        with translated(self._task, index=self._index):
            if self._only_existing and not self._patient.indices.exists(index=names):
                raise IndexNotReady(f"one of these indices has been deleted: {', '.join(names)}", status=404)
        try:
            return send_bulk(
                self._client,
                [article.lines for article in articles],
                task=self._task,
                is_settled=_is_about_article,
                index=self._index,
                patience_s=0,
            )
        except ServerError as error:
            cause = error.__cause__
            if isinstance(cause, ApiError) and _is_about_article({"status": error.status}):
                body = cause.body if isinstance(cause.body, dict) else {}
                result = {"error": reason(cause)} | body | {"status": error.status}
                if not (is_blocked(result) or is_closed(result)):
                    return [result | {_WHOLE: True}] * len(articles)
            elif isinstance(cause, _LOST) and not isinstance(cause, elastic_transport.TlsError):
                with translated(self._task, index=self._index):
                    self._patient.indices.exists(index=self._index)
                lost = f"the connection was lost ({cause.message})"
                return [{"status": None, "error": lost, _WHOLE: True}] * len(articles)
            raise

    def _article(self, action: dict[str, Any]) -> _Article:
        target = {name: action[name] for name in _TARGET if name in action}
        operation = {action.get("_op_type", "index"): target}
        with translated(self._task, index=self._index):
            line, source = map(self._serializer.dumps, (operation, action["_source"]))
        written = {"index": action["_index"], "id": action["_id"], "note": action.get(NOTE)}
        return _Article(target=written, lines=(line, source))


def _is_about_article(result: Result) -> bool:
    """Return whether a result concerns its article alone, so that other articles may still be written."""
    error = result.get("error")
    is_gone = isinstance(error, dict) and error.get("type") == "document_missing_exception"
    is_hopeless = result["status"] in _HOPELESS_STATUSES and not is_gone
    return not (is_blocked(result) or is_closed(result) or is_hopeless)


def _may_be_divided(result: Result) -> bool:
    """Return whether the size of the request, or another article in it, may be the reason for a refusal."""
    is_crowded = _WHOLE in result or result["status"] == _TOO_MANY_STATUS
    return is_crowded and result["status"] in _DIVISIBLE_STATUSES


def _chunks(articles: Iterable[_Article]) -> Iterator[list[_Article]]:
    """Group articles into requests; an article larger than the maximum size gets its own request."""
    chunk: list[_Article] = []
    size_bytes = 0
    for article in articles:
        if chunk and (len(chunk) == _CHUNK_ARTICLES or size_bytes + article.size_bytes > _CHUNK_BYTES):
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(article)
        size_bytes += article.size_bytes
    if chunk:
        yield chunk


def _refusal(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)[:200]
    cause = error.get("caused_by") or {}
    # The reason names the field; a preview after it would quote the article.
    why = str(error.get("reason", "")).split(" Preview of", 1)[0]
    advice = f"; {MORE_FIELDS}" if FULL in why else ""
    return f"{why} [{cause.get('type', error.get('type'))}]{advice}"
