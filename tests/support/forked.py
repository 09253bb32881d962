"""The slow initialisation of feeders, imported once by the process from which they are forked."""

import gc

from esdedup import CLASSIC, VERIFIED
from esdedup.fingerprint.fingerprinter import Fingerprinter
from tests.support import stream

for _profile in (CLASSIC, VERIFIED):
    Fingerprinter(_profile).fingerprint(["云陵地铁 warm up"])
stream.words()
# Exclude inherited objects from garbage collection, which would take half of a feeder's processor time.
gc.collect()
gc.freeze()
