"""Bulk actions: recognising articles, adding dedup objects, and checking publication dates."""

import contextlib
import dataclasses
import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from esdedup.ingest.actions import (
    KNOWN_MS,
    ArticleAction,
    addition_to,
    lone_root,
    read_action,
    with_addition,
)
from esdedup.ingest.assigner import DateCheck
from esdedup.ingest.dates import judged, published_ms

from esdedup import ArticleRejected, Fields
from esdedup.elastic.limits import MAX_JSON_DEPTH
from esdedup.elastic.meta import WritableIndex
from esdedup.fields import partition_of
from esdedup.forest import Assignment, Kind
from esdedup.forest.model import NO_TIME
from esdedup.times import DAY_MS, iso, time_ms, time_reader

FIELDS = Fields()
INDEX = WritableIndex(fields=FIELDS, other_objects=("dedup_2",))
JOINED = Assignment(Kind.JOINED, "f" * 16, "r" * 16, 7, 1_000, b"")
DATED_MS, NOW_MS = 1_788_800_000_000, 1_788_849_041_000
LONE = Assignment(Kind.WITHOUT_FINGERPRINT, None, None, 9, NO_TIME, b"")


def article_action(action: Any, index: WritableIndex = INDEX) -> ArticleAction:
    read = read_action(action, index, position=1, now_ms=NOW_MS)
    assert isinstance(read, ArticleAction)
    return read


def enrich(
    action: Any, assignment: Assignment = JOINED, fields: Fields = FIELDS, *, route_by_root: bool = False
) -> dict[str, Any]:
    of_hash = {"page": "a" * 16}
    fingerprint = of_hash if assignment is LONE else {"fingerprint": "f" * 16, "bands": ["0aa"], **of_hash}
    name = action.get("_index") if isinstance(action, dict) else None
    index = dataclasses.replace(INDEX, fields=fields, name=name, is_routed_by_root=route_by_root)
    article = article_action(action, index)
    added = addition_to(article, assignment, fingerprint, alphanumerics=5, profile="classic-4")
    return with_addition(article.action, added, index.objects)


DEDUP = {
    "fingerprint": "f" * 16,
    "bands": ["0aa"],
    "page": "a" * 16,
    "root": "r" * 16,
    "profile": "classic-4",
    "seq": 7,
    "length": 5,
    "partition": partition_of("r" * 16),
    "seen": 1_000,
    "published": 1_000,
}


def test_the_dedup_object_is_added_to_the_source() -> None:
    action = {"_index": "news", "_id": "1", "_source": {"text": "hello", "n": 1}, "routing": "x"}
    assert enrich(action) == {
        "_index": "news",
        "_id": "1",
        "routing": "x",
        "_source": {"text": "hello", "n": 1, "dedup": DEDUP},
    }
    assert action["_source"] == {"text": "hello", "n": 1}


def test_flat_actions_and_json_documents_are_accepted() -> None:
    assert enrich({"_id": "1", "text": "hello"})["_source"] == {"text": "hello", "dedup": DEDUP}
    assert enrich('{"text": "hello"}') == {"_source": {"text": "hello", "dedup": DEDUP}}
    assert enrich(b'{"text": "hello"}') == {"_source": {"text": "hello", "dedup": DEDUP}}


def test_routing_by_root_replaces_other_routing() -> None:
    for routing in ({}, {"routing": "x"}, {"_routing": "x"}):
        routed = enrich({"_id": "1", "text": "hello", **routing}, route_by_root=True)
        assert routed == {"_id": "1", "routing": "r" * 16, "_source": {"text": "hello", "dedup": DEDUP}}


@pytest.mark.parametrize("flat", [True, False])
def test_an_update_with_a_text_gets_dedup_objects(flat: bool) -> None:
    body = {"doc": {"text": "hello"}, "upsert": {"text": "hello", "new": True}}
    action = {"_op_type": "update", "_id": "1", **(body if flat else {"_source": body})}
    # The article may already have a date, which this update does not change.
    without_date = {name: value for name, value in DEDUP.items() if name != "published"}
    assert enrich(action)["_source"] == {
        "doc": {
            "text": "hello",
            "dedup": {"signature": None, "part_of": None, "has_part": None, **without_date},
        },
        "upsert": {"text": "hello", "new": True, "dedup": DEDUP},
    }


@pytest.mark.parametrize("given", [{}, {"upsert": {"text": "hello", "old": True}}])
def test_doc_as_upsert_gets_a_separate_upsert(given: dict[str, Any]) -> None:
    """Without a date, a new article counts as published on arrival; an existing article keeps its date."""
    action = {"_op_type": "update", "_id": "1", "doc": {"text": "hello"}, "doc_as_upsert": True, **given}
    without_date = {name: value for name, value in DEDUP.items() if name != "published"}
    assert enrich(action)["_source"] == {
        "doc": {
            "text": "hello",
            "dedup": {"signature": None, "part_of": None, "has_part": None, **without_date},
        },
        "upsert": {"text": "hello", "dedup": DEDUP},
    }


def test_each_part_of_an_update_has_its_own_date() -> None:
    arrived_ms, dated_ms = 1_788_849_041_000, 1_788_800_000_000
    arrived = Assignment(Kind.JOINED, "f" * 16, "r" * 16, 7, arrived_ms, b"")
    dated = {"text": "hello", FIELDS.time: dated_ms}
    for doc, upsert, expected_ms in (
        ({"text": "hello"}, dated, [None, dated_ms]),
        (dated, {"text": "hello"}, [dated_ms, arrived_ms]),
    ):
        action = {"_op_type": "update", "_id": "1", "doc": doc, "upsert": upsert}
        assert article_action(action).dated_ms == dated_ms
        source = enrich(action, arrived)["_source"]
        assert [source[part]["dedup"].get("published") for part in ("doc", "upsert")] == expected_ms


@pytest.mark.parametrize(
    "action",
    [
        {"_op_type": "delete", "_id": "1"},
        {"_op_type": "update", "_id": "1", "doc": {"clicks": 3}},
        {"_op_type": "update", "_id": "1", "script": {"source": "x"}},
    ],
)
def test_actions_without_articles_are_unchanged(action: dict[str, Any]) -> None:
    assert read_action(action, INDEX, position=1, now_ms=NOW_MS) is action


def test_old_dates_are_accepted_only_in_a_backfill() -> None:
    arrived_ms, dated_ms = 1_788_849_041_000, 1_000_000_000_000
    arrived = Assignment(Kind.JOINED, "f" * 16, "r" * 16, 7, arrived_ms, b"")
    for backfill, expected_ms in ((False, arrived_ms), (True, dated_ms)):
        article = read_action(
            {"text": "hello", FIELDS.time: dated_ms}, INDEX, position=1, now_ms=NOW_MS, backfill=backfill
        )
        assert isinstance(article, ArticleAction)
        added = addition_to(article, arrived, {}, alphanumerics=5, profile="classic-4")
        values = added.parts["source"]
        assert values is not None
        assert values["published"] == expected_ms


@pytest.mark.parametrize("flat", [True, False])
def test_updating_only_the_date_updates_the_dedup_object(flat: bool) -> None:
    doc = {FIELDS.time: DATED_MS, "n": 1}
    body = {"doc": doc, "detect_noop": False}
    action = {"_op_type": "update", "_id": "1", **(body if flat else {"_source": body})}
    expected = body | {"doc": {**doc, "dedup": {"published": DATED_MS}}}
    changed = read_action(action, INDEX, position=1, now_ms=NOW_MS)
    assert changed == {"_op_type": "update", "_id": "1", **(expected if flat else {"_source": expected})}
    assert body["doc"] is doc
    assert "dedup" not in doc


@pytest.mark.parametrize(
    "update",
    [
        {"script": {"source": "x"}},
        {"doc": {"n": 1}},
        {"doc": {"published_at": "soon"}},
        {"doc": {"published_at": NOW_MS + 2 * DAY_MS}},
        {"doc": None},
    ],
)
def test_an_update_without_a_credible_date_changes_nothing(update: dict[str, Any]) -> None:
    action = {"_op_type": "update", "_id": "1", "_source": update}
    assert read_action(action, INDEX, position=1, now_ms=NOW_MS, backfill=True) is action


FORGED = [
    *({"dedup": {"root": "x"}}, {"dedup.root": "x"}, {"dedup": None}, {"dedup": 1, "dedup.seen": 2}),
    *({"dedup_2": {"root": "x"}}, {"dedup_2.root": "x"}),
]


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize(
    "update",
    [
        {"doc": {"clicks": 3}},
        {"doc": {"text": "hello"}, "doc_as_upsert": True},
        {"upsert": {"text": "hello"}, "script": {"source": "x"}},
        {"doc": {"clicks": 3}, "upsert": {"text": "hello"}},
        {"doc": {"text": "hello"}, "upsert": {"clicks": 0}, "doc_as_upsert": True},
        {"doc": {"text": "hello", "published_at": DATED_MS}, "upsert": {"clicks": 0}, "doc_as_upsert": True},
    ],
)
def test_updates_cannot_set_the_dedup_object(update: Any, forged: dict[str, Any]) -> None:
    """Elasticsearch merges updates into articles, so an update's root would replace the article's root."""

    def of_forest(source: Any) -> Any:
        sent = {"_op_type": "update", "_id": "1", "_source": source}
        read = read_action(sent, INDEX, position=1, now_ms=NOW_MS)
        return read if isinstance(read, dict) else enrich(sent)

    parts = {part: {**values, **forged} for part, values in update.items() if part in ("doc", "upsert")}
    assert of_forest(update | parts) == of_forest(update)


@pytest.mark.parametrize(
    "update",
    [
        {"doc": {"clicks": 3}, "doc_as_upsert": True},
        {"doc": {}, "upsert": {"text": "hello"}, "doc_as_upsert": "true"},
        {"upsert": {"clicks": 0}, "script": {"source": "x"}},
        {"doc": {"text": "hello"}, "upsert": {}},
        {"doc": {"clicks": 3}, "upsert": {"dedup": {"root": "x"}}, "doc_as_upsert": False},
    ],
)
def test_updates_cannot_create_articles_without_a_text(update: Any) -> None:
    """Such an article would have no root."""
    with pytest.raises(ArticleRejected, match="would create an article without a text"):
        read_action({"_op_type": "update", "_id": "1", "_source": update}, INDEX, position=1, now_ms=NOW_MS)


def nested(brackets: str, levels: int) -> str:
    opening, closing = brackets[0], brackets[1]
    key = '"a":' if opening == "{" else ""
    return (opening + key) * levels + "1" + closing * levels


CYCLIC: dict[str, Any] = {}
CYCLIC["a"] = CYCLIC


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_articles_may_be_nested_up_to_a_limit(brackets: str) -> None:
    for levels, passes in ((MAX_JSON_DEPTH - 1, True), (MAX_JSON_DEPTH, False)):
        action = {"_id": "1", "text": "hello", "x": json.loads(nested(brackets, levels))}
        with contextlib.nullcontext() if passes else pytest.raises(ArticleRejected, match="nested"):
            json.dumps(enrich(action))


@pytest.mark.parametrize(
    ("action", "article", "reason"),
    [
        ({"_id": "a"}, "a", "has no field 'text'"),
        ({"_id": "a", "text": None}, "a", "has no field 'text'"),
        ({"_id": "a", "text": 5}, "a", "is a number"),
        ({"_id": "a", "text": []}, "a", "is a list"),
        ({"_id": "a", "text": ["x", 5]}, "a", "is a list"),
        ({"_id": "a", "text": "x\ud800"}, "a", "lone surrogate"),
        ({"_id": "a\ud800", "text": "x"}, "a\\ud800", "lone surrogate"),
        ({"_id": "a", "text": "x", "tags": [{"deep": "\udc00"}]}, "a", "lone surrogate"),
        ({"_op_type": ["x"], "_id": "a", "text": "x"}, "a", "_op_type is not a string"),
        ({"_op_type": 10**5_000, "_id": "a", "text": "x"}, "a", "_op_type is not a string"),
        ({"_id": 10**5_000, "text": "x"}, "action 1", "longer than 512 bytes"),
        ({"_id": -(10**511), "text": "x"}, "action 1", "longer than 512 bytes"),
        ({"_id": "a", "_source": {5: 6, "text": "x"}}, "a", "name is not a string"),
        ({"_id": "a", "text": "x", ("b", "c"): 1}, "a", "name is not a string"),
        ({"_id": "a", "text": "x", "deep": [{None: 1}]}, "a", "name is not a string"),
        ("[" * 100_000, "action 1", "is not JSON"),
        ('{"text": "x", "a": ' + nested("[]", 900) + "}", "action 1", "nested too deeply"),
        ({"_id": "a", "text": "x", "a": json.loads(nested("[]", 900))}, "a", "nested too deeply"),
        ({"_id": "a", "text": "x", "a": CYCLIC}, "a", "nested too deeply"),
        (
            {"_op_type": "update", "_id": "a", "doc": json.loads(nested("{}", 900))},
            "a",
            "nested too deeply",
        ),
        (
            {"_op_type": "update", "_id": "a", "doc": {"text": "x"}, "upsert": {"text": "y"}},
            "a",
            "different texts",
        ),
        ({"_op_type": "update", "_id": "a", "doc": {"text": None}}, "a", "has no field 'text'"),
        ({"_op_type": "update", "_id": "a", "doc": {"text": "x"}, "upsert": {"text": 5}}, "a", "is a number"),
        ({"text": 5}, "action 1", "is a number"),
        ({"_op_type": "upsert", "_id": "a"}, "a", "unknown operation"),
        ("{", "action 1", "is not JSON"),
        ("[]", "action 1", "has no field"),
        (17, "action 1", "must be a bulk action, not int"),
    ],
)
def test_invalid_actions_are_rejected(action: Any, article: str, reason: str) -> None:
    with pytest.raises(ArticleRejected, match=reason) as caught:
        read_action(action, INDEX, position=1, now_ms=NOW_MS)
    assert caught.value.article == article


def test_an_article_without_a_fingerprint_gets_a_lone_root() -> None:
    dedup = enrich({"_index": "news", "_id": "1", "text": ""}, LONE)["_source"]["dedup"]
    assert dedup == {
        "page": "a" * 16,
        "root": lone_root("news", "1", nonce="n"),
        "profile": "classic-4",
        "seq": 9,
        "length": 5,
    } | {"partition": partition_of(lone_root("news", "1", nonce="n"))}
    assert dedup["root"].startswith("~")
    assert len(dedup["root"]) == 33


def test_updating_to_an_unfingerprinted_text_clears_the_fingerprint() -> None:
    source = enrich({"_op_type": "update", "_id": "1", "doc": {"text": ""}, "upsert": {"text": ""}}, LONE)[
        "_source"
    ]
    cleared = dict.fromkeys(("fingerprint", "signature", "bands", "part_of", "has_part", "seen"))
    assert source["doc"]["dedup"] == source["upsert"]["dedup"] | cleared
    assert not cleared.keys() & source["upsert"]["dedup"].keys()


def test_lone_roots_are_stable_and_distinct() -> None:
    assert lone_root("news", "1", nonce="a") == lone_root("news", "1", nonce="b")
    named = [("news", "1"), ("news", "2"), ("other", "1"), (None, "1"), ("news", None)]
    roots = [lone_root(index, article, nonce="a") for index, article in named]
    assert len({*roots, lone_root("news", None, nonce="b")}) == len(roots) + 1


def test_an_alias_and_its_index_give_articles_equal_origins() -> None:
    def origin(given: str, own: str) -> int:
        action = {"_index": given, "_id": "1", "text": "x"}
        return article_action(action, dataclasses.replace(INDEX, name=own)).origin

    assert origin("news", "news-1") == origin("news-1", "news-1") != origin("news", "news-2")


def test_field_names_can_be_configured() -> None:
    fields = Fields(text="body.plain", time="meta.date", dedup="near")
    read = article_action(
        {"_id": "1", "body": {"plain": "hello"}, "meta": {"date": CHECKED_AT_MS}},
        WritableIndex(fields=fields),
    )
    assert (read.text, read.dated_ms) == ("hello", CHECKED_AT_MS)
    assert "near" in enrich({"_id": "1", "body": {"plain": "hello"}}, fields=fields)["_source"]


def test_partitions_are_about_equal() -> None:
    counts = Counter(partition_of(f"{number:032x}") for number in range(25_600))
    assert len(counts) == 256
    assert 50 < min(counts.values()) <= max(counts.values()) < 150
    # The values must not change, because articles store them.
    assert [partition_of(root) for root in ("r" * 16, "0" * 32, "~abc")] == [28, 31, 234]


CHECKED_AT_MS = time_ms("2026-11-21T08:00:00Z") or 0
TEN_YEARS_MS = timedelta(days=3_653) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("dated_ms", "live", "backfill"),
    [
        (CHECKED_AT_MS - 60_000, True, True),
        (CHECKED_AT_MS + DAY_MS, True, True),
        (CHECKED_AT_MS + DAY_MS + 1, False, False),
        (time_ms("2099-01-01"), False, False),
        (CHECKED_AT_MS - TEN_YEARS_MS, True, True),
        (CHECKED_AT_MS - TEN_YEARS_MS - 1, False, True),
        (time_ms("1969-12-30T23:59:59Z"), False, True),
        # A clock that was never set shows the beginning of 1970, in any time zone.
        (-1, False, False),
        (0, False, False),
        (DAY_MS - 1, False, False),
        (DAY_MS, False, True),
        (time_ms("0001-01-01"), False, False),
        (time_ms("1601-01-01"), False, False),
        (time_ms("1753-01-01"), False, False),
        (time_ms("1899-12-30"), False, False),
        (time_ms("1900-01-01T08:00:00Z"), False, False),
        (time_ms("1904-01-01"), False, False),
        # Archives may reach back to the first newspaper.
        (time_ms("1605-07-01"), False, True),
        (time_ms("1923-04-05"), False, True),
    ],
)
def test_implausible_dates_are_replaced_by_the_arrival_time(
    dated_ms: int, live: bool, backfill: bool
) -> None:
    for is_backfill, is_believed in ((False, live), (True, backfill)):
        believed_ms, _ = judged(iso(dated_ms), dated_ms)
        published = published_ms(believed_ms, arrived_ms=CHECKED_AT_MS, backfill=is_backfill)
        assert published == (dated_ms if is_believed else CHECKED_AT_MS)


def test_a_missing_date_is_replaced_by_the_arrival_time() -> None:
    assert published_ms(None, arrived_ms=CHECKED_AT_MS, backfill=False) == CHECKED_AT_MS
    # Without an arrival time, no date can be checked, so none is used.
    assert published_ms(CHECKED_AT_MS, arrived_ms=NO_TIME, backfill=True) is None


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("21.11.2026 8 Uhr", "of the form 00.00.0000 0 aaa, cannot be read"),
        (1_795_248_000, "of the form 0000000000, lies near January 1970 (is it in seconds?)"),
        ("1795248000", "of the form 0000000000, lies near January 1970 (is it in seconds?)"),
        (["x"], "of the form list, cannot be read"),
        ([1_795_248_000], "of the form list, lies near January 1970 (is it in seconds?)"),
        ("1970-01-01T00:00:00Z", "of the form 0000-00-00a00:00:00a, is the default of an unset clock"),
        (None, None),
    ],
)
def test_wrong_dates_are_logged_once(
    value: object, wrong: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    milliseconds, why = judged(value, time_reader(None)(value))
    assert milliseconds is None
    dates = DateCheck()
    dates.check("f:1", why, field="date")
    dates.check("f:2", why, field="date")
    if wrong is None:
        assert caplog.messages == []
    else:
        (message,) = caplog.messages
        assert message.startswith(f"f:1: its date in 'date', {wrong}. ISO 8601,")


@pytest.mark.parametrize(
    ("time_format", "value", "read"),
    [
        ("[yyyy-MM-dd HH:mm:ss][yyyy-MM-dd]", "2026-11-20", "2026-11-20"),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][.SSS]XXX", "2026-11-20T08:00:00.5+01:00", "2026-11-20T07:00:00.500"),
        ("strict_date_optional_time||epoch_second", "-631152000", "1950-01-01"),
        ("strict_date_optional_time||epoch_second", -631_152_000, "1950-01-01"),
        ("dd.MM.yy", "20.11.72", "2072-11-20"),
        ("yyyy%MM", "2026%11", "2026-11-01"),
        ("MMM dd HH:mm:ss", "Nov 20 08:00:00", None),
        ("[yyyy]" * 16, "x", None),
        (None, "Fri, 20 Nov 2026 08:00:00 JST", None),
        (None, 1 << 20_000, None),
    ],
    ids=range(10),
)
def test_dates_are_parsed_in_the_mapped_format(time_format: str | None, value: Any, read: str | None) -> None:
    assert time_reader(time_format)(value) == (None if read is None else time_ms(read))


@pytest.mark.parametrize("known", ["abc", "1.5", [1], {}, 10**22])
def test_invalid_times_from_another_process_are_ignored(known: Any) -> None:
    action = {"_index": "news", "_id": "1", "_source": {"text": "x"}, KNOWN_MS: known}
    read = read_action(action, INDEX, position=1, now_ms=NOW_MS)
    assert isinstance(read, ArticleAction)
    assert read.dated_ms is None
