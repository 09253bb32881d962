"""Learned boilerplate: verification, repair, rebuilding, and learning before articles arrive."""

import dataclasses
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, ForestDamaged, ForestIncomplete, Maintenance, SettingError
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy, LearnedLog, read_learned
from esdedup.elastic.forest.lease import Lease
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import Aging
from esdedup.maintenance import ViolationKind
from tests.support import stream
from tests.support.forests import Read
from tests.support.learned import Pace, contents, documents, learned
from tests.support.names import Names
from tests.support.pages import pages

PAGES = list(pages(60))
FINGERPRINTER = Fingerprinter(VERIFIED)
PACE = Pace(period_records=100_000)


@pytest.fixture(autouse=True)
def _fast() -> Iterator[None]:
    with PACE.kept():
        yield


@pytest.fixture
def taught(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    """An index of half of the pages, and its forest."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, batch_size=7) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, PAGES[:30])
    assert len(documents(es, forest)) > 3
    return index, forest


def feed(es: Elasticsearch, dedup: Dedup, index: str, articles: list[dict[str, Any]]) -> None:
    actions = ({"_index": index, "_id": each["id"], "_source": each} for each in articles)
    helpers.bulk(es, dedup.enrich(actions), refresh=True)


def missing(es: Elasticsearch, forest: str) -> None:
    es.delete(index=forest, id="learned-2", refresh=True)


def all_missing(es: Elasticsearch, forest: str) -> None:
    for each in documents(es, forest):
        es.delete(index=forest, id=each, refresh=True)


def changed(name: str, value: object) -> Callable[[Elasticsearch, str], None]:
    def damage(es: Elasticsearch, forest: str) -> None:
        source = es.get(index=forest, id="learned-3")["_source"]
        state = source["state"] | {name: value}
        es.index(index=forest, id="learned-3", document={"learned": 3, "state": state}, refresh=True)

    return damage


def without_state(es: Elasticsearch, forest: str) -> None:
    es.index(index=forest, id="learned-2", document={"learned": 2, "state": ["a"]}, refresh=True)


def twice(es: Elasticsearch, forest: str) -> None:
    """Replace a batch's changes with the changes of another batch."""
    other = es.get(index=forest, id="learned-2")["_source"]["state"]
    es.index(index=forest, id="learned-3", document={"learned": 3, "state": other}, refresh=True)


DAMAGES = {
    "missing": missing,
    "all missing": all_missing,
    "without state": without_state,
    "twice": twice,
    "not base64": changed("changes", "no base64"),
    "not a string": changed("changes", 7),
    "another log": changed("log", "another"),
}


def test_damaged_boilerplate_is_reported_and_repaired(
    es: Elasticsearch, read: Read, taught: tuple[str, str]
) -> None:
    index, forest = taught
    before, learned_before = stream.indexed(es, index), learned(es, forest)
    maintenance = Maintenance(es, forest=forest)
    stats = maintenance.stats().learned
    assert stats is not None
    assert (stats.pages, stats.remembered_pages, stats.documents) == (30, 30, len(documents(es, forest)))
    assert stats.boilerplate >= 5
    assert min(stats.memory_bytes, stats.document_bytes) > 1_000
    stored = [
        {"_index": forest, "_id": f"learned-{number}", "learned": number}
        | es.get(index=forest, id=f"learned-{number}")["_source"]
        for number in range(1, stats.documents + 1)
    ]
    stored.append({"_index": forest, "_id": "~learned"} | es.get(index=forest, id="~learned")["_source"])
    for name, damage in DAMAGES.items():
        helpers.bulk(es, stored)
        assert learned(es, forest) == learned_before
        damage(es, forest)
        assert maintenance.stats().learned is None, name
        (violation,) = maintenance.verify()
        assert violation.kind is ViolationKind.LEARNED_DAMAGED, name
        assert violation.subject.startswith("learned-"), name
        assert violation.can_be_repaired, name
        with Dedup(es, forest=forest) as dedup, pytest.raises(ForestDamaged, match=violation.subject):
            feed(es, dedup, index, PAGES[30:31])
        with pytest.raises(ForestDamaged, match="Repair the forest"):
            read("similar_to_text", index, PAGES[0]["text"], of={"forest": forest})
        # A repair deletes the learned boilerplate, whatever the damage is.
        if name in ("all missing", "another log"):
            assert maintenance.repair() == {ViolationKind.LEARNED_DAMAGED: 1}, name
            assert documents(es, forest) == [], name
    assert list(maintenance.verify([index])) == []
    # No root changes. Articles that arrive again get their old roots, and boilerplate is learned again.
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, PAGES[:30])
    assert stream.indexed(es, index) == before
    assert learned(es, forest)["pages"]


def test_split_changes_take_effect_when_all_parts_exist(es: Elasticsearch, taught: tuple[str, str]) -> None:
    """Until all parts exist, owners and readers ignore them."""
    index, forest = taught
    before, copy = learned(es, forest), LearnedCopy()
    with dataclasses.replace(PACE, part_bytes=300).kept():
        log = LearnedLog(forest, execute(es, read_learned(forest)))
        log.boilerplate.begin()
        for parsed in FINGERPRINTER.parsed([each["text"] for each in PAGES[30:45]]):
            parsed.left_out(log.boilerplate.filter())
        *parts, last, end = log.add(log.boilerplate.changes())
        log.boilerplate.keep()
    assert len(parts) > 4
    for name, document in [*parts, *parts[:2]]:
        es.index(index=forest, id=name, document=document, refresh=True)
        execute(es, copy.update(forest))
        assert learned(es, forest) == contents(copy._known.boilerplate) == before
    # The next batch, however it is split, overwrites the incomplete set of parts.
    again = LearnedLog(forest, execute(es, read_learned(forest)))
    assert again.last is not None
    assert again.last.last == parts[0][1]["learned"] - 1
    for name, document in (last, end):
        es.index(index=forest, id=name, document=document, refresh=True)
    execute(es, copy.update(forest))
    assert learned(es, forest) == contents(copy._known.boilerplate) == contents(log.boilerplate) != before
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    es.delete(index=forest, id=last[0], refresh=True)
    (violation,) = Maintenance(es, forest=forest).verify([index])
    assert violation.kind is ViolationKind.LEARNED_DAMAGED
    assert "missing" in violation.detail


def test_a_reader_works_again_after_a_repair(es: Elasticsearch, read: Read, taught: tuple[str, str]) -> None:
    from esdedup import Reader

    index, forest = taught
    reader = Reader(es, forest=forest)
    missing(es, forest)
    with pytest.raises(ForestDamaged):
        reader.similar_to_text(index, PAGES[0]["text"])
    Maintenance(es, forest=forest).repair([index])
    for _ in range(2):
        assert reader.similar_to_text(index, PAGES[0]["text"]).root


def test_each_page_is_learned_from_only_once(
    es: Elasticsearch, index_name: Names, taught: tuple[str, str]
) -> None:
    index, forest = taught
    maintenance, other = Maintenance(es, forest=forest), index_name("forest")
    assert maintenance.count_texts([index]) == 30
    with Dedup(es, forest=forest) as dedup:
        assert dedup.learn(maintenance.texts([index])) == 0
        # The call found no new page, but at its end it learned from pages that did not fill a block.
        before = learned(es, forest)
        assert (before["last page"], before["counts"]) == (30, [])
        rejected: list[str] = []
        # Pass ten known pages, ten new pages, and two values that are not valid texts.
        texts: list[Any] = [each["text"] for each in PAGES[20:40]] + [7, "\ud800"]
        assert dedup.learn(texts, on_rejected=lambda each: rejected.append(str(each))) == 10
        assert rejected == ["text 21: must be a string, not int", rejected[1]]
        assert "lone surrogate" in rejected[1]
    assert learned(es, forest) != before
    # If another forest learns in several calls by different owners, it reaches the same state.
    for latest in (30, 12, 30):
        with Dedup(es, forest=other, batch_size=4) as dedup:
            dedup.learn(Maintenance(es).texts([index], latest=latest))
    assert learned(es, other) == before


def test_learning_before_feeding_matches_learning_in_memory(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    Dedup(es).setup(index)
    with Dedup(es, forest=forest, batch_size=11) as dedup:
        dedup.learn([page["text"] for page in PAGES])
    for part in (PAGES[:25], PAGES[25:]):
        with Dedup(es, forest=forest, batch_size=8) as dedup:
            feed(es, dedup, index, part)
    nameless = [{"id": page["id"], "text": page["text"]} for page in PAGES]
    store, roots, nodes = stream.fed(nameless, VERIFIED, learns_first=True)
    found = stream.indexed(es, index), stream.nodes(es, forest)
    assert found == (roots, nodes)
    # Compare only these parts of the state, since `learn` does not receive the ids of articles.
    same = ("last page", "periods", "marks", "pages")
    expected = contents(store.boilerplate)
    assert {name: learned(es, forest)[name] for name in same} == {name: expected[name] for name in same}
    before = documents_without_logs(es, forest)
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, PAGES)
    assert documents_without_logs(es, forest) == before


def documents_without_logs(es: Elasticsearch, forest: str) -> set[str]:
    """Return the ids of a forest's documents, except the logs of nodes."""
    return {each for each in stream.versions(es, forest) if not each.startswith("log-")}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_rebuild_keeps_or_reports_learned_boilerplate(
    es: Elasticsearch, taught: tuple[str, str], caplog: pytest.LogCaptureFixture, is_damaged: bool
) -> None:
    index, forest = taught
    before = learned(es, forest)
    if is_damaged:
        missing(es, forest)
    with caplog.at_level(logging.WARNING, logger="esdedup"):
        Maintenance(es, forest=forest).rebuild([index])
    if is_damaged:
        assert "learned-2" in caplog.text
        assert "let it learn from its stored articles" in caplog.text
        assert documents(es, forest) == []
        return
    assert caplog.messages == []
    assert learned(es, forest) == before
    with Dedup(es, forest=forest, batch_size=7) as dedup:
        feed(es, dedup, index, PAGES[30:])
    assert stream.indexed(es, index) == stream.expected(PAGES, VERIFIED)[0]
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_an_interrupted_rebuild_loses_nothing(
    es: Elasticsearch, taught: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = taught
    maintenance, drop = Maintenance(es, forest=forest), ForestIndex.drop
    maintenance.rebuild([index], retention=timedelta(days=7), change_retention=True, lookup="search")
    before = learned(es, forest)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def dropped(old: ForestIndex, lease: Lease) -> None:
        drop(old, lease)
        interrupted()

    with monkeypatch.context() as patch:
        patch.setattr(ForestIndex, "drop", dropped)
        with pytest.raises(KeyboardInterrupt):
            maintenance.rebuild([index])
    assert not es.indices.exists(index=forest)
    # Nobody creates an empty forest meanwhile.
    with Dedup(es, forest=forest) as dedup, pytest.raises(ForestIncomplete, match="is being rebuilt"):
        list(dedup.enrich([{"_index": index, **PAGES[0]}]))
    # Interrupt the rebuild once more.
    with monkeypatch.context() as patch:
        patch.setattr(ForestWriter, "write_own", interrupted)
        with pytest.raises(KeyboardInterrupt):
            maintenance.rebuild([index])
    maintenance.rebuild([index])
    assert learned(es, forest) == before
    found = ForestIndex.find(es, forest)
    assert (found.status().aging, found.meta.lookup) == (Aging.of(retention=timedelta(days=7)), "search")
    assert list(es.indices.get(index=f"{forest}*")) == [forest]


def test_a_profile_that_keeps_boilerplate_learns_nothing(es: Elasticsearch, index_name: Names) -> None:
    with pytest.raises(SettingError, match="keeps boilerplate"):
        Dedup(es, profile=VERIFIED.with_changes(keep_boilerplate=True)).learn(["a"])
    with pytest.raises(SettingError, match="latest is 0"):
        Maintenance(es).texts(["a"], latest=0)
