"""Carries out the steps of reading with a client: one that waits, or one that is awaited."""

from typing import Any, TypeVar

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.elastic.errors import refused, translated
from esdedup.reading.steps import UNREAD, ReadMappings, Refresh, Search, Step, Steps

_Result = TypeVar("_Result")

_TIMEOUT_S = 60.0
# Each part of a cluster must have answered, or counts would be wrong without a word.
_COMPLETE: dict[str, Any] = {"allow_partial_search_results": False}
# Aggregations whose buckets only others look at, in the server.
_UNREAD = f"-**.{UNREAD}"


def carry_out(client: Elasticsearch, steps: Steps[_Result]) -> _Result:
    """Carry out steps one after the other; return what they come to.

    Raises:
        ServerError: Elasticsearch does not answer, or refuses.
    """
    client = client.options(request_timeout=_TIMEOUT_S)
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        with translated(_task(step)):
            answer = _call(client, step)
        answer = _checked(step, answer)


async def carry_out_async(client: AsyncElasticsearch, steps: Steps[_Result]) -> _Result:
    """Do as `carry_out` does, without waiting for the server.

    Raises:
        ServerError: Elasticsearch does not answer, or refuses.
    """
    client = client.options(request_timeout=_TIMEOUT_S)
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        with translated(_task(step)):
            answer = await _call(client, step)
        answer = _checked(step, answer)


def _call(client: Elasticsearch | AsyncElasticsearch, step: Step) -> Any:
    """Send the request of a step; return the answer, or what is to be awaited for it."""
    if isinstance(step, ReadMappings):
        return client.options(ignore_status=404).indices.get_mapping(index=step.index)
    if isinstance(step, Refresh):
        return client.options(ignore_status=403).indices.refresh(index=step.index)
    if len(step.bodies) == 1:
        return client.search(index=step.index, body=step.bodies[0], filter_path=_UNREAD, **_COMPLETE)
    lines = [line for body in step.bodies for line in ({"index": step.index, **_COMPLETE}, body)]
    return client.msearch(searches=lines, filter_path=_UNREAD)


def _checked(step: Step, answer: Any) -> Any:
    if isinstance(step, ReadMappings):
        if answer.meta.status == 404:
            return {}
        return {name: each["mappings"] for name, each in answer.items()}
    if isinstance(step, Refresh):
        return None
    if len(step.bodies) == 1:
        return [answer]
    for each in answer["responses"]:
        if "error" in each:
            raise refused(_task(step), each, status=each["status"])
    return answer["responses"]


def _task(step: Step) -> str:
    verbs = {Search: "search", ReadMappings: "read the mapping of", Refresh: "refresh"}
    return f"{verbs[type(step)]} the index {step.index!r}"
