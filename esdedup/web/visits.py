"""Connections of visitors to the pages."""

from esdedup.serving.connections import BoundedConnection
from esdedup.web.guards import HEADERS, MAX_ANSWER_S

_MARGIN_S = 5.0


class Visit(BoundedConnection):
    """A visitor's connection."""

    # Far below the files that a process may usually open (1,024).
    max_connections = 200
    max_request_s = 20.0
    max_answer_s = max_idle_s = MAX_ANSWER_S + _MARGIN_S
    error_headers = HEADERS
