"""From texts to fingerprints: simhashes, band keys, sketches, and the profile that decides them. Pure.

The same text and profile give the same bits on every machine. May import `text`.
"""
