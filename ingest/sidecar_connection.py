"""`SidecarConnection`: requests to whichever of several sidecars takes articles now."""

import dataclasses
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import elastic_transport
import pydantic
import tenacity
from elastic_transport.client_utils import url_to_node_config

from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import retrying
from esdedup.errors import SettingError, SidecarError, SidecarUnavailable

TOKEN_HEADER = "X-Esdedup-Token"  # noqa: S105
# A batch takes a second or so. Who hangs longer has lost the forest to another by then.
_ANSWER_S = 30.0
# As many threads may use it at the same time without opening connections anew.
_CONNECTIONS = 32
_ADVICE = {
    401: "give the right sidecar_token",
    404: "is it the address of a sidecar, of this version?",
    413: "use a smaller batch_size",
}


class _Busy(Exception):
    """No sidecar takes articles now."""


class _Problem(pydantic.BaseModel):
    """What of problem details is read."""

    type: str = ""
    detail: str = ""


class SidecarConnection:
    """Remembers which sidecar answered last, and asks the others if it does not. Thread-safe."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        token: str | None,
        credentials: Mapping[str, str],
        ca_certs: Path | None,
        patience_s: float,
    ) -> None:
        """Send nothing yet.

        Args:
            urls: Addresses of sidecars of one forest.
            token: What they want in the header `X-Esdedup-Token`.
            credentials: The headers by which Elasticsearch knows who writes.
            ca_certs: A file or directory with the authority that signed their certificates.
            patience_s: How long to ask again until one takes articles.

        Raises:
            SettingError: An address or another value cannot be used.
        """
        if not urls:
            raise SettingError("sidecar has no address")
        if not 0 < patience_s < threading.TIMEOUT_MAX:
            raise SettingError(f"sidecar_patience_s is {patience_s}; it must be greater than 0")
        if token is not None and (not token.isascii() or not token.isprintable() or not token.strip()):
            raise SettingError("sidecar_token is blank, or has an invalid character (perhaps a line break)")
        if ca_certs is not None and not ca_certs.exists():
            raise SettingError(f"there are no certificates at {ca_certs}")
        headers = {**credentials, **({} if token is None else {TOKEN_HEADER: token})}
        self._configs = [_config(url, headers=headers, ca_certs=ca_certs) for url in urls]
        self._patience_s = patience_s
        self._nodes: list[elastic_transport.Urllib3HttpNode] = []
        self._process = 0
        self._last = 0

    @property
    def address(self) -> str:
        """Of the sidecar that answered last."""
        config = self._configs[self._last]
        return f"{config.scheme}://{config.host}:{config.port}{config.path_prefix}"

    def post(self, path: str, body: bytes, *, content_type: str) -> bytes:
        """Return what a sidecar answers to a request that may be repeated.

        Raises:
            SidecarUnavailable: None has taken it for as long as was allowed.
            SidecarError: One refuses it.
        """
        patience = retrying(tenacity.retry_if_exception_type(_Busy), patience_s=self._patience_s)
        end_s = time.monotonic() + self._patience_s
        try:
            return patience(self._ask_all, path, body, content_type, end_s)
        except _Busy as error:
            raise SidecarUnavailable(
                f"no sidecar has taken these articles within {self._patience_s:g} s ({error}). Send them "
                "again: what was decided already keeps its roots",
                address=", ".join(node.base_url for node in self._nodes),
            ) from error

    def close(self) -> None:
        """Close all connections; the next request opens others."""
        for node in self._nodes:
            node.close()
        self._nodes = []

    def _ask_all(self, path: str, body: bytes, content_type: str, end_s: float) -> bytes:
        """Ask one after the other, beginning with the one that answered last."""
        self._connect()
        nodes, refusals = self._nodes, []
        for turn in range(len(nodes)):
            at = (self._last + turn) % len(nodes)
            left_s = max(1.0, min(_ANSWER_S, end_s - time.monotonic()))
            answer = _ask(nodes[at], path, body, content_type, timeout_s=left_s)
            if isinstance(answer, bytes):
                self._last = at
                return answer
            refusals.append(f"{nodes[at].base_url}: {answer}")
        raise _Busy("; ".join(refusals))

    def _connect(self) -> None:
        # A forked process must not read from the connections of its parent.
        if not self._nodes or self._process != os.getpid():
            self._process = os.getpid()
            self._nodes = [elastic_transport.Urllib3HttpNode(config) for config in self._configs]


def _ask(
    node: elastic_transport.Urllib3HttpNode, path: str, body: bytes, content_type: str, *, timeout_s: float
) -> bytes | str:
    """Return an answer; or why to ask another sidecar, or this one later.

    Raises:
        SidecarError: It refuses.
    """
    headers = elastic_transport.HttpHeaders({"content-type": content_type})
    try:
        meta, content = node.perform_request("POST", path, body, headers, request_timeout=timeout_s)
    except elastic_transport.TlsError as error:
        raise SidecarError(
            f"{node.base_url}: cannot connect: {error.message:.300}; give the right sidecar_ca_certs",
            address=node.base_url,
        ) from error
    except elastic_transport.ConnectionTimeout:
        return f"no answer within {timeout_s:.0f} s"
    except elastic_transport.TransportError as error:
        return f"cannot connect: {error.message:.300}"
    if meta.status == 200:
        return content
    problem = _problem(content)
    said = f"{meta.status} {problem.detail or problem.type or 'without a reason'}"
    if meta.status in BUSY_STATUSES:
        return said
    advice = _ADVICE.get(meta.status)
    raise SidecarError(
        f"the sidecar at {node.base_url} refuses these articles: {said}" + (f"; {advice}" if advice else ""),
        address=node.base_url,
        status=meta.status,
    )


def _problem(content: bytes) -> _Problem:
    try:
        return _Problem.model_validate_json(content)
    except pydantic.ValidationError:
        return _Problem()


def _config(url: str, *, headers: Mapping[str, str], ca_certs: Path | None) -> elastic_transport.NodeConfig:
    given: dict[str, Any] = {} if ca_certs is None else {"ca_certs": str(ca_certs)}
    try:
        config = url_to_node_config(url, use_default_ports_for_scheme=True)
        own = elastic_transport.HttpHeaders({**config.headers, **headers})
        return dataclasses.replace(config, headers=own, connections_per_node=_CONNECTIONS, **given)
    except (ValueError, AttributeError) as error:
        # Its message may quote a password.
        raise SettingError("sidecar: an address must be like http://localhost:9500") from error
