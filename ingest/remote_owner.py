"""`RemoteOwner`: articles are assigned by a sidecar, through its `/v1/enrich`."""

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from elasticsearch.serializer import JsonSerializer
from esdedup.ingest.actions import Addition, ArticleAction
from esdedup.ingest.sidecar_connection import SidecarConnection

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import ArticleRejected, SidecarError
from esdedup.fields import Fields, value_of
from esdedup.fingerprint.profile import Profile
from esdedup.forest import NO_TIME, Assignment, Kind
from esdedup.sites import site_fields

_PATH = "/v1/enrich"
_TYPE = "application/x-ndjson"
_PARTS = {"dedup": "source", "doc": "doc", "upsert": "upsert"}
_MISSING = object()


@dataclasses.dataclass(frozen=True)
class Answered:
    """An article with what the sidecar says of it."""

    article: ArticleAction
    assignment: Assignment
    _addition: Addition
    _rejected: str | None = None

    def addition(self, index: WritableIndex) -> Addition:  # noqa: ARG002
        """Return what is added to its action.

        Args:
            index: Which the sidecar knows.

        Raises:
            ArticleRejected: The sidecar has rejected it.
        """
        if self._rejected is not None:
            raise ArticleRejected(self.article.name, self._rejected)
        return self._addition


class RemoteOwner:
    """Assigns the articles of several threads, which wait for the sidecar at the same time.

    A request that was not answered is repeated, perhaps to another sidecar. What was decided is found again.
    """

    def __init__(
        self, connection: SidecarConnection, *, forest: str, profile: Profile, fields: Fields
    ) -> None:
        """Send nothing yet.

        Args:
            connection: To the sidecars; closed with this object.
            forest: The name of the sidecar's forest: another one refuses the articles.
            profile: Of that forest, likewise.
            fields: The names of the fields of articles whose actions name no index.
        """
        self._connection = connection
        names = {
            f"{role}_field": name for role, name in dataclasses.asdict(fields).items() if name is not None
        }
        self._query = {"forest": forest, "profile": profile.label, **names}
        self._serializer = JsonSerializer()

    def assign(self, articles: Sequence[ArticleAction]) -> list[Answered]:
        """Return the articles with what was decided for them.

        Raises:
            SidecarUnavailable: No sidecar takes them.
            SidecarError: A sidecar refuses them, or answers something else.
        """
        body = b"".join(self._lines(each) for each in articles)
        # Of one call all or none are.
        backfill = {"backfill": "true"} if articles and articles[0].is_backfill else {}
        path = f"{_PATH}?{urlencode(self._query | backfill)}"
        answer = self._connection.post(path, body, content_type=_TYPE)
        try:
            items = json.loads(answer)["items"]
            return [self._answered(article, item) for article, item in zip(articles, items, strict=True)]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SidecarError(
                f"the sidecar answers with something else than roots ({error!r:.300}): is it of this "
                "version?",
                address=self._connection.address,
            ) from error

    def close(self) -> None:
        """Close the connections; the next article opens others."""
        self._connection.close()

    def _lines(self, article: ArticleAction) -> bytes:
        """Return an article as lines of a bulk request, with no more than the forest looks at."""
        action = article.action
        source, fields = action["_source"], article.fields
        named = {key: str(action[key]) for key in ("_index", "_id") if action.get(key) is not None}
        if article.is_update:
            parts = {
                name: part for name in ("doc", "upsert") if isinstance(part := source.get(name), Mapping)
            }
            document = {name: _looked_at(part, fields) for name, part in parts.items()}
            if "doc_as_upsert" in source:
                document["doc_as_upsert"] = source["doc_as_upsert"]
        else:
            document = _looked_at(source, fields)
        header = {action.get("_op_type", "index"): named}
        return b"%b\n%b\n" % (self._serializer.dumps(header), self._serializer.dumps(document))

    def _answered(self, article: ArticleAction, item: Mapping[str, Any]) -> Answered:
        if (problem := item.get("error")) is not None:
            if problem["status"] != 400:
                raise SidecarError(
                    f"{article.name}: the sidecar refuses it: {problem['detail']}",
                    address=self._connection.address,
                    status=problem["status"],
                )
            nothing = Assignment(Kind.WITHOUT_FINGERPRINT, None, None, 0, NO_TIME, b"")
            # There, an article without an id is called by another number.
            detail = str(problem["detail"])
            own = f"{article.name}: "
            reason = detail.partition(": ")[2] if article.id is None else detail.removeprefix(own)
            return Answered(article, nothing, Addition({}), reason or detail)
        addition = Addition(
            {part: item[key] for key, part in _PARTS.items() if key in item}, item.get("routing")
        )
        dedup = next((each for each in addition.parts.values() if each is not None), None)
        if dedup is None:
            raise ValueError("an article without a root")
        kind = Kind(item["outcome"])
        assignment = Assignment(
            kind=kind,
            node=dedup.get("fingerprint"),
            root=None if kind is Kind.WITHOUT_FINGERPRINT else dedup["root"],
            seq=dedup["seq"],
            time_ms=dedup.get("seen") or NO_TIME,
            signature=base64.b64decode(dedup.get("signature") or ""),
        )
        return Answered(dataclasses.replace(article, is_cut=item.get("is_cut", False)), assignment, addition)


def _looked_at(part: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    names = (fields.text, fields.time, *site_fields(fields))
    found = {name: value_of(part, name, _MISSING) for name in names}
    return {name: value for name, value in found.items() if value is not _MISSING}
