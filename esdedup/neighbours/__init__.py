"""Which fingerprints are near each other: the relation of a profile, and indexes in memory. Pure.

An index finds every pair within its distance, and no other. May import `fingerprint` and `text`.
"""
