"""How sidecars write to each other: articles to be decided, and what was decided. Pure.

Texts go one way and assignments the other, both as JSON. What an article becomes from its assignment is for
the sidecar that took it from its caller.
"""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from esdedup.forest import Assignment
from esdedup.forest.model import Kind
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned

_LONG = 2**63


def _encodable(text: str) -> str:
    # One with half a character would fail its whole batch.
    text.encode()
    return text


_Text = Annotated[str, AfterValidator(_encodable)]


class GivenArticle(BaseModel):
    """An article, as far as the forest looks at it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    # For messages.
    name: _Text
    text: _Text
    id: _Text | None = None
    site: _Text | None = None
    dated_ms: Annotated[int | None, Field(ge=-_LONG, lt=_LONG)] = None

    @classmethod
    def of(cls, article: ArticleAction) -> dict[str, Any]:
        """Return what is sent of an article."""
        return {
            "name": article.name,
            "text": article.text,
            "id": article.id,
            "site": article.site,
            "dated_ms": article.dated_ms,
        }

    def article(self) -> ArticleAction:
        """Return it as the forest's owner takes it."""
        action = {} if self.id is None else {"_id": self.id}
        return ArticleAction(
            action=action, name=self.name, text=self.text, dated_ms=self.dated_ms, site=self.site
        )


class ToDecide(BaseModel):
    """Articles of one forest, in the order in which they arrive."""

    model_config = ConfigDict(extra="forbid")

    forest: str
    articles: list[GivenArticle]


class ToRelease(BaseModel):
    """A forest that another sidecar asks for."""

    model_config = ConfigDict(extra="forbid")

    forest: str
    # How many that sidecar owns.
    owned: Annotated[int, Field(ge=0)]


def written_articles(forest: str, articles: Sequence[ArticleAction]) -> bytes:
    """Return a `ToDecide` as JSON."""
    return orjson.dumps({"forest": forest, "articles": [GivenArticle.of(each) for each in articles]})


def written_decisions(decided: Sequence[Assigned]) -> bytes:
    """Return what was decided for each article, as JSON."""
    return orjson.dumps({"decided": [_written(each) for each in decided]})


def read_decisions(body: bytes, articles: Sequence[ArticleAction]) -> list[Assigned]:
    """Return what was decided for these articles.

    Raises:
        ValueError: It is something else.
    """
    try:
        decided = orjson.loads(body)["decided"]
        return [_read(each, article) for each, article in zip(decided, articles, strict=True)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"not what was decided: {error!r}") from error


def _written(decided: Assigned) -> dict[str, Any]:
    assignment = decided.assignment
    return {
        "kind": assignment.kind.value,
        "node": assignment.node,
        "root": assignment.root,
        "seq": assignment.seq,
        "time_ms": assignment.time_ms,
        "signature": base64.b64encode(assignment.signature).decode(),
        "fingerprint": decided.fingerprint,
        "letters": decided.letters,
        "is_cut": decided.article.is_cut,
        "profile": decided.profile,
        "fault": decided.fault,
    }


def _read(given: Mapping[str, Any], article: ArticleAction) -> Assigned:
    return Assigned(
        article=dataclasses.replace(article, is_cut=given["is_cut"]),
        assignment=Assignment(
            kind=Kind(given["kind"]),
            node=given["node"],
            root=given["root"],
            seq=given["seq"],
            time_ms=given["time_ms"],
            signature=base64.b64decode(given["signature"]),
        ),
        fingerprint=given["fingerprint"],
        letters=given["letters"],
        profile=given["profile"],
        is_backfill=False,
        fault=given["fault"],
    )
