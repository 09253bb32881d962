"""What benchmarks measure with: arrivals like real ones, other hash functions, texts of other scripts."""

import collections
import itertools
from datetime import timedelta
from unittest import mock

import numpy as np
import pytest

from benchmarks import detectors, scripts
from benchmarks.articles import Articles
from benchmarks.detectors import hashed_by
from benchmarks.signatures import NOW_MS, Held
from esdedup import CLASSIC, VERIFIED, Profile, sample
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging, Forest, Kind
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import NeighbourIndex, relation_of

pytestmark = pytest.mark.slow

HELD, BATCH = 5_000, 1_000


@pytest.fixture(scope="module")
def articles() -> Articles:
    return {each["id"]: each for each in list(sample.articles())[:600]}


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=lambda profile: profile.name)
def test_arrivals_are_copies_near_copies_and_between_two_roots(profile: Profile) -> None:
    random = np.random.default_rng(1)
    held = Held.random(profile, HELD, random)
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(profile))
    forest = Forest(store)
    first = forest.assign(held.arrivals(0, HELD), now_ms=NOW_MS)
    assert {each.kind for each in first} == {Kind.NEW_ROOT}
    batch = held.batch(BATCH, random)
    index = NeighbourIndex(store.relation)
    index.add(held.signatures.tobytes())
    with mock.patch.object(store, "commit", wraps=store.commit) as commit:
        assigned = forest.assign(held.arrivals_after(batch, 0), now_ms=NOW_MS)
    kinds = collections.Counter(each.kind for each in assigned)
    assert 50 <= kinds[Kind.KNOWN] <= 60
    assert 190 <= kinds[Kind.JOINED] <= 210
    # All that is held is a root.
    near_counts = collections.Counter(index.find_pairs(batch)[0].tolist())
    assert sum(count > 1 for count in near_counts.values()) >= 2
    # Nearly everything that is seen again was last seen more than an hour before.
    assert len(commit.call_args.args[0].written) > 1_150


def test_another_hash_function_gives_other_bits_and_the_same_clusters(articles: Articles) -> None:
    texts = [each["text"] for each in articles.values()]
    own = Fingerprinter(VERIFIED).fingerprint(texts).signatures
    with hashed_by(3):
        other = Fingerprinter(VERIFIED).fingerprint(texts).signatures
        roots = detectors.clustered(articles, VERIFIED)
    assert not (own["sketch"] == other["sketch"]).any()
    np.testing.assert_array_equal(Fingerprinter(VERIFIED).fingerprint(texts).signatures, own)
    again = detectors.clustered(articles, VERIFIED)
    # Nearly the same: estimates differ, and so may the minhashes that two texts share.
    both = len(set(zip(roots.values(), again.values(), strict=True)))
    assert both == pytest.approx(len(set(again.values())), rel=0.1)


def test_words_are_hashed_by_others_too() -> None:
    texts = ["The ferry to the island is full again this summer."]
    own = Fingerprinter(CLASSIC).fingerprint(texts).signatures[0]
    with hashed_by(1):
        assert Fingerprinter(CLASSIC).fingerprint(texts).signatures[0] != own


def test_two_looks_know_boilerplate_from_the_first_page_on() -> None:
    random = np.random.default_rng(1)
    words = ["".join(letters) for letters in itertools.product("abcdef", repeat=4)]

    def sentences(count: int) -> str:
        return " ".join(" ".join(random.choice(words, 8)) + "." for _ in range(count))

    disclaimer = sentences(12)
    pages: Articles = {
        str(page): {"text": f"{sentences(4)} {disclaimer}", "lang": "en"} for page in range(200)
    }
    never, one, two = (
        len(set(cluster(pages, VERIFIED).values()))
        for cluster in (detectors.never_learning, detectors.clustered, detectors.in_two_looks)
    )
    assert never < 20 < one < two == 200


def test_there_are_texts_in_27_languages_with_one_letter_exchanged() -> None:
    assert len(scripts.LANGUAGES) == 27
    for language in scripts.LANGUAGES:
        texts, others = scripts.texts_with_typos(language, 1)
        for text, other in zip(texts, others, strict=True):
            assert len(text) >= 800
            assert sum(one != two for one, two in zip(text, other, strict=True)) == 1
