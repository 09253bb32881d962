"""Bulk requests: operations that a busy server refuses are sent again, in one way for all that is written."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tenacity
from elasticsearch import Elasticsearch

from esdedup.elastic.errors import is_blocked, is_closed, refused, translated
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import PATIENCE_S, retrying
from esdedup.errors import IndexBlocked, IndexNotReady, ServerBusy, ServerError, ServerUnavailable

_FIELDS_READ = [
    *("items.*._index", "items.*._id", "items.*.status", "items.*.error"),
    # When the whole request is refused.
    *("error", "status"),
]

_CHUNK_ARTICLES = 500
# Of a chunk with more than one article; a server takes 100 MB, unless it is told otherwise.
_CHUNK_BYTES = 10_000_000
_TIMEOUT_S = 60.0
# A larger article may itself be the reason of a refusal.
_LARGE_BYTES = 1_000_000
# How long a request is sent again before it is divided, or a large article given up.
_SHORT_PATIENCE_S = 5.0
_NOT_ALLOWED_STATUSES = frozenset({401, 403})
# About any article: none can be written.
_HOPELESS_STATUSES = _NOT_ALLOWED_STATUSES | {404}

Operation = Sequence[Any]
"""The lines of one operation: what to do, and unless that is a deletion the document."""

Result = dict[str, Any]
"""The answer to one operation, with an ``error`` if it failed."""


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
    """Send operations until each is settled; return their results, in order.

    Args:
        client: Owned by the caller.
        operations: May each be repeated.
        task: What is being done, phrased to follow "cannot".
        is_settled: Whether a result needs no error. Not asked for an operation that a busy server refused.
        index: For messages.
        alias: Where they go, unless each says that.
        patience_s: How long what a busy server refuses is sent again.
        options: Others of ``Elasticsearch.bulk``.

    Raises:
        IndexBlocked: The disk is full, or the index has a block.
        ServerUnavailable: The server was too busy for some, or did not answer.
        ServerError: A result was not settled.
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
            if result["status"] in BUSY_STATUSES and not is_blocked(result):
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
    """What became of an article."""

    id: str
    # Why Elasticsearch refuses it; None if it is stored.
    refusal: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Article:
    id: str
    lines: tuple[bytes, bytes]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines))


class ArticleBulk:
    """Writes articles, so that one which Elasticsearch cannot take fails alone."""

    def __init__(self, client: Elasticsearch, *, index: str) -> None:
        """Write with a client.

        Args:
            client: Closed by the caller; not changed.
            index: For messages; each action names its own.
        """
        self._index = index
        self._task = f"index into {index!r}"
        # What to send again, and how much of it at once, is decided here.
        self._client = client.options(request_timeout=_TIMEOUT_S, max_retries=0, retry_on_timeout=False)
        self._serializer = client.transport.serializers.get_serializer("application/json")

    def write(self, actions: Iterable[dict[str, Any]]) -> Iterator[list[Written]]:
        """Write articles, and yield what became of them, a request at a time.

        Args:
            actions: To index, each with an id; as ``elasticsearch.helpers.bulk`` takes them.

        Raises:
            IndexBlocked: The disk is full, or the index has a block.
            IndexNotReady: The index is missing, or closed.
            ServerUnavailable: No server answers, or it is busy for more than a minute.
            ServerError: Elasticsearch refuses whatever is written.
        """
        for chunk in _chunks(map(self._article, actions)):
            yield from self._write_chunk(chunk)

    def _write_chunk(self, articles: list[_Article]) -> Iterator[list[Written]]:
        is_alone = len(articles) == 1
        is_large = is_alone and articles[0].size_bytes > _LARGE_BYTES
        try:
            results = send_bulk(
                self._client,
                [article.lines for article in articles],
                task=self._task,
                is_settled=_is_about_article,
                index=self._index,
                patience_s=PATIENCE_S if is_alone and not is_large else _SHORT_PATIENCE_S,
            )
        except ServerError as error:
            if isinstance(error, IndexBlocked | IndexNotReady) or error.status in _NOT_ALLOWED_STATUSES:
                raise
            if not is_alone:
                # The request may be too large, or one article in it may be malformed.
                half = len(articles) // 2
                yield from self._write_chunk(articles[:half])
                yield from self._write_chunk(articles[half:])
                return
            if isinstance(error, ServerUnavailable) and not is_large:
                raise
            yield [Written(id=articles[0].id, refusal=str(error))]
            return
        yield [
            Written(id=article.id, refusal=_refusal(result["error"]) if "error" in result else None)
            for article, result in zip(articles, results, strict=True)
        ]

    def _article(self, action: dict[str, Any]) -> _Article:
        target = {name: action[name] for name in ("_index", "_id", "routing") if name in action}
        with translated(self._task, index=self._index):
            index, source = map(self._serializer.dumps, ({"index": target}, action["_source"]))
        return _Article(id=action["_id"], lines=(index, source))


def _is_about_article(result: Result) -> bool:
    """Return whether a result says nothing about other articles."""
    return not (is_blocked(result) or is_closed(result) or result["status"] in _HOPELESS_STATUSES)


def _chunks(articles: Iterable[_Article]) -> Iterator[list[_Article]]:
    """Group articles into requests; one that is too large for any goes alone."""
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
    return f"{why} [{cause.get('type', error.get('type'))}]"
