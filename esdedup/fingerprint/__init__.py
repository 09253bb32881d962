"""Fingerprints of texts: simhashes, band keys, sketches, and the profiles that define them.

The same text and profile give the same bits on every machine. Pure: no I/O, clock or environment. May
import `text` and `errors`.
"""

# What settings and pages show of profiles; without numpy, which a help page need not wait for.
DEFAULT_PROFILE = "verified"
RESEMBLANCE = 0.66
LEAST_RESEMBLANCE, MOST_RESEMBLANCE = 0.4, 0.95
"""The range of settings: below, unrelated texts agree; above, the estimate is too coarse."""
MAX_DISTANCE_BITS = 3
MAX_KEYWORDS = 10_000
"""The most words that `keywords` can take."""
MAX_TEXT_LENGTH = 200_000
"""How much of a text is fingerprinted by default, in characters: a book of some 100 pages, which is longer
than any article. One text of that length takes at most 20 MB of memory while it is fingerprinted."""
LONGEST_TEXT_LENGTH = 10_000_000
"""The most characters of a text that a profile may take."""
WORKERS = 2
"""Default number of threads that fingerprint texts: the processors of a small machine."""
