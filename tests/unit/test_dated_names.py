"""Names of indices with the day of an article."""

import pytest
from esdedup.ingest.dated_names import DatedName

from esdedup import SettingError

MS = 1_763_769_600_000  # 2025-11-22T00:00:00Z


@pytest.mark.parametrize(
    ("pattern", "name", "every"),
    [
        ("news-%{+yyyy.MM.dd}", "news-2025.11.22", "news-*"),
        ("news-%{+YYYY}-%{+MM}", "news-2025-11", "news-*-*"),
        ("%{+yyyyMMdd}", "20251122", "*"),
        ("news", "news", "news"),
    ],
)
def test_a_date_in_a_name_is_the_articles_day(pattern: str, name: str, every: str) -> None:
    found = DatedName(pattern)
    assert (found.of(MS), found.every, found.is_dated) == (name, every, name != pattern)
    assert found.of(MS - 1) == name.replace("22", "21")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("news-%{+xxxx.ww}", "only dates such as"),
        ("news-%{+yyyy.mm}", "only dates such as"),
        ("news-%{+yyy}", "only dates such as"),
        ("News-%{+yyyy}", "is not a valid name for an index"),
        ("news-%{+yyyy/MM}", "is not a valid name for an index"),
        ("news-%{+MMMM}", "only dates such as"),
        ("news-%{+yyyyMMddHH}", "only dates such as"),
        ("n-%{+yyyy", "only dates such as"),
        ("n-%{foo}", r"only dates such as %\{\+yyyy.MM.dd\} are understood in the name of an index"),
        ("n-%{+yyyy}-%{+}", "only dates such as"),
        ("", "is not a valid name for an index"),
    ],
)
def test_other_dates_and_invalid_names_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        DatedName(pattern)
