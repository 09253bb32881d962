"""Carries out the steps of reading with a client: one that waits, or one that is awaited."""

import time
from collections.abc import Generator
from typing import Any, TypeVar

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.elastic.errors import refused, translated
from esdedup.elastic.requests import UNREAD, ReadClock, ReadMappings, Refresh, Requests, Search

_Result = TypeVar("_Result")
_Request = Search | ReadMappings | Refresh

_TIMEOUT_S = 60.0
_KNOWN_S = 10.0
_MOST_KNOWN = 1_000
# Each part of a cluster must have answered, or counts would be wrong without a word.
_COMPLETE: dict[str, Any] = {"allow_partial_search_results": False}
# Aggregations whose buckets only others look at, in the server.
_UNREAD = f"-**.{UNREAD}"


class Mappings:
    """The mappings of some seconds ago: they hardly ever change, and every answer needs them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}

    def get(self, index: str) -> dict[str, Any] | None:
        """Return those behind a name, None if they are not known, or too old."""
        since_s, mappings = self._known.get(index, (0.0, {}))
        return mappings if mappings and time.monotonic() - since_s < _KNOWN_S else None

    def put(self, index: str, mappings: dict[str, Any]) -> None:
        """Note those behind a name as they are now."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known[index] = (time.monotonic(), mappings)


def execute(client: Elasticsearch, steps: Requests[_Result], *, known: Mappings | None = None) -> _Result:
    """Carry out steps one after the other; return what they come to.

    Args:
        client: Stays the caller's.
        steps: Of an operation.
        known: Mappings that need not be read again.

    Raises:
        ServerError: Elasticsearch does not answer, or refuses.
    """
    client = client.options(request_timeout=_TIMEOUT_S)
    requests = _requests(steps, known)
    answer: Any = None
    while True:
        try:
            step = requests.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        with translated(_task(step), index=step.index):
            answer = _call(client, step)


async def execute_async(
    client: AsyncElasticsearch, steps: Requests[_Result], *, known: Mappings | None = None
) -> _Result:
    """Do as `execute` does, without waiting for the server.

    Raises:
        ServerError: Elasticsearch does not answer, or refuses.
    """
    client = client.options(request_timeout=_TIMEOUT_S)
    requests = _requests(steps, known)
    answer: Any = None
    while True:
        try:
            step = requests.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        with translated(_task(step), index=step.index):
            answer = await _call(client, step)


def _requests(steps: Requests[_Result], known: Mappings | None) -> Generator[_Request, Any, _Result]:
    """Yield those of the steps that need the server, and read what it answers; answer the others."""
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        if isinstance(step, ReadClock):
            answer = int(time.time() * 1000)
            continue
        answer = _known(step, known)
        if answer is None:
            answer = _checked(step, (yield step), known)


def _known(step: _Request, known: Mappings | None) -> Any:
    """Return an answer that is known already, None where there is none."""
    if isinstance(step, ReadMappings) and not step.is_fresh and known is not None:
        return known.get(step.index)
    return None


def _call(client: Elasticsearch | AsyncElasticsearch, step: _Request) -> Any:
    """Send the request of a step; return the answer, or what is to be awaited for it."""
    if isinstance(step, ReadMappings):
        return client.options(ignore_status=404).indices.get_mapping(index=step.index)
    if isinstance(step, Refresh):
        return client.options(ignore_status=403).indices.refresh(index=step.index)
    if len(step.bodies) == 1:
        return client.search(index=step.index, body=step.bodies[0], filter_path=_UNREAD, **_COMPLETE)
    lines = [line for body in step.bodies for line in ({"index": step.index, **_COMPLETE}, body)]
    return client.msearch(searches=lines, filter_path=_UNREAD)


def _checked(step: _Request, answer: Any, known: Mappings | None) -> Any:
    if isinstance(step, ReadMappings):
        if answer.meta.status == 404:
            return {}
        mappings = {name: each["mappings"] for name, each in answer.items()}
        if known is not None:
            known.put(step.index, mappings)
        return mappings
    if isinstance(step, Refresh):
        return None
    if len(step.bodies) == 1:
        return [answer]
    for each in answer["responses"]:
        if "error" in each:
            raise refused(_task(step), each, status=each["status"], index=step.index)
    return answer["responses"]


def _task(step: _Request) -> str:
    verbs = {Search: "search", ReadMappings: "read the mapping of", Refresh: "refresh"}
    return f"{verbs[type(step)]} the index {step.index!r}"
