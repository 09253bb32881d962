"""Limits of Elasticsearch, and the statuses with which it asks for patience."""

MAX_TERMS = 65_536
"""Terms in one query."""

MAX_HITS = 10_000
"""Hits in one answer; and how deep numbered pages go: `from` and `size` together."""

MAX_BUCKETS = 65_536
"""Buckets in one answer."""

MAX_ID_BYTES = 512
"""Elasticsearch refuses longer ids, and with them the whole request."""

MAX_INDEX_NAME_BYTES = 255

MAX_SHARDS = 1_024
"""Shards of one index."""

BUSY_STATUSES = frozenset({429, 502, 503, 504})
"""A request that is answered so may be sent again after a pause."""
