"""`RemoteOwner`: has a sidecar assign articles, through its `/v1/enrich`."""

import base64
import contextlib
import dataclasses
import itertools
import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import elastic_transport
import tenacity
from elastic_transport.client_utils import url_to_node_config
from elasticsearch.serializer import JsonSerializer
from esdedup.ingest.actions import KNOWN_MS, ArticleAction
from esdedup.ingest.batches import batches
from esdedup.ingest.learn import OnLearned

from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import retrying
from esdedup.errors import ArticleRejected, SettingError, SidecarError, SidecarUnavailable
from esdedup.fields import Fields, value_of
from esdedup.fingerprint.profile import Profile
from esdedup.forest import NO_TIME, Assignment, Kind
from esdedup.sites import RawPage, site_fields

_TOKEN_HEADER = "X-Esdedup-Token"  # noqa: S105
PATIENCE_S = 120.0
"""How long to retry by default; a standby takes up to half a minute to start and replace a dead owner."""

# A batch takes about a second. After this timeout, another sidecar has taken over the forest.
_ANSWER_S = 30.0
# How many threads can send requests at the same time over pooled connections.
_CONNECTIONS = 32
_ADVICE = {
    401: "pass the correct sidecar_token",
    404: "is this the address of a sidecar, and does it run the same version of esdedup?",
    413: "use a smaller batch_size",
}
_PARTS = {"dedup": "source", "doc": "doc", "upsert": "upsert"}
_MISSING = object()


class _Busy(Exception):
    """The sidecar accepts no articles at the moment."""


class SidecarConnection:
    """Sends requests to the sidecar that responded last or, if that fails, to the forest's other sidecars.

    Thread-safe. Requests carry the `token`, and the `credentials` that identify the writer to Elasticsearch.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        token: str | None,
        credentials: Mapping[str, str],
        ca_certs: Path | None,
        patience_s: float,
    ) -> None:
        if not urls:
            raise SettingError("sidecar is empty: give at least one address")
        if not 0 < patience_s < threading.TIMEOUT_MAX:
            raise SettingError(f"sidecar_patience_s is {patience_s}; it must be greater than 0")
        if token is not None and (not token.isascii() or not token.isprintable() or not token.strip()):
            raise SettingError("sidecar_token is blank, or has an invalid character (perhaps a line break)")
        if ca_certs is not None and not ca_certs.exists():
            raise SettingError(f"there are no certificates at {ca_certs}")
        headers = {**credentials, **({} if token is None else {_TOKEN_HEADER: token})}
        self._configs = [_config(url, headers=headers, ca_certs=ca_certs) for url in urls]
        self._patience_s = patience_s
        self._nodes: list[elastic_transport.Urllib3HttpNode] = []
        self._last = 0

    @property
    def address(self) -> str:
        """The address of the sidecar that responded last."""
        config = self._configs[self._last]
        return f"{config.scheme}://{config.host}:{config.port}{config.path_prefix}"

    def post(self, path: str, body: bytes, *, content_type: str) -> bytes:
        """Return a sidecar's response to an idempotent request; raises `SidecarError`."""
        patience = retrying(tenacity.retry_if_exception_type(_Busy), patience_s=self._patience_s)
        end_s = time.monotonic() + self._patience_s
        try:
            return patience(self._ask_all, path, body, content_type, end_s)
        except _Busy as error:
            raise SidecarUnavailable(
                f"no sidecar accepted these articles within {self._patience_s:g} s ({error}). Send them "
                "again: those that were already assigned will keep their roots",
                address=", ".join(node.base_url for node in self._nodes),
            ) from error

    def close(self) -> None:
        """Close all connections; the next request reopens them."""
        for node in self._nodes:
            node.close()
        self._nodes = []

    def _ask_all(self, path: str, body: bytes, content_type: str, end_s: float) -> bytes:
        if not self._nodes:
            self._nodes = [elastic_transport.Urllib3HttpNode(config) for config in self._configs]
        nodes, refusals = self._nodes, []
        for turn in range(len(nodes)):
            at = (self._last + turn) % len(nodes)
            left_s = max(1.0, min(_ANSWER_S, end_s - time.monotonic()))
            try:
                answer = _ask(nodes[at], path, body, content_type, timeout_s=left_s)
            except _Busy as error:
                refusals.append(f"{nodes[at].base_url}: {error}")
            else:
                self._last = at
                return answer
        raise _Busy("; ".join(refusals))


def _ask(
    node: elastic_transport.Urllib3HttpNode, path: str, body: bytes, content_type: str, *, timeout_s: float
) -> bytes:
    """Return the response; raise `_Busy` with a reason if another sidecar, or a retry, may succeed."""
    headers = elastic_transport.HttpHeaders({"content-type": content_type})
    try:
        meta, content = node.perform_request("POST", path, body, headers, request_timeout=timeout_s)
    except elastic_transport.TlsError as error:
        raise SidecarError(
            f"{node.base_url}: cannot connect: {error.message:.300}; pass the correct sidecar_ca_certs",
            address=node.base_url,
        ) from error
    except elastic_transport.ConnectionTimeout as error:
        raise _Busy(f"no response within {timeout_s:.0f} s") from error
    except elastic_transport.TransportError as error:
        raise _Busy(f"cannot connect: {error.message:.300}") from error
    if meta.status == 200 and content:
        return content
    reason = None if content else "without a body"
    # A proxy may respond with something other than JSON.
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        problem = json.loads(content)
        reason = problem.get("detail") or problem.get("type")
    response = f"{meta.status} {reason or 'without a reason'}"
    if meta.status in BUSY_STATUSES or meta.status == 200:
        raise _Busy(response)
    advice = f"; {_ADVICE[meta.status]}" if meta.status in _ADVICE else ""
    raise SidecarError(
        f"the sidecar at {node.base_url} refuses these articles: {response}{advice}",
        address=node.base_url,
        status=meta.status,
    )


def _config(url: str, *, headers: Mapping[str, str], ca_certs: Path | None) -> elastic_transport.NodeConfig:
    given: dict[str, Any] = {} if ca_certs is None else {"ca_certs": str(ca_certs)}
    try:
        config = url_to_node_config(url, use_default_ports_for_scheme=True)
        own = elastic_transport.HttpHeaders({**config.headers, **headers})
        return dataclasses.replace(config, headers=own, connections_per_node=_CONNECTIONS, **given)
    except (ValueError, AttributeError) as error:
        # The message of `error` may contain a password, so it is not repeated.
        raise SettingError("sidecar: an address must look like http://localhost:9500") from error


class RemoteOwner:
    """Assigns articles through a sidecar; several threads may wait for responses at the same time.

    Requests without a response are repeated, possibly to another sidecar; assigned articles keep their roots.
    `fields` apply to articles whose actions name no index.
    """

    def __init__(
        self, connection: SidecarConnection, *, forest: str, profile: Profile, fields: Fields
    ) -> None:
        self._connection = connection
        names = {f"{role}_field": name for role, name in fields.names.items() if name is not None}
        self._query = {"forest": forest, "profile": profile.label, **names}
        self._serializer = JsonSerializer()

    def assign(self, articles: Sequence[ArticleAction]) -> None:
        """Have a sidecar assign articles; raises `SidecarError` if no sidecar does."""
        body = b"".join(self._lines(each) for each in articles)
        # `is_backfill` is the same for all articles of a call.
        backfill = {"backfill": "true"} if articles and articles[0].is_backfill else {}
        path = f"/v1/enrich?{urlencode(self._query | backfill)}"
        answer = self._connection.post(path, body, content_type="application/x-ndjson")
        try:
            for article, item in zip(articles, json.loads(answer)["items"], strict=True):
                self._note(article, item)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SidecarError(
                f"the response has an unknown format ({error!r:.300}): use the sidecar's version of esdedup",
                address=self._connection.address,
            ) from error

    def learn(self, texts: Iterable[RawPage], *, batch_size: int, on_learned: OnLearned) -> int:
        """Have a sidecar learn from pages, batch by batch; return how many had not been seen before."""
        new = 0
        query = {name: self._query[name] for name in ("forest", "profile")}
        found = batches(texts, most=batch_size, size_of=lambda each: len(each.text))
        for batch, following in itertools.pairwise(itertools.chain(found, [[]])):
            query["more"] = "true" if following else "false"
            pages = [{k: v for k, v in each._asdict().items() if k != "origin"} for each in batch]
            body = self._serializer.dumps({"pages": pages})
            answer = self._connection.post(
                f"/v1/learn?{urlencode(query)}", body, content_type="application/json"
            )
            learned = int(json.loads(answer)["learned"])
            new += learned
            on_learned(learned, len(batch) - learned)
        return new

    def close(self) -> None:
        """Close the connections; the next article reopens them."""
        self._connection.close()

    def _lines(self, article: ArticleAction) -> bytes:
        """Return an article as lines of a bulk request, with only the fields that the forest reads."""
        action = article.action
        source, fields = action["_source"], article.fields
        named = {key: str(action[key]) for key in ("_index", "_id", KNOWN_MS) if action.get(key) is not None}
        if article.is_update:
            document: dict[str, Any] = {
                name: _fields_read(part, fields)
                for name in ("doc", "upsert")
                if isinstance(part := source.get(name), Mapping)
            }
            if "doc_as_upsert" in source:
                document["doc_as_upsert"] = source["doc_as_upsert"]
        else:
            document = _fields_read(source, fields)
        header = {action.get("_op_type", "index"): named}
        return b"%b\n%b\n" % (self._serializer.dumps(header), self._serializer.dumps(document))

    def _note(self, article: ArticleAction, item: Mapping[str, Any]) -> None:
        """Store the sidecar's result in an article."""
        if (problem := item.get("error")) is not None:
            detail = str(problem["detail"])
            if problem["status"] != 400:
                raise SidecarError(
                    f"{article.name}: the sidecar refuses it: {detail}",
                    address=self._connection.address,
                    status=problem["status"],
                )
            # The sidecar refers to an article without an id by its position in the request; drop that prefix.
            own = f"{article.name}: "
            reason = detail.partition(": ")[2] if article.id is None else detail.removeprefix(own)
            article.rejection = ArticleRejected(article.name, reason or detail)
            return
        parts = {part: item[key] for key, part in _PARTS.items() if key in item}
        dedup = next((each for each in parts.values() if each is not None), None)
        if dedup is None:
            raise ValueError("an article without a root")
        kind = Kind(item["outcome"])
        article.assignment = Assignment(
            kind=kind,
            node=dedup.get("fingerprint"),
            root=None if kind is Kind.WITHOUT_FINGERPRINT else dedup["root"],
            seq=dedup["seq"],
            time_ms=dedup.get("seen") or NO_TIME,
            signature=base64.b64decode(dedup.get("signature") or ""),
            part_of=dedup.get("part_of"),
            has_part=dedup.get("has_part"),
        )
        article.is_cut = item.get("is_cut", False)
        article.boilerplate_letters = item.get("boilerplate_letters", 0)
        article.parts, article.routing = {**article.forged, **parts}, item.get("routing")


def _fields_read(part: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    names = (fields.text, fields.title, fields.time, *site_fields(fields))
    return {name: value for name in names if (value := value_of(part, name, _MISSING)) is not _MISSING}
