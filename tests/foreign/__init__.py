"""Tests that use other programs besides the package, run by `make test-foreign`.

They cover clients in other languages and of other versions, the documentation site,
code examples in the documentation, and embedded nodes.
"""
