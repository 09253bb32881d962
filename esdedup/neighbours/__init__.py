"""Decides which fingerprints are near each other, indexes them in memory, and explains the decisions.

An index finds exactly the near pairs. Pure: no I/O, clock or environment.
"""
