"""Edits during feeding and expiry, compared with a model, and edits killed at every request."""

import asyncio
import collections
import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any, Literal

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers

from esdedup import (
    ArticleNotFound,
    AsyncEditor,
    Dedup,
    Editor,
    EditRequest,
    IndexNotReady,
    Maintenance,
    Reader,
    SettingError,
)
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.requests import Requests
from esdedup.forest.stories import EditKind
from esdedup.maintenance import editor as desk
from esdedup.maintenance.editor import EditResult
from esdedup.maintenance.violations import ViolationKind
from esdedup.reading.clusters import ForestScope
from tests.sample import articles
from tests.support.exploring import EFFORT
from tests.support.names import new_names
from tests.support.sidecar_process import running

BY = "A. Chen"
KINDS: tuple[EditKind | Literal["feed"], ...] = ("merge", "merge", "split", "move", "undo", "feed")


@dataclasses.dataclass(frozen=True)
class Newsroom:
    """An index whose stories may be edited, with its feeder and editor."""

    es: Elasticsearch
    index: str
    forest: str
    dedup: Dedup
    editor: Editor

    def feed(self, some: list[dict[str, Any]]) -> None:
        actions = ({"_index": self.index, "_id": each["id"], "_source": each} for each in some)
        helpers.bulk(self.es, self.dedup.enrich(actions, backfill=True), refresh=True)

    def edit(self, kind: EditKind, *ids: str, to: str | None = None, undoes: int | None = None) -> int:
        request = EditRequest(kind=kind, ids=ids, to=to, undoes=undoes, why="a test")
        return self.editor.edit(self.index, request, by=BY).articles

    def documents(self) -> dict[str, dict[str, Any]]:
        self.es.indices.refresh(index=self.index)
        hits = helpers.scan(self.es, index=self.index, query={"query": {"match_all": {}}})
        return {hit["_id"]: hit["_source"] for hit in hits}

    def stories(self) -> dict[str, str]:
        return {name: each["dedup"]["story"] for name, each in self.documents().items()}

    def violations(self) -> set[ViolationKind]:
        found = Maintenance(self.es, forest=self.forest).verify([self.index])
        return {each.kind for each in found}


@pytest.fixture(params=[60])
def newsroom(es: Elasticsearch, request: pytest.FixtureRequest) -> Iterator[Newsroom]:
    with new_names(es) as name:
        index, forest = name("desk"), name("desk-forest")
        with Dedup(es, forest=forest, retention=timedelta(days=request.param)) as dedup:
            dedup.setup(index, forest=forest, editorial=True)
            yield Newsroom(es, index, forest, dedup, Editor(es, forest=forest))


class Model:
    """A model that recomputes every story from the history of edits."""

    def __init__(self) -> None:
        self.edits: list[tuple[str, tuple[str, ...], str | None, int | None]] = []

    def stories(self, documents: dict[str, dict[str, Any]]) -> list[set[str]]:
        """Return the articles of each story."""
        undone: set[int] = set()
        for number in range(len(self.edits), 0, -1):
            if (undoes := self.edits[number - 1][3]) is not None and number not in undone:
                undone.add(undoes)
        text = {
            name: each["dedup"].get("fingerprint", each["dedup"]["root"]) for name, each in documents.items()
        }
        root = {name: each["dedup"]["root"] for name, each in documents.items()}
        # The stories of texts and of trees, for current and future articles.
        of_text: dict[str, object] = {}
        of_root: dict[str, object] = {each: each for each in root.values()}

        def story(name: str) -> object:
            return of_text.get(text[name], of_root[root[name]])

        for number, (kind, ids, to, _) in enumerate(self.edits, 1):
            if number in undone or kind == "undo":
                continue
            if kind == "merge":
                into, merged = story(to or ""), {story(each) for each in ids}
                for stories in (of_text, of_root):
                    stories |= {each: into for each, given in stories.items() if given in merged}
            else:
                into = f"split {number}" if to is None else story(to)
                of_text |= {text[each]: into for each in ids}
        groups = collections.defaultdict(set)
        for name in documents:
            groups[story(name)].add(name)
        return list(groups.values())


@pytest.mark.parametrize("newsroom", [3], indirect=True)
def test_lists_follow_edits_during_feeding_and_expiry(newsroom: Newsroom) -> None:
    random, model, coming = Random(33), Model(), list(articles(360))
    reader = Reader(newsroom.es)
    newsroom.feed(coming[:120])
    fed = 120
    for step in range(40):
        documents = newsroom.documents()
        names = sorted(documents)
        kind = random.choice(KINDS)
        one, other = random.sample(names, 2)
        left = [number for number in range(1, len(model.edits) + 1) if not is_undone(model, number)]
        try:
            if kind == "feed":
                newsroom.feed(coming[fed : fed + 20])
                fed += 20
                newsroom.dedup.expire()
            elif kind == "undo":
                if left:
                    undoes = random.choice(left)
                    newsroom.edit("undo", undoes=undoes)
                    model.edits.append(("undo", (), None, undoes))
            else:
                to = None if kind == "split" else other
                newsroom.edit(kind, one, to=to)
                model.edits.append((kind, (one,), to, None))
        except SettingError:
            pass
        documents = newsroom.documents()
        expected = sorted(map(sorted, model.stories(documents)))
        found = collections.defaultdict(set)
        for name, story in newsroom.stories().items():
            found[story].add(name)
        assert sorted(map(sorted, found.values())) == expected, (step, kind)
        if step % 5 == 4:
            for sort in ("similar-desc", "newest", "oldest"):
                page = reader.list(newsroom.index, sort=sort, size=200)
                rows = list(page.rows)
                while page.next:
                    page = reader.list(newsroom.index, sort=sort, size=200, after=page.next)
                    rows += page.rows
                counts = sorted(row.similar + 1 for row in rows)
                assert counts == sorted(map(len, expected)), (step, sort)
    assert len(model.edits) > 15
    assert fed > 150
    assert newsroom.violations() <= {ViolationKind.NODE_GONE}


def is_undone(model: Model, number: int) -> bool:
    undone: set[int] = set()
    for at in range(len(model.edits), 0, -1):
        if (undoes := model.edits[at - 1][3]) is not None and at not in undone:
            undone.add(undoes)
    return number in undone


def killed_after(requests: Requests[Any], number: int) -> Requests[Any]:
    """Pass on `number` requests of an operation, then interrupt it."""
    answer = None
    for _ in range(number):
        request = requests.send(answer)
        answer = yield request
    raise KeyboardInterrupt


def three_stories(newsroom: Newsroom) -> list[str]:
    newsroom.feed(list(articles(60)))
    by_story: dict[str, list[str]] = collections.defaultdict(list)
    for name, story in sorted(newsroom.stories().items()):
        by_story[story].append(name)
    return [names[0] for names in sorted(by_story.values(), key=len, reverse=True)[:3]]


def test_an_edit_killed_at_any_request_is_completed(newsroom: Newsroom) -> None:
    one, other, third = three_stories(newsroom)
    before = newsroom.stories()
    scope = ForestScope(given_forest=newsroom.forest)
    request = EditRequest(kind="merge", ids=(other,), to=one)
    # Kill the edit at every fifth request in `make test`, at every request in `make nightly`.
    for number in range(0, 100, 1 if EFFORT > 1 else 5):
        made = len(newsroom.editor.history(newsroom.index).edits)
        try:
            execute(newsroom.es, killed_after(desk.make_edit(scope, newsroom.index, request, by=BY), number))
        except KeyboardInterrupt:
            pass
        except RuntimeError:  # the operation has ended
            break
        is_kept = len(newsroom.editor.history(newsroom.index).edits) > made
        if number % 2:
            Maintenance(newsroom.es, forest=newsroom.forest, wait_s=1).verify([newsroom.index])
            newsroom.dedup.close()
            Maintenance(newsroom.es, forest=newsroom.forest).repair([newsroom.index])
        else:
            # The next edit first completes the interrupted edit.
            newsroom.edit("move", third, to=one)
            last = len(newsroom.editor.history(newsroom.index).edits)
            newsroom.edit("undo", undoes=last)
        stories = newsroom.stories()
        assert (stories[one] == stories[other]) is is_kept, number
        assert not newsroom.violations()
        if is_kept:
            newsroom.edit("undo", undoes=made + 1)
        assert newsroom.stories() == before, number
    else:
        pytest.fail("the operation never ends")
    assert number > 8


def test_a_later_article_belongs_to_the_merged_story(newsroom: Newsroom) -> None:
    one, other, _ = three_stories(newsroom)
    newsroom.edit("merge", other, to=one)
    late = newsroom.documents()[other] | {"id": "late"}
    late.pop("dedup")
    newsroom.feed([late])
    assert newsroom.stories()["late"] == newsroom.stories()[one]
    assert newsroom.documents()["late"]["dedup"]["root"] == newsroom.documents()[other]["dedup"]["root"]
    similar = Reader(newsroom.es).similar(newsroom.index, "late", size=100)
    assert one in {row.id for row in similar.rows}


# The retention is long, because a text that arrives again after its story has expired begins another story.
@pytest.mark.parametrize("newsroom", [3_650], indirect=True)
def test_a_sidecar_notices_edits_without_notification(newsroom: Newsroom, elasticsearch_url: str) -> None:
    one, other, _ = three_stories(newsroom)
    late = {name: each for name, each in newsroom.documents().items() if name in (one, other)}
    newsroom.dedup.close()
    with running(elasticsearch_url, forest=newsroom.forest) as process:
        steps: tuple[EditKind, ...] = ("merge", "undo")
        for kind in steps:
            undoes = 1 if kind == "undo" else None
            newsroom.edit(kind, *([] if undoes else [other]), to=None if undoes else one, undoes=undoes)
            feeder = Dedup(newsroom.es, forest=newsroom.forest, sidecar=process.url)
            actions = [
                {
                    "_index": newsroom.index,
                    "_id": f"{kind}-{name}",
                    "_source": {**each, "id": f"{kind}-{name}"},
                }
                for name, each in late.items()
            ]
            with feeder:
                helpers.bulk(newsroom.es, feeder.enrich(actions), refresh=True)
            client = Elasticsearch(process.url)
            helpers.bulk(client, [each | {"_id": f"raw-{each['_id']}"} for each in actions], refresh=True)
            stories = newsroom.stories()
            for name in (kind, f"raw-{kind}"):
                is_one = stories[f"{name}-{one}"] == stories[f"{name}-{other}"]
                assert is_one is (kind == "merge"), name
    assert not newsroom.violations()


def test_a_text_that_arrives_after_expiry_has_several_stories(es: Elasticsearch) -> None:
    with new_names(es) as name, Dedup(es, forest=name("again-forest"), retention=timedelta(days=3)) as dedup:
        newsroom = Newsroom(es, name("again"), "", dedup, Editor(es))
        dedup.setup(newsroom.index, editorial=True)
        first, other = list(articles(60))[:8:7]
        # The later copy of the leaf is a root itself, since the first tree has expired.
        leaf = first | {"text": f"{first['text']} So it was said."}
        for key, each, day in (("root", first, 1), ("old", leaf, 1), ("tick", other, 20), ("new", leaf, 25)):
            newsroom.feed([each | {"id": key, "published_at": f"2024-01-{day:02}T00:00:00Z"}])
        assert len({*newsroom.stories().values()}) == 3
        newsroom.edit("merge", "old", "new", to="tick")
        assert len({*newsroom.stories().values()}) == 1
        newsroom.edit("undo", undoes=1)
        with pytest.raises(SettingError, match="several"):
            newsroom.edit("split", "old", "new")
        newsroom.edit("move", "old", to="new")
        assert newsroom.stories()["old"] == newsroom.stories()["new"]


def test_edits_never_change_roots(newsroom: Newsroom) -> None:
    one, other, third = three_stories(newsroom)
    roots = {name: each["dedup"]["root"] for name, each in newsroom.documents().items()}
    newsroom.edit("merge", other, to=one)
    newsroom.edit("split", other)
    newsroom.edit("move", third, to=one)
    assert {name: each["dedup"]["root"] for name, each in newsroom.documents().items()} == roots


def test_a_merged_story_is_found_by_its_previous_root(newsroom: Newsroom) -> None:
    one, other, _ = three_stories(newsroom)
    root = newsroom.stories()[other]
    newsroom.edit("merge", other, to=one)
    found = Reader(newsroom.es).cluster(newsroom.index, root, size=100)
    assert {one, other} <= {row.id for row in found.rows}


def test_stories_are_named_and_the_history_names_them(newsroom: Newsroom) -> None:
    one, other, _ = three_stories(newsroom)
    before = newsroom.stories()

    def edit(**values: Any) -> EditResult:
        return newsroom.editor.edit(newsroom.index, EditRequest(**values), by=BY)

    named = edit(kind="name", to=other, name="Harbour fire", note="wait for the police")
    assert (named.articles, named.edit.into) == (0, before[other])
    assert newsroom.stories() == before
    with pytest.raises(SettingError, match="this name and this note already"):
        edit(kind="name", to=other, name="Harbour fire", note="wait for the police")
    merged = edit(kind="merge", ids=(other,), to=one)
    assert (merged.articles, merged.same_text) == (list(before.values()).count(before[other]), 0)
    history = newsroom.editor.history(newsroom.index)
    # The merged story gets the name; both stories are named by an article of their own.
    assert {story: each.name for story, each in history.names.items()} == {before[one]: "Harbour fire"}
    articles = {story: before[each.id] for story, each in history.articles.items()}
    assert articles == {before[each]: before[each] for each in (one, other)}
    newsroom.edit("undo", undoes=1)
    assert not newsroom.editor.history(newsroom.index).names
    with pytest.raises(SettingError, match="undone already"):
        newsroom.edit("undo", undoes=1)
    # Articles with the same text move together, and are counted.
    copy = newsroom.documents()[one] | {"id": "copy"}
    copy.pop("dedup")
    newsroom.feed([copy])
    split = edit(kind="split", ids=(one,))
    assert split.articles == split.same_text + 1 >= 2
    assert newsroom.editor.history(newsroom.index).articles[split.edit.into or ""].id in newsroom.stories()
    assert not newsroom.violations()


def test_edits_without_effect_are_refused(newsroom: Newsroom) -> None:
    one, other, third = three_stories(newsroom)
    members = [name for name, story in newsroom.stories().items() if story == newsroom.stories()[one]]
    newsroom.edit("merge", other, to=one)
    refused: list[tuple[EditKind, tuple[str, ...], str | None, int | None, str]] = [
        ("merge", (other,), one, None, "already"),
        ("move", (other,), one, None, "already"),
        ("split", (one, third), None, None, "several"),
        ("undo", (), None, 2, "no edit 2"),
    ]
    for kind, ids, to, undoes, words in refused:
        with pytest.raises(SettingError, match=words):
            newsroom.edit(kind, *ids, to=to, undoes=undoes)
    newsroom.edit("undo", undoes=1)
    with pytest.raises(SettingError, match="nothing would be left"):
        newsroom.edit("split", *members)
    with pytest.raises(SettingError, match="undone already"):
        newsroom.edit("undo", undoes=1)
    with pytest.raises(ArticleNotFound):
        newsroom.edit("split", "none")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"kind": "merge", "ids": ("1",)}, "takes ids and to"),
        ({"kind": "split", "ids": ("1",), "name": "x"}, "takes ids, and no other"),
        ({"kind": "name", "ids": ("1",), "to": "1"}, "takes to, and perhaps name and note"),
        ({"kind": "name", "to": "1", "name": "x" * 201}, "name: .*at most 200"),
        ({"kind": "split", "ids": ("",)}, "ids: .*at least 1"),
        ({"kind": "split", "ids": ("1",) * 1_001}, "ids: .*at most 1000"),
        ({"kind": "split", "ids": ("\udcff",)}, "ids: .*unicode"),
        ({"kind": "split", "ids": ("1",), "why": "1" * 1_001}, "why: .*at most 1000"),
    ]
    for request, words in wrong:
        with pytest.raises(SettingError, match=words):
            EditRequest(**request)
    by: Any
    for by in ("\udcff", " \n", "", 5):
        with pytest.raises(SettingError, match=r"name must be|by is an int"):
            newsroom.editor.edit(newsroom.index, EditRequest(kind="split", ids=(one,)), by=by)
    assert not newsroom.violations()


def test_read_only_and_plain_indices_refuse_edits(newsroom: Newsroom, es: Elasticsearch) -> None:
    one, other, _ = three_stories(newsroom)
    es.indices.add_block(index=newsroom.index, block="write")
    with pytest.raises(IndexNotReady, match="read-only"):
        newsroom.edit("merge", other, to=one)
    assert not newsroom.editor.history(newsroom.index).edits
    with new_names(es) as name:
        plain = name("plain")
        newsroom.dedup.setup(plain)
        with pytest.raises(IndexNotReady, match="--editorial"):
            newsroom.editor.history(plain)
        with pytest.raises(SettingError, match="routed by root"):
            newsroom.dedup.setup(name("routed"), route_by_root=True, editorial=True)


def test_setup_enables_editing_for_all_indices_of_an_alias(es: Elasticsearch) -> None:
    with new_names(es) as name:
        days, alias, forest = [name("one"), name("other")], name("days"), name("days-forest")
        with Dedup(es, forest=forest) as dedup:
            for at, day in enumerate(days):
                dedup.setup(day)
                some = list(articles(60))[at::2]
                actions = ({"_index": day, "_id": each["id"], "_source": each} for each in some)
                helpers.bulk(es, dedup.enrich(actions, backfill=True), refresh=True)
            # Neither index is the write index of the alias.
            es.indices.put_alias(index=days, name=alias)
            dedup.setup(alias, editorial=True)
            newsroom = Newsroom(es, alias, forest, dedup, Editor(es, forest=forest))
            roots = {key: each["dedup"]["root"] for key, each in newsroom.documents().items()}
            assert len(roots) == 60
            assert newsroom.stories() == roots
            assert not newsroom.violations()


def test_damaged_stories_are_repaired_and_survive_a_rebuild(newsroom: Newsroom) -> None:
    one, other, _ = three_stories(newsroom)
    newsroom.edit("merge", other, to=one)
    expected = newsroom.stories()
    newsroom.es.update(index=newsroom.index, id=other, doc={"dedup": {"story": "nonsense"}}, refresh=True)
    assert newsroom.violations() == {ViolationKind.OTHER_STORY}
    newsroom.dedup.close()
    maintenance = Maintenance(newsroom.es, forest=newsroom.forest)
    assert maintenance.repair([newsroom.index]) == {ViolationKind.OTHER_STORY: 1}
    assert newsroom.stories() == expected

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForestIndex, "copy_to", interrupted)
        with pytest.raises(KeyboardInterrupt):
            maintenance.rebuild([newsroom.index])
    # The forest was deleted. The next rebuild has its copy, and the copy's edits.
    maintenance.rebuild([newsroom.index])
    assert newsroom.stories() == expected
    assert newsroom.editor.history(newsroom.index).edits
    assert not newsroom.violations()


def test_concurrent_edits_are_all_applied(newsroom: Newsroom, elasticsearch_url: str) -> None:
    three_stories(newsroom)
    one, *others = sorted({story: name for name, story in newsroom.stories().items()}.values())

    async def both() -> None:
        async with AsyncElasticsearch(elasticsearch_url) as client:
            editor = AsyncEditor(client, forest=newsroom.forest)
            requests = (EditRequest(kind="merge", ids=(each,), to=one) for each in others[:6])
            await asyncio.gather(*(editor.edit(newsroom.index, each, by=BY) for each in requests))
            assert len((await editor.history(newsroom.index)).edits) == 6

    asyncio.run(both())
    stories = newsroom.stories()
    assert len({stories[each] for each in (one, *others[:6])}) == 1
    assert not newsroom.violations()
