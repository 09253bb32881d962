"""`AsyncReader` answers as `Reader` does, whose answers are compared with the truth in other files."""

import dataclasses
import inspect
from typing import Any, get_args

from elasticsearch import Elasticsearch

from esdedup import ArticleNotFound, EsdedupError, IndexNotReady, Reader, SettingError
from esdedup.reading.list_request import Sort
from tests.support.forests import ARTICLES, Read

TEXT = ARTICLES[0]["text"]
QUERY = {"match": {"text": "ferry"}}


@dataclasses.dataclass(frozen=True)
class Refusal:
    """An error that a method raised, to be compared with another one."""

    kind: type[EsdedupError]
    message: str


def answer(read: Read, name: str, *arguments: Any, **options: Any) -> Any:
    """Return what a method answers, or its refusal."""
    try:
        return read(name, *arguments, **options)
    except EsdedupError as error:
        return Refusal(type(error), str(error))


def test_every_method_answers_alike(
    es: Elasticsearch, unchanged: tuple[str, str], read: Read, read_async: Read
) -> None:
    index, forest = unchanged
    row = read("list", index, sort="similar-desc", size=1).rows[0]
    article, root = row.id, row.root
    other = read("similar", index, article, size=1).rows[0].id
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        *(("list", (index,), {"sort": sort, "size": 7}) for sort in get_args(Sort)),
        *(("list", (index,), {"query": QUERY, "only": only}) for only in ("similar", "single")),
        ("list", (index,), {"head": "longest", "page": 3}),
        ("list", (index,), {"dedup": False}),
        ("similar", (index, article), {"size": 2}),
        ("similar", (index, article), {"other_sources": True}),
        ("cluster", (index, root), {"size": 2}),
        ("with_fingerprint", (index, root), {"size": 2}),
        ("list", (index,), {"details": True, "arrived_since": "2026-01-01"}),
        ("sources", (index, article), {"size": 1}),
        ("explain", (index, article, other), {"of": {"forest": forest}}),
        ("versions", (index, article), {"sort": "newest", "size": 2}),
        ("article", (index, article), {}),
        ("timeline", (index, article), {}),
        ("overview", (index, "ferry"), {"source": ["A", "B"], "size": 2}),
        ("source_names", (index,), {}),
        ("source_field", (index,), {}),
        ("fields", (index,), {}),
        ("search_query", (index, "ferry"), {"since": "2026-01-01", "source": "A"}),
        ("similar_to_text", (index, TEXT), {"of": {"forest": forest}}),
        ("left_out", (f"Home\n\nSports\n\n{TEXT}",), {"of": {"forest": forest}}),
    ]
    assert {name for name, _, _ in calls} == {
        name for name, _ in inspect.getmembers(Reader, inspect.isfunction) if not name.startswith("_")
    }
    for name, arguments, options in calls:
        found = answer(read, name, *arguments, **options)
        assert answer(read_async, name, *arguments, **options) == found, (name, options)
        assert not isinstance(found, Refusal), found
        if getattr(found, "next", None) is not None and "page" not in options:
            after = options | {"after": found.next}
            assert answer(read_async, name, *arguments, **after) == read(name, *arguments, **after)


def test_errors_are_alike(unchanged: tuple[str, str], read: Read, read_async: Read) -> None:
    index, _ = unchanged
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any], type[EsdedupError]]] = [
        ("list", (index,), {"page": 0}, SettingError),
        ("list", (index,), {"after": "nonsense"}, SettingError),
        ("list", ("test-none",), {}, IndexNotReady),
        ("similar", (index, "none"), {}, ArticleNotFound),
        ("article", (index, "none"), {}, ArticleNotFound),
        ("similar_to_text", (index, None), {}, SettingError),
    ]
    for name, arguments, options, error in calls:
        refusal = answer(read_async, name, *arguments, **options)
        assert refusal == answer(read, name, *arguments, **options)
        assert refusal.kind is error
