"""Everything that happens to articles before they are indexed: read, fingerprinted, assigned, enriched.

`Dedup` is for programs; `files`, `load` and `cluster` serve the command line. Every article that comes in
comes out as an enriched action or as a rejection that says why.

May import everything except the shells (`cli`, `web`, `node`) and `maintenance`.
"""
