"""Clusters of articles in the order of arrival, as `esdedup cluster` makes them without times."""

import functools
import itertools
from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

from esdedup.ingest.cluster import cluster
from esdedup.ingest.files import FileArticle

from benchmarks.articles import Articles
from benchmarks.score import Roots
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.lesson import Lesson
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import memory

_BATCH = 1_000


def clustered(articles: Articles, profile: Profile) -> Roots:
    """Cluster articles in one look."""
    found = cluster(
        _as_in_a_file(articles),
        profile=profile,
        fields=Fields(),
        use_time=False,
        retention=timedelta(days=30),
        on_rejected=_fail,
    )
    return {article.id: article.root for article in found}


def in_two_looks(articles: Articles, profile: Profile) -> Roots:
    """Learn from all articles, then cluster them."""
    boilerplate, fingerprinter = Boilerplate(), Fingerprinter(profile)
    texts = [article["text"] for article in articles.values()]
    for at in range(0, len(texts), _BATCH):
        boilerplate.begin()
        fingerprinter.fingerprint(texts[at : at + _BATCH], omit=Lesson(boilerplate).omit)
        boilerplate.keep()
    with mock.patch.object(memory, "Boilerplate", return_value=boilerplate):
        return clustered(articles, profile)


def never_learning(articles: Articles, profile: Profile) -> Roots:
    """Cluster as if each page were the first one of its site, and of every other."""
    # No block of pages is ever full, so none is learned from.
    endless = functools.partial(Boilerplate, block_pages=len(articles) + 1)
    with mock.patch.object(memory, "Boilerplate", endless):
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
