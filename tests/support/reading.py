"""Lists read with other sizes than the product's, so that few articles reach every method of counting."""

from typing import Any

from elasticsearch import Elasticsearch

from esdedup import Fields, Page
from esdedup.elastic.execute import execute
from esdedup.reading.lists import list_rows
from esdedup.reading.scope import Scope, Tuning


def list_tuned(es: Elasticsearch, tuning: Tuning, index: str, **options: Any) -> Page:
    """Return a page of the list as `Reader.list` does, with sizes of the caller's choice."""
    return execute(es, list_rows(Scope(fields=Fields(), tuning=tuning), index, **options))
