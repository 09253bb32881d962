"""Tests that `make test-foreign` runs, with programs besides the package.

They cover clients in other languages and of other versions, the site and the code of the documents, and
embedded nodes.
"""
