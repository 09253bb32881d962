"""`Editor` and `AsyncEditor`: merge, split and name stories, and move articles, in indices for editors."""

import secrets
import unicodedata
from typing import TYPE_CHECKING, Annotated

import pydantic
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.arguments import checked
from esdedup.elastic.execute import execute, execute_async
from esdedup.elastic.forest.meta import read_meta
from esdedup.elastic.meta import forest_of, other_forest, saved_forest
from esdedup.elastic.requests import ReadClock, Requests, count
from esdedup.elastic.stories import (
    NO_EDITS,
    Edits,
    edit_document,
    read_edits,
    refuse_unwritable,
    settle,
    write_document,
)
from esdedup.errors import EditRefused, ForestMissing, IndexNotReady, SettingError
from esdedup.fields import EditorialFields, Fields, term_of
from esdedup.forest.stories import Edit, EditKind, new_story, text_key
from esdedup.messages import translatable
from esdedup.reading.articles import articles_of_texts, find_article
from esdedup.reading.clusters import ForestScope
from esdedup.reading.results import Article, Result
from esdedup.reading.scope import CheckedIndex

_LONGEST_NAME = 200
# The articles that a history names: of its last edits, those of a few of the stories or texts of each.
_EDITS_WITH_ARTICLES = 200
MOST_NAMED = 3
_WITH_IDS, _WITH_TARGET = ("merge", "split", "move"), ("merge", "move", "name")
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
_Id = Annotated[str, pydantic.Field(min_length=1, max_length=512)]


class ArticlePlace(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The index and id of an article, for an id that occurs in several indices."""

    index: Annotated[str, pydantic.Field(min_length=1)]
    id: _Id


class EditRequest(Result, frozen=True, extra="forbid"):
    """An editor's request. If several indices have an article's id, the article that arrived last is used."""

    kind: EditKind
    ids: tuple[_Id | ArticlePlace, ...] = pydantic.Field(default=(), max_length=1_000)
    """The articles. merge: their stories are merged into the story of `to`. split: they, and others with the
    same texts, become a new story. move: they, and others with the same texts, get the story of `to`."""
    to: _Id | ArticlePlace | None = None
    """merge or move: an article of the target story. name: an article of the story to name."""
    undoes: int | None = None
    """undo: the number of the edit to undo, which may itself be an undo. Later edits stay in effect."""
    name: str = pydantic.Field(default="", max_length=_LONGEST_NAME)
    """name: the story's name, in place of any previous one; empty removes it."""
    note: str = pydantic.Field(default="", max_length=1_000)
    """name: a note about the story."""
    why: str = pydantic.Field(default="", max_length=1_000)
    """The reason, which is shown in the history of edits."""
    request_id: _Id = pydantic.Field(default_factory=secrets.token_hex)
    """An id, unique for each request. If a request is repeated with the same id because its response was
    lost, only one edit is made."""

    if not TYPE_CHECKING:  # keeps the fields' types for type checkers

        def __init__(self, **values: object) -> None:
            try:
                super().__init__(**values)
            except pydantic.ValidationError as error:
                flaw = error.errors()[0]
                parts = [*map(str, flaw["loc"][:1]), flaw["msg"].removeprefix("Value error, ")]
                raise SettingError(": ".join(parts)) from error

    @pydantic.field_validator("name", "note")
    @classmethod
    def _line(cls, given: str) -> str:
        text = given.strip()
        kinds = {unicodedata.category(each) for each in text if each not in _BLANK_LETTERS}
        if kinds & {"Cc", "Zl", "Zp"} or (text and kinds <= {"Cf", "Mn", "Zs"}):
            raise ValueError("must be one line of visible text, without control characters")
        return text

    @pydantic.model_validator(mode="after")
    def _check(self) -> "EditRequest":
        given = (bool(self.ids), self.to is not None, self.undoes is not None)
        wanted = (self.kind in _WITH_IDS, self.kind in _WITH_TARGET, self.kind == "undo")
        if given != wanted or (self.kind != "name" and (self.name or self.note)):
            names = ("ids", "to", "undoes")
            needed = " and ".join(name for name, each in zip(names, wanted, strict=True) if each)
            also = ", and perhaps name and note" if self.kind == "name" else ""
            raise ValueError(f"kind {self.kind!r} takes {needed}{also}, and no other fields")
        return self


class EditResult(Result, frozen=True):
    """An edit that was made."""

    edit: Edit
    articles: int
    """The number of articles that got another story."""
    same_text: int = 0
    """split or move: how many of them the request did not name, because they have the same text as others."""


class EditHistory(Result, frozen=True):
    """All edits of a forest, the oldest first."""

    edits: tuple[Edit, ...]
    undone: tuple[int, ...]
    """The numbers of the edits that were undone."""
    names: dict[str, Edit] = pydantic.Field(default_factory=dict)
    """The edit that gave each named story its name and note, by the story's id, the root of its articles."""
    articles: dict[str, Article] = pydantic.Field(default_factory=dict)
    """An article of each story (by its id) and of each text (by its fingerprint) that the last 200 edits
    refer to, at most three of each edit; a story or text whose articles were deleted has none."""


def make_edit(scope: ForestScope, index: str, request: EditRequest, *, by: str) -> Requests[EditResult]:
    """Store an edit in the forest, and update the stories of articles; see `Editor.edit`."""
    if not by.strip() or len(by) > _LONGEST_NAME or by.encode(errors="ignore").decode() != by:
        raise SettingError(f"the editor's name must be 1 to {_LONGEST_NAME} characters in UTF-8: {by!r:.50}")
    forest, ready = yield from _ready(scope, index)
    yield from refuse_unwritable(tuple(ready.mappings))
    edits, changed = yield from settle(forest, [*ready.mappings], ready.fields)
    while (edit := _made(edits, request, by=by)) is None:
        wanted = yield from _edit_of(ready, edits, request, by=by)
        yield from write_document(forest, "create", edit_document(wanted))
        edits = yield from read_edits(forest, edits)
    _, more = yield from settle(forest, [*ready.mappings], ready.fields, edits)
    moved = changed + more
    return EditResult(
        edit=edit, articles=moved, same_text=max(0, moved - len({*request.ids})) if edit.texts else 0
    )


def history(scope: ForestScope, index: str) -> Requests[EditHistory]:
    """Return all edits of the forest; the index must have been set up for editors."""
    forest, ready = yield from _ready(scope, index)
    edits = yield from read_edits(forest)
    return EditHistory(
        edits=edits.edits,
        undone=tuple(sorted(edits.stories.undone)),
        names=names_of(edits),
        articles=(yield from _articles_of(edits, ready)),
    )


def names(scope: ForestScope, index: str, known: dict[str, Edits]) -> Requests[dict[str, Edit]]:
    """Return `EditHistory.names`, reading only edits after those in `known`, by forest, and add these."""
    forest, _ = yield from _ready(scope, index)
    known[forest] = yield from read_edits(forest, known.get(forest, NO_EDITS))
    return names_of(known[forest])


def names_of(edits: Edits) -> dict[str, Edit]:
    """Return, by story, the edit that gave a name and a note to it, or to a story merged into it."""
    end_of, undone, found = edits.stories.end_of, edits.stories.undone, dict[str, Edit]()
    naming = [each for each in edits.edits if each.kind == "name" and each.number not in undone]
    # The last edit counts, but a name of the story itself before names of stories merged into it.
    for each in sorted(naming, key=lambda edit: end_of(edit.into or "") == edit.into):
        found[end_of(each.into or "")] = each
    return {story: each for story, each in found.items() if each.name or each.note}


def _articles_of(edits: Edits, ready: CheckedIndex) -> Requests[dict[str, Article]]:
    """Return an article for the stories and texts of the last edits; see `EditHistory.articles`."""
    wanted = {
        each
        for edit in edits.edits[-_EDITS_WITH_ARTICLES:]
        for each in (edit.into, *edit.stories[:MOST_NAMED], *edit.texts[:MOST_NAMED])
        if each
    }
    # A story that was split off is known by its first text.
    split_off = {edit.into: edit.texts[0] for edit in edits.edits if edit.kind == "split"}
    keys = {each: split_off.get(each, each) for each in wanted}
    found = yield from articles_of_texts(ready, {*keys.values()})
    return {each: found[key] for each, key in keys.items() if key in found}


def _ready(scope: ForestScope, index: str) -> Requests[tuple[str, CheckedIndex]]:
    """Return the forest of an index, and the index; raise unless both can be edited."""
    ready = yield from scope.check(index, is_fresh=True)
    if not isinstance(ready.fields, EditorialFields):
        raise IndexNotReady(
            f"the index {index!r} has no stories that can be edited: set it up with --editorial, or "
            "`Dedup.setup(editorial=True)`",
            index=index,
        )
    forest = forest_of(ready.mappings, given=scope.given_forest)
    for name, each in ready.mappings.items():
        # Refuse the target forest of a migration, which has no readers yet.
        if (kept := saved_forest(each)) != forest:
            why = other_forest(name, kept, forest) if kept else f"the index {name!r} belongs to no forest"
            how = "name the index's forest, or set one (`esdedup setup --forest`, `Dedup.setup(forest=…)`)"
            raise IndexNotReady(f"{why}: {how}", index=name)
    if (yield from read_meta(forest)) is None:
        raise ForestMissing.of(forest)
    return forest, ready


def _made(edits: Edits, request: EditRequest, *, by: str) -> Edit | None:
    """Return the edit made by this request, perhaps when it was first sent; None if no edit has been made."""
    made = next((each for each in edits.edits[::-1] if each.request_id == request.request_id), None)
    wanted = {"by": by, **request.model_dump(include={"kind", "undoes", "why", "name", "note"})}
    if made and made.model_dump(include={*wanted}) != wanted:
        raise SettingError(f"edit {made.number} has this request_id but differs: use a new id for each edit")
    return made


def _edit_of(ready: CheckedIndex, edits: Edits, request: EditRequest, *, by: str) -> Requests[Edit]:
    number, at_ms = len(edits.edits) + 1, (yield ReadClock())
    base = request.model_dump(exclude={"ids", "to", "undoes"}) | {"number": number, "by": by, "at_ms": at_ms}
    if request.undoes is not None:
        if request.undoes in edits.stories.undone:
            raise EditRefused(translatable("the edit has been undone already"))
        if not 0 < request.undoes < number:
            raise SettingError(f"there is no edit {request.undoes} that can be undone")
        return Edit(**base, undoes=request.undoes)
    into = None if request.to is None else (yield from _text_story(ready, edits, request.to))[1]
    if request.kind == "name" and into is not None:
        before = names_of(edits).get(into)
        if (request.name, request.note) == ((before.name, before.note) if before else ("", "")):
            raise EditRefused(translatable("the story has this name and this note already"))
        return Edit(**base, into=into)
    # Pairs of texts and stories: a text that arrived again after its expiry may have several stories.
    named: dict[tuple[str, str], None] = {}
    for each in dict.fromkeys(request.ids):
        named[(yield from _text_story(ready, edits, each))] = None
    if not (others := [(text, story) for text, story in named if story != into]):
        raise EditRefused(translatable("the articles already belong to that story"))
    texts, stories = (tuple(dict.fromkeys(each)) for each in zip(*others, strict=True))
    if request.kind == "merge":
        return Edit(**base, into=into, stories=stories)
    if request.kind == "move":
        return Edit(**base, into=into, texts=texts)
    if len(stories) > 1:
        raise EditRefused("the articles to split off belong to several stories: split one story at a time")
    if not (yield from _leaves_some(ready, *stories, texts=texts)):
        raise EditRefused(
            translatable("nothing would be left of the story: all of its articles are to be split off")
        )
    return Edit(**base, into=new_story(number, at_ms=at_ms), texts=texts)


def _text_story(ready: CheckedIndex, edits: Edits, named: str | ArticlePlace) -> Requests[tuple[str, str]]:
    article_id, in_index = (named, None) if isinstance(named, str) else (named.id, named.index)
    hit = yield from find_article(ready, article_id, in_index=in_index)
    root, fingerprint = (
        term_of(hit["_source"], name) for name in (ready.fields.root, ready.fields.fingerprint)
    )
    return text_key(root or "", fingerprint), edits.stories.of(root or "", fingerprint)


def _leaves_some(ready: CheckedIndex, story: str, *, texts: tuple[str, ...]) -> Requests[bool]:
    of_texts = [{"terms": {name: list(texts)}} for name in (ready.fields.fingerprint, ready.fields.root)]
    # Match by root only articles without a fingerprint, since a leaf has the root of another text.
    has_none = {"bool": {"must_not": {"exists": {"field": ready.fields.fingerprint}}}}
    split = [of_texts[0], {"bool": {"filter": [of_texts[1], has_none]}}]
    query = {"bool": {"filter": {"term": {ready.fields.cluster: story}}, "must_not": split}}
    return (yield from count(ready.index, query)) > 0


class Editor:
    """Merges and splits stories. Several editors may work at the same time, even while articles are added.

    An article that is being indexed during an edit may keep its previous story; a repair corrects that.
    """

    @checked
    def __init__(
        self, client: Elasticsearch, *, forest: str | None = None, fields: Fields | None = None
    ) -> None:
        """Use a forest, by default the index's own; nothing is sent yet. `fields` as for `Reader`."""
        self._client = client
        self._scope = ForestScope(fields=fields, given_forest=forest)

    @checked
    def edit(self, index: str, request: EditRequest, *, by: str) -> EditResult:
        """Make an edit, and store the editor's name with it.

        If this is interrupted, the next edit or a repair completes it.

        Args:
            index: An index, alias or pattern for all indices of the forest that were set up for editors.
            request: The edit to make.
            by: The editor's name, of 1 to 200 characters.

        Raises:
            IndexNotReady: The index was not set up for editors, is read-only, or belongs to another forest.
            ForestError: The forest does not exist.
            ArticleNotFound: An article is missing.
            EditRefused: The edit would change nothing, or would leave no article in a story that is split.
        """
        return execute(self._client, make_edit(self._scope, index, request, by=by))

    def history(self, index: str) -> EditHistory:
        """Return all edits of the forest of an index."""
        return execute(self._client, history(self._scope, index))


class AsyncEditor:
    """An `Editor` with an asynchronous client."""

    @checked
    def __init__(
        self, client: AsyncElasticsearch, *, forest: str | None = None, fields: Fields | None = None
    ) -> None:
        """Use a forest, by default the index's own; nothing is sent yet. `fields` as for `Reader`."""
        self._client = client
        self._scope = ForestScope(fields=fields, given_forest=forest)
        self._known: dict[str, Edits] = {}

    @checked
    async def edit(self, index: str, request: EditRequest, *, by: str) -> EditResult:
        """Make an edit; see `Editor.edit`."""
        return await execute_async(self._client, make_edit(self._scope, index, request, by=by))

    async def history(self, index: str) -> EditHistory:
        """Return all edits of the forest of an index."""
        return await execute_async(self._client, history(self._scope, index))

    async def names(self, index: str) -> dict[str, Edit]:
        """Return the names of stories as `EditHistory.names` does; fast if there are no new edits."""
        return await execute_async(self._client, names(self._scope, index, self._known))
