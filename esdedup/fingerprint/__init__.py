"""From texts to fingerprints: simhashes, band keys, sketches, and the profile that decides them.

The same text and profile give the same bits on every machine. Pure: no I/O, clock or environment. May
import `text` and `errors`.
"""
