"""Everything that happens to articles before they are indexed: read, fingerprinted, assigned, enriched.

`Dedup` is for programs; `files`, `load` and `cluster` serve the command line. Every article
becomes an enriched action or a rejection with its reason.
"""
