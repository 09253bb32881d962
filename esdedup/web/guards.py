"""What stands before the routes: the headers of every answer, and limits."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.messages import translatable
from esdedup.serving.limits import Limits
from esdedup.serving.problems import Problem
from esdedup.web.bodies import Whole
from esdedup.web.caching import UNKEPT
from esdedup.web.errors import error_answer

HEADERS = {
    # Nothing is loaded from other servers, and no script runs but the one of the pages, which asks them only.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
MAX_REQUESTS = 32
"""Requests in progress: Elasticsearch answers no faster with more at once."""
MAX_ANSWER_S = 60.0
"""As long as one request to Elasticsearch may take; reading looks at a limited number of articles."""
_BUSY = Problem.of(503, "requests", translatable("too many requests at once; try again"))


class SafeHeaders:
    """Adds headers to every answer, also to those that no route gives."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", UNKEPT)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def limited(app: ASGIApp) -> ASGIApp:
    """Return an application whose requests are limited in size, number and time.

    A request is in progress from when it has arrived whole until its answer is known whole: visitors who send
    or read slowly take no place from others. What they hold is bounded by the number of connections, since
    neither a request nor an answer is large.
    """
    limits = Limits(app, answer=error_answer, max_requests=MAX_REQUESTS, busy=_BUSY, timeout_s=MAX_ANSWER_S)
    return Whole(limits, answer=error_answer)
