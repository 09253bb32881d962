"""What became of two articles, from what is known of them."""

from typing import Any

import pytest

from esdedup.fingerprint.profile import VERIFIED
from esdedup.reading.explanation import explain
from esdedup.reading.verdict import ArticleState, Outcome, RootComparison, outcome

NEAR = explain("the ferry line has ordered four ships", "The ferry line has ordered four ships!", VERIFIED)
FAR = explain("the ferry line has ordered four ships", "rain is expected in the hills on monday", VERIFIED)
COMMON = [each.simhash for each in NEAR.one.representatives]
FROM_ROOT = RootComparison(root="aa", article=None, nearest_bits=0, whole_texts=None, may_join=False)


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
        # Only what came later had the choice.
        (NEAR, {"seq": 2}, {"seq": 1, "to_other_root": FROM_ROOT, "root": "c"}, Outcome.UNEXPLAINED),
        # The order of texts counts, not that of articles which may have come again.
        (NEAR, {"seq": 3, "node_seq": 1}, {"seq": 2, "root": "c"}, Outcome.OTHER_ROOT),
        (NEAR, {"seq": 1}, {"seq": 2}, Outcome.UNEXPLAINED),
        (NEAR, {"seq": 1, "indexed": ["0" * 16]}, {"seq": 2}, Outcome.SATURATED),
        (NEAR, {"seq": 1, "indexed": COMMON}, {"seq": 2}, Outcome.UNEXPLAINED),
        # It is the earlier one that must be found.
        (NEAR, {"seq": 2, "indexed": ["0" * 16]}, {"seq": 1, "indexed": COMMON}, Outcome.UNEXPLAINED),
    ],
)
def test_the_outcome_follows_from_comparison_and_index(
    comparison: Any, one: dict[str, Any], other: dict[str, Any], expected: Outcome
) -> None:
    assert judge(comparison, state("a", **one), state("b", **other)) is expected


def test_the_gap_is_inclusive() -> None:
    earlier, later = state("a", seq=1), state("b", seq=2, root="c")
    assert judge(NEAR, earlier, later, 9) is Outcome.OTHER_ROOT
    assert judge(NEAR, earlier, later, 10) is Outcome.EXPIRED
    certain = later.model_copy(update={"to_other_root": FROM_ROOT})
    assert judge(NEAR, earlier, certain, 10) is Outcome.FAR_FROM_ROOT
