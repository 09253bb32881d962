"""The boilerplate learner: threads, interruptions, stored changes, and learning before assigning."""

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from esdedup.ingest.cluster import ClusteredArticle
from esdedup.ingest.files import FileArticle
from esdedup.ingest.learn import check_two_passes, first_pass, two_passes
from hypothesis import given
from hypothesis import strategies as st

from esdedup import ArticleRejected, Fields, SettingError
from esdedup._core import Changes, Learner, OverrideTable, Parsed, PassageFilter
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import bytes_of, read_changes
from esdedup.boilerplate.overrides import NO_OVERRIDES
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.sites import RawPage
from esdedup.text.parsed import ParsedTexts
from tests.support.faults import Interrupted, Interrupts
from tests.support.forests import clustering
from tests.support.learned import arrays_of, contents, last_learned_page
from tests.support.pages import article, pages


def learner() -> Learner:
    return Learner(block_pages=2, end_passages=9, least_article_bits=7, period_records=99)


PAGE = [(1 << 40, 60, True, False)]


def left_out(
    learner: Learner,
    page: int,
    site: Sequence[str | None] = (None,),
    article: Sequence[str | None] = (None,),
    overrides: OverrideTable = NO_OVERRIDES.core,
) -> bytes:
    passage_filter = PassageFilter(learner, overrides, (site, article, [None]))
    return Parsed.of_passages([(page, PAGE)]).left_out(passage_filter)


def test_names_or_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer names than texts"):
        left_out(learner(), 1, [])
    with pytest.raises(ValueError, match="no step is open"):
        learner().changes()
    with pytest.raises(ValueError, match="differ in length"):
        Changes.of_columns([b""] * 14)


def test_names_may_have_lone_surrogates() -> None:
    overrides = OverrideTable([(1 << 40, "\ud800", True)])
    for site, is_left_out in (("\ud800", b"\x01"), ("\ud801", b"\x00"), (None, b"\x00")):
        assert left_out(learner(), 1, [site], ["\udfff"], overrides) == is_left_out


def test_threads_can_share_a_learner() -> None:
    shared = learner()

    def see(page: int) -> bytes:
        assert shared.size_bytes >= 0
        return left_out(shared, page)

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(see, range(1, 401))) == {b"\x00"}
    assert shared.last_page == 400


TEXTS = [page["text"] for page in pages(60)]
# Several blocks and periods end within these batches.
BATCHES = [
    parsed
    for start in range(0, 40, 10)
    for parsed in Fingerprinter(VERIFIED).parsed(TEXTS[start : start + 10])
]


def is_learning(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    # All methods but `filter` are implemented in Rust, so `learn` is interrupted before and after a call.
    return module.startswith("esdedup.boilerplate") or frame.f_code is learn.__code__


def learn(boilerplate: Boilerplate, batch: ParsedTexts) -> None:
    """Filter a batch and undo it, then filter and keep it."""
    for end in (boilerplate.undo, boilerplate.keep):
        boilerplate.begin()
        batch.left_out(boilerplate.filter())
        end()


def trained(batches: list[ParsedTexts]) -> Boilerplate:
    boilerplate = Boilerplate(block_pages=5, period_records=40)
    for batch in batches:
        learn(boilerplate, batch)
    return boilerplate


def test_an_exception_at_any_point_can_be_undone() -> None:
    interrupts = Interrupts(is_learning)
    for count, batch in enumerate(BATCHES):
        before, expected = contents(trained(BATCHES[:count])), contents(trained(BATCHES[: count + 1]))
        is_learned = False
        while not is_learned:
            tried = trained(BATCHES[:count])
            with contextlib.suppress(Interrupted), interrupts.one():
                learn(tried, batch)
                is_learned = True
            assert not tried.is_broken
            is_open = tried.has_begun
            while tried.has_begun:
                tried.undo()
            assert contents(tried) in ([before] if is_open else [before, expected])
    assert trained(BATCHES).former_from > 1
    assert interrupts.functions >= {"Boilerplate.filter", "learn"}


def test_a_copy_works_after_a_failed_lookup() -> None:
    learned = LearnedCopy()

    def found() -> list[bool]:
        with learned.filter_on(None) as passage_filter:
            flags: list[bool] = BATCHES[0].left_out(passage_filter).tolist()
        return flags

    expected = found()
    with pytest.raises(Interrupted), learned.filter_on(None):
        raise Interrupted
    assert not learned._known.boilerplate.has_begun
    assert found() == expected


Array = np.ndarray[Any, np.dtype[Any]]

MORE_TEXTS = [page["text"] for page in pages(60)]
FINGERPRINTER = Fingerprinter(VERIFIED)


def new_boilerplate() -> Boilerplate:
    return Boilerplate(block_pages=5, period_records=60)


def changes_of_batches(*, size: int) -> list[Changes]:
    """Return the changes of several batches, within which blocks and a period end."""
    boilerplate, found = new_boilerplate(), []
    for start in range(0, len(MORE_TEXTS), size):
        boilerplate.begin()
        for parsed in FINGERPRINTER.parsed(MORE_TEXTS[start : start + size]):
            parsed.left_out(boilerplate.filter())
        found.append(boilerplate.changes())
        boilerplate.keep()
    assert boilerplate.former_from > 1
    assert len(boilerplate.learned()) > 3
    return found


CHANGES = changes_of_batches(size=9)


def at_last(value: int) -> Callable[[Array], Array]:
    def damage(array: Array) -> Array:
        changed = array.copy()
        changed.reshape(-1)[-1:] = value
        return changed

    return damage


DAMAGES: list[Callable[[Array], Array]] = [
    lambda array: array[:-1],
    lambda array: array[..., None],
    lambda array: np.concatenate((array, array)),
    lambda array: array.reshape(-1)[:0],
    lambda array: array.astype(np.float64),
    lambda array: array.astype(np.int8),
    lambda array: np.zeros((), array.dtype),
    lambda array: array.astype("U5"),
    *(at_last(value) for value in (0, 1, 10**6, 2**31 - 1)),
]


@given(st.integers(0, len(CHANGES) - 1), st.sampled_from(DAMAGES), st.data())
def test_impossible_changes_raise_only_value_errors(
    at: int, damage: Callable[[Array], Array], data: st.DataObject
) -> None:
    arrays = arrays_of(CHANGES[at])
    name = data.draw(st.sampled_from(sorted(arrays)))
    arrays[name] = damage(arrays[name])
    content = bytes_of([each.tobytes() for each in arrays.values()])
    boilerplate = new_boilerplate()
    with contextlib.suppress(ValueError):
        damaged = read_changes(content)
        for number, changes in enumerate(CHANGES):
            boilerplate.apply(damaged if number == at else changes)
        # Damage that raises no error affects only which passages are learned.
        filter_all(boilerplate)


def filter_all(boilerplate: Boilerplate) -> None:
    try:
        FINGERPRINTER.fingerprint(MORE_TEXTS, passage_filter=boilerplate.filter())
    except ValueError as error:
        raise AssertionError from error


@given(st.integers(0, len(CHANGES) - 1), st.data())
def test_corrupted_bytes_are_refused(at: int, data: st.DataObject) -> None:
    content = bytearray(bytes_of(CHANGES[at].columns()))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="wrong format or checksum"):
        read_changes(bytes(content))


@pytest.mark.parametrize("missing", range(1, len(CHANGES) - 1))
def test_changes_after_a_gap_are_refused(missing: int) -> None:
    boilerplate = new_boilerplate()
    for changes in CHANGES[:missing]:
        boilerplate.apply(changes)
    with pytest.raises(ValueError, match="does not follow"):
        boilerplate.apply(CHANGES[missing + 1])
    with pytest.raises(ValueError, match="does not follow"):
        boilerplate.apply(CHANGES[missing - 1])


def test_passages_match_the_golden_vectors() -> None:
    """Stored documents contain these hashes: if they change, raise `FORMAT` in elastic/forest/meta.py."""
    lines = (
        "Home",
        "Sign in",
        "It was said on 5 May 2026. \u201cNobody came.\u201d",
        "\u4e91\u9675\u5730\u94c1\u5f00\u901a\u3002 Read more...",
    )
    (parsed,) = FINGERPRINTER.parsed(["\n".join(lines)])
    passages = parsed.passages
    found = list(
        zip(
            passages.hashes.tolist(),
            passages.alphanumerics.tolist(),
            passages.are_prose.tolist(),
            strict=True,
        )
    )
    assert found == [
        (0x09B581A3AAA61AAC, 4, False),
        (0x2C15B90A24455F65, 6, False),
        (0x2C3DA9573E3ABCCC, 19, True),
        (0x42D3052DD3132E81, 10, True),
        (0xD10663DDC3CE56D2, 6, True),
        (0xCE778DF4D553C8D0, 8, False),
    ]


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
    for first, articles in two_passes(read, learn_first=learn_first, ahead=ahead):
        first_pass(mine.learn, first, Fields())
        found += mine.cluster(articles)
    # The rejected line is reported once, although it is read twice.
    assert [str(each) for each in rejected] == ["f:71: is not JSON"]
    assert [each.id for each in found] == [page["id"] for page in PAGES]
    return found


def test_two_passes_filter_from_the_first_page_on() -> None:
    """In a single pass, nothing has been learned yet when the first block of pages is filtered."""
    single, whole, parts = (
        [each.fingerprint for each in clustered(learn_first=learn_first, ahead=ahead)][:64]
        for learn_first, ahead in ((False, 1), (True, 1_000), (True, 75))
    )
    for found in (whole, parts):
        assert sum(one != other for one, other in zip(single, found, strict=True)) > 40


def test_edited_versions_of_an_article_are_not_learned() -> None:
    chance, versions, stories = random.Random(4), list[str](), 3
    for story in range(stories):
        sentences = " ".join(map(article, range(3 * story, 3 * story + 3))).split(". ")
        for _ in range(120):
            edited = [f"beyond {each}" if chance.random() < 0.35 else each for each in sentences]
            versions.append(". ".join(edited))
    chance.shuffle(versions)
    rejected: list[ArticleRejected] = []
    mine = clustering(rejected)
    found = mine.cluster(
        FileArticle(place=f"f:{number}", id=str(number), article={"text": text}, size_bytes=len(text))
        for number, text in enumerate(versions)
    )
    assert len({each.root for each in found}) == stories
    assert not len(mine._store.boilerplate.learned())


@pytest.mark.parametrize("count", [40, 64 + 10])
def test_learning_first_works_with_few_pages(count: int) -> None:
    """The last pages do not fill a block of 32 pages."""
    own = list(pages(count + 20, sites=1))
    trained, fresh = clustering([]), clustering([])
    texts = [RawPage(page["text"], None, page["id"]) for page in own[:count]]
    assert trained.learn(texts) == count
    boilerplate = trained._store.boilerplate
    assert (boilerplate.last_page, last_learned_page(boilerplate)) == (count, count)
    rest = [FileArticle(place="f", id=page["id"], article=page, size_bytes=1) for page in own[count:]]
    found = [[each.fingerprint for each in some.cluster(rest)] for some in (trained, fresh)]
    assert sum(one != other for one, other in zip(*found, strict=True)) == 20


def test_a_call_without_pages_does_not_end_a_block() -> None:
    mine = clustering([])
    list(mine.cluster(itertools.islice(read(), 20)))
    assert mine.learn([]) == 0
    first_pass(mine.learn, (), Fields())
    boilerplate = mine._store.boilerplate
    assert (boilerplate.last_page, last_learned_page(boilerplate)) == (20, 0)
    # A call with only known pages, such as a repeated call after an interruption, ends the block.
    assert mine.learn([RawPage(PAGES[0]["text"])]) == 0
    assert (boilerplate.last_page, last_learned_page(boilerplate)) == (20, 20)


@pytest.mark.parametrize("ahead", [1, 64, 75, 151, 152])
def test_both_passes_read_the_same_articles(ahead: int) -> None:
    first: list[str] = []
    second: list[str] = []
    for one, other in two_passes(read, learn_first=True, ahead=ahead):
        first += map(str, one)
        second += map(str, other)
        assert first == second
    assert second == list(map(str, read()))


def test_articles_added_between_two_passes_are_assigned() -> None:
    numbers = itertools.count()
    lengths = iter((5, 8))

    def growing() -> Iterator[FileArticle | ArticleRejected]:
        next(numbers)
        return itertools.islice(read(), next(lengths))

    parts = two_passes(growing, learn_first=True, ahead=2)
    assert [[len(list(each)) for each in part] for part in parts] == [[2, 2], [2, 2], [1, 2], [0, 2]]


def test_pages_learned_first_are_not_learned_again() -> None:
    """The order of the pages and the size of the batches make no difference."""
    mine = clustering([])
    texts = [RawPage(page["text"]) for page in PAGES]
    assert mine.learn(texts[:100]) == 100
    assert mine.learn(texts) == 50
    assert mine.learn(random.Random(1).sample(texts, 150)) == 0
    boilerplate = mine._store.boilerplate
    before = boilerplate.last_page
    list(mine.cluster(read()))
    assert boilerplate.last_page == before == 150


def test_inputs_readable_only_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="standard input can be read only once"):
        check_two_passes([Path("-")], VERIFIED)
    with pytest.raises(SettingError, match="/dev/null can be read only once"):
        check_two_passes([Path("/dev/null")], VERIFIED)
    with pytest.raises(SettingError, match="keeps boilerplate"):
        check_two_passes([tmp_path], VERIFIED.with_changes(keep_boilerplate=True))
