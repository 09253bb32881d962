"""A proxy that enforces roles as Elasticsearch's security does, in front of a node without security.

The actions of requests and of privileges are taken from Elasticsearch's source.
"""

import base64
import fnmatch
import http.server
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# Method, path (the first group is the index) and action of each kind of request.
_ACTIONS = [
    ("HEAD", r"/", "cluster:monitor/main"),
    ("GET", r"/_tasks", "cluster:monitor/tasks/lists"),
    ("POST", r"/_index_template/_simulate_index/[^/]+", "indices:admin/index_template/simulate_index"),
    ("GET", r"/_index_template", "indices:admin/index_template/get"),
    ("POST", r"/_aliases", "indices:admin/aliases"),
    ("DELETE", r"/_pit", "indices:data/read/close_point_in_time"),
    ("POST", r"/_search", "indices:data/read/search"),
    ("POST", r"/_msearch", "indices:data/read/msearch"),
    ("PUT", r"/([^/_][^/]*)", "indices:admin/create"),
    ("GET|HEAD", r"/([^/_][^/]*)", "indices:admin/get"),
    ("GET", r"/([^/]+)/_alias", "indices:admin/aliases/get"),
    ("GET", r"/([^/]+)/_mapping", "indices:admin/mappings/get"),
    ("PUT", r"/([^/]+)/_mapping", "indices:admin/mapping/put"),
    ("POST", r"/([^/]+)/_refresh", "indices:admin/refresh"),
    ("POST", r"/([^/]+)/_pit", "indices:data/read/open_point_in_time"),
    ("POST", r"/([^/]+)/_search", "indices:data/read/search"),
    ("GET|POST", r"/([^/]+)/_count", "indices:data/read/search"),
    ("GET", r"/([^/]+)/_doc/[^/]+", "indices:data/read/get"),
    ("PUT|POST", r"/([^/]+)/_doc(?:/[^/]+)?", "indices:data/write/index"),
    ("PUT|POST", r"/([^/]+)/_bulk", "indices:data/write/bulk"),
    ("PUT|POST", r"/_bulk", "indices:data/write/bulk"),
]
_PRIVILEGES = {
    "monitor": ["cluster:monitor/*"],
    "create_index": ["indices:admin/create", "indices:admin/auto_create"],
    "view_index_metadata": ["indices:admin/get", "indices:admin/aliases/get", "indices:admin/mappings/get"],
    "read": ["indices:data/read/*"],
    "write": ["indices:data/write/*", "indices:admin/mapping/auto_put"],
    "maintenance": ["indices:admin/refresh*", "indices:admin/flush*", "indices:admin/forcemerge*"],
}
_CREATE_DOC = "indices:data/write/index:op_type/create"
_OWN_HEADERS = {"Content-Type": "application/json", "X-Elastic-Product": "Elasticsearch"}
_HOP_BY_HOP = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}


class Secured:
    """The privileges of users, and a record of their actions."""

    def __init__(self, elasticsearch_url: str, roles: Mapping[str, Any]) -> None:
        """Start with an empty record.

        Args:
            elasticsearch_url: The address of the node.
            roles: The role of each user, in the form of the body of `PUT _security/role/NAME`.
        """
        self.elasticsearch_url = elasticsearch_url
        self.roles = roles
        self.url = ""
        # Allowed and refused actions by user, as pairs of action and index; the index may be empty.
        self.done: dict[str, set[tuple[str, str]]] = {user: set() for user in roles}
        self.refused: dict[str, set[tuple[str, str]]] = {user: set() for user in roles}

    def may(self, user: str, action: str, index: str) -> bool:
        """Return whether a user may perform an action on an index; an empty `index` means any index."""
        return any(True for _ in self.granting(user, action, index))

    def granting(self, user: str, action: str, index: str) -> Iterator[tuple[str, str]]:
        """Yield the user's privileges that allow an action, in the form that `privileges` yields."""
        # Actions on templates concern the cluster, though their names begin with "indices:".
        is_of_cluster = action.startswith(("cluster:", "indices:admin/index_template/"))
        for names, privilege in self.privileges(user):
            is_there = is_of_cluster == (not names) and (not names or not index or _matches(names, index))
            if is_there and any(_matches(each, action) for each in _PRIVILEGES.get(privilege, [privilege])):
                yield names, privilege

    def privileges(self, user: str) -> Iterator[tuple[str, str]]:
        """Yield a user's privileges as pairs of index pattern (empty for the cluster) and privilege."""
        yield from (("", privilege) for privilege in self.roles[user].get("cluster", ()))
        for each in self.roles[user]["indices"]:
            (names,) = each["names"]
            yield from ((names, privilege) for privilege in each["privileges"])

    def answer(self, user: str, method: str, path: str, body: bytes) -> tuple[int, Any] | None:
        """Return the status and body of the proxy's own response; None if the request is passed on."""
        if user not in self.roles:
            return 401, _error("security_exception", "missing authentication credentials", 401)
        if path == "/_security/user/_has_privileges":
            names = json.loads(body)["index"][0]["names"]
            return 200, {"index": {each: {"create_doc": self.may(user, _CREATE_DOC, each)} for each in names}}
        for index, action in _actions_of(method, path, body):
            (self.done if self.may(user, action, index) else self.refused)[user].add((action, index))
            if not self.may(user, action, index):
                reason = f"action [{action}] is unauthorized for user [{user}] on [{index}]"
                return 403, _error("security_exception", reason, 403)
        return None


@contextmanager
def secured(elasticsearch_url: str, roles: Mapping[str, Any]) -> Iterator[Secured]:
    """Run the proxy in front of a node. The proxy accepts any password."""
    security = Secured(elasticsearch_url, roles)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            scheme, _, credentials = (self.headers.get("Authorization") or "").partition(" ")
            user = base64.b64decode(credentials).decode().split(":")[0] if scheme == "Basic" else ""
            refusal = security.answer(user, self.command, self.path.partition("?")[0], body)
            if refusal is not None:
                status, answer = refusal
                self.reply(status, _OWN_HEADERS, json.dumps(answer).encode())
                return
            request = urllib.request.Request(
                security.elasticsearch_url + self.path,
                body or None,
                _end_to_end(self.headers),
                method=self.command,
            )
            try:
                answered = urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                answered = error
            with answered:
                self.reply(answered.status, _end_to_end(answered.headers), answered.read())

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do  # noqa: N815 - names that the base class calls

        def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        security.url = f"http://127.0.0.1:{server.server_port}"
        yield security
        server.shutdown()


def _actions_of(method: str, path: str, body: bytes) -> Iterator[tuple[str, str]]:
    """Yield pairs of index and action for everything that a request does."""
    for methods, pattern, action in _ACTIONS:
        found = re.fullmatch(pattern, path)
        if found is None or method not in methods.split("|"):
            continue
        if found.re.groups:
            yield found[1], action
        elif path == "/_aliases":
            # Each change needs privileges on both the index and the alias.
            for change in json.loads(body)["actions"]:
                yield from (
                    (name, action) for each in change.values() for name in (each["index"], each["alias"])
                )
        elif path == "/_bulk":
            actions = (
                line for line in body.splitlines() if re.match(rb'\{"(index|create|update|delete)":', line)
            )
            yield from ((each["_index"], action) for line in actions for each in json.loads(line).values())
        elif path == "/_msearch":
            heads = (json.loads(line) for line in body.splitlines()[::2])
            yield from ((each["index"], action) for each in heads)
        else:
            # A search in a point in time does not name its index, and the remaining actions concern the
            # cluster.
            yield "", action
        return
    raise AssertionError(f"no action is known for {method} {path}")


def _matches(pattern: str, name: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern)


def _end_to_end(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}


def _error(kind: str, reason: str, status: int) -> dict[str, Any]:
    cause = {"type": kind, "reason": reason}
    return {"error": {**cause, "root_cause": [cause]}, "status": status}
