"""Where callers may write what is enriched: which indices were set up, and who has the right.

Elasticsearch is asked, and what it says counts for a short time, so that not every request asks. The forest
is written with the sidecar's own credentials. So before the articles of a caller are assigned, Elasticsearch
is asked, with the caller's credentials, whether these may write to their index.
"""

import asyncio
import dataclasses
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from types import TracebackType
from typing import Self

import orjson

from esdedup.elastic.article_indices import WritableIndex
from esdedup.elastic.client import CREDENTIALS
from esdedup.errors import IndexNotReady, ServerError, ServerUnavailable
from esdedup.serving.refusals import Refused
from esdedup.sidecar.requests import Header, Headers

# How long an answer counts: so long after `setup`, the articles of an index are enriched.
_KNOWN_S = 2.0
# Requests to Elasticsearch at once.
_AT_ONCE = 4
# Names, and callers with a name, that are remembered: clients choose them.
_MOST_KNOWN = 10_000

Found = WritableIndex | IndexNotReady | None
"""An index that was set up; why articles cannot be written to one; None for one that was not set up."""


class Indices:
    """Knows what is written to which index for a short time, so that not every request asks."""

    def __init__(self, find: Callable[[str], WritableIndex | None]) -> None:
        """Know nothing yet.

        Args:
            find: As `Articles.find`. Called in threads.
        """
        self._find = find
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="esdedup-indices")
        # And since when.
        self._known: dict[str, tuple[Found, float]] = {}
        self._asked: dict[str, asyncio.Future[Found]] = {}

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the threads, without waiting for an Elasticsearch that does not answer."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def find(self, names: Iterable[str]) -> dict[str, Found]:
        """Return what is known of each index.

        Raises:
            ServerError: Elasticsearch does not answer, or refuses.
        """
        wanted = list(dict.fromkeys(names))
        return dict(zip(wanted, await asyncio.gather(*map(self._find_one, wanted)), strict=True))

    async def _find_one(self, name: str) -> Found:
        known, since_s = self._known.get(name, (None, -math.inf))
        if time.monotonic() < since_s + _KNOWN_S:
            return known
        if name not in self._asked:
            # Requests that come meanwhile wait for the same answer.
            loop = asyncio.get_running_loop()
            asked = self._asked[name] = asyncio.ensure_future(
                loop.run_in_executor(self._threads, self._ask, name)
            )
            asked.add_done_callback(lambda _: self._asked.pop(name, None))
        found = await asyncio.shield(self._asked[name])
        if isinstance(found, IndexNotReady):
            # One that was opened, or set up anew, takes articles at once.
            return found
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[name] = found, time.monotonic()
        return found

    def _ask(self, name: str) -> Found:
        try:
            return self._find(name)
        except IndexNotReady as error:
            return error
        except ServerError as error:
            if error.status != HTTPStatus.BAD_REQUEST:
                raise
            # A name that Elasticsearch cannot read, such as one with a wrong date in it.
            return IndexNotReady(str(error), index=name)


PATH = b"/_security/user/_has_privileges"
"""Where Elasticsearch says which privileges a caller has."""

# The least that whoever writes an article needs.
_PRIVILEGE = "create_doc"
# How long a right counts. What is refused is asked again each time: it may be granted meanwhile.
_GRANTED_S = 60.0
RAW_CREDENTIALS = frozenset(name.encode() for name in CREDENTIALS)
"""As the headers of requests come."""
# What Elasticsearch says if it has no security, or if that is switched off.
_UNSECURED = (b"no handler found for uri", b"must be explicitly enabled", b"Invalid index name [_security]")


@dataclasses.dataclass(frozen=True)
class ElasticAnswer:
    """What Elasticsearch has answered."""

    status: int
    headers: Headers
    body: bytes


def caller_of(headers: Headers) -> bytes:
    """Return by what callers are told apart: a digest of the credentials in the headers of a request."""
    return hashlib.sha256(repr(sorted(_credentials(headers))).encode()).digest()


def _credentials(headers: Headers) -> list[Header]:
    return [(name, value) for name, value in headers if name.lower() in RAW_CREDENTIALS]


class CallerRefused(Refused):
    """Elasticsearch does not know the caller.

    Attributes:
        answer: What it said, for the caller.
    """

    def __init__(self, answer: ElasticAnswer) -> None:
        said = f"Elasticsearch refuses the caller with status {answer.status}"
        super().__init__(said, status=answer.status, kind="caller_refused")
        self.answer = answer


class Rights:
    """Knows for a short time who may write where."""

    def __init__(self, ask: Callable[[Headers, bytes], Awaitable[ElasticAnswer]]) -> None:
        """Know nothing yet.

        Args:
            ask: Sends a `POST` with these headers and this body to `PATH`.
        """
        self._ask = ask
        # By caller and index: until when it counts.
        self._granted: dict[tuple[bytes, str], float] = {}
        self._unsecured_until_s = -math.inf

    async def may_write(self, headers: Headers, indices: Collection[str]) -> Mapping[str, bool]:
        """Return to which of some indices a caller may write.

        Args:
            headers: Of the caller's request.
            indices: The names.

        Raises:
            CallerRefused: Elasticsearch does not know the caller.
            ServerUnavailable: It does not say.
        """
        now_s = time.monotonic()
        if now_s < self._unsecured_until_s:
            return dict.fromkeys(indices, True)
        caller = caller_of(headers)
        unknown = [each for each in indices if self._granted.get((caller, each), -math.inf) < now_s]
        granted = dict.fromkeys(indices, True)
        if unknown:
            granted |= await self._granted_now(_credentials(headers), unknown)
            if len(self._granted) + len(unknown) > _MOST_KNOWN:
                self._granted.clear()
            self._granted |= {(caller, each): now_s + _GRANTED_S for each in unknown if granted[each]}
        return granted

    async def _granted_now(self, credentials: Headers, indices: Sequence[str]) -> Mapping[str, bool]:
        answer = await self._ask(
            [*credentials, (b"content-type", b"application/json")],
            orjson.dumps({"index": [{"names": indices, "privileges": [_PRIVILEGE]}]}),
        )
        if answer.status in {401, 403}:
            raise CallerRefused(answer)
        if answer.status == 200:
            found = orjson.loads(answer.body)["index"]
            return {each: bool(found.get(each, {}).get(_PRIVILEGE)) for each in indices}
        if any(each in answer.body for each in _UNSECURED):
            self._unsecured_until_s = time.monotonic() + _GRANTED_S
            return dict.fromkeys(indices, True)
        raise ServerUnavailable(
            f"Elasticsearch does not say who may write to {', '.join(indices)}: it answers with status "
            f"{answer.status}",
            status=answer.status,
        )
