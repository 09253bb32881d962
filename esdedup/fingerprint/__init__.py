"""Fingerprints of texts: simhashes, band keys, sketches, and the profiles that define them.

The same text and profile give the same bits on every machine. Pure: no I/O, clock or environment. May
import `text` and `errors`.
"""
