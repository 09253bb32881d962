"""Clusters of articles in the order of arrival, as `esdedup cluster` makes them without times."""

import functools
import itertools
from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

from esdedup.ingest.cluster import Clustering
from esdedup.ingest.files import FileArticle
from esdedup.ingest.learn import first_look

from benchmarks.articles import Articles
from benchmarks.score import Roots
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile
from esdedup.forest import store


def clustered(articles: Articles, profile: Profile) -> Roots:
    """Cluster articles in one look."""
    return _clustered(articles, profile, learn_first=False)


def in_two_looks(articles: Articles, profile: Profile) -> Roots:
    """Learn from all articles, then cluster them."""
    return _clustered(articles, profile, learn_first=True)


def _clustered(articles: Articles, profile: Profile, *, learn_first: bool) -> Roots:
    fields = Fields()
    clustering = Clustering(
        profile=profile, fields=fields, use_time=False, retention=timedelta(days=30), on_rejected=_fail
    )
    if learn_first:
        first_look(clustering, _as_in_a_file(articles), fields)
    return {article.id: article.root for article in clustering.cluster(_as_in_a_file(articles))}


def never_learning(articles: Articles, profile: Profile) -> Roots:
    """Cluster as if each page were the first one of its site, and of every other."""
    # No block of pages is ever full, so none is learned from.
    endless = functools.partial(Boilerplate, block_pages=len(articles) + 1)
    with mock.patch.object(store, "Boilerplate", endless):
        return clustered(articles, profile)


def parts(articles: Articles, size: int) -> Iterator[Articles]:
    """Cut articles into parts of this size, in their order."""
    items = iter(articles.items())
    while part := dict(itertools.islice(items, size)):
        yield part


def _as_in_a_file(articles: Articles) -> Iterator[FileArticle]:
    for article_id, article in articles.items():
        yield FileArticle(
            place="benchmark",
            id=article_id,
            article={name: value for name, value in article.items() if name != "id"},
            size_bytes=len(article["text"]),
        )


def _fail(rejected: ArticleRejected) -> None:
    raise rejected
