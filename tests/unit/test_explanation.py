"""Explanations of why two texts or articles do or do not share a cluster, and the page that shows why."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile
from esdedup.forest import Kind
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Explanation, Rule
from esdedup.neighbours.relation import relation_of
from esdedup.reading.explanation import explain
from esdedup.reading.verdict import ArticleState, IndexedExplanation, Outcome, RootComparison, outcome
from esdedup.sites import RawPage
from esdedup.web.article_pages import explained
from esdedup.web.languages import language
from tests.sample import articles
from tests.support.assign import assigned

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


ORIGINS = {
    "unknown": (0, 0),
    "one address": (5 << 38 | 1 << 12, 5 << 38 | 2 << 12),
    "one id": (1 << 12, 1 << 12),
    "one id at two addresses": (5 << 38 | 1 << 12, 6 << 38 | 1 << 12),
}
LINES = [
    "The ferry to the northern islands stays in the harbour today because of high waves.",
    "A museum of old maps opens its doors in the former customs house on Saturday.",
]


def alone(one: str, other: str, profile: Profile, origins: tuple[int, int] = (0, 0)) -> tuple[Kind, bool]:
    """Return how an empty forest assigns the second of two texts, and whether they share a root."""
    first, second = assigned([one, other], profile, origins=origins)
    return second.kind, first.root is not None and first.root == second.root


@given(st.sampled_from(list(PROFILES.values())), TEXTS, TEXTS, st.booleans(), st.sampled_from(list(ORIGINS)))
@example(VERIFIED, SAMPLE[0], SAMPLE[0] + " And one sentence more.", False, "unknown")
@example(VERIFIED, LINES[0], " ".join(LINES), False, "unknown")
@example(VERIFIED, " ".join(LINES), LINES[0], False, "unknown")
@example(VERIFIED, " ".join(LINES), LINES[0], False, "one address")
@example(VERIFIED, LINES[0], " ".join(LINES), False, "one address")
@example(VERIFIED, " ".join(LINES[:1] * 3 + LINES[1:]), " ".join(LINES), False, "one id")
@example(VERIFIED, SAMPLE[0], SAMPLE[0][: len(SAMPLE[0]) // 2], False, "one id at two addresses")
def test_explanations_agree_with_the_forest(
    profile: Profile, one: str, other: str, is_same: bool, origin: str
) -> None:
    other = one if is_same else other
    found = EXPLAINERS[profile].explain(
        *(RawPage(text, origin=bits) for text, bits in zip((one, other), ORIGINS[origin], strict=True))
    )
    kind, together = alone(one, other, profile, ORIGINS[origin])
    assert found.near is together
    assert (found.rule is Rule.EQUAL) is (kind is Kind.KNOWN)
    assert found.may_join >= found.near


@given(st.sampled_from(list(PROFILES.values())), TEXTS, TEXTS)
def test_an_explanation_is_symmetric(profile: Profile, one: str, other: str) -> None:
    there, back = (EXPLAINERS[profile].explain(*texts) for texts in ((one, other), (other, one)))
    assert (there.one, there.other) == (back.other, back.one)
    assert (there.rule, there.whole_texts, there.may_join) == (back.rule, back.whole_texts, back.may_join)
    assert all(pair.distance_bits <= there.max_distance_bits for pair in there.pairs)
    assert there.pairs[:1] == ((there.nearest,) if there.nearest in there.pairs else ())
    if there.whole_texts is not None:
        exact = there.whole_texts.exact_resemblance, there.whole_texts.exact_contained
        assert all(share is not None and 0 <= share <= 1 for share in exact)
        assert there.whole_texts.exact_replaced is not None
        assert there.whole_texts.exact_replaced >= 0
    for text in (there.one, there.other):
        assert bool(text.representatives) is (text.fingerprint is not None)


@given(TEXTS.filter(lambda text: EXPLAINERS[VERIFIED].signature(text) is not None))
def test_a_text_resembles_itself_entirely(text: str) -> None:
    whole_texts = EXPLAINERS[VERIFIED].explain(text, text).whole_texts
    assert whole_texts is not None
    assert whole_texts.resemblance == 1
    exact = whole_texts.exact_resemblance, whole_texts.exact_contained, whole_texts.exact_replaced
    assert exact == (1, 1, 0)


def test_the_estimate_is_near_the_exact_resemblance() -> None:
    errors = []
    for one, other in itertools.pairwise(SAMPLE[:150]):
        whole_texts = EXPLAINERS[VERIFIED].explain(one, other).whole_texts
        assert whole_texts is not None
        assert whole_texts.exact_resemblance is not None
        errors.append(whole_texts.resemblance - whole_texts.exact_resemblance)
    assert (sum(error**2 for error in errors) / len(errors)) ** 0.5 < 0.05


def test_different_figures_in_a_template_prevent_agreement() -> None:
    template = (
        "The shipping forecast says {} knots and high waves in the northern bay until the evening. Boats with"
        " a low board should stay in the harbour until {} o'clock, says the pilot on duty at the light tower."
    )
    found = EXPLAINERS[VERIFIED].explain(template.format(11, 7), template.format(27, 8))
    whole_texts = found.whole_texts
    assert whole_texts is not None
    assert found.rule is Rule.OTHER_FIGURES, whole_texts
    assert (whole_texts.exact_replaced, whole_texts.replaceable) == (2, 0)
    assert whole_texts.replaced == 2
    assert whole_texts.missed_by == 0
    # A figure written out in words does not count as a different one.
    same = EXPLAINERS[VERIFIED].explain(template.format(11, 7), template.format("eleven", 7))
    assert same.rule is Rule.RESEMBLE


def test_representatives_of_a_text_are_listed() -> None:
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
def test_a_text_without_a_fingerprint_is_near_nothing(nothing: str) -> None:
    for explainer in EXPLAINERS.values():
        found = explainer.explain(nothing, SAMPLE[0])
        assert (found.rule, found.near, found.may_join) == (Rule.NO_FINGERPRINT, False, False)
        assert (found.one.fingerprint, found.nearest, found.whole_texts) == (None, None, None)
        signature = explainer.signature(SAMPLE[0])
        assert signature is not None
        assert [found.other.fingerprint] == relation_of(explainer.profile).ids(signature)


NEAR = explain("the ferry line has ordered four ships", "The ferry line has ordered four ships!", VERIFIED)
FAR = explain("the ferry line has ordered four ships", "rain is expected in the hills on monday", VERIFIED)
COMMON = [each.simhash for each in NEAR.one.representatives]
FROM_ROOT = RootComparison(root="aa", article=None, nearest_bits=0, whole_texts=None, way=None)


def state(name: str, **known: Any) -> ArticleState:
    nothing: dict[str, Any] = dict.fromkeys(ArticleState.model_fields)
    usual: dict[str, Any] = {
        "id": name,
        "index": "news",
        "also_in": [],
        "root": name,
        "fingerprint": name,
        "profile": VERIFIED.label,
    }
    return ArticleState(**nothing | usual | known)


def judge(comparison: Any, one: ArticleState, other: ArticleState, gap_ms: int | None = None) -> Outcome:
    return outcome(comparison, one, other, gap_ms=gap_ms, retention_ms=10)


@pytest.mark.parametrize(
    ("comparison", "one", "other", "expected"),
    [
        (NEAR, {}, {"id": "a"}, Outcome.SAME_ARTICLE),
        (FAR, {}, {"id": "a", "index": "old"}, Outcome.APART),
        (NEAR, {"root": None}, {}, Outcome.NO_ROOT),
        (NEAR, {}, {"fingerprint": None}, Outcome.NO_FINGERPRINT),
        (NEAR, {}, {"profile": "q"}, Outcome.OTHER_PROFILES),
        (NEAR, {}, {"root": "a", "fingerprint": "a"}, Outcome.ONE_NODE),
        (NEAR, {}, {"root": "a"}, Outcome.TOGETHER),
        (FAR, {"profile": "p"}, {"profile": "p"}, Outcome.COMPARED_OTHERWISE),
        (FAR, {}, {"root": "a"}, Outcome.THROUGH_OTHERS),
        (FAR, {}, {"root": "a", "text_is_same": False}, Outcome.TEXT_CHANGED),
        (FAR, {}, {}, Outcome.APART),
        (NEAR, {"text_is_same": False}, {}, Outcome.TEXT_CHANGED),
        (NEAR, {"seq": 1}, {"seq": 2, "to_other_root": FROM_ROOT}, Outcome.FAR_FROM_ROOT),
        # Only the later article could choose between the two roots.
        (NEAR, {"seq": 2}, {"seq": 1, "to_other_root": FROM_ROOT, "root": "c"}, Outcome.UNEXPLAINED),
        # The order in which the texts first arrived decides, even though the first article was indexed again.
        (NEAR, {"seq": 3, "node_seq": 1}, {"seq": 2, "root": "c"}, Outcome.OTHER_ROOT),
        (NEAR, {"seq": 1}, {"seq": 2}, Outcome.UNEXPLAINED),
        (NEAR, {"seq": 1, "indexed": ["0" * 16]}, {"seq": 2}, Outcome.SATURATED),
        (NEAR, {"seq": 1, "indexed": COMMON}, {"seq": 2}, Outcome.UNEXPLAINED),
        # Only the earlier node has to be found by its keys.
        (NEAR, {"seq": 2, "indexed": ["0" * 16]}, {"seq": 1, "indexed": COMMON}, Outcome.UNEXPLAINED),
    ],
)
def test_the_outcome_follows_from_comparison_and_index(
    comparison: Any, one: dict[str, Any], other: dict[str, Any], expected: Outcome
) -> None:
    assert judge(comparison, state("a", **one), state("b", **other)) is expected


def test_nodes_expire_after_exactly_the_retention() -> None:
    earlier, later = state("a", seq=1), state("b", seq=2, root="c")
    assert judge(NEAR, earlier, later, 9) is Outcome.OTHER_ROOT
    assert judge(NEAR, earlier, later, 10) is Outcome.EXPIRED
    certain = later.model_copy(update={"to_other_root": FROM_ROOT})
    assert judge(NEAR, earlier, certain, 10) is Outcome.FAR_FROM_ROOT


FERRY = "The ferry to the outer islands runs again from Monday, the harbour council says in a letter."
RAIN = "Rain is expected in the hills from noon on, and the rivers may leave their beds by the evening."


def indexed(comparison: Explanation, *, roots: tuple[str | None, str | None]) -> IndexedExplanation:
    """Return the explanation of two indexed articles of which little more than the roots is known."""
    unknown = dict.fromkeys(ArticleState.model_fields)
    one, other = (
        ArticleState.model_validate(
            unknown
            | {"id": name, "index": "news", "also_in": (), "root": root, "profile": comparison.profile}
            | {"fingerprint": name}
        )
        for name, root in zip("ab", roots, strict=True)
    )
    return IndexedExplanation(
        comparison=comparison,
        one=one,
        other=other,
        forest="forest",
        forest_missing=None,
        learned_missing=None,
        retention_days=30,
        same_cluster=roots[0] is not None and roots[0] == roots[1],
        outcome=outcome(comparison, one, other, gap_ms=None, retention_ms=None),
    )


def test_two_versions_of_a_story_are_explained() -> None:
    found = explained(
        indexed(explain(f"{FERRY} {RAIN}", f"{FERRY} {RAIN} They say so."), roots=("a", "a")), language("en")
    )
    assert found.is_one_cluster
    assert (found.verdict, found.reason) == ("One story.", "Their wording is similar enough.")
    assert found.rule.endswith("one cluster.")
    assert found.shared == tuple(each.lower().removesuffix(".") for each in (FERRY, RAIN))
    facts = {fact.name: fact.value for fact in found.facts}
    assert facts["Wording in common"].endswith("% counted")
    assert facts["Needed at this length"].endswith("%")
    assert " in A, " in facts["Representatives in common"]


def test_a_text_without_words_is_explained() -> None:
    found = explained(indexed(explain(FERRY, ""), roots=("a", None)), language("en"))
    assert found.reason.startswith("No cluster for B:")
    assert found.rule.startswith("One of them has no fingerprint")
    assert found.facts == ()
