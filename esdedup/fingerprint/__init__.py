"""Computes fingerprints of texts: simhashes, band keys, sketches, and the profiles that define them.

The same text and profile give the same bits on every machine. Pure: no I/O, clock or environment. May
import `text` and `errors`.
"""

# These constants are defined here so that help pages can show them without importing numpy.
DEFAULT_PROFILE = "verified"
RESEMBLANCE = 0.66
LEAST_RESEMBLANCE, MOST_RESEMBLANCE = 0.4, 0.95
"""The range of `resemblance`: below, unrelated texts would agree; above, the estimate is too coarse."""
MAX_DISTANCE_BITS = 3
MAX_KEYWORDS = 10_000
"""The maximum number of words that `keywords` can use."""
MAX_TEXT_LENGTH = 200_000
"""The default maximum number of fingerprinted characters of a text: a book of about 100 pages, which is
longer than any article. A text of that length uses at most 20 MB of memory while it is fingerprinted."""
LONGEST_TEXT_LENGTH = 10_000_000
"""The largest `max_text_length` of a profile."""
WORKERS = 2
"""The default number of threads that fingerprint texts: even small machines have two processors."""
