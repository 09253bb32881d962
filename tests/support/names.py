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
    # Together, but for the length of an address: each deletion is a new state of the cluster.
    for at in range(0, len(names), 50):
        es.indices.delete(index=names[at : at + 50], ignore_unavailable=True)
