"""Reads articles from bulk actions, and adds the dedup object with the forest's decision to the actions."""

import dataclasses
import hashlib
import json
import numbers
import re
import secrets
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from esdedup.ingest.dates import judged, published_ms
from esdedup.ingest.json_values import refuse_unstorable

from esdedup.elastic.limits import MAX_ID_BYTES
from esdedup.elastic.meta import WritableIndex
from esdedup.elastic.stories import story_values
from esdedup.errors import ArticleRejected
from esdedup.fields import (
    EditorialFields,
    Fields,
    is_in_objects,
    partition_of,
    refuse_surrogates,
    text_of,
    value_of,
)
from esdedup.forest.model import NO_TIME, Assignment, Kind
from esdedup.forest.stories import NO_STORIES, Stories
from esdedup.sites import Provenance
from esdedup.times import time_reader

BulkAction = dict[str, Any] | str | bytes
"""An action that ``elasticsearch.helpers.bulk`` accepts: a dict, or a document as JSON."""

KNOWN_MS = "_dated_ms"
"""The key in an action for the article's time as Elasticsearch parsed it; NO_TIME for an undated article."""
# The keys of an action that are not fields of the document: Elasticsearch's helpers or this module read them.
_META = {"_op_type", KNOWN_MS} | {
    *("_id", "_index", "_if_seq_no", "_if_primary_term", "_parent", "_percolate", "_retry_on_conflict"),
    *("_routing", "_timestamp", "_type", "_version", "_version_type", "if_seq_no", "if_primary_term"),
    *("parent", "pipeline", "retry_on_conflict", "routing", "version", "version_type"),
}
OPTIONAL = ("fingerprint", "signature", "bands", "page", "part_of", "has_part", "seen", "published")
"""Dedup fields that some articles lack. Updates merge objects, so they must clear these fields."""

_MISSING = object()
_TWO_TEXTS = "its doc and its upsert have different texts: use the same text, or index the article whole"


class Addition(NamedTuple):
    """The dedup object to be added to an action, where it replaces all existing dedup objects."""

    # The object for each part of the action: "source" for a whole document; "doc" and "upsert" for an
    # update, possibly even with `doc_as_upsert`. None removes existing objects and adds nothing.
    parts: Mapping[str, Mapping[str, Any] | None]
    # The routing to set; None keeps the action's routing.
    routing: str | None = None


UNDECIDED = Assignment(Kind.WITHOUT_FINGERPRINT, None, None, 0, NO_TIME, b"")
"""The assignment of an article that has not been assigned, or was rejected by a sidecar."""


# Not frozen: a batch has thousands of actions, and creating a frozen dataclass takes three times as long.
@dataclasses.dataclass(kw_only=True, slots=True)
class ArticleAction:
    """A bulk action that contains an article's text, and the forest's decision for that article."""

    # The action as given, with the document under `_source`.
    action: dict[str, Any]
    # The article's id, or its position among the actions; for messages.
    name: str
    text: str
    # The article's date in milliseconds since 1970; in an update, the first plausible date in its parts. None
    # if there is no plausible date.
    dated_ms: int | None
    # Why the date is implausible; "" if there is no date.
    wrong_date: str = ""
    # The article's site, path and origin (`Provenance`); in an update, taken from both parts.
    site: str | None = None
    path: str | None = None
    origin: int = 0
    # The index's field names, esdedup's objects in it, its name, and whether it is routed by root.
    fields: Fields = dataclasses.field(default_factory=Fields)
    objects: tuple[str, ...] = ()
    index_name: str | None = None
    is_routed_by_root: bool = False
    # The parts of an update that set a dedup object, which only a forest may write.
    forged: Mapping[str, None] = dataclasses.field(default_factory=dict)
    # Whether the forest's time is taken from the articles, which may be old, and not from the clock.
    is_backfill: bool = False

    # The forest's decision. This field and the following ones are set when the article is assigned.
    assignment: Assignment = dataclasses.field(default=UNDECIDED, init=False)
    # `parts` and `routing` of the `Addition`; or, in `rejection`, why the article cannot be indexed.
    parts: Mapping[str, Mapping[str, Any] | None] | None = dataclasses.field(default=None, init=False)
    routing: str | None = dataclasses.field(default=None, init=False)
    rejection: ArticleRejected | None = dataclasses.field(default=None, init=False)
    # Whether the text is longer than the profile's `max_text_length`, so only its beginning was compared.
    is_cut: bool = False
    # How many letters and digits of the text were left out of the fingerprint as boilerplate.
    boilerplate_letters: int = 0

    @property
    def size(self) -> int:
        """The length of the text in characters."""
        return len(self.text)

    @property
    def id(self) -> str | None:
        """The article's id; None if Elasticsearch is to generate one."""
        given = self.action.get("_id")
        return None if given is None else str(given)

    @property
    def is_update(self) -> bool:
        """Whether the action is an update, which changes an existing article in place."""
        return self.action.get("_op_type") == "update"

    @property
    def added(self) -> Addition:
        """The addition to the action; the article must have been assigned and not rejected."""
        assert self.parts is not None
        return Addition(self.parts, self.routing)

    def enriched(self) -> dict[str, Any] | ArticleRejected:
        """Return the action with its addition, or the reason why the article cannot be indexed."""
        return self.rejection or with_addition(self.action, self.added, self.objects)


def index_of(action: BulkAction) -> str | None:
    """Return the index that an action writes to; None for a deletion, or if the action names no index."""
    if not isinstance(action, dict) or action.get("_op_type") == "delete":
        return None
    index = action.get("_index")
    return None if index is None else str(index)


def read_action(
    action: BulkAction, index: WritableIndex, *, position: int, now_ms: int, backfill: bool = False
) -> ArticleAction | dict[str, Any]:
    """Return the article in a bulk action on an index; the action itself is not changed.

    `position` is the action's number in the run, from 1; messages use it for an article without an id.
    `now_ms` is the current time.

    If there is nothing to assign, returns an action instead: a deletion unchanged; or an update that sets no
    text, with its dedup objects removed and, if the update contains a date, the time of publication added.

    Raises `ArticleRejected` if this is not a bulk action; if the article or an upsert has no text; if
    Elasticsearch could not store the document; if the doc and the upsert of an update have different texts;
    or if an update sets a text in an index that is routed by root.
    """
    nameless = f"action {position}"
    if isinstance(action, str | bytes):
        try:
            action = {"_source": json.loads(action)}
        except (ValueError, RecursionError) as error:
            raise ArticleRejected(nameless, f"is not JSON: {error}") from error
    if not isinstance(action, dict):
        raise ArticleRejected(nameless, f"must be a bulk action, not {type(action).__name__}")
    name = name_of(action.get("_id"), nameless)
    operation = action.get("_op_type", "index")
    if operation == "delete":
        return action
    if not isinstance(operation, str):
        raise ArticleRejected(name, "its _op_type is not a string")
    if operation not in {"index", "create", "update"}:
        raise ArticleRejected(name, f"has the unknown operation {operation!r}")
    meta = {key: value for key, value in action.items() if key in _META}
    body = action.get("_source")
    if not isinstance(body, Mapping):
        body = {key: value for key, value in action.items() if key not in _META}
    refuse_unstorable(body, name=name)
    found = article_in({**meta, "_source": dict(body)}, index, name=name, now_ms=now_ms, backfill=backfill)
    if isinstance(found, Addition):
        return with_addition(action, found, index.objects)
    return action if found is None else found


def article_in(
    action: dict[str, Any], index: WritableIndex, *, name: str, now_ms: int, backfill: bool = False
) -> ArticleAction | Addition | None:
    """Return the article in a valid bulk action that has its document under ``_source``.

    For an update without a text, returns the update's `Addition`, or None if there is nothing to add. For
    the parameters and errors, see `read_action`.
    """
    fields, body = index.fields, action["_source"]
    articles: list[Any] = [body]
    forged: dict[str, None] = {}
    if action.get("_op_type") == "update":
        forged = forged_parts(body, index.objects)
        new = body.get("doc" if doc_is_upsert(body) else "upsert")
        if isinstance(new, Mapping) and not _has_text(new, fields):
            raise ArticleRejected(
                name,
                f"would create an article without a text if none exists: include {fields.text!r}, or "
                "leave upsert and doc_as_upsert out",
            )
        articles = [part for part in map(body.get, ("doc", "upsert")) if _has_text(part, fields)]
        if not articles:
            # Without a text, an update can only change the date.
            parts, doc = dict[str, Any](forged), body.get("doc")
            dated_ms = date_of(doc, fields)[0] if isinstance(doc, Mapping) else None
            believed_ms = published_ms(dated_ms, arrived_ms=now_ms, backfill=backfill)
            if dated_ms is not None and dated_ms == believed_ms:
                parts["doc"] = {"published": dated_ms}
            return Addition(parts) if parts else None
        if index.is_routed_by_root:
            # Without the root as routing, the update would miss the article, or create another with this id.
            raise ArticleRejected(
                name,
                f"updates a text in {action['_index']!r}, which is routed by root, so a new text may "
                "move the article to another shard. Delete it with its root as routing, then index it again",
            )
    article_id = action.get("_id") and f"{index.name}/{action['_id']}"
    article, *others = articles  # only an update may contain two articles
    text, known_ms = text_of(article, fields, name=name), action.get(KNOWN_MS)
    dated_ms, wrong_date = date_of(article, fields, known_ms)
    site, path, origin = Provenance.of(article, fields, article_id)
    for other in others:
        if text_of(other, fields, name=name) != text:
            raise ArticleRejected(name, _TWO_TEXTS)
        if dated_ms is None and (later := date_of(other, fields, known_ms))[0] is not None:
            dated_ms, wrong_date = later
        of_other = Provenance.of(other, fields, article_id)
        site, path, origin = site or of_other.site, path or of_other.path, max(origin, of_other.origin)
    return ArticleAction(
        action=action,
        name=name,
        text=text,
        dated_ms=dated_ms,
        wrong_date=wrong_date,
        site=site,
        path=path,
        origin=origin,
        fields=fields,
        objects=index.objects,
        index_name=index.name,
        is_routed_by_root=index.is_routed_by_root,
        forged=forged,
        is_backfill=backfill,
    )


def addition_to(
    article: ArticleAction,
    assignment: Assignment,
    fingerprint: Mapping[str, Any],
    *,
    alphanumerics: int,
    profile: str,
    stories: Stories = NO_STORIES,
) -> Addition:
    """Return the addition to an article.

    `fingerprint` contains the dedup fields of the article's content hash and node, `alphanumerics` is the
    length of the fingerprinted text, `profile` is the profile's label, and editors define `stories`.
    """
    source, fields = article.action["_source"], article.fields
    root = assignment.root
    if root is None:
        root = lone_root(article.index_name, article.action.get("_id"), nonce=secrets.token_hex(16))
    values: dict[str, Any] = {
        **fingerprint,
        "root": root,
        "profile": profile,
        "seq": assignment.seq,
        "length": alphanumerics,
        "partition": partition_of(root),
    }
    if isinstance(fields, EditorialFields):
        values |= story_values(stories.of(root, fingerprint.get("fingerprint")))
    links = (("part_of", assignment.part_of), ("has_part", assignment.has_part))
    values |= {name: linked for name, linked in links if linked is not None}
    if assignment.time_ms != NO_TIME:
        values["seen"] = assignment.time_ms

    def dated(dated_ms: int | None) -> dict[str, Any]:
        published = published_ms(dated_ms, arrived_ms=assignment.time_ms, backfill=article.is_backfill)
        return values if published is None else values | {"published": published}

    routing = root if article.is_routed_by_root else None
    if not article.is_update:
        return Addition({"source": dated(article.dated_ms)}, routing)
    parts = {
        part: dated(date_of(source[part], fields)[0])
        for part in ("doc", "upsert")
        if _has_text(source.get(part), fields)
    }
    if "doc" in parts:
        doc, is_upsert = source["doc"], doc_is_upsert(source)
        if is_upsert:
            parts.pop("upsert", None)
        parts["doc"] = dict.fromkeys(OPTIONAL) | parts["doc"]
        if value_of(doc, fields.time) is None:
            # An existing article keeps its date, and so its time of publication; a new article has no date.
            del parts["doc"]["published"]
            if is_upsert:
                parts["upsert"] = dated(None)
    return Addition({**article.forged, **parts}, routing)


def with_addition(action: Mapping[str, Any], added: Addition, objects: tuple[str, ...]) -> dict[str, Any]:
    """Return a copy of an action with its addition; `objects` comes from the `WritableIndex`."""
    changed = dict(action)
    if added.routing is not None:
        changed["routing"] = added.routing
        changed.pop("_routing", None)
    body = action.get("_source", action)
    if "source" in added.parts:
        return changed | {"_source": _with_object(body, objects, added.parts["source"])}
    is_written_out = writes_out_upsert(added, body)
    parts = {
        part: _with_object(body["doc" if is_written_out else part], objects, values)
        for part, values in added.parts.items()
    }
    if "_source" not in action:
        return changed | parts
    kept = {key: value for key, value in body.items() if key != "doc_as_upsert" or not is_written_out}
    return changed | {"_source": kept | parts}


def doc_is_upsert(update: Mapping[str, Any]) -> bool:
    """Return whether the doc of an update also serves as its upsert; `upsert` is then ignored."""
    return update.get("doc_as_upsert") in (True, "true")


def writes_out_upsert(added: Addition, update: Mapping[str, Any]) -> bool:
    """Return whether the doc is copied to `upsert`, because a new article needs a different dedup object."""
    return all(added.parts.get(part) for part in ("doc", "upsert")) and doc_is_upsert(update)


def lone_root(index: str | None, article_id: object, *, nonce: str) -> str:
    """Return the root of an article without a fingerprint, which forms its own cluster.

    The root is derived from the name of the index (not of an alias) and the id, so an article always gets the
    same root. Without an id it is derived from the nonce, since arrival numbers repeat in a recreated forest.
    """
    identity = ["nonce", nonce] if article_id is None else ["id", str(article_id)]
    digest = hashlib.blake2b(json.dumps([index, identity]).encode(), digest_size=16)
    return f"~{digest.hexdigest()}"


def name_of(article_id: object, nameless: str, *, field: str = "_id") -> str:
    """Return an article's id as a string, or `nameless` if it has none; reject invalid ids."""
    if article_id is None:
        return nameless
    is_id = isinstance(article_id, str | numbers.Integral | uuid.UUID) and not isinstance(article_id, bool)
    if not is_id or article_id == "":
        raise ArticleRejected(nameless, f"its {field} must be a non-empty string, a whole number or a UUID")
    # Python refuses to convert numbers of several thousand digits to strings.
    is_long = isinstance(article_id, int) and abs(article_id) >= 10**MAX_ID_BYTES
    name = nameless if is_long else str(article_id)
    refuse_surrogates(name, name=name)
    if is_long or len(name.encode()) > MAX_ID_BYTES:
        raise ArticleRejected(nameless, f"its {field} is longer than {MAX_ID_BYTES} bytes")
    return name


def date_of(document: Mapping[str, Any], fields: Fields, known_ms: Any = None) -> tuple[int | None, str]:
    """Return the date of an article and "", or None and why it is implausible; see `judged`."""
    value = value_of(document, fields.time)
    if known_ms is None:
        return judged(value, time_reader(fields.time_format)(value))
    # A client may have sent this value, so it must be checked.
    is_number = re.fullmatch(r"-?\d{1,15}", str(known_ms))
    return judged(value, int(known_ms) if is_number else None)


def _has_text(part: object, fields: Fields) -> bool:
    """Return whether a part of an update sets the text, possibly to null."""
    return isinstance(part, Mapping) and value_of(part, fields.text, _MISSING) is not _MISSING


def forged_parts(update: Mapping[str, Any], objects: tuple[str, ...]) -> dict[str, None]:
    """Return the parts of an update that set a dedup object, which only a forest may write.

    Elasticsearch merges an update into the article, so the caller's root would replace the forest's.
    """
    return {
        part: None
        for part in ("doc", "upsert")
        if isinstance(update.get(part), Mapping) and any(is_in_objects(key, objects) for key in update[part])
    }


def _with_object(
    document: Mapping[str, Any], objects: tuple[str, ...], values: Mapping[str, Any] | None
) -> dict[str, Any]:
    own = {key: value for key, value in document.items() if not is_in_objects(key, objects)}
    return own if values is None else own | {objects[0]: values}
