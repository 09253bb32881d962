"""Who may send requests: those who name this server, and no page of another site."""

from collections.abc import Callable, Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.origins import is_allowed, is_foreign, is_known_host
from esdedup.serving.problems import Answer, Problem


class Guard:
    """Refuses requests for another host, and requests that a page of another site has made.

    A link on another site may lead here. Anything else that such a site can make a browser send would only
    cost time, since the browser keeps the answer from it; or it would write, since a browser sends a body of
    the type ``text/plain`` to any address that it reaches, this machine's included.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        answer: Answer,
        naming: str,
        foreign: str,
        origins: Collection[str] = (),
        readable: str = "/",
        is_open: Callable[[Scope], bool] = lambda _: False,
    ) -> None:
        """Guard an application.

        Args:
            app: The application.
            hosts: The names under which it is reached, besides localhost and addresses.
            answer: Gives a refusal its shape.
            naming: What is to be done about a name that is unknown, for the message.
            foreign: What pages of other sites are told.
            origins: The other sites whose pages may read answers all the same.
            readable: The beginning of the paths that these may read.
            is_open: Says of a request whether anybody may send it.
        """
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._answer = answer
        self._naming = naming
        self._foreign = foreign
        self._origins = origins
        self._readable = readable
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the request is refused."""
        refusal = self._refusal(scope) if scope["type"] == "http" and not self._is_open(scope) else None
        app = self._app if refusal is None else self._answer(scope, refusal)
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_known_host(host, self._hosts):
            return Problem.of(421, "host", f"this server is not known as {host!r}; {self._naming}")
        if scope["path"].startswith(self._readable) and is_allowed(origin, self._origins):
            return None
        site, goal = headers.get("sec-fetch-site"), headers.get("sec-fetch-dest")
        if is_foreign(scope["method"], host=host, origin=origin, site=site, goal=goal):
            return Problem.of(403, "foreign_page", self._foreign)
        return None
