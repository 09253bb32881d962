"""What the page of a comparison says about two articles."""

import pytest

from esdedup import explain
from esdedup.neighbours.explanation import Explanation
from esdedup.reading.verdict import ArticleState, IndexedExplanation, outcome
from esdedup.web.comparison import explained
from esdedup.web.languages import language

FERRY = "The ferry to the outer islands runs again from Monday, the harbour council says in a letter."
RAIN = "Rain is expected in the hills from noon on, and the rivers may leave their beds by the evening."


def indexed(comparison: Explanation, *, roots: tuple[str | None, str | None]) -> IndexedExplanation:
    """Return what two articles with these roots, about which nothing else is known, are told to be."""
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


def test_two_versions_of_a_story() -> None:
    found = explained(
        indexed(explain(f"{FERRY} {RAIN}", f"{FERRY} {RAIN} They say so."), roots=("a", "a")), language("en")
    )
    assert found.is_one_cluster
    assert (found.verdict, found.reason) == ("One story.", "Their wording is alike enough.")
    assert found.rule.endswith("one cluster.")
    assert found.shared == tuple(each.lower().removesuffix(".") for each in (FERRY, RAIN))
    facts = {fact.name: fact.value for fact in found.facts}
    assert facts["Wording in common"].endswith("% counted")
    assert facts["Needed at this length"].endswith("%")
    assert " in A, " in facts["Representatives in common"]


@pytest.mark.parametrize(
    ("code", "verdict", "reason"),
    [
        ("en", "Two stories.", "They have no characteristic passage in common."),
        ("zh", "两组。", "没有共同的特征片段。"),
    ],
)
def test_two_stories(code: str, verdict: str, reason: str) -> None:
    found = explained(indexed(explain(FERRY, RAIN), roots=("a", "b")), language(code))
    assert not found.is_one_cluster
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.shared == ()
    assert found.more_shared == 0


def test_what_others_decided_is_said_in_full() -> None:
    found = explained(indexed(explain(FERRY, RAIN), roots=("a", "a")), language("en"))
    assert found.verdict == "One story."
    assert "other articles link them" in found.reason


def test_a_text_without_words() -> None:
    found = explained(indexed(explain(FERRY, ""), roots=("a", None)), language("en"))
    assert found.reason.startswith("B was indexed without esdedup")
    assert found.rule.startswith("One of them has no fingerprint")
    assert found.facts == ()
