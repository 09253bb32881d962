"""Edits interleaved request by request, delayed or killed, and edits during rebuilds and deletions."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import (
    Dedup,
    Editor,
    EditRequest,
    EsdedupError,
    ForestIncomplete,
    IndexNotReady,
    Maintenance,
    SettingError,
)
from esdedup.elastic.execute import execute
from esdedup.elastic.requests import ReadClock, ReadDocument, ReadMappings, Request, Requests, Write
from esdedup.elastic.stories import read_edits, story_values
from esdedup.forest.stories import Edit, Stories
from esdedup.maintenance import editor as desk
from esdedup.maintenance.rebuild import Rebuild
from esdedup.reading.clusters import ForestScope
from tests.integration.test_editor import BY, Newsroom, newsroom, three_stories
from tests.sample import articles
from tests.support.names import new_names

__all__ = ["newsroom"]


class SteppedOperation:
    """An operation that a test advances request by request, with the test's own clock."""

    def __init__(self, es: Elasticsearch, requests: Requests[Any]) -> None:
        self._es = es
        self._requests = requests
        self.next: Request | None = next(requests)

    def step(self, now_ms: int) -> None:
        if (request := self.next) is None:
            return
        try:
            answer = now_ms if isinstance(request, ReadClock) else execute(self._es, _only(request))
            self.next = self._requests.send(answer)
        except StopIteration:
            self.next = None

    def finish(self, now_ms: int) -> None:
        while self.next is not None:
            self.step(now_ms)

    def until(self, is_so: Callable[[Request], bool]) -> None:
        """Advance to the first request for which `is_so` is true, without sending the request."""
        while self.next is not None and not is_so(self.next):
            self.step(0)


def _only(request: Request) -> Requests[Any]:
    return (yield request)


def making(newsroom: Newsroom, **values: Any) -> SteppedOperation:
    scope = ForestScope(given_forest=newsroom.forest)
    request = values.pop("request", None) or EditRequest(**values)
    return SteppedOperation(newsroom.es, desk.make_edit(scope, newsroom.index, request, by=BY))


def stores_edit(request: Request) -> bool:
    return isinstance(request, Write) and "create" in request.operations[0]


def expected(newsroom: Newsroom) -> dict[str, str]:
    """Return the stories of articles according to the history of edits."""
    stories = Stories(newsroom.editor.history(newsroom.index).edits)
    found = {name: each["dedup"] for name, each in newsroom.documents().items()}
    return {name: stories.of(each["root"], each.get("fingerprint")) for name, each in found.items()}


def arriving(newsroom: Newsroom, name: str, source: dict[str, Any]) -> Requests[None]:
    """Look up the story of an article, and write the article some time later."""
    edits = yield from read_edits(newsroom.forest)
    dedup = source["dedup"]
    dedup |= story_values(edits.stories.of(dedup["root"], dedup.get("fingerprint")))
    yield Write(index=newsroom.index, operations=[{"index": {"_index": newsroom.index, "_id": name}}, source])


def random_edit(random: Random, newsroom: Newsroom, made: int) -> SteppedOperation:
    one, other = random.sample(sorted(newsroom.stories()), 2)
    kind = random.choice(("merge", "merge", "move", "split", "undo"))
    if kind == "undo" and made:
        return making(newsroom, kind="undo", undoes=random.randint(1, made))
    if kind == "split":
        return making(newsroom, kind="split", ids=(one,))
    return making(newsroom, kind="move" if kind == "move" else "merge", ids=(one,), to=other)


def test_an_edit_delayed_at_any_request_does_no_harm(newsroom: Newsroom) -> None:
    one, other, third = three_stories(newsroom)
    for delayed_at in range(100):
        made = len(newsroom.editor.history(newsroom.index).edits)
        late = making(newsroom, kind="merge", ids=(other,), to=one)
        late.until(stores_edit)
        # A delay before a read has the same effect as a delay before the next request.
        for _ in range(delayed_at):
            late.step(0)
            late.until(lambda request: not isinstance(request, (ReadClock, ReadDocument, ReadMappings)))
        if late.next is None:
            break
        quick = making(newsroom, kind="merge", ids=(third,), to=other)
        if delayed_at:
            quick = making(newsroom, kind="undo", undoes=made + 1)
        # The time 10**12 is so late that even the latest edit counts as completed.
        quick.finish(10**12)
        late.finish(10**12)
        assert newsroom.stories() == expected(newsroom), delayed_at
        if not delayed_at:
            newsroom.edit("undo", undoes=1)
            newsroom.edit("undo", undoes=2)
    assert delayed_at > 5
    assert not newsroom.violations()


def test_the_next_edit_completes_interrupted_edits(newsroom: Newsroom) -> None:
    three_stories(newsroom)
    for seed in range(8):
        random = Random(seed)
        made = len(newsroom.editor.history(newsroom.index).edits)
        workers = [random_edit(random, newsroom, made) for _ in range(3)]
        copied = random.choice(sorted(newsroom.documents().items()))
        workers.append(SteppedOperation(newsroom.es, arriving(newsroom, f"late-{seed}", copied[1])))
        while any(each.next is not None for each in workers):
            one = random.choice([each for each in workers if each.next])
            try:
                one.step(made)
            except EsdedupError:
                one.next = None
            if random.random() < 0.02:
                workers.remove(one)
        for last in newsroom.editor.history(newsroom.index).edits[-1:]:
            newsroom.edit("undo", undoes=last.number)
        assert newsroom.stories() == expected(newsroom), seed
    assert not newsroom.violations()


def test_a_repeated_edit_request_is_applied_once(newsroom: Newsroom) -> None:
    one, other, _ = three_stories(newsroom)
    request = EditRequest(kind="merge", ids=(other,), to=one)
    first = making(newsroom, request=request)
    first.until(stores_edit)
    first.step(0)
    made = newsroom.editor.edit(newsroom.index, request, by=BY)
    assert made.edit.number == 1
    assert made.articles
    assert newsroom.editor.edit(newsroom.index, request, by=BY).edit == made.edit
    assert len(newsroom.editor.history(newsroom.index).edits) == 1
    others: list[tuple[str, dict[str, Any]]] = [("B. Li", {}), (BY, {"why": "other"}), (BY, {"kind": "move"})]
    for by, changes in others:
        with pytest.raises(SettingError, match="edit 1 has this request_id"):
            newsroom.editor.edit(newsroom.index, request.model_copy(update=changes), by=by)


def test_edits_are_kept_when_a_forest_is_renamed(newsroom: Newsroom) -> None:
    one, other, _ = three_stories(newsroom)
    newsroom.edit("merge", other, to=one)
    with new_names(newsroom.es) as name:
        forest = name("renamed")
        Maintenance(newsroom.es, forest=forest).rebuild([newsroom.index], rename=True)
        newsroom.dedup.setup(newsroom.index, forest=forest)
        renamed = Editor(newsroom.es)
        assert (
            renamed.history(newsroom.index).edits == execute(newsroom.es, read_edits(newsroom.forest)).edits
        )
        assert not [*Maintenance(newsroom.es, forest=forest).verify([newsroom.index])]
        # An index that does not name its forest is refused: its articles may belong to another forest.
        other_index = name("unkept")
        newsroom.dedup.setup(other_index, editorial=True)
        with pytest.raises(IndexNotReady, match=f"{other_index}' belongs to no forest"):
            renamed.edit(f"{newsroom.index},{other_index}", EditRequest(kind="split", ids=(other,)), by=BY)


def test_edits_survive_a_rebuild_and_create_no_index(
    newsroom: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, third = three_stories(newsroom)
    newsroom.edit("merge", other, to=one)
    newsroom.dedup.close()
    late = making(newsroom, kind="merge", ids=(third,), to=one)
    late.until(stores_edit)
    write_own_data = Rebuild._write_learned_and_edits

    once = iter([other])

    def edit_meanwhile(_: int) -> None:
        for each in once:
            newsroom.edit("split", each)

    def edit_too_late(*arguments: Any) -> None:
        with pytest.raises(ForestIncomplete):
            newsroom.edit("merge", other, to=one)
        write_own_data(*arguments)

    monkeypatch.setattr(Rebuild, "_write_learned_and_edits", edit_too_late)
    maintenance = Maintenance(newsroom.es, forest=newsroom.forest)
    # Stories can be edited until the rebuild has caught up.
    maintenance.rebuild([newsroom.index], on_progress=edit_meanwhile)
    late.finish(0)
    monkeypatch.undo()
    kinds = [(each.number, each.kind) for each in newsroom.editor.history(newsroom.index).edits]
    assert kinds == [(1, "merge"), (2, "split"), (3, "merge")]
    assert newsroom.stories() == expected(newsroom)
    # Delete the forest during the next edit, and the index of articles during the edit after that.
    late = making(newsroom, kind="undo", undoes=1)
    late.until(stores_edit)
    newsroom.es.indices.delete(index=newsroom.forest)
    with pytest.raises(ForestIncomplete):
        late.finish(0)
    assert not newsroom.es.indices.exists(index=newsroom.forest)
    maintenance.rebuild([newsroom.index])
    late = making(newsroom, kind="merge", ids=(third,), to=one)
    late.until(lambda request: isinstance(request, Write) and "~none" not in str(request.operations[0]))
    newsroom.es.indices.delete(index=newsroom.index)
    with pytest.raises(IndexNotReady):
        late.finish(0)
    assert not newsroom.es.indices.exists(index=newsroom.index)


def test_articles_with_custom_routing_get_stories(es: Elasticsearch) -> None:
    with new_names(es) as name:
        index, forest = name("routed"), name("routed-forest")
        required = {"_routing": {"required": True}}
        es.indices.create(index=index, settings={"number_of_shards": 3}, mappings=required)
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            actions = [
                {"_index": index, "_id": each["id"], "routing": f"r{at % 5}", "_source": each}
                for at, each in enumerate(articles(60))
            ]
            helpers.bulk(es, dedup.enrich(actions, backfill=True), refresh=True)
            dedup.setup(index, editorial=True)
            newsroom = Newsroom(es, index, forest, dedup, Editor(es, forest=forest))
            one, other = [*{story: key for key, story in newsroom.stories().items()}.values()][:2]
            going = making(newsroom, kind="merge", ids=(other,), to=one)
            going.until(lambda request: isinstance(request, Write) and "update" in request.operations[0])
            going.step(0)
            going.until(lambda request: isinstance(request, Write) and "update" in request.operations[0])
            going.finish(0)
            assert newsroom.stories() == expected(newsroom)
            assert not newsroom.violations()


def test_edits_stored_by_earlier_versions_still_apply(newsroom: Newsroom) -> None:
    one, other, third = three_stories(newsroom)
    newsroom.edit("merge", other, to=one)
    (made,) = newsroom.editor.history(newsroom.index).edits
    kept = {"edits": [made.model_dump(exclude_defaults=True)], "settled": {newsroom.index: 1}}
    newsroom.es.delete(index=newsroom.forest, id="~edit-1")
    newsroom.es.index(index=newsroom.forest, id="~edits", document={"state": kept})
    newsroom.edit("merge", third, to=one)
    assert [each.number for each in newsroom.editor.history(newsroom.index).edits] == [1, 2]
    assert newsroom.stories() == expected(newsroom)
    assert not newsroom.violations()


def test_an_edit_writes_only_its_own_document(newsroom: Newsroom) -> None:
    three_stories(newsroom)
    edits = [
        Edit(number=number, kind="move", by=BY, at_ms=number, into="a", texts=tuple(map(str, range(1_000))))
        for number in range(1, 401)
    ]
    operations = [
        line
        for each in edits
        for line in ({"index": {"_id": f"~edit-{each.number}"}}, {"state": each.model_dump()})
    ]
    for at in range(0, len(operations), 100):
        newsroom.es.bulk(index=newsroom.forest, operations=operations[at : at + 100])
    one, other, _ = three_stories(newsroom)
    newsroom.edit("merge", other, to=one)
    assert len(newsroom.editor.history(newsroom.index).edits) == 401
    written = newsroom.es.get(index=newsroom.forest, id="~edit-401")["_source"]
    assert len(str(written)) < 500
