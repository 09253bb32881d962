"""Batches of actions on their way through a forest: one ahead of those whose actions are used."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from esdedup.ingest.actions import Addition, ArticleAction
from esdedup.ingest.enricher import ArticleDecision, Enricher

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import ArticleRejected, ForestError
from esdedup.fields import Fields
from esdedup.forest import NO_TIME, Assignment, Kind

ASSIGNMENT = Assignment(Kind.NEW_ROOT, "a", "a", 1, NO_TIME, b"")


class Answer:
    """What was decided for an article: its text is its root."""

    assignment = ASSIGNMENT

    def __init__(self, article: ArticleAction) -> None:
        self.article = article

    def addition(self, index: WritableIndex) -> Addition:
        return Addition({"source": {"root": self.article.text}})


class Assigning:
    """Notes which articles it was given, and fails at one that is called so."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.threads: set[int] = set()
        self.changed = threading.Condition()

    def assign(self, articles: Sequence[ArticleAction]) -> Sequence[ArticleDecision]:
        with self.changed:
            self.threads.add(threading.get_ident())
            self.given += [each.text for each in articles]
            self.changed.notify_all()
        if self.given[-1] == "fails":
            raise ForestError("fails", forest="f")
        return [Answer(each) for each in articles]

    def await_given(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.given) >= count, 10)


def enriched(
    forest: Assigning,
    actions: Iterable[Any],
    rejected: list[ArticleRejected] | None = None,
    *,
    flush_interval_s: float | None = None,
) -> Iterator[dict[str, Any]]:
    on_rejected = (list[ArticleRejected]() if rejected is None else rejected).append
    enricher = Enricher(
        forest,
        fields=None,
        check_process=lambda: None,
        check_index=lambda _: WritableIndex(fields=Fields()),
        batch_size=2,
        max_text_length=100,
        on_rejected=on_rejected,
    )
    return enricher.enrich(actions, flush_interval_s=flush_interval_s)


def texts(*names: str) -> list[dict[str, Any]]:
    return [{"_id": name, "_source": {"text": name}} for name in names]


@pytest.mark.parametrize("flush_interval_s", [None, 0.05])
def test_the_next_batch_is_assigned_while_the_actions_of_one_are_used(flush_interval_s: float | None) -> None:
    forest = Assigning()
    found = enriched(forest, texts(*"abcdefg"), flush_interval_s=flush_interval_s)
    first = next(found)
    assert first["_source"]["dedup"]["root"] == "a"
    if flush_interval_s is None:
        forest.await_given(4)
        # And not the one after that.
        assert forest.given == [*"abcd"]
    assert [first["_id"], *(each["_id"] for each in found)] == [*"abcdefg"] == forest.given


def test_what_fails_ahead_fails_after_the_actions_before_it() -> None:
    def actions() -> Iterator[dict[str, Any]]:
        yield from texts(*"abc")
        raise KeyError("broken")

    seen: list[str] = []
    with pytest.raises(KeyError, match="broken"):
        seen.extend(each["_id"] for each in enriched(Assigning(), actions()))
    # As in a batch that is not full: nothing of it is assigned.
    assert seen == [*"ab"]
    seen.clear()
    with pytest.raises(ForestError, match="fails"):
        seen.extend(each["_id"] for each in enriched(Assigning(), texts("a", "b", "c", "fails", "e")))
    assert seen == [*"ab"]


def test_rejections_come_in_their_turn() -> None:
    rejected: list[ArticleRejected] = []
    found = enriched(Assigning(), [*texts("a", "b"), {"_id": "none", "_source": {}}, *texts("d")], rejected)
    next(found)
    assert rejected == []
    assert [each["_id"] for each in found] == ["b", "d"]
    assert [each.article for each in rejected] == ["none"]


def test_a_single_batch_is_assigned_by_the_thread_that_asks() -> None:
    forest = Assigning()
    assert len(list(enriched(forest, texts("a")))) == 1
    assert forest.threads == {threading.get_ident()}


def test_what_comes_slowly_does_not_wait_for_what_follows() -> None:
    may_go_on = threading.Event()

    def actions() -> Iterator[dict[str, Any]]:
        yield from texts("a", "b", "c")
        may_go_on.wait(10)
        yield from texts("d")

    found = enriched(Assigning(), actions(), flush_interval_s=0.05)
    assert [next(found)["_id"] for _ in range(3)] == [*"abc"]
    may_go_on.set()
    assert [each["_id"] for each in found] == ["d"]
