"""Clusters the articles of files in memory, without Elasticsearch."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import pydantic
from esdedup.ingest.files import Line

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, text_of, value_of
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Arrivals, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.times import time_ms

_BATCH = 1_000


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
    iterator = iter(lines)
    while batch := list(itertools.islice(iterator, _BATCH)):
        taken: list[tuple[Line, str]] = []
        for line in batch:
            try:
                if isinstance(line, ArticleRejected):
                    raise line
                taken.append((line, text_of(line.article, fields, name=line.name)))
            except ArticleRejected as rejected:
                on_rejected(rejected)
        arrivals = Arrivals.of(
            fingerprinter.fingerprint([text for _, text in taken]),
            times_ms=[
                time_ms(value_of(line.article, fields.time)) if use_time else None for line, _ in taken
            ],
            relation=relation,
        )
        assignments = forest.assign(arrivals, now_ms=int(time.time() * 1000))
        for (line, _), name, assignment in zip(taken, arrivals.ids, assignments, strict=True):
            yield ClusteredArticle(id=line.id, root=assignment.root, fingerprint=name)
