"""Names of indices that no other test has."""

import contextlib
import secrets
from collections.abc import Callable, Iterator

from elasticsearch import Elasticsearch

Names = Callable[[str], str]


@contextlib.contextmanager
def new_names(es: Elasticsearch) -> Iterator[Names]:
    """Yield a function that makes names; the indices are deleted at the end."""
    names: list[str] = []

    def name(what: str) -> str:
        names.append(f"test-{what}-{secrets.token_hex(4)}")
        return names[-1]

    yield name
    for each in names:
        es.options(ignore_status=404).indices.delete(index=each)
