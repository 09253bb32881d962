"""Records the searches of an operation."""

from typing import Any, TypeVar

from esdedup.elastic.requests import Request, Requests, Search, answered

_Result = TypeVar("_Result")


def noting(operation: Requests[_Result], searches: list[Search]) -> Requests[_Result]:
    """Run an operation, and append its searches to a list."""

    def answer(request: Request) -> Requests[Any]:
        if isinstance(request, Search):
            searches.append(request)
        return (yield request)

    return answered(operation, answer)
