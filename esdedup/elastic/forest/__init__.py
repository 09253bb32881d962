"""A forest in Elasticsearch: its index, the operations that read it, its one writer, its store.

Operations (`search`, `candidates`, `status`, `lookup`) read; the store and the look-up of a text
share them. All writes go through `writer`, guarded by `lease` and `fence`. May import the rest of `elastic`,
`forest` and the rooms below it.
"""
