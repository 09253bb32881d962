"""Unique names for the indices of tests."""

import contextlib
import secrets
from collections.abc import Callable, Iterator

from elasticsearch import Elasticsearch

Names = Callable[[str], str]


@contextlib.contextmanager
def new_names(es: Elasticsearch) -> Iterator[Names]:
    """Yield a function that returns new names; delete the indices at the end."""
    names: list[str] = []

    def name(what: str) -> str:
        names.append(f"test-{what}-{secrets.token_hex(4)}")
        return names[-1]

    yield name
    # Each request changes the cluster's state, so fewer requests are faster; but URLs are limited in length.
    for at in range(0, len(names), 50):
        es.indices.delete(index=names[at : at + 50], ignore_unavailable=True)
