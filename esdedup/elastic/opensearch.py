"""Converts the requests of an Elasticsearch client for OpenSearch 3, and converts the responses back."""

import dataclasses
import re
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from elastic_transport import HttpHeaders, TransportApiResponse

# The header that Elasticsearch puts into every response, and that its clients require.
_PRODUCT = "x-elastic-product"
# The statuses with which OpenSearch refuses requests in an unknown form.
_NOT_TAKEN = frozenset({400, 404, 405, 406, 415})
_MEDIA_TYPE = re.compile(r"application/vnd\.elasticsearch\+([\w-]+)(?:;\s*compatible-with=\d+)?")
# OpenSearch ignores `features`, and drops all empty lists if `filter_path` excludes something.
_DROPPED = re.compile(r"features=|filter_path=(-|%2D)")


class HttpRequest(NamedTuple):
    """An HTTP request, as given to the client's transport."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: Any = None

    def about_the_server(self) -> "HttpRequest":
        """Return a request, with the same credentials, for the server's name and version."""
        headers = {name: each for name, each in self.headers.items() if name.lower() != "content-type"}
        return HttpRequest("GET", "/", headers | {"accept": "application/json"})

    def for_opensearch(self) -> "HttpRequest":
        """Return the request in the form that OpenSearch expects."""
        headers = {name: _MEDIA_TYPE.sub(r"application/\1", each) for name, each in self.headers.items()}
        path, _, query = self.target.partition("?")
        body = self.body
        if path.endswith("/_pit"):
            path = f"{path.removesuffix('_pit')}_search/point_in_time"
            body = {"pit_id": [body["id"]]} if self.method == "DELETE" else body
        kept = "&".join(each for each in query.split("&") if not _DROPPED.match(each))
        return HttpRequest(self.method, f"{path}?{kept}" if kept else path, headers, body)


class Engine:
    """Detects whether a server is OpenSearch, and converts requests for it."""

    def __init__(self) -> None:
        self._is_opensearch: bool | None = None

    def requests(
        self, request: HttpRequest
    ) -> Generator[HttpRequest, TransportApiResponse, TransportApiResponse]:
        """Yield the requests to send for `request`, receive their responses, and return the last response."""
        if self._is_opensearch is None:
            answer = yield request
            if _PRODUCT in answer.meta.headers:
                self._is_opensearch = False
                return answer
            if not _is_opensearch((yield request.about_the_server())):
                return answer
            self._is_opensearch = True
            if answer.meta.status not in _NOT_TAKEN:
                return _as_elasticsearch(answer)
        if not self._is_opensearch:
            return (yield request)
        return _as_elasticsearch((yield request.for_opensearch()))


def _is_opensearch(answer: TransportApiResponse) -> bool:
    version = answer.body.get("version") if isinstance(answer.body, dict) else None
    return isinstance(version, dict) and version.get("distribution") == "opensearch"


def _as_elasticsearch(answer: TransportApiResponse) -> TransportApiResponse:
    headers = HttpHeaders({**answer.meta.headers, _PRODUCT: "Elasticsearch"})
    body = answer.body
    if isinstance(body, dict) and "pit_id" in body and "hits" not in body:
        body = {**body, "id": body["pit_id"]}
    return TransportApiResponse(dataclasses.replace(answer.meta, headers=headers), body)
