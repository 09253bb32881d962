"""Imported once by the process that feeders are forked from: does for all of them what is slow at first."""

import gc

from esdedup import CLASSIC, VERIFIED
from esdedup.fingerprint.fingerprinter import Fingerprinter
from tests.support import stream

for _profile in (CLASSIC, VERIFIED):
    Fingerprinter(_profile).fingerprint(["云陵地铁 warm up"])
stream.words()
# The end of a feeder does not take down what it has not made: half of its processor time.
gc.collect()
gc.freeze()
