"""Boilerplate learned from pages agrees with the model, however the pages are split into batches."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup._core import Parsed, PassageFilter
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes, bytes_of, read_changes
from esdedup.boilerplate.overrides import Overrides
from esdedup.text.parsed import ParsedTexts
from tests.support.boilerplate_model import BoilerplateModel, ModelOverrides, ModelPassage, article_of
from tests.support.learned import contents, last_learned_page

# The id, passages, site and article of a page, optionally followed by its title.
Page = (
    tuple[int, list[ModelPassage], str | None, str | None]
    | tuple[int, list[ModelPassage], str | None, str | None, str | None]
)
TITLE = "Ferries stay in harbour for a third day as the storm goes on"

# Few passages, so that pages often share them; the hash of a passage determines its properties.
POOL = [
    ModelPassage((number + 1) << 32 | number * 7919, letters, is_prose, has_figures)
    for number, (letters, is_prose, has_figures) in enumerate(
        itertools.islice(itertools.cycle(itertools.product((10, 60, 150), (True, False), (False, True))), 24)
    )
]
SITES = [None, "a.example", "b.example"]
pages = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.lists(st.sampled_from(POOL), max_size=7),
        st.sampled_from(SITES),
        st.sampled_from([None, *"abcdefghijkl"]),
        st.sampled_from([None, TITLE, "一篇有足够多汉字的新闻报道标题"]),
    ),
    min_size=1,
    max_size=60,
)
overrides = st.dictionaries(
    st.tuples(st.sampled_from([each.hash for each in POOL]), st.sampled_from(SITES)),
    st.booleans(),
    max_size=8,
)
sizes = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def parsed_of(batch: list[Page]) -> ParsedTexts:
    """Return parsed texts that have only the passages of a batch."""
    return ParsedTexts(
        Parsed.of_passages(
            [
                (number, [(each.hash, each.letters, each.is_prose, each.has_figures) for each in own])
                for number, own, *_ in batch
            ]
        )
    )


def filter_of(boilerplate: Boilerplate, batch: list[Page], overridden: ModelOverrides) -> PassageFilter:
    """Return a filter to be used for all pages of a batch in order, a few at a time."""
    sites, articles = [page[2] for page in batch], [page[3] for page in batch]
    titles = [page[4] if len(page) > 4 else None for page in batch]
    return boilerplate.filter(overrides=Overrides(overridden), sites=sites, articles=articles, titles=titles)


def filtered(passage_filter: PassageFilter, batch: list[Page]) -> list[bool]:
    left_out: list[bool] = parsed_of(batch).left_out(passage_filter).tolist()
    return left_out


def cut(items: list[Page], sizes: list[int]) -> list[list[Page]]:
    """Split a list into parts of the given sizes, which are used in rotation."""
    bounds = [0]
    for size in itertools.cycle(sizes):
        if bounds[-1] >= len(items):
            return [items[start:stop] for start, stop in itertools.pairwise(bounds)]
        bounds.append(bounds[-1] + size)
    raise AssertionError


# The first page arrives again in the batch in which it is forgotten.
FORGOTTEN: list[Page] = [(number, POOL[2 * number : 2 * number + 2], None, None) for number in (1, 2, 3, 1)]


@given(
    pages,
    sizes,
    sizes,
    st.integers(1, 5),
    st.integers(1, 40),
    st.booleans(),
    overrides,
    st.integers(2, 7),
    st.integers(1, 4),
    st.integers(0, 9),
)
@example(FORGOTTEN, [1, 3], [9], 1, 1, False, {}, 7, 4, 9)
def test_learned_passages_agree_with_the_model(
    given_pages: list[Page],
    batch_sizes: list[int],
    slice_sizes: list[int],
    block_pages: int,
    period_records: int,
    is_abandoned: bool,
    overridden: ModelOverrides,
    least_article_bits: int,
    end_passages: int,
    learn_after: int,
) -> None:
    batches = cut(given_pages, batch_sizes)
    model = BoilerplateModel(
        block_pages=block_pages,
        end_passages=end_passages,
        least_article_bits=least_article_bits,
        period_records=period_records,
        overrides=overridden,
    )
    expected = []
    for number, batch in enumerate(batches):
        expected += [model.see(*page) for page in batch]
        if number == learn_after and model.block:
            model.learn()
    boilerplate, copy = (
        Boilerplate(
            block_pages=block_pages,
            end_passages=end_passages,
            least_article_bits=least_article_bits,
            period_records=period_records,
        )
        for _ in range(2)
    )
    found = []
    for number, batch in enumerate(batches):
        if is_abandoned:
            # The batch is begun, abandoned and repeated.
            boilerplate.begin()
            filtered(filter_of(boilerplate, batch, overridden), batch)
            boilerplate.undo()
        boilerplate.begin()
        learning = filter_of(boilerplate, batch, overridden)
        for part in cut(batch, slice_sizes):
            found += filtered(learning, part)
        written = [bytes_of(boilerplate.changes().columns())]
        boilerplate.keep()
        if number == learn_after:
            boilerplate.begin()
            boilerplate.learn_rest()
            written.append(bytes_of(boilerplate.changes().columns()))
            boilerplate.keep()
        for content in written:
            copy.apply(read_changes(content))
    assert found == [each for page in expected for each in page]
    assert boilerplate.last_page == model.last_number
    learned = sorted(each for each in model.learned if model.is_learned(each))
    assert sorted(boilerplate.learned().tolist()) == learned
    # A copy made from the stored changes equals the original.
    assert contents(copy) == contents(boilerplate)
    assert filtered(copy.filter(), given_pages[::-1]) == filtered(boilerplate.filter(), given_pages[::-1])


@given(pages, sizes, st.integers(1, 5), st.integers(1, 40))
def test_joined_changes_restore_the_same_state(
    given_pages: list[Page], batch_sizes: list[int], block_pages: int, period_records: int
) -> None:
    boilerplate, copy = (
        Boilerplate(block_pages=block_pages, period_records=period_records) for _ in range(2)
    )
    joined: Changes | None = None
    for batch in cut(given_pages, batch_sizes):
        boilerplate.begin()
        filtered(boilerplate.filter(), batch)
        changes = boilerplate.changes()
        joined = changes if joined is None else joined.then(changes)
        boilerplate.keep()
    assert joined is not None
    copy.apply(read_changes(bytes_of(joined.columns())))
    assert contents(copy) == contents(boilerplate)
    assert filtered(copy.filter(), given_pages) == filtered(boilerplate.filter(), given_pages)


def test_changes_with_larger_blocks_are_read() -> None:
    """Earlier versions had blocks of 64 pages; an incomplete block is learned with the next page."""
    larger, smaller = Boilerplate(block_pages=64), Boilerplate(block_pages=32)
    stored: list[Page] = [(each, [POOL[each % 24], POOL[each % 7]], None, None) for each in range(1, 64)]
    larger.begin()
    filtered(larger.filter(), stored)
    smaller.apply(larger.changes())
    assert last_learned_page(smaller) == 0
    filtered(smaller.filter(), [(99, POOL[:2], None, None)])
    assert last_learned_page(smaller) == 64


def test_common_rows_of_tables_are_kept() -> None:
    """On a page of mainly other text, learned rows are omitted, since they may be part of a footer."""
    rows = [ModelPassage((each + 1) << 32, 15, is_prose=False, has_figures=True) for each in range(3)]
    menu = [ModelPassage((each + 9) << 32, 30, is_prose=False) for each in range(4)]
    overridden: ModelOverrides = dict.fromkeys([(each.hash, None) for each in menu], True)
    boilerplate = Boilerplate(block_pages=1)
    learning = boilerplate.filter()
    for page in range(8):
        others = [ModelPassage((page * 2 + each + 100) << 32, 300, is_prose=True) for each in range(2)]
        filtered(learning, [(page + 1, [*others, *rows], None, None)])
    assert set(boilerplate.learned().tolist()) >= {each.hash for each in rows}
    assert filtered(learning, [(98, rows, None, None)]) == [False] * 3
    assert (
        filtered(
            boilerplate.filter(overrides=Overrides(overridden)),
            [(99, [*menu, *rows], None, None)],
        )
        == [True] * 7
    )
    # An override takes precedence.
    filter_overridden = boilerplate.filter(overrides=Overrides(overridden | {(rows[0].hash, None): True}))
    assert filtered(filter_overridden, [(98, rows, None, None)]) == [True, False, False]


def test_a_reprint_is_never_learned_as_boilerplate() -> None:
    text = [ModelPassage((number + 1) << 32, 100 + number, is_prose=True) for number in range(6)]
    learning = Boilerplate(block_pages=1).filter()
    for page in range(20):
        assert not any(filtered(learning, [(page + 1, text[page % 2 :], None, None)]))


def article_ids(count: int) -> list[str]:
    """Return ids of articles that set different bits, so that the articles are counted exactly."""
    by_bit = {article_of(str(each), 0) % 32: str(each) for each in range(999)}
    return [by_bit[bit] for bit in range(count)]


def prose(number: int, letters: int) -> ModelPassage:
    return ModelPassage(number << 32, letters, is_prose=True)


def judged(stream: list[Page]) -> list[list[bool]]:
    """Return which passages of each page are left out, given the pages before it."""
    learning = filter_of(Boilerplate(block_pages=1), stream, {})
    return [filtered(learning, [page]) for page in stream]


def first_learned(stream: list[Page], passage: ModelPassage) -> int | None:
    """Return how many pages keep the passage before it is first left out, or None if it never is."""
    found = [
        is_left_out
        for (_, passages, *_), left_out in zip(stream, judged(stream), strict=True)
        for each, is_left_out in zip(passages, left_out, strict=True)
        if each == passage
    ]
    return found.index(True) if True in found else None


LEGAL = [prose(number, 200) for number in range(1, 4)]


def site_page(number: int, article: str, *, site: str = "a.example", own_letters: int = 300) -> Page:
    """Return a page on which no passage is longer than the boilerplate of its site."""
    own = [prose(100 + 5 * number + at, own_letters // 5) for at in range(5)]
    return number, [*own, *LEGAL], site, article


@pytest.mark.parametrize("block_pages", [1, 64])
@pytest.mark.parametrize(
    ("site", "articles", "title", "last_of_first", "expected"),
    [
        ("a.example", (None, None), None, 5, [False, True, True, True]),
        ("a.example", ("b", "c"), None, 5, [False, True, True, True]),
        # Columns have short titles, which do not identify an article.
        ("a.example", ("b", "c"), "News in brief", 5, [False, True, True, True]),
        # The second page is a version of the same article, which has the same id or a long title.
        ("a.example", ("b", "b"), None, 5, [False] * 4),
        ("a.example", ("b", "c"), TITLE, 5, [False] * 4),
        # No item has dropped out, so this is a text with a new beginning.
        ("a.example", (None, None), None, 4, [False] * 4),
        (None, (None, None), None, 5, [False] * 4),
    ],
)
def test_older_items_of_a_rolling_list_are_filtered(
    block_pages: int,
    site: str | None,
    articles: tuple[str | None, str | None],
    title: str | None,
    last_of_first: int,
    expected: list[bool],
) -> None:
    first = [prose(number, 80) for number in range(2, last_of_first + 1)]
    second = [prose(number, 80) for number in range(1, 5)]
    stream: list[Page] = [(1, first, site, articles[0], title), (2, second, site, articles[1], title)]
    overridden: ModelOverrides = {(second[2].hash, None): False}
    for overrides, left_out in (({}, expected), (overridden, [*expected[:2], False, expected[3]])):
        learning = filter_of(Boilerplate(block_pages=block_pages), stream, overrides)
        assert [filtered(learning, [page]) for page in stream] == [[False] * len(first), left_out]


def test_long_boilerplate_of_a_site_is_learned() -> None:
    """The longest passages tell contexts apart, but here all pages of the site share them."""
    articles = article_ids(30)
    others: list[Page] = [(1_000 + at, [prose(9_000 + at, 90)], "a.example", str(at)) for at in range(64)]
    # A page with too little contiguous text of its own may be a new version of another page, unless its site
    # is new and all pages of the site have so little text.
    for own_letters, before, expected in (
        (800, [], 3),
        (60, [], 2),
        (800, others, 3),
        (100, others, 3),
        (60, others, 21),
    ):
        stream = [site_page(at, each, own_letters=own_letters) for at, each in enumerate(articles, 1)]
        assert first_learned(before + stream, LEGAL[0]) == expected
    # New versions of an article do not count as other articles.
    stream = [site_page(at, articles[0], own_letters=800) for at in range(1, 40)]
    assert first_learned(stream, LEGAL[0]) is None


def test_pages_of_new_sites_count_before_their_block_ends() -> None:
    """A notice that fills most of a page is left out once two other pages have it."""
    whole, own = [False] * 4, [False, True, True, True]
    stream: list[Page] = [
        (at, [prose(100 + text, letters), *LEGAL], "a.example", article)
        for at, (article, text, letters) in enumerate(
            zip(article_ids(6), (1, 2, 3, 4, 5, 3), (60, 60, 60, 60, 700, 60), strict=True), 1
        )
    ]
    # Versions at several addresses, with a different passage changed in each.
    article = [prose(number, 100) for number in range(300, 306)]
    for at in range(4):
        article[at] = prose(400 + at, 100)
        stream.append((20 + at, list(article), "b.example", str(at)))
    # Versions that share more text than a notice has, each with a new passage.
    article = [prose(number, 100) for number in range(310, 318)]
    stream += [(30 + at, [*article, prose(500 + at, 100)], "c.example", str(at)) for at in range(4)]
    expected = [whole, whole, own, own, whole, own, *[[False] * 6] * 4, *[[False] * 9] * 4]
    learning = filter_of(Boilerplate(block_pages=64), stream, {})
    assert [filtered(learning, [page]) for page in stream] == expected


@pytest.mark.parametrize(("pages_apart", "expected"), [(2, 2), (4, 7), (9, 7), (12, None)])
def test_rarer_boilerplate_needs_more_pages_to_be_learned(pages_apart: int, expected: int | None) -> None:
    stream: list[Page] = [
        (at, own if at % pages_apart else [*own, *LEGAL], "a.example", each)
        for at, each in enumerate(article_ids(13) * 8, pages_apart)
        for own in [[prose(1_000 + 5 * at + n, 60) for n in range(5)]]
    ]
    assert first_learned(stream, LEGAL[0]) == expected


def test_boilerplate_shared_with_another_site_is_learned() -> None:
    """For example, pages of another host of the same publisher may have arrived first."""
    strangers = [site_page(at, str(at), site="b.example") for at in (1, 2)]
    stream = strangers + [site_page(at, str(at)) for at in range(3, 100)]
    found = first_learned(stream, LEGAL[0])
    assert found is not None
    assert found < len(strangers) + 64 + 12


def test_a_story_repeated_by_a_platform_is_not_boilerplate() -> None:
    """The platform repeats one story among other articles, with a different last line each time."""
    story = [prose(number, 100) for number in range(1, 7)]
    stream: list[Page] = []
    for at, article in enumerate(article_ids(30), 1):
        stream.append((at, [*story, prose(1_000 + at, 20)], "platform.example", article))
        others = [prose(10_000 + 10 * at + number, 90) for number in range(6)]
        stream += [
            (100 * at + n, others[2 * n : 2 * n + 2], "platform.example", f"{at}-{n}") for n in range(3)
        ]
    assert not any(itertools.chain.from_iterable(judged(stream)))


def test_versions_of_an_article_are_one_context() -> None:
    """A summary above changing entries is learned from different articles, but not from one live blog."""
    summary = prose(1, 150)
    entries = [[prose(100 + 2 * at + n, 300) for n in range(2)] for at in range(20)]
    for articles, expected in ((["live-blog"] * 20, None), (article_ids(20), 2)):
        stream: list[Page] = [
            (at + 1, [summary, *own], "a.example", article)
            for at, (own, article) in enumerate(zip(entries, articles, strict=True))
        ]
        assert first_learned(stream, summary) == expected


def test_versions_of_an_article_without_id_are_not_learned() -> None:
    """In each version, a third of the sentences is new and longer; other articles arrive in between."""
    story = [prose(number, 200 - number) for number in range(1, 31)]
    for site in (None, "a.example"):
        stream: list[Page] = [(1, story[:9], site, None), (2, story, site, None)]
        for at in range(3, 40):
            version = [prose(100 * at + n, 220) if not (n + at) % 3 else each for n, each in enumerate(story)]
            stream.append((at, version, site, None))
            stream += [(50 * at + n, [prose(5_000 + 9 * at + n, 300)], site, None) for n in range(3)]
        assert not any(itertools.chain.from_iterable(judged(stream)))


@pytest.mark.parametrize("new", [1, 3])
def test_versions_at_different_addresses_are_not_learned(new: int) -> None:
    article = [prose(number, 150) for number in range(1, 21)]
    stream: list[Page] = [
        (
            at,
            [*(prose(100 + 3 * at + each, 150) for each in range(new)), *article[new - 1 :]],
            "a.example",
            str(at),
        )
        for at in range(120)
    ]
    assert not any(itertools.chain(*judged(stream)))


def test_a_quotation_on_many_sites_is_not_boilerplate() -> None:
    quotation = prose(1, 150)
    reports = [[prose(100 + 2 * at + n, 300) for n in range(2)] for at in range(20)]
    for sites, expected in ((range(20), None), ([at % 2 for at in range(20)], 4), ([0] * 20, 2)):
        stream: list[Page] = [
            (at + 1, [quotation, *own], f"{site}.example", article)
            for at, (own, site, article) in enumerate(zip(reports, sites, article_ids(20), strict=True))
        ]
        assert first_learned(stream, quotation) == expected


@pytest.mark.parametrize("learned_at", ["b.example", None])
def test_boilerplate_of_one_site_is_kept_on_others(learned_at: str | None) -> None:
    """Pages of other sites keep the story, no matter how often or when the first site repeats it."""
    story = [prose(number, 150) for number in range(1, 4)]
    repeated: list[Page] = [
        (at, [*story, *(prose(100 + 2 * at + n, 350) for n in range(2))], learned_at, str(at))
        for at in range(1, 100)
    ]
    assert first_learned(repeated, story[0]) is not None
    for published in (0, 1, 50, 99):
        others: list[Page] = [(1_000 + at, story, f"{at}.example", str(at)) for at in range(10)]
        stream = [*repeated[:published], *others[:5], *repeated[published:], *others[5:]]
        found = judged(stream)
        assert not any(any(each) for (number, *_), each in zip(stream, found, strict=True) if number >= 1_000)


def test_a_notice_that_fills_its_pages_is_learned() -> None:
    """The pages have no other text, so no page is a context for the notice."""
    notice = prose(1, 80)
    stream: list[Page] = [(at, [notice], "a.example", each) for at, each in enumerate(article_ids(30), 1)]
    assert first_learned(stream, notice) == 21


@pytest.mark.slow
def test_both_ends_of_a_long_page_are_learned() -> None:
    """Passages far from both ends are filtered, but not learned."""
    chance = np.random.default_rng(5)
    boilerplate = Boilerplate(block_pages=1)
    learning = boilerplate.filter()
    for page in range(6):
        own = [ModelPassage(each, 60, is_prose=True) for each in chance.integers(1, 2**63, 66_000).tolist()]
        own[0], own[1_000], own[-1] = (ModelPassage(each << 32, 30, is_prose=True) for each in (1, 2, 3))
        left_out = filtered(learning, [(page + 1, own, None, None)])
    assert np.flatnonzero(left_out).tolist() == [0, 65_999]
    assert boilerplate.periods[1] < 6 * 1_100
    # Learned passages are left out wherever they occur in a page.
    moved = [*own[1:40_000], own[0], *own[40_000:]]
    assert np.flatnonzero(filtered(learning, [(9, moved, None, None)])).tolist() == [39_999, 65_999]


@pytest.mark.slow
def test_pages_without_new_passages_are_also_forgotten() -> None:
    """A changing short line, such as a number of views, gives each of these pages another content hash."""
    boilerplate = Boilerplate(period_records=10_000)
    known = [POOL[1], POOL[3]]
    batch = 1_000
    most_bytes = [0, 0]
    for start in range(0, 40 * batch, batch):
        filtered(boilerplate.filter(), [(start + page + 1, known, None, None) for page in range(batch)])
        half = start >= 20 * batch
        most_bytes[half] = max(most_bytes[half], boilerplate.size_bytes)
    assert boilerplate.last_page - boilerplate.former_from < 10_100
    assert most_bytes[1] < 1.1 * most_bytes[0]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04"])
def test_invalid_changes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="wrong format or checksum"):
        read_changes(content)


@pytest.mark.slow
def test_memory_is_steady_from_the_second_period_on() -> None:
    chance, of_site = np.random.default_rng(14), np.arange(1, 21, dtype=np.uint64) << np.uint64(33)
    batch_pages, own = 100, 80
    boilerplate = Boilerplate(period_records=50_000)
    beginnings, most_bytes = [1], [0]
    while len(beginnings) <= 8:
        hashes = np.concatenate(
            (
                chance.integers(1, 2**64, (batch_pages, own), np.uint64),
                np.tile(of_site, (batch_pages, 1)),
            ),
            axis=1,
        )
        numbers = chance.integers(1, 2**64, batch_pages, np.uint64).tolist()
        parsed = Parsed.of_passages(
            [
                (number, [(each, 60, True, False) for each in own])
                for number, own in zip(numbers, hashes.tolist(), strict=True)
            ]
        )
        parsed.left_out(boilerplate.filter())
        if boilerplate.periods[2] != beginnings[-1]:
            beginnings.append(boilerplate.periods[2])
            most_bytes.append(0)
        most_bytes[-1] = max(most_bytes[-1], boilerplate.size_bytes)
    assert max(most_bytes) <= 1.1 * most_bytes[1], most_bytes
    # Passages that recurred in every period are still known as boilerplate.
    assert sorted(boilerplate.learned().tolist()) == of_site.tolist()
