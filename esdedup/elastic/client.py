"""Creates clients of Elasticsearch and OpenSearch, and refuses clients that were used before a fork."""

import functools
import importlib.util
import os
import re
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import elastic_transport
from elasticsearch import ApiError, AsyncElasticsearch, AuthorizationException, Elasticsearch

from esdedup.elastic.errors import reason, translated
from esdedup.elastic.opensearch import Engine, HttpRequest
from esdedup.errors import ClientForked, ServerUnavailable, SettingError

_Client = TypeVar("_Client", Elasticsearch, AsyncElasticsearch)

# A client of version 9 requests the API of version 9. A server of version 8 refuses such requests.
_COMPATIBLE = re.compile(r"compatible-with=\d+")
# A server whose first response takes longer is considered down.
_FIRST_ANSWER_S = 5.0
BETWEEN_ADDRESSES = re.compile(r"\s*,\s*(?=https?://)", re.IGNORECASE)
CREDENTIALS = frozenset(("authorization", "es-secondary-authorization", "es-security-runas-user"))
"""The headers, in lower case, that identify a caller and the user for whom they act."""

# The process that first used each client. The key is the node pool, which a client shares with its copies.
_users: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()


def _of_version_8(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _COMPATIBLE.sub("compatible-with=8", value) for name, value in headers.items()}


class _Transport(elastic_transport.Transport):
    @functools.cached_property
    def _engine(self) -> Engine:
        return Engine()

    def perform_request(  # type: ignore[override] # its parameters differ between versions
        self, method: str, target: str, *, headers: Mapping[str, str], body: Any = None, **others: Any
    ) -> elastic_transport.TransportApiResponse:
        requests = self._engine.requests(HttpRequest(method, target, _of_version_8(headers), body))
        request = next(requests)
        while True:
            sent = {"headers": request.headers, "body": request.body, **others}
            answer = super().perform_request(request.method, request.target, **sent)
            if answer.body is None and answer.meta.status == 200 and request.method != "HEAD":
                raise elastic_transport.ConnectionError("the response broke off in its headers")
            try:
                request = requests.send(answer)
            except StopIteration as end:
                result: elastic_transport.TransportApiResponse = end.value
                return result


class _AsyncTransport(elastic_transport.AsyncTransport):
    @functools.cached_property
    def _engine(self) -> Engine:
        return Engine()

    # The client checks whether this is a coroutine function.
    async def perform_request(  # type: ignore[override] # its parameters differ between versions
        self, method: str, target: str, *, headers: Mapping[str, str], body: Any = None, **others: Any
    ) -> elastic_transport.TransportApiResponse:
        requests = self._engine.requests(HttpRequest(method, target, _of_version_8(headers), body))
        request = next(requests)
        while True:
            sent = {"headers": request.headers, "body": request.body, **others}
            answer = await super().perform_request(request.method, request.target, **sent)
            try:
                request = requests.send(answer)
            except StopIteration as end:
                result: elastic_transport.TransportApiResponse = end.value
                return result


def connect(url: str, *, api_key: str | None = None, ca_certs: Path | None = None) -> Elasticsearch:
    """Return a client of the server at `url`, after checking that the server answers.

    The server may be OpenSearch 3; the client then converts its requests for OpenSearch.

    Args:
        url: May contain a user and a password. Separate several servers of a cluster by commas; if one
            does not answer, the client uses the others.
        api_key: The key that Elasticsearch returned, in base64.
        ca_certs: A file or directory with the certificate authority that signed the server's certificate.

    Raises:
        SettingError: The address or the certificates are not valid.
        ServerUnavailable: No server answers, or the server is not Elasticsearch.
        ServerError: The server refuses the request.
    """
    client = client_of(url, api_key=api_key, ca_certs=ca_certs)
    with translated(f"reach Elasticsearch at {addresses_of(client)}"):
        try:
            client.options(request_timeout=_FIRST_ANSWER_S).cluster.health(timeout="1s")
        except AuthorizationException:
            # An API key with privileges for indices only cannot read the health, but the server has answered.
            return client
        except ApiError as error:
            if error.meta.status in {404, 405, 501}:
                raise ServerUnavailable(
                    "cannot reach Elasticsearch: the server that answers is not Elasticsearch"
                ) from error
            if error.meta.status in {400, 406}:
                raise ServerUnavailable(
                    f"the server is too old for esdedup, which needs Elasticsearch 8.19 or 9: {reason(error)}"
                ) from error
            raise
    return client


def client_of(
    url: str, *, user: tuple[str, str] | None = None, api_key: str | None = None, ca_certs: Path | None = None
) -> Elasticsearch:
    """Return a client as `connect` does, without sending a request; `user` is a name and a password."""
    return _client(Elasticsearch, _Transport, url, user=user, api_key=api_key, ca_certs=ca_certs)


def connect_async(
    url: str, *, user: tuple[str, str] | None = None, api_key: str | None = None, ca_certs: Path | None = None
) -> AsyncElasticsearch:
    """Return an asynchronous client; parameters as for `client_of`. Nothing is sent yet."""
    if importlib.util.find_spec("aiohttp") is None:
        raise SettingError("aiohttp is not installed: pip install 'esdedup[serve]'")
    return _client(AsyncElasticsearch, _AsyncTransport, url, user=user, api_key=api_key, ca_certs=ca_certs)


def blocking_twin(client: AsyncElasticsearch) -> Elasticsearch:
    """Return a blocking client of the same servers, with the same credentials. Nothing is sent yet."""
    return Elasticsearch(
        [node.config for node in client.transport.node_pool.all()],
        headers=dict(client._headers),
        transport_class=_Transport,
    )


def addresses_of(client: Elasticsearch) -> str:
    """Return the addresses of a client's servers, without a user or password, for messages."""
    return ", ".join(node.base_url for node in client.transport.node_pool.all())


def credentials_of(client: Elasticsearch) -> dict[str, str]:
    """Return the headers that identify a client to its server, or to the first of several servers."""
    # A user in a server's address becomes a header for that server.
    node = next(iter(client.transport.node_pool.all()))
    headers = {**node.config.headers, **client._headers}
    return {name: value for name, value in headers.items() if name.lower() in CREDENTIALS}


def is_inherited(client: Elasticsearch | AsyncElasticsearch) -> bool:
    """Return whether a parent process used this client before it forked this process."""
    return _users.get(client.transport.node_pool, os.getpid()) != os.getpid()


def refuse_inherited(client: Elasticsearch | AsyncElasticsearch) -> None:
    """Raise `ClientForked` if another process has used a client. Call this before taking a lock.

    A fork copies open connections and held locks, but no threads. Two processes that share a connection
    would read each other's responses, and no thread would renew the child's copy of a lease.
    """
    user = _users.setdefault(client.transport.node_pool, os.getpid())
    if user != os.getpid():
        raise ClientForked(
            f"this process ({os.getpid()}) was forked from process {user}, which has used this client: they "
            "would read each other's responses. Create a client in each process, and a Dedup (or "
            "Maintenance, Reader) with it.",
            process=user,
        )


def _client(
    kind: Callable[..., _Client],
    transport: type[elastic_transport.Transport],
    url: str,
    *,
    user: tuple[str, str] | None,
    api_key: str | None,
    ca_certs: Path | None,
) -> _Client:
    if ca_certs is not None and not ca_certs.exists():
        raise SettingError(f"there are no certificates at {ca_certs}")
    if api_key is not None and (not api_key.isascii() or not api_key.isprintable() or " " in api_key):
        raise SettingError("the API key contains an invalid character (perhaps a line break)")
    given: dict[str, Any] = {"ca_certs": str(ca_certs)} if ca_certs else {}
    try:
        addresses = BETWEEN_ADDRESSES.split(url)
        return kind(addresses, basic_auth=user, api_key=api_key, transport_class=transport, **given)
    except (ValueError, OSError) as error:
        # The client's own message may quote the password.
        raise SettingError(
            "cannot connect: the address must look like https://localhost:9200, or with "
            "USER:PASSWORD@ before the host, percent-encoded; certificates must be PEM"
        ) from error
