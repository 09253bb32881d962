"""A forest in Elasticsearch: its index, the operations that read it, its one writer, its store.

Reading is operations (`search`, `candidates`, `matching`, `status`, `lookup`), shared by the store and the
look-up of a text. Writing goes through `writer`, behind `lease` and `fence`.
"""
