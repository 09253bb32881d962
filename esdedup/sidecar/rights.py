"""`Rights`: who may feed the forest. Elasticsearch decides, by who may write to the index of the articles.

The forest is written with the sidecar's own credentials. So before the articles of a caller are assigned,
Elasticsearch is asked, with the caller's credentials, whether these may write there.
"""

import dataclasses
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import orjson

from esdedup.elastic.client import CREDENTIALS
from esdedup.errors import ServerUnavailable
from esdedup.serving.refusals import Refused
from esdedup.sidecar.requests import Headers

PATH = b"/_security/user/_has_privileges"
"""Where Elasticsearch says which privileges a caller has."""

# The least that whoever writes an article needs.
_PRIVILEGE = "create_doc"
# How long a right counts. What is refused is asked again each time: it may be granted meanwhile.
_FRESH_S = 60.0
_MOST_KNOWN = 10_000
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
        own = [(name, value) for name, value in headers if name.lower() in RAW_CREDENTIALS]
        caller = hashlib.sha256(repr(sorted(own)).encode()).digest()
        unknown = [each for each in indices if self._granted.get((caller, each), -math.inf) < now_s]
        granted = dict.fromkeys(indices, True)
        if unknown:
            granted |= await self._granted_now(own, unknown)
            if len(self._granted) + len(unknown) > _MOST_KNOWN:
                self._granted.clear()
            self._granted |= {(caller, each): now_s + _FRESH_S for each in unknown if granted[each]}
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
            self._unsecured_until_s = time.monotonic() + _FRESH_S
            return dict.fromkeys(indices, True)
        raise ServerUnavailable(
            f"Elasticsearch does not say who may write to {', '.join(indices)}: it answers with status "
            f"{answer.status}",
            status=answer.status,
        )
