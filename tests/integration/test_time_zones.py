"""Days, charts and times in the reader's time zone, even when clocks change."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from random import Random
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Reader, SettingError
from esdedup.reading.overview import end_ms
from esdedup.reading.queries import moment_ms
from esdedup.times import zone_named
from tests.support.asgi import Request, Response, requests
from tests.support.names import new_names

# Zones with and without summer time, some with offsets or clock changes of a fraction of an hour.
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Asia/Kathmandu", "Australia/Lord_Howe")
# Clocks in Europe change on 2026-03-29 and 2026-10-25.
SPANS = {
    "half a day": ("2026-03-29T00:00:00", timedelta(hours=12)),
    "a week": ("2026-10-22T11:30:00", timedelta(days=7)),
    "a month": ("2026-10-05T22:45:00", timedelta(days=33)),
    "half a year": ("2026-01-30T23:10:00", timedelta(days=190)),
    "two years": ("2025-01-30T23:10:00", timedelta(days=730)),
    "eight years": ("2019-06-30T23:10:00", timedelta(days=2_900)),
    "thirty years": ("1996-12-31T23:10:00", timedelta(days=11_000)),
}
MINUTE_MS = 60_000
SHANGHAI = "Asia/Shanghai"


@pytest.fixture(scope="module")
def published(es: Elasticsearch) -> Iterator[dict[str, tuple[str, list[int]]]]:
    """Yield, for each span, an index and the times of its articles in milliseconds."""
    with new_names(es) as name:
        found = {}
        for number, (span, (start, length)) in enumerate(SPANS.items()):
            random, index = Random(number), name("zones")
            begin_ms = int(datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp() * 1_000)
            times_ms = [begin_ms + random.randrange(int(length.total_seconds() * 1_000)) for _ in range(500)]
            Dedup(es).setup(index)
            actions = (
                {"_index": index, "_source": {"dedup": {"root": f"r{at}", "seq": at, "published": each}}}
                for at, each in enumerate(times_ms)
            )
            helpers.bulk(es, actions, refresh=True)
            found[span] = index, times_ms
        yield found


def ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1_000)


# For each length of a step in days, whether a step may begin at a moment.
BOUNDARIES: dict[int, Callable[[datetime], bool]] = {
    1: lambda _: True,
    7: lambda moment: moment.weekday() == 0,
    30: lambda moment: moment.day == 1,
    91: lambda moment: moment.day == 1 and moment.month % 3 == 1,
    365: lambda moment: (moment.month, moment.day) == (1, 1),
}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("span", SPANS)
def test_a_chart_follows_the_calendar_of_the_zone(
    es: Elasticsearch, published: dict[str, tuple[str, list[int]]], span: str, zone: str
) -> None:
    index, times_ms = published[span]
    found = Reader(es).overview(index, time_zone=zone).timeline
    counted = [sum(ms(step.start) <= each < ms(step.end) for each in times_ms) for step in found.steps]
    assert [step.articles for step in found.steps] == counted
    assert sum(counted) == len(times_ms)
    assert all(one.end == other.start for one, other in pairwise(found.steps))
    assert 2 <= len(found.steps) <= 38
    days = found.interval_ms / 86_400_000
    own = ZoneInfo(zone)
    for step in found.steps:
        for moment in (step.start, step.end):
            written = datetime.fromisoformat(moment)
            assert written.utcoffset() == written.astimezone(own).utcoffset()
            if days >= 1:
                assert written.time() == time.min
                assert BOUNDARIES[int(days)](written)


@pytest.mark.parametrize("zone", ZONES)
def test_days_begin_and_end_in_the_zone(
    es: Elasticsearch, published: dict[str, tuple[str, list[int]]], zone: str
) -> None:
    index, times_ms = published["a month"]
    reader, own = Reader(es), ZoneInfo(zone)
    for day in ("2026-10-06", "2026-10-24", "2026-10-25", "2026-10-26", "2026-11-01"):
        query = reader.search_query(index, since=day, until=day, time_zone=zone)
        local = [datetime.fromtimestamp(each / 1_000, own).date() for each in times_ms]
        assert reader.list(index, query=query).total_articles == local.count(date.fromisoformat(day))


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("2026-11-01", "UTC", "2026-11-01T00:00:00"),
        ("2026-11-01", "Asia/Shanghai", "2026-10-31T16:00:00"),
        ("2026-11-01T08:00", "Asia/Shanghai", "2026-11-01T00:00:00"),
        ("2026-11-01T08:00Z", "Asia/Shanghai", "2026-11-01T08:00:00"),
        ("2026-11-01T08:00-05:00", "Asia/Shanghai", "2026-11-01T13:00:00"),
        # A plus that is not encoded in an address is decoded as a space.
        ("2026-11-01T08:00 08:00", "UTC", "2026-11-01T00:00:00"),
        ("2026-11-01T08:00:30.5 0800", "UTC", "2026-11-01T00:00:30.500"),
        ("2026-11-01 08:00", "Asia/Shanghai", "2026-11-01T00:00:00"),
        ("Sat, 21 Nov 2026 08:00:00 +0800", "Europe/Berlin", "2026-11-21T00:00:00"),
    ],
)
def test_moments_are_parsed_in_the_zone(text: str, zone: str, utc: str) -> None:
    assert moment_ms(text, zone_named(zone)) == ms(f"{utc}+00:00")


def test_the_last_moment_allows_for_clock_changes() -> None:
    berlin = zone_named("Europe/Berlin")
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25), ("2026-07-01", 24)):
        first, last = moment_ms(day, berlin), moment_ms(day, berlin, is_end=True)
        assert first is not None
        assert last == first + hours * 60 * MINUTE_MS - 1
    # On this day in Cairo, the hour before midnight occurred twice.
    cairo = zone_named("Africa/Cairo")
    first, last = (moment_ms("2023-10-26", cairo, is_end=each) for each in (False, True))
    assert last == (first or 0) + 25 * 60 * MINUTE_MS - 1
    assert moment_ms("9999-12-31", is_end=True) == ms("9999-12-31T23:59:59.999+00:00")


def test_an_interval_may_end_after_the_last_date() -> None:
    day_ms = 86_400_000
    last_ms = ms("9999-12-31T00:00:00+00:00")
    assert end_ms(last_ms, day_ms, zone_named("UTC")) == last_ms + day_ms


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "right/UTC", "posix/Asia/Shanghai", "../UTC", "Asia", "\0"]
)
def test_unknown_time_zones_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match="no time zone"):
        zone_named(name)


def test_api_and_files_use_the_requested_time_zone(
    elasticsearch_url: str, published: dict[str, tuple[str, list[int]]]
) -> None:
    index, times_ms = published["a month"]
    own = ZoneInfo(SHANGHAI)
    day = "2026-10-26"
    expected = sum(str(datetime.fromtimestamp(each / 1_000, own).date()) == day for each in times_ms)

    def answer(path: str, cookie: str = "", **query: str) -> Response:
        given = Request(
            path=path,
            query=urlencode({"since": day, "until": day} | query),
            headers={"cookie": f"esdedup_time_zone={cookie}"} if cookie else {},
        )
        (found,) = requests(elasticsearch_url, index, [given])
        return found

    def total(cookie: str = "", path: str = "/api/v1/list", **query: str) -> int:
        return int(answer(path, cookie, **query).json["total_articles"])

    in_utc = total()
    assert in_utc != expected
    assert total(time_zone=SHANGHAI) == expected
    assert total(SHANGHAI) == expected
    # A parameter takes precedence over the cookie, and an invalid cookie is ignored.
    assert total(SHANGHAI, time_zone="UTC") == in_utc
    assert total("../../etc") == in_utc
    assert total(path="/api/v1/overview", time_zone=SHANGHAI) == expected
    refused = answer("/api/v1/list", time_zone="Mars/Olympus")
    assert refused.status == 400
    assert "no time zone" in refused.body
    rows = answer("/export.csv", time_zone=SHANGHAI).body.splitlines()[1:]
    assert len(rows) == expected
    # Times in the file have the offset of the requested time zone.
    assert all(each.split(",")[4].startswith(f"{day}T") and "+08:00" in each for each in rows)
