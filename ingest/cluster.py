"""Clusters the articles of files in memory, without Elasticsearch."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import pydantic
from esdedup.ingest.batches import BATCH_SIZE, batches
from esdedup.ingest.files import Line
from esdedup.ingest.json_values import characters_in

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, text_of, value_of
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Arrivals, Assignment, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.times import time_ms


class ClusteredArticle(pydantic.BaseModel, frozen=True):
    """An article and its cluster."""

    id: str
    # Both None if the text is too short to have a fingerprint.
    root: str | None
    fingerprint: str | None


def cluster(
    lines: Iterable[Line | ArticleRejected],
    *,
    profile: Profile,
    fields: Fields,
    use_time: bool,
    retention: timedelta,
    on_rejected: Callable[[ArticleRejected], None],
) -> Iterator[ClusteredArticle]:
    """Assign articles to clusters, in order.

    Args:
        lines: Articles, and rejections of what could not be read.
        profile: How texts are fingerprinted.
        fields: The names of the articles' fields.
        use_time: Take the forest's time from the articles; without it nothing expires.
        retention: With `use_time`: how long a cluster accepts articles after its last one.
        on_rejected: Called for each article that cannot be clustered; it is not yielded.
    """
    fingerprinter = Fingerprinter(profile)
    relation = relation_of(profile)
    forest = Forest(MemoryStore(aging=Aging.of(retention=retention), relation=relation))
    readable = _with_texts(lines, fields, on_rejected)
    for batch in batches(readable, most=BATCH_SIZE, size_of=lambda each: characters_in(each[0].article)):
        arrivals = Arrivals.of(
            fingerprinter.fingerprint([text for _, text in batch]),
            times_ms=[
                time_ms(value_of(line.article, fields.time)) if use_time else None for line, _ in batch
            ],
            relation=relation,
        )
        assignments = forest.assign(arrivals, now_ms=int(time.time() * 1000))
        yield from itertools.starmap(_clustered, zip(batch, arrivals.ids, assignments, strict=True))


def _with_texts(
    lines: Iterable[Line | ArticleRejected],
    fields: Fields,
    on_rejected: Callable[[ArticleRejected], None],
) -> Iterator[tuple[Line, str]]:
    """Yield the lines that have a text, each with it."""
    for line in lines:
        try:
            if isinstance(line, ArticleRejected):
                raise line
            text = text_of(line.article, fields, name=line.name)
        except ArticleRejected as rejected:
            on_rejected(rejected)
        else:
            yield line, text


def _clustered(
    article: tuple[Line, str], fingerprint: str | None, assignment: Assignment
) -> ClusteredArticle:
    line, _ = article
    return ClusteredArticle(id=line.id, root=assignment.root, fingerprint=fingerprint)
