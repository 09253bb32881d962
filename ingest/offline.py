"""Clusters of the articles in files, without any Elasticsearch."""

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import numpy as np
from esdedup.ingest.articles import Line

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, text_of, time_ms, value_of
from esdedup.fingerprint import Fingerprinter
from esdedup.forest import NO_TIME, Aging, Arrivals, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.forest.near import HammingIndex
from esdedup.profile import Profile
from esdedup.simhash import to_hex

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
    near = functools.partial(HammingIndex, max_distance_bits=profile.max_distance_bits)
    forest = Forest(MemoryStore(aging=Aging.of(retention=retention), new_near_index=near))
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
        fingerprints = fingerprinter.fingerprint([text for _, text in taken])
        names = [
            name if exists else None
            for name, exists in zip(to_hex(fingerprints.bits), fingerprints.exists.tolist(), strict=True)
        ]
        times = [time_ms(value_of(line.article, fields.time)) if use_time else None for line, _ in taken]
        arrivals = Arrivals(
            ids=names,
            signatures=fingerprints.bits,
            times_ms=np.array([NO_TIME if each is None else each for each in times], np.int64),
        )
        assignments = forest.assign(arrivals, now_ms=int(time.time() * 1000))
        for (line, _), name, assignment in zip(taken, names, assignments, strict=True):
            yield {"id": line.id, "root": assignment.root, "fingerprint": name}
