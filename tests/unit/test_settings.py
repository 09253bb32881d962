"""Settings that are refused before anything is sent."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, Maintenance, SettingError
from esdedup.elastic.mappings import article_index, check_mappings, forest_index, kept_fields
from esdedup.errors import IndexNotReady
from esdedup.fields import Fields

# Nothing listens there.
ES = Elasticsearch("http://127.0.0.1:9")

WITH_INDICES: list[Callable[[Any], object]] = [
    Maintenance(ES).count,
    Maintenance(ES).count_articles,
    Maintenance(ES).stats,
    Maintenance(ES).repair,
    Maintenance(ES).rebuild,
    lambda indices: list(Maintenance(ES).verify(indices)),
]


@pytest.mark.parametrize("operation", WITH_INDICES)
@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ("demo", r"as a list: \['demo'\]"),
        ("", "as a list"),
        ([""], "the name of an index of articles is empty"),
        (["demo", ""], "the name of an index of articles is empty"),
    ],
)
def test_maintenance_refuses_a_string_and_empty_names(
    operation: Callable[[Any], object], indices: Any, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        operation(indices)


def test_an_explanation_needs_the_name_of_an_index() -> None:
    with pytest.raises(SettingError, match="the name of an index of articles is empty"):
        Maintenance(ES).explain("", "1", "2")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"forest": ""}, "'' cannot name one index"),
        ({"forest": "a,b"}, "'a,b' cannot name one index"),
        ({"wait_s": -1}, "wait_s is -1; it must be at least 0"),
        ({"wait_s": float("nan")}, "wait_s is nan"),
        ({"most_plausible_leaves": 0}, "most_plausible_leaves is 0; it must be at least 1"),
        ({"audit_batch": 0}, "audit_batch is 0; it must be at least 1"),
        ({"write_batch": 0}, "write_batch is 0; it must be at least 1"),
    ],
)
def test_maintenance_refuses_values_without_a_meaning(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Maintenance(ES, **wrong)


def test_a_retention_of_nothing_is_refused_by_its_name() -> None:
    with pytest.raises(SettingError, match=r"^the retention must be at least a millisecond$"):
        Dedup(ES, retention=timedelta(0))


def test_a_forest_is_no_index_of_articles() -> None:
    mapping = forest_index(meta={"format": 4})["mappings"]
    # Even if it has been given the fields of articles.
    mapping["properties"] |= article_index(Fields())["mappings"]["properties"]
    with pytest.raises(IndexNotReady, match="'esdedup-forest' is a forest, which holds no articles"):
        check_mappings({"esdedup-forest": mapping}, Fields())


def test_the_names_of_fields_that_a_mapping_keeps() -> None:
    kept = {"_meta": {"esdedup": {"fields": {"text": "body", "title": None, "else": "x"}}}}
    assert kept_fields(kept) == Fields(text="body")
    assert kept_fields({"_meta": {"esdedup": {"routed_by_root": True}}}) is None
    with pytest.raises(SettingError, match="names two fields"):
        kept_fields({"_meta": {"esdedup": {"fields": {"text": "title"}}}})
