"""Imported once by the process that feeders are forked from: does slow initialisation for all of them."""

import gc

from esdedup import CLASSIC, VERIFIED
from esdedup.fingerprint.fingerprinter import Fingerprinter
from tests.support import stream

for _profile in (CLASSIC, VERIFIED):
    Fingerprinter(_profile).fingerprint(["云陵地铁 warm up"])
stream.words()
# Skip tearing down inherited objects when a feeder ends: half of its processor time.
gc.collect()
gc.freeze()
