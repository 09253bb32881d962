"""Assigns articles without a forest."""

from esdedup.ingest.actions import ArticleAction, addition_to

from esdedup.forest.model import Assignment, Kind


def decide(article: ArticleAction, at: int) -> None:
    """Assign an article to a new root; the ids of its node and root contain the number `at`."""
    article.assignment = Assignment(Kind.NEW_ROOT, f"n{at}", f"root-{at}", at, 1_000, b"")
    article.parts, article.routing = addition_to(
        article,
        article.assignment,
        {"fingerprint": f"n{at}"},
        alphanumerics=len(article.text),
        profile="verified-5",
    )
