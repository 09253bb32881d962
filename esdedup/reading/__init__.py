"""Reads clustered articles: the list with dedup, similar articles, sources and timelines.

Each operation is a generator of requests, in the file of its feature; `reader` runs them with a client, and
adds to their docstrings the arguments and errors that many have in common.
Public: `Reader`, `AsyncReader`, and the results in `esdedup.reading.results`, `versions` and `overview`.

Only `reader` may import `elasticsearch`. The rest may import `elastic`'s requests, names, limits and
mappings, and the rooms below it.
"""
