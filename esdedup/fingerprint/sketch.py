"""A sketch of a whole text in 64 bytes, from which the resemblance of two texts is estimated.

One-permutation MinHash (Li, Owen, Zhang, NIPS 2012): every run of tokens is hashed, the highest bits of
the hash choose one of 128 bins, and each bin keeps its least hash. A sketch stores 4 bits of each
(b-bit MinHash; Li, König, WWW 2010), or 0 for an empty bin. A bin that is empty in both texts is not
compared. So short texts, in which nearly every run has a bin of its own, are compared nearly exactly.

The resemblance of two texts is the share of their distinct runs that both have (Broder 1997). Runs with a
number count several times: texts made from one template differ in their numbers, and the larger the
share of numbers in a text, the more they should weigh. Sketches are made in
`core/src/sketch.rs`, and compared in `core/src/forest/agreement.rs`.
"""

import numpy as np
import numpy.typing as npt

BINS = 128
WORDS = BINS * 4 // 64
"""64-bit words of a sketch: sketches are uint64 ``(n, WORDS)``."""

MINHASHES = 8
"""Minhashes of a text: one more than represent it beside two sentences."""

Sketches = npt.NDArray[np.uint64]
