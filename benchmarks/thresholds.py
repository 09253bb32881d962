"""Precision and recall at many thresholds: `verified` with its thresholds shifted together, and MinHash.

For choosing thresholds and for pictures; no document quotes it.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from benchmarks import articles, detectors, peers
from benchmarks.detection import Detection
from benchmarks.quality import add_minhashes
from benchmarks.run import Run
from benchmarks.tally import Tally
from esdedup.fingerprint.profile import VERIFIED, Profile

TABLE = "thresholds"
SHIFTED = "verified, thresholds shifted together"
# The fields of `Agreement` that say how much whole texts must resemble each other.
_NEEDED = ("least_resemblance", "most_resemblance", "tiny_resemblance")
_SHIFTS = [round(float(each), 2) for each in np.arange(-0.25, 0.3, 0.05)]


def thresholds(_: Run) -> list[Detection]:
    rows: list[Detection] = []
    for name in articles.SETS:
        tally, held = Tally(name), articles.articles_of(name)
        for profile, threshold in _shifted():
            tally.add(SHIFTED, detectors.clustered(held, profile), threshold=threshold)
        add_minhashes(tally, peers.Shingled(held), seed=1, thresholds=peers.THRESHOLDS)
        rows += tally.detections(TABLE)
    return rows


def _shifted() -> Iterator[tuple[Profile, float]]:
    """Yield stricter and laxer variants of `verified`, each with its least resemblance."""
    rules = VERIFIED.agreement
    if rules is None:
        return
    needed = [each.name for each in dataclasses.fields(rules) if each.name in _NEEDED]
    for shift in _SHIFTS:
        shifted = {name: min(max(getattr(rules, name) + shift, 0.0), 1.0) for name in needed}
        changed = dataclasses.replace(rules, **shifted)
        yield dataclasses.replace(VERIFIED, agreement=changed), round(changed.least_resemblance, 2)
