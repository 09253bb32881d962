"""The benchmarks can be imported, and measure functions that exist."""

import subprocess
import sys

import pytest

from benchmarks.detectors import hashed_by
from benchmarks.processes import STEPS
from esdedup import Profile, sample
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import PROFILES


def test_every_step_that_is_timed_exists() -> None:
    for places in STEPS.values():
        for owner, name in places:
            assert callable(getattr(owner, name)), name


def test_other_hash_functions_give_other_fingerprints_meanwhile() -> None:
    texts = [article["text"] for article in sample.articles(3)]
    for profile in PROFILES.values():

        def of(seed: int, profile: Profile = profile) -> bytes:
            with hashed_by(seed):
                return Fingerprinter(profile).fingerprint(texts).signatures.tobytes()

        first = of(0)
        assert len({first, of(1), of(2)}) == 3
        assert of(0) == first


_SAME_PAIRS = """
import numpy as np
from benchmarks.in_memory import PEERS, RADIUS, peer
from benchmarks.signatures import as_bytes
from benchmarks.signatures import Held
from esdedup import CLASSIC

random = np.random.default_rng(1)
held = Held.random(CLASSIC, 2_000, random)
batch = held.batch(1_000, random)
apart = np.bitwise_count(batch[:, None] ^ held.signatures)
expected = set(zip(*map(np.ndarray.tolist, np.nonzero(apart <= 3))))
for name in PEERS:
    index = peer(name)
    index.add(as_bytes(CLASSIC, held.signatures))
    limits, _, rows = index.range_search(as_bytes(CLASSIC, batch), RADIUS)
    found = zip(np.repeat(np.arange(len(batch)), np.diff(limits.astype(int))).tolist(), rows.tolist())
    print(len(expected) > 200 and set(found) == expected)
"""


@pytest.mark.slow
def test_both_settings_of_the_peer_find_all_pairs() -> None:
    """In a process of its own, as below."""
    command = [sys.executable, "-c", _SAME_PAIRS]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert shown.stdout.split() == ["True", "True"]


_ONLINE = """
from benchmarks.online import STEPS, Ours
from benchmarks.online import PEERS
from esdedup import sample

print(all(callable(getattr(owner, name)) for places in STEPS.values() for owner, name in places))
held = {str(at): {"text": each["text"]} for at, each in enumerate(sample.articles(40))}
held |= {f"{name} again": each for name, each in held.items()}
for ours in (Ours(held).in_batches(), Ours(held).singly()):
    print(all(ours[name] == ours[f"{name} again"] for name in map(str, range(40))))
texts = [each["text"] for each in held.values()]
for peer in PEERS:
    for is_chinese in (False, True):
        roots = peer.cluster(texts, is_chinese, 0.7)
        print(roots[:40] == roots[40:] and 1 < len(set(roots)) < 40)
"""


@pytest.mark.slow
def test_ours_and_every_peer_find_copies_online() -> None:
    """In a process of its own, as below."""
    command = [sys.executable, "-c", _ONLINE]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert shown.stdout.split() == 11 * ["True"]


@pytest.mark.slow
def test_every_benchmark_can_be_imported() -> None:
    """In a process of its own, since the packages to compare with are large and print what they like."""
    command = [sys.executable, "-m", "benchmarks", "--help"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "elastic-classic" in " ".join(shown.stdout.split())
