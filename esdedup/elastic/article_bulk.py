"""Writes articles in bulk requests, so that one which Elasticsearch cannot take fails alone."""

import dataclasses
import enum
import time
from collections.abc import Iterable, Iterator
from typing import Any, cast

import elastic_transport
from elasticsearch import ApiError, Elasticsearch

from esdedup.elastic.errors import is_blocked, is_closed, reason, refused, translated
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import patient

_CHUNK_ARTICLES = 500
# Of a chunk with more than one article; a server takes 100 MB, unless it is told otherwise.
_CHUNK_BYTES = 10_000_000
_TIMEOUT_S = 60.0
# A server that refuses a request so often, in a minute or so with the pauses between, is out of order.
_MOST_REFUSALS = 10
# A larger article may itself be the reason, and is given up within some seconds.
_LARGE_BYTES = 1_000_000
_MOST_REFUSALS_OF_LARGE = 5
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0
# About any article: none can be written.
_HOPELESS_STATUSES = frozenset({401, 403, 404})
_TOO_MANY_STATUS = 429
_NO_ANSWER_STATUS = 503
# About a whole request: it may be too large, or one article in it may be malformed.
_DIVISIBLE_STATUSES = frozenset({400, 413, _TOO_MANY_STATUS, 500, None})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Written:
    """What became of an article."""

    id: str
    # Why Elasticsearch refuses it; None if it is stored.
    refusal: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Article:
    id: str
    # Two lines of a bulk request.
    lines: tuple[bytes, bytes]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Answer:
    """What Elasticsearch says about one article, or about a request as a whole."""

    # None: the connection was lost, though the server answers other requests.
    status: int | None
    # As in a bulk response: with an `error` if the article is refused.
    item: dict[str, Any]
    is_about_request: bool = False


class _Step(enum.Enum):
    STORED = enum.auto()
    REFUSED = enum.auto()
    # To be sent again after a pause, or in a smaller request.
    AGAIN = enum.auto()
    SMALLER = enum.auto()


class ArticleBulk:
    """Writes articles to one index."""

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
        self._patient = patient(client)
        self._serializer = client.transport.serializers.get_serializer("application/json")

    def write(self, actions: Iterable[dict[str, Any]]) -> Iterator[list[Written]]:
        """Write articles, and yield what became of them, a request at a time.

        Args:
            actions: To index, each with an id; as ``elasticsearch.helpers.bulk`` takes them.

        Raises:
            IndexBlocked: The disk is full, or the index has a block.
            IndexNotReady: The index is missing, or closed.
            ServerUnavailable: No server answers, or it is busy for about a minute.
            ServerError: Elasticsearch refuses whatever is written.
        """
        for chunk in _chunks(map(self._article, actions)):
            yield from self._write_chunk(chunk)

    def _write_chunk(self, chunk: list[_Article]) -> Iterator[list[Written]]:
        # Each request with the number of times that it was refused as it is.
        pending = [(chunk, 0)]
        while pending:
            articles, refusals = pending.pop()
            steps: dict[_Step, list[_Article]] = {step: [] for step in _Step}
            written = []
            for article, answer in zip(articles, self._answers(articles), strict=True):
                step = self._step(article, answer, refusals, is_alone=len(articles) == 1)
                steps[step].append(article)
                if step is _Step.STORED:
                    written.append(Written(id=article.id, refusal=None))
                elif step is _Step.REFUSED:
                    written.append(Written(id=article.id, refusal=_refusal(answer)))
            yield written
            if again := steps[_Step.AGAIN]:
                time.sleep(min(_LONGEST_PAUSE_S, _SHORTEST_PAUSE_S * 2**refusals))
                pending.append((again, refusals + 1))
            if smaller := steps[_Step.SMALLER]:
                half = (len(smaller) + 1) // 2
                pending += [(part, 0) for part in (smaller[half:], smaller[:half]) if part]

    def _step(self, article: _Article, answer: _Answer, refusals: int, *, is_alone: bool) -> _Step:
        """Decide what to do with an article of a request that was refused so often before."""
        status = answer.status
        if "error" not in answer.item:
            return _Step.STORED
        if is_blocked(answer.item) or is_closed(answer.item) or status in _HOPELESS_STATUSES:
            raise self._error(answer)
        is_crowded = answer.is_about_request or status == _TOO_MANY_STATUS
        if not is_alone and is_crowded and status in _DIVISIBLE_STATUSES:
            return _Step.SMALLER
        if status is not None and status not in BUSY_STATUSES:
            return _Step.REFUSED
        is_large = article.size_bytes > _LARGE_BYTES
        if refusals < (_MOST_REFUSALS_OF_LARGE if is_large else _MOST_REFUSALS):
            return _Step.AGAIN
        if is_large and is_alone:
            return _Step.REFUSED
        raise self._error(answer)

    def _answers(self, articles: list[_Article]) -> list[_Answer]:
        """Send a request, and return an answer for each article."""
        lines = [line for article in articles for line in article.lines]
        try:
            answer = self._client.bulk(operations=cast("Any", lines))
        except ApiError as error:
            body = error.body if isinstance(error.body, dict) and "error" in error.body else {}
            item = {"error": reason(error)} | body
            return [_Answer(status=error.meta.status, item=item, is_about_request=True)] * len(articles)
        except elastic_transport.TlsError:
            with translated(self._task, index=self._index):
                raise
        except elastic_transport.ConnectionError as error:
            return self._lost(error, articles)
        except elastic_transport.ConnectionTimeout as error:
            return self._lost(error, articles)
        items = [item["index"] for item in answer["items"]]
        return [_Answer(status=item["status"], item=item) for item in items]

    def _lost(self, error: elastic_transport.TransportError, articles: list[_Article]) -> list[_Answer]:
        """Return the answers for a connection that was lost; raise if no server answers for a minute."""
        with translated(self._task, index=self._index):
            self._patient.indices.exists(index=self._index)
        item = {"error": f"the connection was lost ({error.message})"}
        return [_Answer(status=None, item=item, is_about_request=True)] * len(articles)

    def _error(self, answer: _Answer) -> Exception:
        return refused(self._task, answer.item, status=answer.status or _NO_ANSWER_STATUS, index=self._index)

    def _article(self, action: dict[str, Any]) -> _Article:
        target = {"_index": action["_index"], "_id": action["_id"]}
        if "routing" in action:
            target["routing"] = action["routing"]
        lines = (self._line({"index": target}), self._line(action["_source"]))
        return _Article(id=action["_id"], lines=lines)

    def _line(self, value: dict[str, Any]) -> bytes:
        with translated(self._task, index=self._index):
            return self._serializer.dumps(value)


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


def _refusal(answer: _Answer) -> str:
    error = answer.item["error"]
    if not isinstance(error, dict):
        return str(error)[:200]
    cause = error.get("caused_by") or {}
    # The reason names the field; a preview after it would quote the article.
    why = str(error.get("reason", "")).split(" Preview of", 1)[0]
    return f"{why} [{cause.get('type', error.get('type'))}]"
