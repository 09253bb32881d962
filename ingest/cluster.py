"""Clusters of the articles in files, without any Elasticsearch."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

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

Clustered = dict[str, str | None]
"""An article's ``id``, ``root`` and ``fingerprint``; both None for a text that has none."""


def cluster(
    lines: Iterable[Line | ArticleRejected],
    *,
    profile: Profile,
    fields: Fields,
    use_time: bool,
    retention: timedelta,
    on_rejected: Callable[[ArticleRejected], None],
) -> Iterator[Clustered]:
    """Assign articles in their order to clusters in memory.

    Args:
        lines: The articles.
        profile: Decides fingerprints.
        fields: The articles'.
        use_time: Take the forest's time from the articles; else it has none, and nothing expires.
        retention: How long after an article its cluster stays open, with `use_time`.
        on_rejected: Told of each article that cannot be taken, and has no place in the result.
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
            yield {"id": line.id, "root": assignment.root, "fingerprint": name}
