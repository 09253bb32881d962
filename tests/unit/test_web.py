"""Functions behind the web pages: texts, charts, facets, links to narrower lists, and visits."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import ArticleNotFound, ServerUnavailable, SettingError
from esdedup.reading.list_request import SORTS
from esdedup.reading.overview import Facet, FacetValue, Overview
from esdedup.reading.paging import Paging
from esdedup.reading.queries import moment_ms
from esdedup.reading.results import Article, FullArticle, Timeline, TimelineStep
from esdedup.times import iso, time_ms
from esdedup.web.article_pages import read_place
from esdedup.web.bar_charts import HISTOGRAM_HEIGHT as HEIGHT
from esdedup.web.bar_charts import curve, draw, histogram
from esdedup.web.form import PageForm, Period, SubmittedForm
from esdedup.web.formats import address, language, later_ms, link, own_language, shortened, source_names
from esdedup.web.languages import language as interface
from esdedup.web.list_page import SORT_NAMES, Visits, facets, narrowings
from esdedup.web.shown_text import Piece, differences
from tests.support.asgi import Request, requests

texts = st.text(st.sampled_from("ab 你好,\n"), max_size=40)


@given(texts, texts)
def test_differences_contain_both_texts(before: str, after: str) -> None:
    pieces = differences(before, after)
    assert "".join(each.text for each in pieces if each.kind != "added") == before
    assert "".join(each.text for each in pieces if each.kind != "removed") == after
    assert all(each.text for each in pieces)
    assert (before == after) is all(each.kind == "same" for each in pieces)


def test_a_changed_phrase_is_shown_as_one_change() -> None:
    assert differences("it was the old red boat", "it was my new boat") == [
        Piece(kind="same", text="it was "),
        Piece(kind="removed", text="the old red"),
        Piece(kind="added", text="my new"),
        Piece(kind="same", text=" boat"),
    ]
    assert differences("三月五日", "三月六日")[1:3] == [
        Piece(kind="removed", text="五"),
        Piece(kind="added", text="六"),
    ]


def timeline(*articles: int, interval_ms: int = 3_600_000) -> Timeline:
    start = datetime(2026, 11, 21, tzinfo=UTC)
    return Timeline(
        interval_ms=interval_ms,
        steps=tuple(
            TimelineStep(
                start=(start + at * timedelta(milliseconds=interval_ms)).isoformat(),
                end=(start + (at + 1) * timedelta(milliseconds=interval_ms)).isoformat(),
                articles=count,
                sources=None,
            )
            for at, count in enumerate(articles)
        ),
        last=(start + (len(articles) - 1) * timedelta(milliseconds=interval_ms)).isoformat(),
    )


@given(st.lists(st.integers(0, 1_000), min_size=2, max_size=48))
def test_bars_stay_within_the_drawing(articles: list[int]) -> None:
    drawn = draw(timeline(*articles), interface("en"))
    assert drawn is not None
    assert len(drawn.bars) == sum(map(bool, articles))
    for bar in drawn.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= 100.1
        assert bar.y + bar.height == pytest.approx(100, abs=0.02)
        assert bar.height >= 2.9
    assert [bar.height for bar in drawn.bars if bar.is_peak] == [100] * (max(articles) > 1)
    assert (drawn.peak is not None) is (max(articles) > 1)
    assert drawn.peak is None or 0 <= drawn.peak.x <= 100


def test_a_timeline_is_summarised_in_words() -> None:
    drawn = draw(timeline(1, 0, 5), interface("en"))
    assert drawn is not None
    assert drawn.summary == (
        "6 articles between Nov 21, 2026, 00:00 and Nov 21, 2026, 02:00; "
        "peak: 5 within 1 hour from Nov 21, 2026, 02:00."
    )
    assert drawn.first is None
    assert drawn.peak is not None
    assert drawn.peak.text == "most: 5 articles within 1 hour"
    assert drawn.peak.is_left
    earliest = Article(id="1", index="news", root="r", title=None, source=["A", "B" * 50])
    known = timeline(1, 0, 5).model_copy(update={"earliest": earliest})
    named = draw(known, interface("en"))
    assert named is not None
    assert named.first is not None
    assert named.first.text == f"first: A, {'B' * 37}…"
    assert [(bar.is_first, bar.is_peak) for bar in named.bars] == [(True, False), (False, True)]
    assert drawn.bars[0].label == "1 article from Nov 21, 2026, 00:00"
    # All intervals with articles have one article each, so there is no peak.
    single = draw(timeline(1, 0, 1), interface("en"))
    assert single is not None
    assert single.summary == "2 articles between Nov 21, 2026, 00:00 and Nov 21, 2026, 02:00."
    assert draw(timeline(7), interface("en")) is None
    assert draw(timeline(), interface("en")) is None
    chinese = draw(timeline(1, 0, 5), interface("zh"))
    assert chinese is not None
    assert chinese.summary.endswith("共 6 篇报道；高峰：2026年11月21日 02:00 起1小时内 5 篇。")


def test_values_for_templates_are_formatted() -> None:
    assert link("https://a.example/x") == "https://a.example/x"
    for bad in (
        None,
        "",
        "javascript:alert(1)",
        " javascript:x",
        "//a.example",
        "data:text/html,x",
        "http://[",
    ):
        assert link(bad) is None
    assert address("/", q="a b&c", page=None, after="") == "/?q=a+b%26c"
    assert address("/", q="") == "/"
    languages = {
        "三月五日": "zh",
        "AC米兰 3 比 1 胜 AC 拉齐奥": "zh",
        "三月に東京で": "ja",
        "3월 서울에서": "ko",
    }
    assert {text: language(text) for text in languages} == languages
    # Latin, Cyrillic and Arabic letters are used by many languages.
    for text in ("In March", "Im März", "в марте", "في مارس Reuters", "Report on 北京", "12!", "", None):
        assert language(text) == ""
    assert (source_names(["A", None, "B"]), source_names(None), source_names(" ")) == ("A, B", "", "")
    assert link(f"https://a.example/{'x' * 2_000}") is None
    assert {len(shown) for shown in (shortened("x" * 10**6), source_names("x" * 10**6))} == {301}


def test_the_language_field_of_an_article_is_used() -> None:
    def named(**included: Any) -> str:
        return own_language(Article(id="1", index="news", root="r", title=None, included=included))

    assert [named(language="de"), named(language=None, lang="zh-Hans")] == ["de", "zh-Hans"]
    for unknown in ("German", '"><script>', "", None, ["de"], {"code": "de"}):
        assert named(language=unknown) == ""
    assert own_language(Article(id="1", index="news", root="r", title=None)) == ""


def test_an_article_is_named_by_id_or_address() -> None:
    assert read_place("news/a/b") == ("news", "a/b")
    assert read_place("sample-1") == (None, "sample-1")
    assert read_place("http://desk.example:8000/pages/article?id=a%2Fb&index=old&listed=q%3Dx#similar") == (
        "old",
        "a/b",
    )
    assert read_place(" https://desk.example/article?id=7") == (None, "7")
    assert read_place("/article") == (None, "")
    # An id may be an address if the index is named.
    assert read_place("news/https://a.example/article?id=7") == ("news", "https://a.example/article?id=7")


def test_the_time_since_the_first_article_is_computed() -> None:
    def published(at: str | None, arrived_at: str | None = None) -> Article:
        return Article(id="1", index="news", root="r", title=None, published_at=at, arrived_at=arrived_at)

    first = published("2026-11-22T08:00:00Z")
    assert later_ms(published("2026-11-22T10:30:00+02:00"), first) == 30 * 60_000
    # An implausible date is replaced by the arrival time.
    assert later_ms(published("1970-01-01", "2026-11-22T08:01:00Z"), first) == 60_000
    for other in (first, published(None), published("some day"), published("2026-11-21")):
        assert later_ms(other, first) is None
    assert later_ms(first, published(None)) is None


def test_every_sort_has_a_name_on_the_pages() -> None:
    assert SORT_NAMES.keys() == set(SORTS)


def test_a_failing_page_starts_no_further_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def answer(name: str, found: object = None) -> None:
        async def method(*_: Any, **__: Any) -> object:
            begun.append(name)
            if found is None:
                raise ArticleNotFound("it has been deleted", article="1", index="news")
            return found

        monkeypatch.setattr(f"esdedup.reading.reader.AsyncReader.{name}", method)

    answer("article", FullArticle(id="1", index="news", root="r", title=None, text=""))
    for name in ("timeline", "versions", "sources", "source_field"):
        answer(name)
    (page,) = requests("http://127.0.0.1:9", "news", [Request(path="/article", query="id=1")])
    assert page.status == 404
    assert begun == ["article", "timeline"]


def test_a_failed_comparison_hides_internal_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def article(_: Any, __: str, article_id: str, **___: Any) -> FullArticle:
        return FullArticle(id=article_id, index="news", root="r", title=None, text="x")

    async def explain(*_: Any, **__: Any) -> None:
        raise ServerUnavailable("cannot search: no server answers (10.1.2.3:9200)")

    monkeypatch.setattr("esdedup.reading.reader.AsyncReader.article", article)
    monkeypatch.setattr("esdedup.reading.reader.AsyncReader.explain", explain)
    (page,) = requests("http://127.0.0.1:9", "news", [Request(path="/compare", query="one=1&other=2")])
    assert (page.status, "10.1.2.3" in page.body) == (502, False)


def test_a_failing_list_cancels_its_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def rows(*_: Any, **__: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("list")

    async def overview(*_: Any, **__: Any) -> None:
        raise SettingError("the field is gone")

    for name, method in (("list", rows), ("overview", overview)):
        monkeypatch.setattr(f"esdedup.reading.reader.AsyncReader.{name}", method)
    (page,) = requests("http://127.0.0.1:9", "news", [Request(path="/")])
    assert (page.status, "the field is gone" in page.body) == (400, True)
    assert ended == ["list"]


@pytest.mark.parametrize(
    ("path", "query", "english", "chinese", "detail"),
    [
        (
            "/",
            "page=0",
            "form of this page is invalid",
            "表单中有不可用的值",
            "page: Input should be",
        ),
        *(
            (
                "/",
                f"chosen={row}",
                "form of this page is invalid",
                "表单中有不可用的值",
                "given as INDEX/ID",
            )
            for row in ("nonsense", "/1", "news/")
        ),
        ("/none", "", "there is no such page", "没有这个页面", ""),
        ("/", "", "Elasticsearch does not answer", "Elasticsearch 没有响应", ""),
        ("/article", "id=1&page=999", "No more pages can be shown", "翻页到此为止", "at row 10,000"),
    ],
)
def test_errors_are_explained_in_the_readers_language(
    monkeypatch: pytest.MonkeyPatch, path: str, query: str, english: str, chinese: str, detail: str
) -> None:
    async def too_deep(*_: Any, **__: Any) -> None:
        Paging(page=999, size=20).start([], is_endless=False)

    monkeypatch.setattr("esdedup.reading.reader.AsyncReader.article", too_deep)
    for code, words in (("en", english), ("zh", chinese)):
        given = Request(path=path, query=query, headers={"accept-language": code})
        (page,) = requests("http://127.0.0.1:9", "news", [given])
        assert words in page.body
        # Technical details are shown below the message, folded if they are in another language. They never
        # contain the address of Elasticsearch.
        shown = '<p class="meta">' if code == "en" else "详情（英文）</summary>"
        assert (shown in page.body) is bool(detail)
        assert detail in page.body
        assert "127.0.0.1" not in page.body


EN, ZH = interface("en"), interface("zh")
MINUTE_MS = 60_000
DAY_MS = 1_440 * MINUTE_MS
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def facet(field: str, *values: str, chosen: str = "", others: int = 0) -> Facet:
    return Facet(
        field=field,
        values=tuple(FacetValue(value=each, articles=9, is_chosen=each == chosen) for each in values),
        other_articles=others,
        is_exact=True,
    )


def overview(**values: Any) -> Overview:
    empty = Timeline(interval_ms=MINUTE_MS, steps=())
    given: dict[str, Any] = {"total_articles": 9, "timeline": empty, "sources": None, "facets": ()}
    return Overview(**given | values)


def test_long_facets_are_folded_and_long_values_omitted() -> None:
    (shown,) = facets(overview(sources=facet("source", *map(str, range(40)))), PageForm(), EN)
    assert len(shown.links) + len(shown.more) == 40
    assert len(shown.links) < 10
    (shown,) = facets(overview(sources=facet("source", "x" * 30_000, "y")), PageForm(), EN)
    assert [each.label for each in shown.links] == ["y"]
    assert facets(overview(sources=facet("source")), PageForm(), EN) == []
    # Blank values are left out: they have no label, and the address of a list cannot contain them.
    blank = facet("source", "", " ", "y")
    assert [each.label for each in facets(overview(sources=blank), PageForm(), EN)[0].links] == ["y"]
    assert facets(overview(facets=(facet("desk", "", " "),)), PageForm(), EN) == []


@pytest.mark.parametrize(
    ("form", "label", "chinese"),
    [
        ({"since": "2026-09-01"}, "from Sep 1, 2026", "2026年9月1日 起"),
        ({"until": "2026-09-01T10:59:59.999Z"}, "until Sep 1, 2026, 10:59", "2026年9月1日 10:59 止"),
        ({"since": "2026-09-01", "until": "2026-09-01"}, "Sep 1, 2026", "2026年9月1日"),
        (
            {"since": "2026-09-01", "until": "2026-09-02"},
            "Sep 1, 2026 to Sep 2, 2026",
            "2026年9月1日至2026年9月2日",
        ),
        ({"source": ["A & B"]}, "A & B", "A & B"),
        ({"where": ["language:zh"]}, "Language: Chinese", "语言：中文"),
        ({"where": ["a.b:c:d"]}, "a.b: c:d", "a.b：c:d"),
        ({"period": "7d"}, "7 days", "近 7 天"),
        ({"min_similar": 1}, "1 or more similar", "至少 1 篇相似"),
    ],
)
def test_each_filter_of_a_list_can_be_removed(form: dict[str, Any], label: str, chinese: str) -> None:
    narrowed = PageForm(q="ferry", **form)
    (found,) = narrowings(narrowed, EN)
    assert found.label == label
    assert narrowings(narrowed, ZH)[0].label == chinese
    assert {name for name, value in found.parameters.items() if value} == {"q"}
    assert narrowings(PageForm(q="ferry", sort="oldest"), EN) == []


def test_a_period_begins_at_each_request_anew() -> None:
    zone = ZoneInfo("Asia/Shanghai")
    assert PageForm().dated(zone) == PageForm()
    today = PageForm(period="today", q="x").dated(zone)
    assert (today.since, today.period) == (str(datetime.now(zone).date()), None)
    lengths: list[tuple[Period, timedelta]] = [("24h", timedelta(hours=24)), ("7d", timedelta(days=7))]
    for period, length in lengths:
        since = datetime.fromisoformat(PageForm(period=period).dated(zone).since)
        assert timedelta() <= datetime.now(UTC) - length - since < timedelta(minutes=2)
    # A day or time of the visitor's own replaces the period.
    assert PageForm(period="7d", since="2026-01-01").period is None
    assert SubmittedForm(period="7d", since_time="10:00").at_times(datetime.now(zone).date()).period is None


def test_a_name_belongs_to_one_search() -> None:
    form = PageForm(name="News", q="x", compact=True)
    assert form.changed(page=2)["name"] == form.changed(compact="")["name"] == "News"
    assert form.changed(min_similar=1)["name"] == form.changed(period="7d")["name"] == ""
    assert not PageForm(name="News").is_narrowed


def timeline_of(counts: list[int], *, interval_ms: int = DAY_MS, first_ms: int = 20_000 * DAY_MS) -> Timeline:
    return Timeline(
        interval_ms=interval_ms,
        steps=tuple(
            TimelineStep(
                start=iso(first_ms + at * interval_ms),
                end=iso(first_ms + (at + 1) * interval_ms),
                articles=count,
                sources=None,
            )
            for at, count in enumerate(counts)
        ),
    )


@given(
    st.lists(st.integers(0, 1_000), min_size=2, max_size=37).filter(any),
    st.sampled_from([1, 5, 60, 720, 1_440, 10_080, 12_345]),
    st.integers(0, 10_000),
)
def test_bars_link_to_the_periods_they_show(counts: list[int], minutes: int, first_minute: int) -> None:
    interval_ms, first_ms = minutes * MINUTE_MS, 20_000 * DAY_MS + first_minute * MINUTE_MS
    drawn = histogram(timeline_of(counts, interval_ms=interval_ms, first_ms=first_ms), PageForm(), EN)
    assert drawn is not None
    last_ms = first_ms + len(counts) * interval_ms - 1
    for bars, steps in ((drawn.bars, 1), (drawn.wide_bars, 3)):
        merged = [sum(counts[at : at + steps]) for at in range(0, len(counts), steps)]
        expected = [
            (first_ms + at * steps * interval_ms, min(first_ms + (at + 1) * steps * interval_ms - 1, last_ms))
            for at, count in enumerate(merged)
            if count
        ]
        # The periods as a search parses them from the parameters of the link.
        periods = [
            (moment_ms(bar.parameters["since"]), moment_ms(bar.parameters["until"], is_end=True))
            for bar in bars
        ]
        assert periods == expected
        for bar in bars:
            assert 0 <= bar.x < bar.x + bar.width <= drawn.width
            assert bar.y + bar.height == pytest.approx(HEIGHT, abs=0.2)
            assert bar.height >= 2.9


def test_bars_are_labelled_with_count_and_period() -> None:
    drawn = histogram(timeline_of([1, 0, 5]), PageForm(q="x", source=["A"]), EN)
    assert drawn is not None
    assert [bar.label for bar in drawn.bars] == ["1 article: Oct 4, 2024", "5 articles: Oct 6, 2024"]
    assert [bar.label for bar in drawn.wide_bars] == ["6 articles: Oct 4, 2024 to Oct 6, 2024"]
    assert drawn.bars[0].parameters["since"] == drawn.bars[0].parameters["until"] == "2024-10-04"
    assert (drawn.bars[0].parameters["q"], drawn.bars[0].parameters["source"]) == ("x", ["A"])
    hours = histogram(timeline_of([1, 1], interval_ms=60 * MINUTE_MS), PageForm(), ZH)
    assert hours is not None
    assert (hours.begin[-5:], hours.end[-5:]) == ("00:00", "01:59")
    assert hours.bars[1].label == "2024年10月4日 01:00至01:59：1 篇报道"
    assert hours.bars[1].parameters["since"] == "2024-10-04T01:00+00:00"


@pytest.mark.parametrize("given", [[], [5]])
def test_a_single_interval_is_not_drawn(given: list[int]) -> None:
    assert histogram(timeline_of(given), PageForm(), EN) is None


def test_times_in_unsupported_years_are_not_drawn() -> None:
    # The digits of the last number could be read as a date in the year 2534.
    for first_ms in (10**15, -(10**15), 253412011200000):
        assert histogram(timeline_of([1, 1], first_ms=first_ms), PageForm(), EN) is None
        assert draw(timeline_of([1, 0], first_ms=first_ms), EN) is None
    # The last day that `datetime` supports.
    last_ms = time_ms("9999-12-31") or 0
    assert histogram(timeline_of([1, 1], first_ms=last_ms - DAY_MS), PageForm(), EN) is None


def test_a_curve_has_a_bar_per_nonempty_span() -> None:
    assert curve([]) == curve([0, 0]) == ""
    assert curve([10, 0, 1, 1_000]).count("M") == 3
    # A bar for one article is visible next to a bar for a thousand.
    assert curve([1, 1_000]) == "M0 20v-2h47v2M48 20v-20h47v20"


def test_a_visit_ends_after_a_long_pause() -> None:
    first = Visits.of(None, NOW)
    assert first.before is None
    second = Visits.of(first.cookie, NOW + timedelta(minutes=20))
    assert second.before is None
    third = Visits.of(second.cookie, NOW + timedelta(hours=2))
    assert third.before == NOW + timedelta(minutes=20)
    # New articles remain new for the rest of the visit.
    fourth = Visits.of(third.cookie, NOW + timedelta(hours=2, minutes=25))
    assert fourth.before == third.before


@pytest.mark.parametrize("cookie", ["", "x", "1-", "-", "99999999999-99999999999", "1-2-3", "-5-", "１-２３"])
def test_an_invalid_cookie_is_ignored(cookie: str) -> None:
    assert Visits.of(cookie, NOW).before is None
