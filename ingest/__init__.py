"""Processes articles before they are indexed: reads, fingerprints, assigns and enriches them.

`Dedup` is the public interface; `files`, `load` and `cluster` serve the command line. Every article
becomes an enriched action or a rejection with its reason.
"""
