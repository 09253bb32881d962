"""A forest in Elasticsearch: its index, the operations that read it, its writer and its store.

`search`, `candidates`, `status` and `lookup` contain the operations that read; owners and readers share them.
All writes go through `writer`, guarded by `lease` and `fence`. May import the rest of `elastic`, `forest` and
the packages below it.
"""
