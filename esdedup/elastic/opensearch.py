"""OpenSearch 3: an Elasticsearch client's requests are changed for it, and its answers changed back."""

import dataclasses
import re
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from elastic_transport import HttpHeaders, TransportApiResponse

# The header of every answer of Elasticsearch, which its clients look for.
_PRODUCT = "x-elastic-product"
# Statuses by which OpenSearch refuses requests in a form that it does not know.
_NOT_TAKEN = frozenset({400, 404, 405, 406, 415})
_MEDIA_TYPE = re.compile(r"application/vnd\.elasticsearch\+([\w-]+)(?:;\s*compatible-with=\d+)?")
# It ignores `features`, and with an excluding `filter_path` drops all empty lists.
_DROPPED = re.compile(r"features=|filter_path=(-|%2D)")


class Asked(NamedTuple):
    """A request, as the client's transport takes it."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: Any = None

    def about_the_server(self) -> "Asked":
        """Return a request, with the same credentials, for the name and version of the server."""
        headers = {name: each for name, each in self.headers.items() if name.lower() != "content-type"}
        return Asked("GET", "/", headers | {"accept": "application/json"})

    def for_opensearch(self) -> "Asked":
        """Return what OpenSearch is asked instead."""
        headers = {name: _MEDIA_TYPE.sub(r"application/\1", each) for name, each in self.headers.items()}
        path, _, query = self.target.partition("?")
        body = self.body
        if path.endswith("/_pit"):
            path = f"{path.removesuffix('_pit')}_search/point_in_time"
            body = {"pit_id": [body["id"]]} if self.method == "DELETE" else body
        kept = "&".join(each for each in query.split("&") if not _DROPPED.match(each))
        return Asked(self.method, f"{path}?{kept}" if kept else path, headers, body)


class Engine:
    """Whether a server is Elasticsearch or OpenSearch, once it has answered."""

    def __init__(self) -> None:
        self._is_opensearch: bool | None = None

    def requests(self, asked: Asked) -> Generator[Asked, TransportApiResponse, TransportApiResponse]:
        """Yield what to send instead of a request, and take each answer; return that of the request."""
        if self._is_opensearch is None:
            answer = yield asked
            if _PRODUCT in answer.meta.headers:
                self._is_opensearch = False
                return answer
            if not _is_opensearch((yield asked.about_the_server())):
                return answer
            self._is_opensearch = True
            if answer.meta.status not in _NOT_TAKEN:
                return _as_elasticsearch(answer)
        if not self._is_opensearch:
            return (yield asked)
        return _as_elasticsearch((yield asked.for_opensearch()))


def _is_opensearch(answer: TransportApiResponse) -> bool:
    version = answer.body.get("version") if isinstance(answer.body, dict) else None
    return isinstance(version, dict) and version.get("distribution") == "opensearch"


def _as_elasticsearch(answer: TransportApiResponse) -> TransportApiResponse:
    headers = HttpHeaders({**answer.meta.headers, _PRODUCT: "Elasticsearch"})
    body = answer.body
    if isinstance(body, dict) and "pit_id" in body and "hits" not in body:
        body = {**body, "id": body["pit_id"]}
    return TransportApiResponse(dataclasses.replace(answer.meta, headers=headers), body)
