"""Limits set by Elasticsearch and by esdedup, and the HTTP statuses after which to retry."""

import dataclasses

MAX_TERMS = 65_536
"""The maximum number of terms in one query."""

MAX_HITS = 10_000
"""The maximum number of hits in one response, and of `from` + `size`."""

MAX_BUCKETS = 65_536
"""The maximum number of buckets in one response."""

MAX_ID_BYTES = 512
"""The maximum size of a document's id. Elasticsearch refuses a whole request that has a longer id."""

MAX_TERM_BYTES = 32_766
"""The maximum size of a value in a keyword field. Elasticsearch refuses to search for a longer value."""

MAX_JSON_DEPTH = 100
"""The maximum nesting of objects and lists in an article, far more than articles need. Elasticsearch parses
1,000 levels, and refuses a whole bulk request with a deeper update. Python can write about 900 levels."""

MAX_SHARDS = 1_024
"""The maximum number of shards in an index."""

BUSY_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses after which a request may be repeated after a pause."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on requests to a forest's index, and thresholds for frequent keys."""

    max_terms: int = MAX_TERMS
    max_hits: int = MAX_HITS
    # The maximum number of clauses in one query for candidates.
    max_clauses: int = 100
    # The maximum number of documents in one bulk request.
    bulk_documents: int = 5_000
    # A store keeps up to this many written documents in memory before it refreshes the index.
    recent_nodes: int = 20_000
    # A key is frequent only if more nodes than this have it.
    frequent_nodes: int = 1_000
    # Reading one node of a frequent key costs as much as searching for this many finer keys (`terms_around`).
    finer_keys_per_node: int = 8
    # The maximum number of frequent keys that are remembered.
    remembered_keys: int = 100_000
    # The maximum number of nodes whose keys one query checks.
    checked_nodes: int = 1_000


DEFAULT_LIMITS = Limits()
