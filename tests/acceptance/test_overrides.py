"""Overrides: the guide's example, invalid files, and how commands and pages show left-out passages."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Overrides
from esdedup.boilerplate.boilerplate import untaught_filters
from esdedup.text.parsed import left_out
from tests.acceptance.conftest import Result, Run, lines
from tests.support.asgi import request
from tests.support.names import new_names
from tests.support.pages import (
    ENOUGH,
    HARBOUR,
    MAIL,
    MENU,
    RIGHTS,
    VALLEY,
    VALLEY_RIGHTS,
    article,
    feed_pages,
    page,
    pages,
)

GUIDE = (Path(__file__).parents[2] / "docs/guides/sites.md").read_text()
(EXAMPLE,) = re.findall(r'```json title="overrides.jsonl"\n(.*?)```', GUIDE, re.DOTALL)
NOTICE = "All rights reserved. No part of this article may be copied without the consent of its publisher."
ARTICLES = [
    {"id": "notice", "url": "https://news.example/3", "text": NOTICE},
    {"id": "ferry", "url": "https://news.example/1", "text": f"The ferry sails again. {NOTICE}"},
    {"id": "goats", "url": "https://goats.example/2", "text": f"Three goats found. {NOTICE}"},
    # This text differs slightly, because an equal text would be a copy of the first article.
    {"id": "law", "url": "https://www.law.example/4", "text": f"{NOTICE} Ltd."},
]


def roots(done: Result) -> dict[str, str | None]:
    assert done.code == 0, done.err
    return {row["id"]: row["root"] for row in map(json.loads, done.out.splitlines())}


def is_emptied(text: Any) -> bool:
    """Return whether a whole text is left out."""
    return bool(text["left_out"]["letters"] == text["left_out"]["of_letters"])


def test_the_guides_example_separates_four_articles(run: Run, tmp_path: Path) -> None:
    (tmp_path / "overrides.jsonl").write_text(EXAMPLE)
    (tmp_path / "news.jsonl").write_bytes(lines(*ARTICLES))
    plain = roots(run("cluster", "news.jsonl"))
    assert set(plain.values()) == {plain["ferry"]}
    overridden = roots(run("cluster", "news.jsonl", "--overrides", "overrides.jsonl"))
    assert len(set(overridden.values())) == 4
    # With --site-field, the site no longer comes from the address.
    unnamed = roots(run("cluster", "news.jsonl", "--overrides", "overrides.jsonl", "--site-field", "site"))
    assert [each for each in unnamed if unnamed[each] != overridden[each]] == ["law"]


def test_overrides_apply_to_fingerprint_and_explain(run: Run, tmp_path: Path) -> None:
    (tmp_path / "overrides.jsonl").write_text(EXAMPLE)
    overrides = ["--overrides", "overrides.jsonl", "--json"]
    done = [
        run("fingerprint", *overrides, *site, stdin=NOTICE.encode())
        for site in ([], ["--site", "law.example"])
    ]
    assert [is_emptied(each.json) for each in done] == [True, False]
    for each in ARTICLES:
        (tmp_path / str(each["id"])).write_bytes(lines(each))
    compared = run("explain", "notice", "law", *overrides).json
    assert [is_emptied(compared[each]) for each in ("one", "other")] == [True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read overrides.jsonl: No such file or directory"),
        (
            b'{"text": "a"}\n\n{"txt": "a"}\n',
            "overrides.jsonl:3: 'txt' is not one of boilerplate",
        ),
        (
            b'{"text": "a"}\n{"boilerplate": "A!"}\n',
            "overrides.jsonl:2: passage 1 of its boilerplate is text in overrides.jsonl:1",
        ),
    ],
)
def test_an_invalid_file_of_overrides_is_a_usage_error(
    run: Run, tmp_path: Path, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "overrides.jsonl").write_bytes(content)
    for command in (
        ["cluster", "-"],
        ["index", "-", "--index", "news"],
        ["serve", "--index", "news"],
        ["similar", "--index", "news", "--text", "-"],
        ["fingerprint"],
        ["explain", "1", "2", "--index", "news"],
    ):
        done = run(*command, "--overrides", "overrides.jsonl", stdin=b"")
        assert (done.code, message in done.err) == (2, True), done.err


def test_overrides_cannot_be_combined_with_kept_boilerplate(run: Run, tmp_path: Path) -> None:
    (tmp_path / "overrides.jsonl").write_text(EXAMPLE)
    done = run("cluster", "-", "--overrides", "overrides.jsonl", "--keep-boilerplate", stdin=b"")
    assert (done.code, "overrides would have no effect" in done.err) == (2, True)


@pytest.fixture(scope="module")
def fed(es: Elasticsearch) -> Iterator[tuple[str, str]]:
    with new_names(es) as name:
        yield feed_pages(es, name)


def texts(left_out: Any) -> list[str]:
    return [span["text"] for span in left_out["spans"]]


def test_explain_uses_the_signatures_that_determined_the_roots(online: Run, fed: tuple[str, str]) -> None:
    index, forest = fed
    options = ("--index", index, "--forest", forest)
    found = online("explain", "early", "late", *options, "--json").json
    compared = found["comparison"]
    early, late = compared["one"], compared["other"]
    assert [early["fingerprint"], late["fingerprint"]] == [
        found["one"]["fingerprint"],
        found["other"]["fingerprint"],
    ]
    assert (early["is_todays"], late["is_todays"]) == (False, True)
    assert [found["one"]["text_is_same"], found["other"]["text_is_same"]] == [True, True]
    assert (texts(early["left_out"]), texts(late["left_out"])) == (
        [f"{MENU}\n\n{MAIL}", RIGHTS],
        [VALLEY_RIGHTS],
    )
    # Signatures computed now would be equal. By the stored signatures, the later article is an excerpt.
    assert (found["outcome"], found["same_cluster"], compared["rule"]) == ("together", True, "excerpt")
    assert compared["whole_texts"]["resemblance"] < compared["whole_texts"]["needed"]
    people = online("explain", "early", "late", *options).out
    assert "compared by its stored signature" in " ".join(people.split())
    assert "6 of 12 passages are left out" in people
    assert RIGHTS in people


def test_pages_are_indexed_whole_if_boilerplate_is_kept(
    online: Run, es: Elasticsearch, tmp_path: Any
) -> None:
    with new_names(es) as name:
        index, forest = name("pages"), name("forest")
        (tmp_path / "one.jsonl").write_text(json.dumps({"id": "1", "text": page(article(0), HARBOUR)}))
        online("setup", index)
        options = ("--index", index, "--forest", forest, "--keep-boilerplate", "--json")
        done = online("index", "one.jsonl", *options)
        assert (done.code, done.json["written"], done.json["with_boilerplate"]) == (0, 1, 0)


def test_articles_with_boilerplate_are_counted(online: Run, run: Run, es: Elasticsearch) -> None:
    """The commands `cluster`, `index` and `adopt` report the same numbers."""
    articles = list(pages(120))
    given = lines(*articles)
    summary = run("cluster", "-", stdin=given).err
    found = re.search(r" roots, (\d+) with boilerplate, ([\d,]+) letters left out as boilerplate\n", summary)
    assert found is not None
    counts = int(found[1]), int(found[2].replace(",", ""))
    assert counts[0] > 100
    assert "boilerplate" not in run("cluster", "-", "--keep-boilerplate", stdin=given).err
    with new_names(es) as name:
        index, before = name("pages"), name("before")
        online("setup", index)
        done = [online("index", "-", "--index", index, "--forest", name("forest"), "--json", stdin=given)]
        helpers.bulk(es, [{"_index": before, "_id": each["id"], **each} for each in articles], refresh=True)
        done.append(online("adopt", before, "--forest", name("adopted"), "--json"))
        for each in done:
            assert (each.json["with_boilerplate"], each.json["boilerplate_letters"]) == counts


def test_explain_shows_the_boilerplate_of_files(run: Run, tmp_path: Any) -> None:
    for name, site in (("one", HARBOUR), ("other", VALLEY)):
        (tmp_path / name).write_text(page(article(0), site))
    found = run("explain", "one", "other", "--json").json
    assert texts(found["one"]["left_out"]) == [MENU]
    assert texts(found["other"]["left_out"]) == []
    assert found["whole_texts"]["exact_resemblance"] > 0.6
    kept = run("explain", "one", "other", "--keep-boilerplate", "--json").json
    assert (kept["one"]["left_out"], kept["one"]["letters"]) == (None, found["one"]["letters"])
    assert kept["whole_texts"]["exact_resemblance"] < found["whole_texts"]["exact_resemblance"]


def test_fingerprint_shows_left_out_passages(online: Run, run: Run, fed: tuple[str, str]) -> None:
    index, forest = fed
    text = page(article(7), HARBOUR).encode()
    first = run("fingerprint", "--json", stdin=text).json
    assert texts(first["left_out"]) == [MENU]
    ask = ("fingerprint", "--index", index, "--forest", forest, "--site", HARBOUR)
    learned = online(*ask, "--json", stdin=text).json
    assert texts(learned["left_out"]) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    assert {name: learned["left_out"][name] for name in ("passages", "of_passages")} == {
        "passages": 6,
        "of_passages": 12,
    }
    # The fingerprint covers only the article.
    assert (
        learned["fingerprint"] == run("fingerprint", "--json", stdin=article(7).encode()).json["fingerprint"]
    )
    kept = run("fingerprint", "--json", "--keep-boilerplate", stdin=text).json
    assert kept["left_out"] is None
    assert len({each["fingerprint"] for each in (first, learned, kept)}) == 3
    shown = online(*ask, stdin=text).out
    assert "left out     6 of 12 passages" in shown
    assert RIGHTS in shown


def test_similar_shows_left_out_passages(online: Run, fed: tuple[str, str]) -> None:
    index, forest = fed
    ask = ("similar", "--index", index, "--text", "-", "--site", HARBOUR, "--forest", forest)
    text = page(article(9), HARBOUR).encode()
    found = online(*ask, "--json", stdin=text).json
    assert texts(found["left_out"]) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    assert "6 of 12 passages are left out" in online(*ask, stdin=text).out
    assert online("similar", "--index", index, "--id", "late", "--json").json["left_out"] is None


def test_stats_list_the_boilerplate_of_each_site_as_overrides(online: Run, fed: tuple[str, str]) -> None:
    index, forest = fed
    ask = ("stats", "--boilerplate", "--index", index, "--forest", forest)
    found = online(*ask, "--json").json
    assert (found["articles"], found["is_complete"]) == (ENOUGH + 1, True)
    sites = {each["site"]: each for each in found["sites"]}
    assert sites.keys() == {HARBOUR, VALLEY}
    assert {each["text"]: each["articles"] for each in sites[HARBOUR]["passages"]} == dict.fromkeys(
        (*MENU.split("\n\n"), MAIL, RIGHTS), ENOUGH // 2
    )
    assert sites[VALLEY]["passages"] == [{"text": VALLEY_RIGHTS, "articles": ENOUGH // 2 + 1}]
    # The newest article is from the valley's site.
    few = online(*ask, "--articles", "1", "--json").json
    assert [(each["site"], each["articles"]) for each in few["sites"]] == [(VALLEY, 1)]
    shown = online(*ask, "--passages", "5").out
    assert f"# {HARBOUR}: 64 articles, 6 passages are boilerplate" in shown
    assert "# and 1 more passages" in shown
    # The output is itself a file of overrides, which takes effect without learning.
    overridden = untaught_filters(Overrides.of_lines(online(*ask).out.encode().splitlines()))
    with overridden(HARBOUR) as passage_filter:
        left = left_out(page(article(1), HARBOUR), passage_filter, max_length=10_000)
    assert [span.text for span in left.spans] == [f"{MENU}\n\n{MAIL}", RIGHTS]


def small_texts(shown: str) -> list[str]:
    """Return the passages that a page marks as boilerplate, without the legend."""
    (_, *found) = re.findall(r'<span class="boilerplate"[^>]*>(.*?)</span>', shown, re.DOTALL)
    return [html.unescape(each) for each in found]


def text_of(shown: str) -> str:
    """Return the text that a page shows, without tags."""
    (found,) = re.findall(r'<div class="text"[^>]*>(.*?)</div>', shown, re.DOTALL)
    return html.unescape(re.sub("<[^>]*>", "", found))


def test_the_page_shows_the_whole_text_and_marks_boilerplate(
    elasticsearch_url: str, fed: tuple[str, str]
) -> None:
    index, forest = fed
    shown = request(elasticsearch_url, index, "/article", of={"forest": forest}, id="early")
    assert shown.status == 200
    assert small_texts(shown.body) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    assert text_of(shown.body) == page(article(0), HARBOUR)
    assert "is treated as boilerplate and not compared: 6 of 12 passages, " in shown.body
    compared = request(
        elasticsearch_url, index, "/compare", of={"forest": forest}, one="early", other="late"
    ).body
    marked = re.findall(r'<(del|ins)><span class="boilerplate" title="boilerplate">(.*?)</span>', compared)
    assert ("del", "Nothing on this site may be copied without the written consent of ") in marked
    assert ("ins", "The Valley Post answers for no text that readers send to ") in marked
    found = request(elasticsearch_url, index, "/api/v1/article", of={"forest": forest}, id="early").json
    assert texts(found["left_out"]) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    assert [found["text"][span["start"] : span["end"]] for span in found["left_out"]["spans"]] == texts(
        found["left_out"]
    )
    assert (found["left_out_unknown"], found["site"]) == (None, HARBOUR)


def test_boilerplate_is_not_marked_without_the_forest(elasticsearch_url: str, fed: tuple[str, str]) -> None:
    index, forest = fed
    missing = {"forest": f"{forest}-gone"}
    shown = request(elasticsearch_url, index, "/article", of=missing, id="early")
    assert (shown.status, text_of(shown.body)) == (200, page(article(0), HARBOUR))
    assert "Boilerplate is not marked: there is no forest" in shown.body
    found = request(elasticsearch_url, index, "/api/v1/article", of=missing, id="early").json
    assert found["left_out"] is None
    assert "there is no forest" in found["left_out_unknown"]
