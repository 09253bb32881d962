"""Feeders of the demo share its articles."""

import threading
from collections.abc import Iterator, Sequence

import pytest
from esdedup.ingest.files import FileArticle

from esdedup.cli import demo_feeders
from esdedup.cli.demo_feeders import SharedArticles
from esdedup.errors import ArticleRejected, SidecarError


def article(number: int) -> FileArticle:
    return FileArticle(place=f"a.jsonl:{number}", id=str(number), article={"text": "x"}, size_bytes=10)


def test_each_article_is_sent_once_and_every_refusal_is_named() -> None:
    rejected: list[ArticleRejected] = []
    sent: list[str] = []
    # Each begins when the others have begun.
    all_there = threading.Barrier(3, timeout=10)

    begun = threading.local()

    def send(articles: Sequence[FileArticle]) -> dict[str, str]:
        if not hasattr(begun, "yes"):
            begun.yes = True
            all_there.wait()
        sent.extend(each.id for each in articles)
        return {each.id: "no" for each in articles if each.id == "7"}

    unreadable = ArticleRejected("a.jsonl:1000", "is not JSON")
    feeding = SharedArticles([*map(article, range(1_000)), unreadable], on_rejected=rejected.append)
    fed = feeding.run({"one": send, "two": send, "three": send})
    assert sorted(sent, key=int) == [str(number) for number in range(1_000)]
    assert sum(each.articles for each in fed.values()) == 1_000
    assert min(each.articles for each in fed.values()) >= 250
    assert (feeding.read, feeding.failed) == (1_001, 2)
    assert {(each.article, each.reason) for each in rejected} == {
        ("a.jsonl:7 (id '7')", "no"),
        ("a.jsonl:1000", "is not JSON"),
    }


@pytest.mark.timeout(20)
def test_a_feeder_that_fails_ends_the_others() -> None:
    failed = threading.Event()

    def endless() -> Iterator[FileArticle]:
        while True:
            yield article(0)

    def fail(_: Sequence[FileArticle]) -> dict[str, str]:
        failed.set()
        raise SidecarError("no sidecar", address="http://127.0.0.1:1")

    def send(_: Sequence[FileArticle]) -> dict[str, str]:
        failed.wait()
        return {}

    with pytest.raises(SidecarError):
        SharedArticles(endless(), on_rejected=lambda _: None).run({"one": send, "two": fail, "three": send})


def test_an_answer_that_is_none_of_a_bulk_request_is_an_error() -> None:
    with pytest.raises(SidecarError, match="answers: <html>"):
        demo_feeders._send_plainly(lambda *_: b"<html>", "http://127.0.0.1:1/demo/_bulk", [article(0)])
