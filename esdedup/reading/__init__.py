"""Reads clustered articles: the list with dedup, similar articles, sources and timelines.

`operations` holds every operation once, as a generator of requests; `reader` runs them with a client.
Public: `Reader`, `AsyncReader`, and the results in `esdedup.reading.results`.

Only `reader` may import `elasticsearch`. The rest may import `elastic`'s requests, names, limits and
mappings, and the rooms below it.
"""
