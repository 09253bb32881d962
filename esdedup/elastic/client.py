"""Clients for the command line, and retries for any client. Programs pass clients of their own."""

import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import elastic_transport
import tenacity
from elasticsearch import ApiError, AsyncElasticsearch, AuthorizationException, Elasticsearch

from esdedup.elastic.errors import is_blocked, translated
from esdedup.elastic.given_client import refuse_inherited
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.errors import ServerUnavailable, SettingError

_Client = TypeVar("_Client", Elasticsearch, AsyncElasticsearch)

_COMPATIBLE = re.compile(r"compatible-with=\d+")
_BETWEEN_ADDRESSES = re.compile(r"\s*,\s*(?=https?://)", re.IGNORECASE)
# A cluster that has lost a server recovers within seconds, and moves its shards within a minute.
_PATIENCE_S = 60.0
CREDENTIALS = frozenset(("authorization", "es-secondary-authorization", "es-security-runas-user"))
"""The headers by which callers are told apart: who they are, and for whom they act; in small letters."""
_TRANSIENT = (elastic_transport.ConnectionError, elastic_transport.ConnectionTimeout)


class PartlyRefused(ServerUnavailable):
    """The server was too busy for a part of a request."""


retry_while_refused = tenacity.retry(
    retry=tenacity.retry_if_exception_type(PartlyRefused),
    stop=tenacity.stop_after_attempt(8),
    wait=tenacity.wait_random_exponential(multiplier=0.2, max=10),
    reraise=True,
)
"""Decorates a function that may be repeated: repeats it, up to 8 times in all, while a part is refused."""


class _AnyVersionTransport(elastic_transport.Transport):
    """Speaks the API of version 8, which servers of version 8 and 9 both understand.

    A client of version 9 asks for that version's API, which a server of version 8 refuses.
    """

    def perform_request(  # type: ignore[override] # its parameters differ between versions
        self, method: str, target: str, *, headers: Mapping[str, str], **parameters: Any
    ) -> elastic_transport.TransportApiResponse:
        return super().perform_request(method, target, headers=_of_version_8(headers), **parameters)


class _AnyVersionAsyncTransport(elastic_transport.AsyncTransport):
    """The same for an asynchronous client."""

    async def perform_request(  # type: ignore[override] # its parameters differ between versions
        self, method: str, target: str, *, headers: Mapping[str, str], **parameters: Any
    ) -> elastic_transport.TransportApiResponse:
        return await super().perform_request(method, target, headers=_of_version_8(headers), **parameters)


class _PatientTransport:
    """Retries a request while the cluster is unavailable, with pauses; clients retry without pauses."""

    def __init__(self, client: Elasticsearch, *, patience_s: float) -> None:
        self._client = client
        self._transport = client.transport
        self._patience_s = patience_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def perform_request(self, *request: Any, **parameters: Any) -> elastic_transport.TransportApiResponse:
        refuse_inherited(self._client)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_transient) | tenacity.retry_if_result(_is_busy),
            stop=tenacity.stop_after_delay(self._patience_s),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=2),
            retry_error_callback=_last_answer,
        )
        return retrying(self._transport.perform_request, *request, **parameters)


def patient(client: Elasticsearch, *, patience_s: float = _PATIENCE_S) -> Elasticsearch:
    """Return a client of the same servers that retries requests while these are unavailable.

    A request may be executed twice, so use it only for requests that can be repeated.

    Args:
        client: Owned by the caller; not changed.
        patience_s: How long a request is retried, and how long each response may take.
    """
    if isinstance(client.transport, _PatientTransport):
        return client
    copy = client.options(request_timeout=patience_s, max_retries=3, retry_on_timeout=True)
    copy._transport = _PatientTransport(client, patience_s=patience_s)  # type: ignore[assignment]
    return copy


def connect(url: str, *, api_key: str | None = None, ca_certs: Path | None = None) -> Elasticsearch:
    """Return a client of the server at `url`, after checking that the server answers.

    Args:
        url: May contain a user and a password. Several servers of one cluster are separated by commas;
            when one does not answer, the others are used.
        api_key: As Elasticsearch gave it, base64.
        ca_certs: A file or directory with the authority that signed the server's certificate.

    Raises:
        SettingError: The address or the certificates are not valid.
        ServerUnavailable: No server answers, or it is not Elasticsearch.
        ServerError: The server refuses.
    """
    client = client_of(url, api_key=api_key, ca_certs=ca_certs)
    with translated("reach Elasticsearch"):
        try:
            client.cluster.health(timeout="1s")
        except AuthorizationException:
            # A key for indices alone may not read the cluster's health; but the server has answered.
            return client
        except ApiError as error:
            if error.meta.status in {404, 405, 501}:
                raise ServerUnavailable(
                    "cannot reach Elasticsearch: the server that answers is not Elasticsearch"
                ) from error
            raise
    return client


def client_of(
    url: str,
    *,
    user: tuple[str, str] | None = None,
    api_key: str | None = None,
    ca_certs: Path | None = None,
) -> Elasticsearch:
    """Return a client; parameters as for `connect`. Nothing is sent yet.

    Args:
        url: As for `connect`.
        user: Name and password, if they do not stand in the address.
        api_key: As for `connect`.
        ca_certs: As for `connect`.

    Raises:
        SettingError: The address or the certificates are not valid.
    """
    return _client(Elasticsearch, _AnyVersionTransport, url, api_key, ca_certs, user=user)


def connect_async(
    url: str,
    *,
    user: tuple[str, str] | None = None,
    api_key: str | None = None,
    ca_certs: Path | None = None,
) -> AsyncElasticsearch:
    """Return an asynchronous client; parameters as for `client_of`. Nothing is sent yet.

    Raises:
        SettingError: The address or the certificates are not valid, or aiohttp is not installed.
    """
    if importlib.util.find_spec("aiohttp") is None:
        raise SettingError("aiohttp is not installed: pip install 'esdedup[serve]'")
    return _client(AsyncElasticsearch, _AnyVersionAsyncTransport, url, api_key, ca_certs, user=user)


def blocking_twin(client: AsyncElasticsearch) -> Elasticsearch:
    """Return a blocking client of the same servers, with the same credentials. Nothing is sent yet.

    Args:
        client: Not changed; later changes of it do not count.
    """
    return Elasticsearch(
        [node.config for node in client.transport.node_pool.all()],
        headers=dict(client._headers),
        transport_class=_AnyVersionTransport,
    )


def credentials_of(client: Elasticsearch) -> dict[str, str]:
    """Return the headers by which a client says who it is; of several servers, as it says it to the first."""
    # A user in the address of a server is among the headers of that server.
    node = next(iter(client.transport.node_pool.all()))
    headers = {**node.config.headers, **client._headers}
    return {name: value for name, value in headers.items() if name.lower() in CREDENTIALS}


def _client(
    kind: Callable[..., _Client],
    transport: type[elastic_transport.Transport],
    url: str,
    api_key: str | None,
    ca_certs: Path | None,
    *,
    user: tuple[str, str] | None = None,
) -> _Client:
    if ca_certs is not None and not ca_certs.exists():
        raise SettingError(f"there are no certificates at {ca_certs}")
    if api_key is not None and (not api_key.isascii() or not api_key.isprintable() or " " in api_key):
        raise SettingError("the API key contains an invalid character (perhaps a line break)")
    given: dict[str, Any] = {"ca_certs": str(ca_certs)} if ca_certs else {}
    if user is not None:
        given["basic_auth"] = user
    try:
        addresses = _BETWEEN_ADDRESSES.split(url)
        return kind(addresses, api_key=api_key, transport_class=transport, **given)
    except (ValueError, OSError) as error:
        # The client's own message may quote the password.
        raise SettingError(
            "cannot connect: the address must be like https://localhost:9200, or with "
            "USER:PASSWORD@ before the host, percent-encoded; certificates must be PEM"
        ) from error


def _of_version_8(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _COMPATIBLE.sub("compatible-with=8", value) for name, value in headers.items()}


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, _TRANSIENT) and not isinstance(error, elastic_transport.TlsError)


def _is_busy(answer: elastic_transport.TransportApiResponse) -> bool:
    return answer.meta.status in BUSY_STATUSES and not is_blocked(answer.body)


def _last_answer(state: tenacity.RetryCallState) -> Any:
    assert state.outcome is not None
    return state.outcome.result()
