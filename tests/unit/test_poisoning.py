"""What somebody gains who feeds articles made to draw others into one cluster."""

from random import Random

import pytest

from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import Aging, Arrivals, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.neighbours.relation import relation_of

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
    assigned = forest.assign(
        Arrivals.of(fingerprints, times_ms=[None] * len(texts), relation=_RELATION), now_ms=0
    )
    roots = [each.root for each in assigned]
    assert roots[-20:] == [roots[0]] * 10 + [roots[1]] * 10
