"""What somebody gains who feeds articles made to draw others into one cluster."""

from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from esdedup.ingest.arrive import arrive

from esdedup import Pin, Pins
from esdedup.boilerplate.pins import NO_PINS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import Aging, Arrivals, Forest
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.reading.explanation import explain
from tests.support.comparison import resemblance

_RELATION = relation_of(VERIFIED)


def _words(random: Random, count: int) -> list[str]:
    return [
        "".join(random.choice("bcdfglmnprst") + random.choice("aeiou") for _ in range(random.randint(2, 4)))
        for _ in range(count)
    ]


def _story(random: Random) -> list[str]:
    return [" ".join(_words(random, random.randint(9, 14))) + "." for _ in range(12)]


def _reprint(random: Random, story: list[str]) -> list[str]:
    at = random.randrange(len(story))
    return [*story[:at], f"edited {story[at]}", *story[at + 1 : len(story) - random.randrange(2)]]


def _variant(random: Random, more: list[str], less: list[str]) -> list[str]:
    return [*more[:11], *less[:8], " ".join(_words(random, 3)) + "."]


@pytest.mark.parametrize("seed", range(4))
def test_twenty_variants_of_a_mixture_draw_no_reprint_of_either_story(seed: int) -> None:
    random = Random(seed)
    one, other = _story(random), _story(random)
    variants = [_variant(random, *((one, other) if number % 2 else (other, one))) for number in range(20)]
    reprints = [_reprint(random, story) for story in (one, other) for _ in range(10)]
    texts = [" ".join(text) for text in (one, other, one[:10] + other[:10], *variants, *reprints)]
    forest = Forest(MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=_RELATION))
    fingerprints = Fingerprinter(VERIFIED).fingerprint(texts)
    assigned = forest.assign(Arrivals.of(fingerprints, times_ms=[None] * len(texts)), now_ms=0)
    roots = [each.root for each in assigned]
    assert roots[-20:] == [roots[0]] * 10 + [roots[1]] * 10


def _sketches(texts: list[str]) -> npt.NDArray[np.uint64]:
    sketches: npt.NDArray[np.uint64] = Fingerprinter(VERIFIED).fingerprint(texts).signatures["sketch"]
    return sketches


def _forged(random: Random, stories: list[str], *, words: int) -> tuple[str, list[float]]:
    """Return a text whose words are chosen to resemble stories in the estimate, and how much it does each."""
    targets, text = _sketches(stories), " ".join(_words(random, 20))
    for _ in range(words):
        longer = [f"{text} {word}" for word in _words(random, 150)]
        estimates = np.array([resemblance(target[None], _sketches(longer)) for target in targets])
        best = int(estimates.sum(axis=0).argmax())
        text = longer[best]
    return text, estimates[:, best].tolist()


def test_a_forged_text_resembles_one_story_in_the_estimate_alone() -> None:
    """What docs/forest.md says of the weakness: ninety chosen words are enough, and explanations show it."""
    random = Random(1)
    story = " ".join(_story(random))
    text, (estimate,) = _forged(random, [story], words=90)
    compared = explain(story, text).whole_texts
    assert estimate > 0.5
    assert compared is not None
    assert compared.resemblance == estimate
    assert compared.exact_resemblance is not None
    assert compared.exact_resemblance < 0.01


def test_a_forged_text_resembles_no_two_stories_by_more_than_a_half() -> None:
    random = Random(2)
    _, estimates = _forged(random, [" ".join(_story(random)) for _ in range(2)], words=90)
    assert 0.5 < sum(estimates) < 1.1


def _lesson(random: Random, sentences: list[str], *, pages: int = 5) -> list[list[str]]:
    """Return pages that teach that some sentences are boilerplate, and others that fill their block."""
    longer = [[" ".join(_words(random, 150)) + "." for _ in range(3)] for _ in range(pages)]
    return [*(own + sentences for own in longer), *([" ".join(_words(random, 9))] for _ in range(64))]


def _roots(*batches: list[list[str]], pins: Pins = NO_PINS) -> list[str | None]:
    """Return the roots of pages that come in this order, those of the last batch."""
    forest = Forest(MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=_RELATION))
    for batch in batches:
        texts = [" ".join(page) for page in batch]
        _, decided = arrive(
            texts,
            times_ms=[None] * len(texts),
            fingerprinter=Fingerprinter(VERIFIED),
            forest=forest,
            now_ms=0,
            pins=pins,
        )
    return [each.root for each in decided.assignments]


@pytest.mark.parametrize("seed", range(4))
def test_five_pages_with_a_story_part_its_reprints_unless_it_is_pinned(seed: int) -> None:
    """Before the story is crawled, and after; three pages teach nothing."""
    random = Random(seed)
    story = _story(random)
    reprints = [_reprint(random, story) for _ in range(10)]
    for first, last in (([], [story, *reprints]), ([story], [story, *reprints])):
        assert len(set(_roots(first, _lesson(random, story, pages=3), last))) == 1
        assert len(set(_roots(first, _lesson(random, story), last))) > 5
        pins = Pins.of([Pin(text=" ".join(story))])
        assert len(set(_roots(first, _lesson(random, story), last, pins=pins))) == 1


@pytest.mark.parametrize("seed", range(4))
def test_five_pages_draw_two_stories_that_share_a_sentence(seed: int) -> None:
    random = Random(seed)
    shared = "The editors of this newspaper answer the questions of their readers every morning."
    one, other = ([*_story(random), shared] for _ in range(2))
    taught = _lesson(random, one[:-1] + other[:-1])
    assert len(set(_roots([one, other]))) == 2
    assert len(set(_roots(taught, [one, other]))) == 1
    pins = Pins.of([Pin(text=" ".join(story)) for story in (one, other)])
    assert len(set(_roots(taught, [one, other], pins=pins))) == 2
