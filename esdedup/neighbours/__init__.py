"""Which fingerprints are near each other: the relation of a profile, indexes in memory, explanations.

An index finds every pair within its distance, and no other. Pure: no I/O, clock or environment. May import
`fingerprint`, `text` and `errors`.
"""
