"""The list with dedup and the similar articles: operations that yield requests, and what they return.

None of it but `reader` knows a client. May import `elastic`'s requests, names and mappings, and what
lies below.
"""
