"""Keeps pages of other sites from an embedded node, which has no log-in.

Elasticsearch itself answers any host, and carries out a form of any page (`POST /index/_close`). It asks an
object whether to carry out a request, and gets one of ours.
"""

from typing import Any

import jpype

from esdedup.node.internals import field, rest_controller
from esdedup.origins import is_foreign, is_known_host


def refuse_foreign_requests(node: Any) -> None:
    """Make a node that has not been started refuse unknown hosts and the requests of foreign pages."""
    interceptor = field(jpype.JClass("org.elasticsearch.rest.RestController"), "interceptor")
    # 8.19 lacks the second method, which a class written in Python could not leave out there.
    methods = {"intercept": _intercept, "allowsBrowserSafelistedContentType": lambda _: False}
    interceptor.set(
        rest_controller(node), jpype.JProxy("org.elasticsearch.rest.RestInterceptor", dict=methods)
    )


def _intercept(request: Any, channel: Any, _: Any, is_accepted: Any) -> None:
    """Tell Elasticsearch whether to carry out a request; a refused one is answered here."""

    def header(name: str) -> str | None:
        value = request.header(name)
        return None if value is None else str(value)

    host = header("Host") or ""
    is_ours = is_known_host(host) and not is_foreign(
        str(request.method()),
        host=host,
        origin=header("Origin"),
        site=header("Sec-Fetch-Site"),
        goal=header("Sec-Fetch-Dest"),
    )
    if not is_ours:
        forbidden = jpype.JClass("org.elasticsearch.rest.RestStatus").FORBIDDEN
        message = "this node answers neither unknown hosts nor pages of other sites"
        channel.sendResponse(jpype.JClass("org.elasticsearch.rest.RestResponse")(forbidden, message))
    is_accepted.onResponse(jpype.JBoolean(is_ours))
