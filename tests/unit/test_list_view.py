"""What the list page computes: facets and bars that lead to other lists, curves, and visits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.reading.overview import Facet, FacetValue, Overview
from esdedup.reading.queries import moment_ms
from esdedup.reading.results import Timeline, TimelineStep
from esdedup.times import iso, time_ms
from esdedup.web.bar_charts import HISTOGRAM_HEIGHT as HEIGHT
from esdedup.web.bar_charts import curve, histogram
from esdedup.web.form import PageForm
from esdedup.web.languages import language
from esdedup.web.list_page import Visits, facets, narrowings

EN, ZH = language("en"), language("zh")
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


def test_a_value_is_chosen_beside_others_and_given_up() -> None:
    form = PageForm(q="ferry", source=["Wire"], where=["language:zh"], page=3)
    found = overview(
        sources=facet("source.keyword", "Echo", "Wire", chosen="Wire"),
        facets=(facet("language", "en", "zh", chosen="zh"), facet("desk", "Sport")),
    )
    shown = facets(found, form, EN)
    assert [each.heading for each in shown] == ["Sources", "Language", "desk"]
    assert [each.heading for each in facets(found, form, ZH)] == ["来源", "语言", "desk"]
    wire, echo = shown[0].links
    # The chosen one is in sight, and leads to the list without it, from its first page.
    assert (wire.label, wire.is_chosen, wire.parameters["source"]) == ("Wire", True, [])
    assert (echo.parameters["source"], echo.parameters["page"]) == (["Wire", "Echo"], "")
    assert echo.parameters["q"] == "ferry"
    assert [each.label for each in shown[1].links] == ["Chinese", "English"]
    assert shown[1].links[1].parameters["where"] == ["language:zh", "language:en"]
    assert shown[2].links[0].parameters["where"] == ["language:zh", "desk:Sport"]


def test_many_values_unfold_and_long_ones_are_left_out() -> None:
    (shown,) = facets(overview(sources=facet("source", *map(str, range(40)))), PageForm(), EN)
    assert len(shown.links) + len(shown.more) == 40
    assert len(shown.links) < 10
    (shown,) = facets(overview(sources=facet("source", "x" * 30_000, "y")), PageForm(), EN)
    assert [each.label for each in shown.links] == ["y"]
    assert facets(overview(sources=facet("source")), PageForm(), EN) == []
    # A blank value has no name, and the address of a list cannot have an empty one.
    blank = facet("source", "", " ", "y")
    assert [each.label for each in facets(overview(sources=blank), PageForm(), EN)[0].links] == ["y"]
    assert facets(overview(facets=(facet("desk", "", " "),)), PageForm(), EN) == []


@pytest.mark.parametrize(
    ("form", "label", "chinese"),
    [
        ({"since": "2026-09-01"}, "from Sep 1, 2026", "2026年9月1日 起"),
        ({"until": "2026-09-01T10:59:59.999Z"}, "until Sep 1, 2026, 10:59 UTC", "2026年9月1日 10:59 UTC 止"),
        ({"since": "2026-09-01", "until": "2026-09-01"}, "Sep 1, 2026", "2026年9月1日"),
        (
            {"since": "2026-09-01", "until": "2026-09-02"},
            "Sep 1, 2026 to Sep 2, 2026",
            "2026年9月1日至2026年9月2日",
        ),
        ({"source": ["A & B"]}, "A & B", "A & B"),
        ({"where": ["language:zh"]}, "Language: Chinese", "语言: 中文"),
        ({"where": ["a.b:c:d"]}, "a.b: c:d", "a.b: c:d"),
        ({"only": "similar"}, "With similar", "有相似报道"),
    ],
)
def test_what_narrows_a_list_can_be_given_up(form: dict[str, Any], label: str, chinese: str) -> None:
    narrowed = PageForm(q="ferry", **form)
    (found,) = narrowings(narrowed, EN)
    assert found.label == label
    assert narrowings(narrowed, ZH)[0].label == chinese
    assert {name for name, value in found.parameters.items() if value} == {"q"}
    assert narrowings(PageForm(q="ferry", sort="oldest"), EN) == []


def timeline(counts: list[int], *, interval_ms: int = DAY_MS, first_ms: int = 20_000 * DAY_MS) -> Timeline:
    return Timeline(
        interval_ms=interval_ms,
        steps=tuple(
            TimelineStep(start=iso(first_ms + at * interval_ms), articles=count, sources=None)
            for at, count in enumerate(counts)
        ),
    )


@given(
    st.lists(st.integers(0, 1_000), min_size=2, max_size=37).filter(any),
    st.sampled_from([1, 5, 60, 720, 1_440, 10_080, 12_345]),
    st.integers(0, 10_000),
)
def test_bars_lead_to_the_periods_that_they_stand_for(
    counts: list[int], minutes: int, first_minute: int
) -> None:
    interval_ms, first_ms = minutes * MINUTE_MS, 20_000 * DAY_MS + first_minute * MINUTE_MS
    drawn = histogram(timeline(counts, interval_ms=interval_ms, first_ms=first_ms), PageForm(), EN)
    assert drawn is not None
    last_ms = first_ms + len(counts) * interval_ms - 1
    for bars, steps in ((drawn.bars, 1), (drawn.wide_bars, 3)):
        merged = [sum(counts[at : at + steps]) for at in range(0, len(counts), steps)]
        expected = [
            (first_ms + at * steps * interval_ms, min(first_ms + (at + 1) * steps * interval_ms - 1, last_ms))
            for at, count in enumerate(merged)
            if count
        ]
        # As a search reads what the link says.
        periods = [
            (moment_ms(bar.parameters["since"]), moment_ms(bar.parameters["until"], is_end=True))
            for bar in bars
        ]
        assert periods == expected
        for bar in bars:
            assert 0 <= bar.x < bar.x + bar.width <= drawn.width
            assert bar.y + bar.height == pytest.approx(HEIGHT, abs=0.2)
            assert bar.height >= 2.9


def test_a_bar_says_what_it_stands_for() -> None:
    drawn = histogram(timeline([1, 0, 5]), PageForm(q="x", source=["A"]), EN)
    assert drawn is not None
    assert [bar.label for bar in drawn.bars] == ["1 article: Oct 4, 2024", "5 articles: Oct 6, 2024"]
    assert [bar.label for bar in drawn.wide_bars] == ["6 articles: Oct 4, 2024 to Oct 6, 2024"]
    assert drawn.bars[0].parameters["since"] == drawn.bars[0].parameters["until"] == "2024-10-04"
    assert (drawn.bars[0].parameters["q"], drawn.bars[0].parameters["source"]) == ("x", ["A"])
    hours = histogram(timeline([1, 1], interval_ms=60 * MINUTE_MS), PageForm(), ZH)
    assert hours is not None
    assert hours.bars[1].label == "2024年10月4日 01:00 UTC至2024年10月4日 01:59 UTC：1 篇报道"
    assert hours.bars[1].parameters["since"] == "2024-10-04T01:00Z"


@pytest.mark.parametrize("given", [[], [5]])
def test_what_fits_in_one_step_is_not_drawn(given: list[int]) -> None:
    assert histogram(timeline(given), PageForm(), EN) is None


def test_times_outside_the_calendar_are_not_drawn() -> None:
    for first_ms in (10**15, -(10**15)):
        assert histogram(timeline([1, 1], first_ms=first_ms), PageForm(), EN) is None
    # The last day of the calendar.
    last_ms = time_ms("9999-12-31") or 0
    assert histogram(timeline([1, 1], first_ms=last_ms - DAY_MS), PageForm(), EN) is None


def test_a_curve_has_a_bar_for_each_span_with_articles() -> None:
    assert curve([]) == curve([0, 0]) == ""
    assert curve([10, 0, 1, 1_000]).count("M") == 3
    # One article among many is visible.
    assert curve([1, 1_000]) == "M0 20v-2h47v2M48 20v-20h47v20"


def test_a_visit_lasts_until_there_is_a_pause() -> None:
    first = Visits.of(None, NOW)
    assert first.before is None
    second = Visits.of(first.cookie, NOW + timedelta(minutes=20))
    assert second.before is None
    third = Visits.of(second.cookie, NOW + timedelta(hours=2))
    assert third.before == NOW + timedelta(minutes=20)
    # What is new remains new for as long as the visit lasts.
    fourth = Visits.of(third.cookie, NOW + timedelta(hours=2, minutes=25))
    assert fourth.before == third.before


@pytest.mark.parametrize("cookie", ["", "x", "1-", "-", "99999999999-99999999999", "1-2-3", "-5-", "１-２３"])
def test_a_cookie_that_makes_no_sense_is_none(cookie: str) -> None:
    assert Visits.of(cookie, NOW).before is None
