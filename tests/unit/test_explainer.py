"""An explanation says what the forest does, and why."""

import dataclasses
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile
from esdedup.forest import Aging, Arrivals, Forest, Kind
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Rule
from esdedup.neighbours.relation import relation_of
from esdedup.sample import articles

SAMPLE = [article["text"] for article in articles(300)]
EXPLAINERS = {profile: Explainer(profile) for profile in PROFILES.values()}
PIECES = (
    *("the ferry line has ordered four electric ships", "for the crossing that it has served", "12.5%"),
    *(
        "since the harbour was built,",
        "said its director",
        "云陵地铁今天开始试运行",
        "，全长 31.6 公里",
        "。",
    ),
    *(". ", "\n\n", "1987", "and the town", "!"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join) | st.sampled_from(SAMPLE) | st.text()


LINES = [
    "The ferry to the northern islands stays in the harbour today because of high waves.",
    "A museum of old maps opens its doors in the former customs house on Saturday.",
]


def alone(one: str, other: str, profile: Profile) -> tuple[Kind, bool]:
    """Return what becomes of the second of two texts in an empty forest, and whether they share a root."""
    relation = relation_of(profile)
    arrivals = Arrivals.of(Fingerprinter(profile).fingerprint([one, other]), times_ms=[None, None])
    store = MemoryStore(aging=Aging(retention_ms=1, granularity_ms=1), relation=relation)
    first, second = Forest(store).assign(arrivals, now_ms=0)
    return second.kind, first.root is not None and first.root == second.root


@given(st.sampled_from(list(PROFILES.values())), TEXTS, TEXTS, st.booleans())
@example(VERIFIED, SAMPLE[0], SAMPLE[0] + " And one sentence more.", False)
@example(VERIFIED, LINES[0], " ".join(LINES), False)
@example(VERIFIED, " ".join(LINES), LINES[0], False)
def test_it_says_what_the_forest_does(profile: Profile, one: str, other: str, is_same: bool) -> None:
    other = one if is_same else other
    found = EXPLAINERS[profile].explain(one, other)
    kind, together = alone(one, other, profile)
    assert found.near is together
    assert (found.rule is Rule.EQUAL) is (kind is Kind.KNOWN)
    assert found.may_join >= found.near


@given(st.sampled_from(list(PROFILES.values())), TEXTS, TEXTS)
def test_an_explanation_is_symmetric_but_for_joining(profile: Profile, one: str, other: str) -> None:
    there, back = (EXPLAINERS[profile].explain(*texts) for texts in ((one, other), (other, one)))
    assert (there.one, there.other) == (back.other, back.one)
    assert {there.rule, back.rule} == {there.rule} or Rule.IN_THE_FIRST in {there.rule, back.rule}
    # Who may join whom is the one thing that has a direction.
    assert (there.whole_texts is None) == (back.whole_texts is None)
    if there.whole_texts is not None and back.whole_texts is not None:
        assert (
            there.whole_texts.model_copy(update={"may_join": back.whole_texts.may_join}) == back.whole_texts
        )
    assert all(pair.distance_bits <= there.max_distance_bits for pair in there.pairs)
    assert there.pairs[:1] == ((there.nearest,) if there.nearest in there.pairs else ())
    if there.whole_texts is not None:
        exact = there.whole_texts.exact_resemblance, there.whole_texts.exact_contained
        assert all(share is not None and 0 <= share <= 1 for share in exact)
    for text in (there.one, there.other):
        assert bool(text.representatives) is (text.fingerprint is not None)
        assert text.number_share is None or 0 <= text.number_share <= 1


@given(TEXTS.filter(lambda text: EXPLAINERS[VERIFIED].fingerprint(text) is not None))
def test_a_text_resembles_itself_entirely(text: str) -> None:
    whole_texts = EXPLAINERS[VERIFIED].explain(text, text).whole_texts
    assert whole_texts is not None
    assert whole_texts.resemblance == pytest.approx(1)
    assert (whole_texts.exact_resemblance, whole_texts.exact_contained) == (1, 1)


def test_the_estimate_is_of_what_is_counted() -> None:
    errors = []
    for one, other in itertools.pairwise(SAMPLE[:150]):
        whole_texts = EXPLAINERS[VERIFIED].explain(one, other).whole_texts
        assert whole_texts is not None
        assert whole_texts.exact_resemblance is not None
        errors.append(whole_texts.resemblance - whole_texts.exact_resemblance)
    assert (sum(error**2 for error in errors) / len(errors)) ** 0.5 < 0.05


def test_a_template_with_other_numbers_is_not_alike() -> None:
    template = "the shipping forecast says {} knots and {} metres in the northern bay until {} o'clock"
    found = EXPLAINERS[VERIFIED].explain(template.format(11, 2, 6), template.format(27, 5, 9))
    assert found.rule in {Rule.UNLIKE, Rule.NOTHING_IN_COMMON}
    whole_texts = found.whole_texts
    assert whole_texts is not None
    assert whole_texts.exact_resemblance_of_words == 1
    assert whole_texts.exact_resemblance is not None
    assert whole_texts.exact_resemblance < whole_texts.needed
    assert found.one.number_share == pytest.approx(found.other.number_share)
    # Without the weight of numbers they would count as one.
    assert VERIFIED.agreement is not None
    light = dataclasses.replace(VERIFIED, agreement=dataclasses.replace(VERIFIED.agreement, number_weight=1))
    unweighted = Explainer(light).explain(template.format(11, 2, 6), template.format(27, 5, 9)).whole_texts
    assert unweighted is not None
    assert unweighted.exact_resemblance is not None
    assert unweighted.exact_resemblance > whole_texts.exact_resemblance


def test_what_represents_a_text() -> None:
    text = "A short one. The ferry line has ordered four electric ships for its crossing to the islands."
    verified = EXPLAINERS[VERIFIED].representatives(text)
    assert [each.kind for each in verified] == ["sentence", "sentence", "minhash"]
    assert [each.passage for each in verified][1:] == [
        "the ferry line has ordered four electric ships for its crossing to the islands",
        None,
    ]
    (classic,) = EXPLAINERS[CLASSIC].representatives(text)
    assert (classic.kind, classic.passage) == ("sentence", verified[1].passage)
    (keywords,) = EXPLAINERS[KEYWORDS].representatives(text)
    assert keywords.kind == "words"
    assert keywords.passage is not None
    assert {"ferry", "electric"} <= set(keywords.passage.split())


@pytest.mark.parametrize("nothing", ["", "!!!", "abc", "😀" * 9])
def test_a_text_without_a_fingerprint_stands_alone(nothing: str) -> None:
    for explainer in EXPLAINERS.values():
        found = explainer.explain(nothing, SAMPLE[0])
        assert (found.rule, found.near, found.may_join) == (Rule.NO_FINGERPRINT, False, False)
        assert (found.one.fingerprint, found.nearest, found.whole_texts) == (None, None, None)
        assert found.other.fingerprint == explainer.fingerprint(SAMPLE[0])
