"""Learning first: what pages teach before they, or others, are assigned."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from esdedup.ingest.cluster import ClusteredArticle
from esdedup.ingest.files import FileArticle
from esdedup.ingest.learn import Learning, check_two_looks, first_look, looks

from esdedup import VERIFIED, ArticleRejected, Fields, SettingError
from esdedup.sites import RawPage
from tests.support.clusterings import clustering
from tests.support.pages import pages

PAGES = list(pages(150))


def read() -> Iterator[FileArticle | ArticleRejected]:
    for number, page in enumerate(PAGES):
        yield FileArticle(place=f"f:{number}", id=page["id"], article=page, size_bytes=len(page["text"]))
        if number == 70:
            yield ArticleRejected("f:71", "is not JSON")


def clustered(*, learn_first: bool, ahead: int = 1_000) -> list[ClusteredArticle]:
    rejected: list[ArticleRejected] = []
    mine = clustering(rejected)
    found: list[ClusteredArticle] = []
    for first, articles in looks(read, learn_first=learn_first, ahead=ahead):
        first_look(mine, first, Fields())
        found += mine.cluster(articles)
    # Once, though it was read twice.
    assert [str(each) for each in rejected] == ["f:71: is not JSON"]
    assert [each.id for each in found] == [page["id"] for page in PAGES]
    return found


def test_two_looks_know_boilerplate_from_the_first_page_on() -> None:
    """The first block of pages is judged by nothing otherwise."""
    single, whole, parts = (
        [each.fingerprint for each in clustered(learn_first=learn_first, ahead=ahead)][:64]
        for learn_first, ahead in ((False, 1), (True, 1_000), (True, 75))
    )
    for found in (whole, parts):
        assert sum(one != other for one, other in zip(single, found, strict=True)) > 55


@pytest.mark.parametrize("count", [40, 64 + 10])
def test_a_look_at_few_pages_teaches_too(count: int) -> None:
    """They fill no block, or the last ones do not."""
    own = list(pages(count + 20, sites=1))
    taught, fresh = clustering([]), clustering([])
    texts = [RawPage(page["text"], "site.example", page["id"]) for page in own[:count]]
    assert taught.learn(texts) == count
    boilerplate = taught._forest._store.boilerplate
    assert (boilerplate.last_page, boilerplate.learner.last_learned_page) == (count, count)
    rest = [FileArticle(place="f", id=page["id"], article=page, size_bytes=1) for page in own[count:]]
    found = [[each.fingerprint for each in some.cluster(rest)] for some in (taught, fresh)]
    assert sum(one != other for one, other in zip(*found, strict=True)) == 20


def test_a_call_without_pages_does_not_end_a_block() -> None:
    mine = clustering([])
    list(mine.cluster(itertools.islice(read(), 20)))
    assert mine.learn([]) == 0
    first_look(mine, (), Fields())
    boilerplate = mine._forest._store.boilerplate
    assert (boilerplate.last_page, boilerplate.learner.last_learned_page) == (20, 0)
    # An interrupted call that had learned from all pages is repeated.
    assert mine.learn([RawPage(PAGES[0]["text"])]) == 0
    assert (boilerplate.last_page, boilerplate.learner.last_learned_page) == (20, 20)


@pytest.mark.parametrize("ahead", [1, 64, 75, 151, 152])
def test_each_article_has_both_looks_in_its_part(ahead: int) -> None:
    first: list[str] = []
    second: list[str] = []
    for one, other in looks(read, learn_first=True, ahead=ahead):
        first += map(str, one)
        second += map(str, other)
        assert first == second
    assert second == list(map(str, read()))


def test_what_was_added_to_a_file_between_the_looks_is_assigned() -> None:
    numbers = itertools.count()
    lengths = iter((5, 8))

    def growing() -> Iterator[FileArticle | ArticleRejected]:
        next(numbers)
        return itertools.islice(read(), next(lengths))

    parts = looks(growing, learn_first=True, ahead=2)
    assert [[len(list(each)) for each in part] for part in parts] == [[2, 2], [2, 2], [1, 2], [0, 2]]


def test_pages_that_have_taught_teach_nothing_when_they_come() -> None:
    """In any order and cut: those that come are judged by the same as long as nothing new comes."""
    mine = clustering([])
    texts = [RawPage(page["text"]) for page in PAGES]
    assert mine.learn(texts[:100]) == 100
    assert mine.learn(texts) == 50
    assert mine.learn(random.Random(1).sample(texts, 150)) == 0
    boilerplate = mine._forest._store.boilerplate
    before = boilerplate.last_page
    list(mine.cluster(read()))
    assert boilerplate.last_page == before == 150


def test_a_run_that_learns_counts_every_page_once() -> None:
    rejected: list[ArticleRejected] = []
    learning = Learning(on_rejected=rejected.append)
    texts = [RawPage(page["text"]) for page in PAGES[:3]]
    given: list[RawPage | ArticleRejected] = [*texts, texts[0], RawPage("!!!")]
    given.insert(3, ArticleRejected("4", "has no text"))
    batches: list[int] = []
    learning.run(clustering([]), given, on_learned=batches.append)
    summary = learning.summary
    assert (summary.read, summary.learned, summary.known, summary.failed) == (6, 3, 2, 1)
    assert sum(batches) == 5
    assert [each.article for each in rejected] == ["4"]


def test_what_can_be_read_only_once_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="standard input can be read only once"):
        check_two_looks([Path("-")], VERIFIED)
    with pytest.raises(SettingError, match="/dev/null can be read only once"):
        check_two_looks([Path("/dev/null")], VERIFIED)
    with pytest.raises(SettingError, match="keeps boilerplate"):
        check_two_looks([tmp_path], VERIFIED.with_changes(keep_boilerplate=True))
