"""`Peers`: the other sidecars. Whoever takes articles of a forest asks its owner what to decide for them.

Only texts go there, with the sidecars' own token: the caller's credentials stay with the sidecar that he has
sent his articles to, which writes them. An owner decides by itself or refuses, and asks nobody else, so that
no article goes in circles.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import orjson

from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned
from esdedup.sidecar.decided_form import read_decisions, written_articles
from esdedup.sidecar.guards import TOKEN_HEADER
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import DECIDE, RELAYED, RELEASE
from esdedup.sidecar.owner import OwnerFailed
from esdedup.sidecar.upstream import tls_context

# Of one request: some batches, so that owners that many ask can mix what comes from each.
_MOST_ARTICLES = 1_000
_MOST_CHARACTERS = 4_000_000
# JSON takes at most this for a character.
_BYTES_A_CHARACTER = 6
# Longer than a full queue of an owner takes.
_ANSWER_S = 300.0
# Statuses by which an owner speaks of the articles, or of now; the others are a fault of the sidecars.
_PASSED_ON = frozenset((413, 429, 502, 503))


class Peers:
    """Asks other sidecars, inside ``async with peers``."""

    def __init__(
        self,
        *,
        token: str | None,
        ca_certs: Path | None,
        connect_timeout_s: float,
        max_connections: int,
        max_body_bytes: int,
        metrics: Metrics,
    ) -> None:
        """Connect to nothing yet.

        Args:
            token: Of all sidecars.
            ca_certs: A file or directory with the authority that signed their certificates.
            connect_timeout_s: For a connection to one.
            max_connections: To all together.
            max_body_bytes: Of one request; one article may be larger.
            metrics: Counts what was asked.

        Raises:
            SettingError: The certificates are not valid.
        """
        self._headers = {} if token is None else {TOKEN_HEADER: token}
        self._tls = tls_context(ca_certs)
        self._timeout = aiohttp.ClientTimeout(total=_ANSWER_S, sock_connect=connect_timeout_s)
        self._max_connections = max_connections
        self._most_characters = min(_MOST_CHARACTERS, max_body_bytes // _BYTES_A_CHARACTER)
        self._metrics = metrics
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Become able to ask."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._max_connections, ssl=self._tls),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        assert self._session is not None
        await self._session.close()

    async def decide(self, url: str, forest: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
        """Return what the owner of a forest decides for articles, in their order.

        Args:
            url: The owner's.
            forest: The name of the forest.
            articles: Of one request. If this fails, some of them may have been decided: they get the same
                roots when they are sent again.

        Raises:
            OwnerFailed: It decides nothing, or does not answer.
        """
        decided: list[Assigned] = []
        for part in _parts(articles, most_characters=self._most_characters):
            body = await asyncio.to_thread(written_articles, forest, part)
            status, answered = await self._ask("POST", url, DECIDE, body)
            if status != HTTPStatus.OK:
                raise _refused(url, forest, status, answered)
            try:
                decided += await asyncio.to_thread(read_decisions, answered, part)
            except ValueError as error:
                raise OwnerFailed(
                    f"the owner of the forest {forest!r} at {url} answers with something else than roots: is "
                    f"it a sidecar of the same version? ({error})",
                    kind="owner_refuses",
                ) from error
        return decided

    async def relay(self, url: str, forest: str, body: bytes, *, content_type: str) -> bytes:
        """Return what the owner of a forest answers to fingerprints; errors as for `decide`.

        Args:
            url: The owner's.
            forest: The name of the forest.
            body: As it came to ``/v1/assign``, unpacked.
            content_type: Its type.
        """
        status, answered = await self._ask("POST", url, RELAYED, body, content_type=content_type)
        if status != HTTPStatus.OK:
            raise _refused(url, forest, status, answered)
        return answered

    async def release(self, url: str, forest: str, *, owned: int) -> bool:
        """Ask the owner of a forest for it; return whether it has released it.

        Args:
            url: The owner's.
            forest: The name of the forest.
            owned: How many this process owns.

        Raises:
            OwnerFailed: It does not answer, or refuses.
        """
        body = orjson.dumps({"forest": forest, "owned": owned})
        status, answered = await self._ask("POST", url, RELEASE, body)
        if status != HTTPStatus.OK:
            raise _refused(url, forest, status, answered)
        return b"true" in answered

    async def check(self, url: str, forest: str) -> None:
        """Make sure that the owner of a forest lets this process in, by asking for no decisions.

        Raises:
            OwnerFailed: It does not answer, or would refuse articles.
        """
        status, answered = await self._ask(
            "POST", url, DECIDE, written_articles(forest, ()), is_counted=False
        )
        # One that is busy is there: if its standbys counted as away, it would get their callers, too.
        if status not in {HTTPStatus.OK, HTTPStatus.TOO_MANY_REQUESTS}:
            raise _refused(url, forest, status, answered)

    async def _ask(
        self,
        method: str,
        url: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        is_counted: bool = True,
    ) -> tuple[int, bytes]:
        assert self._session is not None, "use `async with peers`"
        status: int | None = None
        began_s = time.perf_counter()
        try:
            async with self._session.request(
                method,
                url + path,
                data=body,
                headers=self._headers | ({} if body is None else {"Content-Type": content_type}),
                # Whoever has made an owner send articles elsewhere would get them, and the token.
                allow_redirects=False,
            ) as response:
                answered = await response.read()
                status = response.status
                return status, answered
        except (aiohttp.ClientError, OSError, ValueError) as error:
            said = (str(error) or type(error).__name__).partition("\n")[0]
            raise OwnerFailed(
                f"the sidecar at {url}, which owns the forest, does not answer: {said:.300}; send this again"
            ) from error
        finally:
            if is_counted and path in {DECIDE, RELAYED}:
                self._metrics.forwarded(status, seconds=time.perf_counter() - began_s)


def _parts(articles: Sequence[ArticleAction], *, most_characters: int) -> Iterator[list[ArticleAction]]:
    part: list[ArticleAction] = []
    characters = 0
    for article in articles:
        size = len(article.text)
        if part and (len(part) == _MOST_ARTICLES or characters + size > most_characters):
            yield part
            part, characters = [], 0
        part.append(article)
        characters += size
    if part:
        yield part


def _refused(url: str, forest: str, status: int, answered: bytes) -> OwnerFailed:
    kind = detail = None
    with contextlib.suppress(orjson.JSONDecodeError, AttributeError, TypeError):
        problem = orjson.loads(answered)
        kind, detail = str(problem.get("type", "")).rpartition(":")[2], problem.get("detail")
    said = f"the sidecar at {url}, which owns the forest {forest!r}, refuses: {detail or f'status {status}'}"
    if status in _PASSED_ON and kind:
        return OwnerFailed(said, status=status, kind=kind)
    return OwnerFailed(
        f"{said}; all sidecars of a forest need the same token, and to know the names in --advertise",
        kind="owner_refuses",
    )
