"""What a forest has learned to be boilerplate, site by site, from the texts of its articles."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pydantic
from elasticsearch import Elasticsearch

from esdedup.elastic.execute import hit_pages
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.requests import Query
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, text_of
from esdedup.sites import site_fields, site_of
from esdedup.text.left_out import LocatedPassages

# Texts in one answer of Elasticsearch.
_TEXTS_AT_ONCE = 100
# They are shown whole or not at all, since a part of one cannot be an override. Few have so many characters.
_LONGEST_SHOWN = 1_000
# Different ones, on all sites together: at most 100 MB. Sites have some dozens each.
_MOST_PASSAGES = 50_000


class LearnedPassage(pydantic.BaseModel, frozen=True):
    """A passage that is boilerplate."""

    # As it stands in an article; None if it has more than 1,000 characters.
    text: str | None
    # How many of the articles read of this site have it.
    articles: int


class SiteBoilerplate(pydantic.BaseModel, frozen=True):
    """What is boilerplate in the articles of a site."""

    # None for articles whose site is not known.
    site: str | None
    # How many articles of the site were read.
    articles: int
    # How many different passages of theirs are boilerplate.
    learned: int
    # Those that most of the articles have.
    passages: tuple[LearnedPassage, ...]


class BoilerplateBySite(pydantic.BaseModel, frozen=True):
    """What a forest has learned to be boilerplate, as far as the articles read have it."""

    # How many were read.
    articles: int
    # Those with the most articles first.
    sites: tuple[SiteBoilerplate, ...]
    # False if there were so many different passages that not all were counted.
    is_complete: bool


def boilerplate_by_site(
    client: Elasticsearch,
    learned: LearnedCopy,
    *,
    indices: Sequence[str],
    fields: Fields,
    max_length: int,
    articles: int,
    passages: int,
) -> BoilerplateBySite:
    """Read the latest articles, and count the passages of theirs that are boilerplate.

    Args:
        client: Owned by the caller.
        learned: What the forest has learned.
        indices: Of its articles.
        fields: The names of the articles' fields.
        max_length: How many characters of a text are fingerprinted.
        articles: The most articles to read.
        passages: The most passages to return for a site.
    """
    counted = _Counted()
    texts = itertools.islice(_texts(client, indices, fields), articles)
    while batch := list(itertools.islice(texts, _TEXTS_AT_ONCE)):
        counted.add(batch, learned, max_length=max_length)
    return counted.result(passages)


def _texts(client: Elasticsearch, indices: Sequence[str], fields: Fields) -> Iterator[tuple[str | None, str]]:
    """Yield the site and the raw text of articles, the last to arrive first."""
    body: Query = {
        "query": {"exists": {"field": fields.root}},
        "sort": [{fields.seq: {"order": "desc", "unmapped_type": "long"}}],
        "size": _TEXTS_AT_ONCE,
        "_source": [fields.text, *site_fields(fields)],
        "track_total_hits": False,
    }
    for hit in itertools.chain.from_iterable(hit_pages(client, ",".join(indices), body)):
        try:
            text = text_of(hit["_source"], fields, name=hit["_id"])
        except ArticleRejected:
            continue
        yield site_of(hit["_source"], fields), text


@dataclasses.dataclass
class _Counted:
    """Articles and passages, counted."""

    articles: collections.Counter[str | None] = dataclasses.field(default_factory=collections.Counter)
    # By the site and the passage's hash.
    passages: collections.Counter[tuple[str | None, int]] = dataclasses.field(
        default_factory=collections.Counter
    )
    texts: dict[int, str | None] = dataclasses.field(default_factory=dict)
    is_complete: bool = True

    def add(self, batch: Iterable[tuple[str | None, str]], learned: LearnedCopy, *, max_length: int) -> None:
        """Count articles, by their sites and raw texts."""
        for site, text in batch:
            self.articles[site] += 1
            found = LocatedPassages.of(text, max_length=max_length)
            hashes = found.passages.hashes
            for place in _first_of_each(hashes, learned.are_learned(hashes)):
                self._add(site, int(hashes[place]), found.text(place))

    def _add(self, site: str | None, passage: int, text: str) -> None:
        if (site, passage) not in self.passages and len(self.passages) >= _MOST_PASSAGES:
            self.is_complete = False
            return
        self.passages[site, passage] += 1
        self.texts.setdefault(passage, text if len(text) <= _LONGEST_SHOWN else None)

    def result(self, most: int) -> BoilerplateBySite:
        """Return what was counted, with so many passages a site."""
        by_site: dict[str | None, list[LearnedPassage]] = {site: [] for site in self.articles}
        for (site, passage), count in self.passages.most_common():
            by_site[site].append(LearnedPassage(text=self.texts[passage], articles=count))
        return BoilerplateBySite(
            articles=self.articles.total(),
            sites=tuple(
                SiteBoilerplate(
                    site=site,
                    articles=count,
                    learned=len(by_site[site]),
                    passages=tuple(by_site[site][:most]),
                )
                for site, count in self.articles.most_common()
            ),
            is_complete=self.is_complete,
        )


def _first_of_each(hashes: npt.NDArray[np.uint64], are_wanted: npt.NDArray[np.bool_]) -> list[int]:
    """Return the places of the wanted hashes, each once."""
    places = np.flatnonzero(are_wanted)
    _, first = np.unique(hashes[places], return_index=True)
    return [int(place) for place in places[np.sort(first)]]
