"""Tests of other programs than the package itself, which `make test-foreign` runs beside the others.

Clients in other languages and of other versions, the site and the code of the documents, and embedded nodes.
"""
