"""What may write articles and is not read reaches no index that was set up."""

from typing import Any

import pytest

from esdedup.sidecar.proxy import UnreadWrites
from esdedup.sidecar.upstream import Upstream

MATCHED = [
    ("PUT", "/news/typed/1"),
    ("POST", "/news/typed"),
    ("POST", "/news/typed/1/_update"),
    ("POST", "/news/typed/_bulk"),
    ("POST", "/news/_doc/1/_update"),
    ("POST", "//news///_update_by_query"),
    ("POST", "/news/%5Fsearch"),
    ("POST", "/_all/_update_by_query"),
    ("POST", "/n*/_update_by_query"),
    ("POST", "/_reindex"),
    ("PUT", "/_no_such_thing/1"),
]
PASSED = [
    ("GET", "/news/typed/1"),
    ("DELETE", "/news/typed/1"),
    ("POST", "/news/_search"),
    ("POST", "/_search/scroll"),
    ("PUT", "/news"),
    ("PUT", "/news/_mapping"),
    ("POST", "/news/_doc"),
    ("PUT", "/news/_update/1"),
    ("PATCH", "/news/_bulk"),
    ("POST", "/_reindex/1:2/_rethrottle"),
    ("PUT", "/_ingest/pipeline/p"),
    ("POST", "/"),
]


async def unexpected(_: Any) -> Any:
    raise AssertionError("nothing was sent")


def matches(method: str, path: str) -> bool:
    route = UnreadWrites(Upstream(["http://localhost:9200"]), unexpected)
    scope = {"type": "http", "method": method, "raw_path": path.encode()}
    return bool(route.matches(scope)[0].value)


@pytest.mark.parametrize(("method", "path"), MATCHED)
def test_what_may_write_is_matched(method: str, path: str) -> None:
    assert matches(method, path)


@pytest.mark.parametrize(("method", "path"), PASSED)
def test_what_cannot_or_is_read_elsewhere_is_not(method: str, path: str) -> None:
    assert not matches(method, path)
