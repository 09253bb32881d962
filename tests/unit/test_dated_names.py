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
        ("news-%{+xxxx.ww}", "may have yyyy, MM and dd, not 'xxxx'"),
        ("news-%{+yyyy.mm}", "not 'mm'"),
        ("news-%{+yyy}", "not 'yyy'"),
        ("News-%{+yyyy}", "is not a valid name for an index"),
        ("news-%{+yyyy/MM}", "is not a valid name for an index"),
        ("", "is not a valid name for an index"),
    ],
)
def test_other_dates_and_invalid_names_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        DatedName(pattern)
