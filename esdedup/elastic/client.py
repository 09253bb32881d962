"""Connecting, for the command line. Programs bring their own client."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import elastic_transport
from elasticsearch import ApiError, AuthorizationException, Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.errors import ServerUnavailable, SettingError

_COMPATIBLE = re.compile(r"compatible-with=\d+")


class _AnyVersionTransport(elastic_transport.Transport):
    """Speaks the API of version 8, which servers of version 8 and 9 both understand.

    A client of version 9 asks for that version's API, which a server of version 8 refuses.
    """

    def perform_request(  # type: ignore[override] # its parameters differ between versions
        self, method: str, target: str, *, headers: Mapping[str, str], **parameters: Any
    ) -> elastic_transport.TransportApiResponse:
        compatible = {name: _COMPATIBLE.sub("compatible-with=8", value) for name, value in headers.items()}
        return super().perform_request(method, target, headers=compatible, **parameters)


def connect(url: str, *, api_key: str | None = None, ca_certs: Path | None = None) -> Elasticsearch:
    """Return a client of the server at `url`, which has been asked whether it is there.

    Args:
        url: May hold a user and a password.
        api_key: As Elasticsearch gave it, base64.
        ca_certs: A file or directory with the authority that signed the server's certificate.

    Raises:
        SettingError: The address or the certificates make no sense.
        ServerUnavailable: Nothing answers, or not an Elasticsearch.
        ServerError: It refuses.
    """
    if ca_certs is not None and not ca_certs.exists():
        raise SettingError(f"there are no certificates at {ca_certs}")
    if api_key is not None and (not api_key.isascii() or not api_key.isprintable() or " " in api_key):
        raise SettingError("the API key has characters that no API key has (a line break perhaps)")
    given: dict[str, Any] = {"ca_certs": str(ca_certs)} if ca_certs else {}
    try:
        client = Elasticsearch(url, api_key=api_key, transport_class=_AnyVersionTransport, **given)
    except (ValueError, OSError) as error:
        # What the client says may quote the password.
        raise SettingError(
            "cannot connect as told: the address must be like https://localhost:9200, or with "
            "USER:PASSWORD@ before the host, percent-encoded; certificates must be PEM"
        ) from error
    with translated("reach Elasticsearch"):
        try:
            client.cluster.health(timeout="1s")
        except AuthorizationException:
            # The key may read and write indices only; the server is there.
            return client
        except ApiError as error:
            if error.meta.status in {404, 405, 501}:
                raise ServerUnavailable(
                    "cannot reach Elasticsearch: what answers is another server"
                ) from error
            raise
    return client
