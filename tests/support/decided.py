"""Decisions that no forest has made."""

from esdedup.ingest.actions import ArticleAction, ArticleDecision, addition_to

from esdedup.forest.model import Assignment, Kind


def decided(article: ArticleAction, at: int) -> ArticleDecision:
    """Return that an article is a root of its own, by its place among others."""
    assignment = Assignment(Kind.NEW_ROOT, f"n{at}", f"root-{at}", at, 1_000, b"")
    added = addition_to(
        article,
        assignment,
        {"fingerprint": f"n{at}"},
        alphanumerics=len(article.text),
        profile="verified-5",
    )
    return ArticleDecision(article, assignment, added)
