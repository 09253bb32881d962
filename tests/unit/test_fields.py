"""Fields of articles: names, times and sites; and settings refused before any request is sent."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st

from esdedup import Dedup, Maintenance, SettingError
from esdedup.elastic.mappings import article_index, check_mappings, forest_index
from esdedup.elastic.meta import meta_with_fields, saved_fields
from esdedup.errors import IndexNotReady
from esdedup.fields import Fields, signature_of, value_of
from esdedup.sites import Provenance, site_fields, site_name, site_of
from esdedup.times import time_ms


def test_a_value_is_found_by_name_or_path() -> None:
    assert value_of({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert value_of({"a": {"b": 2}}, "a.b") == 2
    assert value_of({"a": "text"}, "a.b") is None


@pytest.mark.parametrize(
    "names",
    [
        {"text": ""},
        {"title": "a..b"},
        {"dedup": "a.b"},
        {"text": "title"},
        {"text": "title", "site": "title"},
        {"site": "dedup.x"},
        {"time": "_id"},
        {"source": "dedup.x"},
    ],
)
def test_names_that_cannot_be_fields_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        Fields(**names)


@pytest.mark.parametrize("damaged", ["é", "a", 5, None, ["QQ=="]])
def test_a_damaged_signature_counts_as_missing(damaged: object) -> None:
    assert signature_of({"dedup": {"signature": damaged}}, Fields()) == b""
    assert signature_of({"dedup": {"signature": "QQ=="}}, Fields()) == b"A"


@pytest.mark.parametrize(
    ("link", "site"),
    [
        ("https://www.News.Example:8443/a?b#c", "news.example"),
        ("HTTP://user:secret@news.example./a", "news.example"),
        ("//news.example/a", "news.example"),
        ("  https://news.example/a\n", "news.example"),
        ("www.news.example/a", "news.example"),
        ("https://m.news.example/a", "m.news.example"),
        # A domain may itself be called www.
        ("https://www.example/a", "www.example"),
        # Internationalised domain names in both notations.
        ("https://xn--bcher-kva.example/a", "bücher.example"),
        ("https://BÜCHER.example/a", "bücher.example"),
        ("https://xn--fa-hia.example/a", "faß.example"),
        ("https://新闻。中国/a", "新闻.中国"),
        ("https://xn--efvy88h.xn--fiqs8s/a", "新闻.中国"),
        # A host that is not a domain name stays as it is.
        ("https://xn--a-.example/", "xn--a-.example"),
        ("http://192.0.2.1:80/a", "192.0.2.1"),
        ("http://[2001:DB8::1]:80/a", "2001:db8::1"),
        # Malformed addresses, as found in real data.
        ("news.example/a", "news.example"),
        ("News.Example:8080", "news.example"),
        ("www.news.example:8080/a", "news.example"),
        ("192.0.2.1:8080/a", "192.0.2.1"),
        ("新闻.中国/a", "新闻.中国"),
        ("xn--efvy88h.xn--fiqs8s/a", "新闻.中国"),
        ("http:news.example/a", "news.example"),
        ("http:/news.example/a", "news.example"),
        ("https:///news.example/a", "news.example"),
        ("https:\\\\news.example\\a", "news.example"),
        ("https:\\/\\/news.example\\/a", "news.example"),
        ("\\\\news.example\\a", "news.example"),
        ("https://news.example\\a", "news.example"),
        (["https://news.example/a", "https://other.example/a"], "news.example"),
    ],
)
def test_the_site_is_the_host_of_the_link(link: object, site: str) -> None:
    assert site_of({"url": link, "source": "Morning Wire"}, Fields()) == site


@pytest.mark.parametrize(
    "link",
    [
        *("", " ", "/a/b.html", "b.html", "urn:uuid:7", "mailto:a@b.example", "https://", "http://[", "//"),
        *(
            "index.php?id=5",
            "2026.11/a.html",
            "a@b.example/a",
            "b.html#c:80",
            "https:///",
            "https://./",
            "https://a b.example/",
            f"https://{'a.' * 127}example/",
            None,
            5,
            {},
        ),
    ],
)
def test_without_a_usable_link_the_site_is_the_source(link: object) -> None:
    assert site_of({"url": link, "source": " Morning Wire "}, Fields()) == "Morning Wire"
    assert site_of({"url": link, "source": "WWW.News.Example"}, Fields()) == "news.example"
    assert site_of({"url": link, "source": " "}, Fields()) is None
    assert site_of({"url": link}, Fields()) is None


@pytest.mark.parametrize(
    ("value", "site"),
    [
        ("intranet.example:8080", "intranet.example"),
        ("intranet.example/news", "intranet.example"),
        ("intranet.example:8080/news", "intranet.example"),
        ("http:\\\\intranet.example\\news", "intranet.example"),
        # Names that are not addresses.
        ("Radio 7/8", "Radio 7/8"),
        ("AP/news.example", "AP/news.example"),
        ("Vol.5/6", "Vol.5/6"),
        ("Desk: news.example", "Desk: news.example"),
        ("desk@news.example", "desk@news.example"),
    ],
)
def test_site_names_are_extracted_from_addresses(value: str, site: str) -> None:
    assert site_name(f" {value} ") == site


def test_the_site_field_can_be_configured() -> None:
    article: dict[str, Any] = {"url": "https://news.example/a", "source": "Wire", "meta": {"site": "S"}}
    assert site_of(article, Fields(site="meta.site")) == "S"
    assert site_of(article, Fields(site="source")) == "Wire"
    assert site_of(article, Fields(site="url", link="link")) == "news.example"
    assert site_of(article, Fields(site="other")) is None
    assert [site_fields(Fields(site=name)) for name in (None, "meta.site")] == [
        ["url", "source"],
        ["url", "meta.site"],
    ]


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("https://news.example/a/b?id=7001#live-3", "a/b?id=7001"),
        ("http://news.example/#/article/7001", "#/article/7001"),
        ("https://news.example/a?utm_source=b&utm_medium=c&id=7001&fbclid=d#e", "a?id=7001"),
        ("https://news.example/a-b-c-d?utm_source=b", "a-b-c-d"),
        (
            "https://news.example/a?mc_cid=1&mc_eid=2&igshid=3&ref_src=4&cmpid=5&_ga=6&gbraid=7&wbraid=8&dclid=9"
            "&twclid=1&ttclid=2&li_fat_id=3&spm=4.5&from=timeline&share_token=6&scm=7&ncid=8&soc_src=9&id=7001"
            "&at_medium=1&at_campaign=2&xtor=RSS-3&mkt_tok=4&_hsenc=5&_hsmi=6&oly_enc_id=7&vero_id=8&s_cid=9"
            "&ICID=ref_10&WT.mc_id=11&ref=home-page&source=rss",
            "a?id=7001",
        ),
        # Parameters that may identify an article or one of its pages.
        ("https://news.example/a?ref=7001&from=2&cid=3&page=4", "a?ref=7001&from=2&cid=3&page=4"),
        ("https://news.example/a?source=7&ref=the-storm-of-2001", "a?source=7&ref=the-storm-of-2001"),
        ("news.example/a-b-c-d", "a-b-c-d"),
        ("https://news.example/politics", None),
        ("https://news.example/politics?utm_source=2026", None),
        ("https://news.example/", None),
        ("https://news.example/#top", None),
        ("https://news.example", None),
        (None, None),
    ],
)
def test_an_article_is_identified_by_its_path(link: str | None, path: str | None) -> None:
    assert Provenance.of({"url": link}, Fields(), None).path == path


@given(st.text() | st.text("xn-.:/\\[]@w%a9htps"))
def test_normalising_site_names_is_idempotent(value: str) -> None:
    name = site_name(value)
    assert name is None or site_name(name) == name
    site = site_of({"url": value}, Fields())
    assert site is None or site_name(site) == site == name


@pytest.mark.parametrize("fields", [Fields(), Fields(site="meta.site"), Fields(site="source")])
def test_an_index_stores_its_field_names(fields: Fields) -> None:
    assert saved_fields({"_meta": meta_with_fields({}, fields)}) == fields


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T01:00:01.5+01:00", 1_500),
        ("1970-01-02", 86_400_000),
        ("1969-12-31T23:59:59Z", -1_000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 1_000),
        ("1 Jan 1970 01:00 +0100", 0),
        ("Wed, 31 Dec 1969 19:00:01 EST", 1_000),
        ("Thu, 32 Jan 1970 00:00:01 GMT", None),
        ("21.11.2026", None),
        ("3732-07-13T15:31:38", 55620142298000),
        (1_000, 1_000),
        ("1600000000000", 1_600_000_000_000),
        (1.5, 1),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (date(1970, 1, 2), 86_400_000),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (2**80, None),
        ("1" * 5_000, None),
        ([], None),
    ],
)
def test_times_are_read_in_every_accepted_format(value: object, milliseconds: int | None) -> None:
    assert time_ms(value) == milliseconds


# Nothing listens on this port.
ES = Elasticsearch("http://127.0.0.1:9")

WITH_INDICES: list[Callable[[Any], object]] = [
    Maintenance(ES).count,
    Maintenance(ES).count_articles,
    Maintenance(ES).stats,
    Maintenance(ES).repair,
    Maintenance(ES).rebuild,
    lambda indices: list(Maintenance(ES).verify(indices)),
]


@pytest.mark.parametrize("operation", WITH_INDICES)
@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ("demo", r"as a list: \['demo'\]"),
        ("", "as a list"),
        ([""], "the name of an article index is empty"),
        (["demo", ""], "the name of an article index is empty"),
    ],
)
def test_maintenance_refuses_a_bare_string_or_empty_names(
    operation: Callable[[Any], object], indices: Any, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        operation(indices)


def test_an_explanation_needs_the_name_of_an_index() -> None:
    with pytest.raises(SettingError, match="the name of an article index is empty"):
        Maintenance(ES).explain("", "1", "2")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"forest": ""}, "'' is not a valid name for an index"),
        ({"forest": "a,b"}, "'a,b' is not a valid name for an index"),
        ({"wait_s": -1}, "wait_s is -1; it must be at least 0"),
        ({"wait_s": float("nan")}, "wait_s is nan"),
    ],
)
def test_maintenance_refuses_invalid_values(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Maintenance(ES, **wrong)


def test_a_retention_of_zero_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^the retention must be at least a millisecond$"):
        Dedup(ES, retention=timedelta(0))


def test_a_forest_is_not_an_index_of_articles() -> None:
    mapping = forest_index(meta={"format": 4})["mappings"]
    # A forest is refused even if it has the fields of articles.
    mapping["properties"] |= article_index(Fields())["mappings"]["properties"]
    with pytest.raises(IndexNotReady, match="'esdedup-forest' is a forest, which holds no articles"):
        check_mappings({"esdedup-forest": mapping}, Fields())


def test_field_names_are_read_from_a_mapping() -> None:
    kept = {"_meta": {"esdedup": {"fields": {"text": "body", "title": None, "else": "x"}}}}
    assert saved_fields(kept) == Fields(text="body")
    assert saved_fields({"_meta": {"esdedup": {"routed_by_root": True}}}) is None
    with pytest.raises(SettingError, match="names two fields"):
        saved_fields({"_meta": {"esdedup": {"fields": {"text": "title"}}}})
