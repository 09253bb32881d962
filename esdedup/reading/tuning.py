"""The sizes at which estimates replace exact counts, and reading ends. Tests make them small."""

import dataclasses

from esdedup.elastic import limits


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuning:
    """How much is counted exactly, and when estimates take over."""

    # Up to this many matching articles, their roots are visited one by one.
    few_articles: int = 10_000
    # With more matching articles than this, rows are estimated from some partitions of all roots.
    many_articles: int = 300_000
    # How many of the 256 partitions; the estimate is off by a few per cent.
    estimate_partitions: int = 8
    # A page by time reads so many articles, and so many more for each row on it and before it; then it is
    # cut short. That takes a few seconds. Where most articles are reprints, a row needs some 4 of them.
    read_articles: int = 20_000
    read_articles_a_row: int = 5
    # Up to this many rows are counted; more are estimated.
    exact_rows: int = 10_000
    # About how many roots are inspected to estimate how many rows `only` leaves.
    inspected_roots: int = 8_000
    # If the roots for one page do not prove an order by count, each shard next sends at least this many.
    first_roots: int = 1_000
    # Roots in one answer, and in one query: one less than Elasticsearch's limit on buckets.
    max_roots: int = limits.MAX_BUCKETS - 1
