"""Languages of the interface: choosing a language, catalogues, and the format of times and numbers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po

from esdedup.web.languages import COOKIE, NAMES, chosen, language
from tests.support.asgi import Request, Response, requests

PROJECT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale="zh")


@pytest.fixture
def messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """Extract the messages of templates and modules."""
    monkeypatch.chdir(PROJECT)
    found = tmp_path / "messages.pot"
    options = ["-F", "pyproject.toml", "-k", "translatable", "-o", str(found), "esdedup"]
    CommandLineInterface().run(["pybabel", "--quiet", "extract", *options])  # type: ignore[no-untyped-call]
    return catalogue(found)


def ids(found: Catalog) -> Iterator[str]:
    for message in found:
        if message.id:
            yield message.id if isinstance(message.id, str) else message.id[0]


def test_every_message_has_exactly_one_translation(messages: Catalog) -> None:
    translated = catalogue(PROJECT / "esdedup" / "web" / "locale" / "zh.po")
    assert set(ids(messages)) == set(ids(translated)), "run `make messages`, then translate"
    assert len(set(ids(messages))) > 50
    for message in translated:
        strings = [message.string] if isinstance(message.string, str) else list(message.string or ())
        assert (strings and all(strings)) or not message.id, message.id
        # The translation has the same placeholders and the right number of plural forms.
        assert not list(message.check(translated)), message.id


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-Hant-TW", "zh"),
        ("en;q=0.5, zh;q=0.9", "zh"),
        ("de-CH,fr;q=0.7", "en"),
        ("de, zh;q=0.1, en;q=0.2", "en"),
        ("zh;q=0", "en"),
        ("*", "en"),
        ("zh;q=x, ;q=1, ,, ;;;", "en"),
    ],
)
def test_the_browsers_language_is_the_default(wish: str, code: str) -> None:
    assert chosen({"accept-language": wish}, {}) == code
    for choice in NAMES:
        assert chosen({"accept-language": wish}, {COOKIE: choice}) == choice
    assert chosen({"accept-language": wish}, {COOKIE: "xx"}) == code


def test_times_and_numbers_are_localised() -> None:
    english, chinese = language("en"), language("zh")
    time = "2026-11-21T08:00:00+02:00"
    assert english.moment(time) == "Nov 21, 2026, 06:00"
    assert chinese.moment(time) == "2026年11月21日 06:00"
    for found in (english, chinese):
        assert [found.moment(value) for value in (None, "some day")] == ["", "some day"]
        assert found.ago("some day", NOW) == ""
        # A time outside the years that `datetime` supports, and the first day that it supports.
        assert found.moment(2**52) == str(2**52)
        assert found.ago("0001-01-01T00:00:00Z", NOW) == ""
    for ago, expected in {
        timedelta(minutes=3): ("3 minutes ago", "3分钟前"),
        timedelta(hours=-2): ("in 2 hours", "2小时后"),
        timedelta(days=5): ("5 days ago", "5天前"),
        timedelta(days=30): ("", ""),
    }.items():
        assert tuple(each.ago((NOW - ago).isoformat(), NOW) for each in (english, chinese)) == expected
    assert (english.number(12345), chinese.percent(0.934)) == ("12,345", "93%")
    minute_ms = 60_000
    assert [english.length(milliseconds) for milliseconds in (999, 59_999, 9 * 86_400_000 + 1)] == [
        "0 seconds",
        "59 seconds",
        "9 days",
    ]
    assert chinese.length(7_200_000) == "2小时"
    assert [english.length(minutes * minute_ms) for minutes in (1, 30, 120, 2880, 40320)] == [
        "1 minute",
        "30 minutes",
        "2 hours",
        "2 days",
        "28 days",
    ]


def answer(path: str, query: str = "", **headers: str) -> Response:
    """Request a page while no Elasticsearch is reachable."""
    (got,) = requests("http://127.0.0.1:9", "news", [Request(path=path, query=query, headers=headers)])
    return got


def test_a_page_is_in_the_chosen_language() -> None:
    chinese = answer("/nowhere", **{"accept-language": "zh"})
    assert (chinese.status, chinese.headers["content-language"]) == (404, "zh")
    assert '<html lang="zh">' in chinese.body
    assert "没有这个页面" in chinese.body
    english = answer("/nowhere", **{"accept-language": "zh", "cookie": f"{COOKIE}=en"})
    assert "there is no such page" in english.body
    assert {"Accept-Language", "Cookie"} <= set(english.headers["vary"].split(", "))


@pytest.mark.parametrize(
    ("back", "location"),
    [
        ("%2Farticle%3Fid%3Da%2520b", "/article?id=a%20b"),
        ("%2F%2Fother.example%2F", "/other.example/"),
        ("%2F%5Cother.example", "/other.example"),
        ("https%3A%2F%2Fother.example", "/https://other.example"),
        ("%2F%09%2Fother.example", "/%09/other.example"),
        ("%2F%0D%0Ax%3A+1", "/%0D%0Ax:%201"),
    ],
)
def test_the_language_switch_redirects_within_this_site(back: str, location: str) -> None:
    got = answer("/language", f"to=zh&back={back}")
    assert (got.status, got.headers["location"]) == (303, location)
    assert f"{COOKIE}=zh; HttpOnly; Max-Age=31536000; Path=/; SameSite=lax" in got.headers["set-cookie"]


def test_the_language_switch_refuses_unknown_languages() -> None:
    assert answer("/language", "to=xx").status == 400
