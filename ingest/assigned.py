"""`Assigned`: an article with what was decided for it, to be written into the article."""

import base64
import dataclasses
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from esdedup.ingest.actions import Addition, ArticleAction, addition

from esdedup.elastic.article_indices import WritableIndex
from esdedup.elastic.forest.stored import page_name
from esdedup.errors import TextFailed
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest.model import NO_PAGE, Assignment
from esdedup.neighbours.relation import relation_of


class Assigned(NamedTuple):
    """An article with what was decided for it."""

    article: ArticleAction
    assignment: Assignment
    # The dedup fields that come from its page and its node.
    fingerprint: Mapping[str, Any]
    # Of its text, as far as it is fingerprinted.
    alphanumerics: int
    # The label of the profile.
    profile: str
    # Where the core failed at its text, which counted as empty; "" if it did not.
    fault: str = ""

    def addition(self, index: WritableIndex) -> Addition:
        """Return what is added to its action.

        Args:
            index: Where it is written to.

        Raises:
            TextFailed: The core failed at its text.
        """
        if self.fault:
            raise TextFailed(self.article.name, self.fault)
        return addition(
            self.article,
            self.assignment,
            self.fingerprint,
            alphanumerics=self.alphanumerics,
            index=index.name,
            profile=self.profile,
            nonce="" if self.assignment.root else secrets.token_hex(16),
            route_by_root=index.is_routed_by_root,
        )


def assigned_articles(
    articles: Sequence[ArticleAction],
    fingerprints: Fingerprints,
    assignments: Sequence[Assignment],
    *,
    profile: Profile,
) -> list[Assigned]:
    """Return articles with what was decided for them.

    Args:
        articles: In their order.
        fingerprints: Of their texts.
        assignments: Theirs.
        profile: Decides the fingerprints.
    """
    label = profile.label
    return [
        Assigned(
            dataclasses.replace(article, is_cut=True) if is_cut else article,
            assignment,
            own,
            alphanumerics,
            label,
            fault,
        )
        for article, assignment, own, alphanumerics, is_cut, fault in zip(
            articles,
            assignments,
            _fingerprint_fields(fingerprints.pages.tolist(), assignments, profile),
            fingerprints.alphanumerics.tolist(),
            fingerprints.are_cut.tolist(),
            fingerprints.faults.tolist(),
            strict=True,
        )
    ]


def _fingerprint_fields(
    pages: Sequence[int], assignments: Sequence[Assignment], profile: Profile
) -> Iterator[dict[str, Any]]:
    """Yield the dedup fields that come from each article's page and node, if it has them.

    The fingerprint of a page that is remembered may be another one by now, or may be missing.
    """
    relation = relation_of(profile)
    signatures = b"".join([each.signature for each in assignments])
    bands = relation.terms(signatures, ARTICLES, are_indexed=False)
    for page, assignment, own in zip(pages, assignments, bands, strict=True):
        of_page = {} if page == NO_PAGE else {"page": page_name(page)}
        if assignment.node is None:
            yield of_page
            continue
        yield {
            "fingerprint": assignment.node,
            "signature": base64.b64encode(assignment.signature).decode(),
            "bands": own,
            **of_page,
        }
