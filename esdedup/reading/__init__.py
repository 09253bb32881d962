"""Reads clustered articles: the deduplicated list, similar articles, sources and timelines.

Each operation is a generator of requests, in the module of its feature; `reader` runs operations with a
client, and adds the descriptions of shared arguments to the methods' docstrings.
Public: `Reader`, `AsyncReader`, and the results in `esdedup.reading.results`, `versions` and `overview`.

Only `reader` may import `elasticsearch`. The other modules may import `elastic`'s requests, names, limits and
mappings, and the packages below `elastic`.
"""
