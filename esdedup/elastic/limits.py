"""Limits of Elasticsearch, limits of our requests, and the HTTP statuses after which to retry."""

import dataclasses

MAX_TERMS = 65_536
"""Terms in one query."""

MAX_HITS = 10_000
"""Hits in one response; and the depth of numbered pages: `from` + `size`."""

MAX_BUCKETS = 65_536
"""Buckets in one response."""

MAX_ID_BYTES = 512
"""Elasticsearch refuses longer ids, and with them the whole request."""

MAX_TERM_BYTES = 32_766
"""Bytes of a value of a keyword field; a search for a longer one is refused."""

MAX_JSON_DEPTH = 100
"""Levels of nested objects and lists in an article. Elasticsearch reads 1,000, and refuses a whole bulk
request for a deeper update; Python writes some 900. No article needs nearly as many."""

MAX_SHARDS = 1_024
"""Shards of one index."""

BUSY_STATUSES = frozenset({429, 502, 503, 504})
"""A request with one of these statuses may be sent again after a pause."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of requests to a forest's index, and when avoiding a frequent key is worth it."""

    max_terms: int = MAX_TERMS
    max_hits: int = MAX_HITS
    # Clauses of one query for candidates.
    max_clauses: int = 100
    # Documents in one bulk request.
    bulk_documents: int = 5_000
    # Documents that a store writes, and keeps in memory, before it refreshes the index.
    recent_nodes: int = 20_000
    # A key is frequent only if more nodes than this have it.
    frequent_nodes: int = 1_000
    # Searching for this many finer keys, to avoid a frequent one, costs as much as reading one node.
    finer_keys_per_node: int = 8
    # Keys remembered as frequent.
    remembered_keys: int = 100_000
    # Nodes whose keys are checked in one query.
    checked_nodes: int = 1_000


DEFAULT_LIMITS = Limits()
