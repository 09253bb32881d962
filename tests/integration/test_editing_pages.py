"""Editing over HTTP, with forms and JSON, by editors whose names a proxy sends."""

import collections
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup
from esdedup.web.languages import language
from tests import sample
from tests.support.asgi import Request, Response, requests
from tests.support.forests import feed
from tests.support.names import new_names

HEADER = "x-remote-user"
NAMED = {HEADER: "陈编辑"}
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Pages:
    """The pages of an index whose stories may be edited."""

    def __init__(self, es: Elasticsearch, url: str, index: str, forest: str) -> None:
        self.es, self.url, self.index, self.forest = es, url, index, forest

    def send(
        self, *given: Request, header: str | None = HEADER, origins: tuple[str, ...] = ()
    ) -> list[Response]:
        of = {"forest": self.forest, "editor_header": header, "origins": origins}
        return requests(self.url, self.index, given, of=of)

    def form(self, headers: Mapping[str, str] = NAMED, **values: str | list[str]) -> Response:
        body = urlencode(values, doseq=True).encode()
        (answer,) = self.send(Request(path="/edit", method="POST", headers={**FORM, **headers}, body=body))
        return answer

    def stories(self) -> dict[str, str]:
        self.es.indices.refresh(index=self.index)
        hits = self.es.search(index=self.index, size=1_000)["hits"]["hits"]
        return {hit["_id"]: hit["_source"]["dedup"]["story"] for hit in hits}

    def edits(self) -> list[dict[str, Any]]:
        (answer,) = self.send(Request(path="/api/v1/edits", headers=NAMED))
        edits: list[dict[str, Any]] = answer.json["edits"]
        return edits

    def two(self) -> tuple[str, str]:
        one, other, *_ = sorted({story: name for name, story in self.stories().items()}.values())
        return one, other


@pytest.fixture
def pages(es: Elasticsearch, elasticsearch_url: str) -> Iterator[Pages]:
    with new_names(es) as name:
        index, forest = name("desk"), name("forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index, editorial=True)
            feed(es, dedup, index, [{"_id": each["id"], **each} for each in sample.articles(40)])
        yield Pages(es, elasticsearch_url, index, forest)
        es.options(ignore_status=404).indices.delete(index=f"{index}-newer")


def test_forms_merge_move_split_and_undo(pages: Pages) -> None:
    one, other = pages.two()
    before = pages.stories()
    answer = pages.form(
        kind="merge", id=one, to=f"/article?id={other}", why="one fire", back=f"/article?id={one}"
    )
    assert answer.status == 303, answer.body
    assert answer.headers["location"].startswith(f"/article?id={one}&edited=1&moved=")
    stories = pages.stories()
    assert stories[one] == stories[other] == before[other]
    (listed,) = pages.send(Request(path="/edits", headers=NAMED))
    for word in ("陈编辑", "one fire", "merged stories"):
        assert word in html.unescape(listed.body)
    assert pages.form(kind="undo", number="1").status == 303
    assert pages.stories() == before
    assert pages.form(kind="move", id=one, to=other, why="").status == 303
    assert pages.form(kind="split", id=one, to=other).status == 303
    assert pages.stories()[one].startswith("story-")


@pytest.mark.parametrize("back", ["//evil.example/", "/\\evil.example", "https://evil.example/"])
def test_forms_return_to_this_site_only(pages: Pages, back: str) -> None:
    for values in ({"kind": "split", "id": pages.two()[0], "back": back}, {"choose": back}):
        answer = pages.form(NAMED, **values)
        assert answer.status == 303, answer.body
        assert re.match("/[^/]", f"{answer.headers['location']}?")
        pages.form(kind="undo", number=str(len(pages.edits())))


def test_chosen_rows_are_kept_in_the_address(pages: Pages) -> None:
    chosen = [f"{pages.index}/{each}" for each in pages.two()]
    answer = pages.form(kind="merge", chosen=chosen, choose="/?q=the&chosen=old&edited=1", why="")
    expected = urlencode({"q": "the", "chosen": chosen}, doseq=True)
    assert (answer.status, answer.headers["location"]) == (303, f"/?{expected}")
    (listed,) = pages.send(Request(path="/", query=expected, headers=NAMED))
    assert listed.body.count('name="chosen"') >= 2
    too_many = urlencode({"chosen": [f"a/{at}" for at in range(31)]}, doseq=True)
    (refused,) = pages.send(Request(path="/", query=too_many, headers=NAMED))
    assert refused.status == 400


def test_only_editors_see_reports_of_edits(pages: Pages) -> None:
    one, _ = pages.two()
    made = pages.form(kind="name", id=one, name="A name", note="A note", back=f"/article?id={one}")
    query = made.headers["location"].partition("?")[2]
    invalid = [f"id={one}&edited={each}&moved=1&same=1" for each in ("9", "0", "-1", "x", "1" * 30)]
    for headers, given, is_shown in (
        (NAMED, query, True),
        ({}, query, False),
        *((NAMED, each, False) for each in invalid),
    ):
        (shown,) = pages.send(Request(path="/article", query=given, headers=headers))
        assert shown.status == 200
        assert ('class="note edited"' in shown.body) is is_shown
        # Everyone sees the name of a story.
        assert "A name" in shown.body


def test_api_clients_edit_with_json(pages: Pages) -> None:
    one, other = pages.two()
    headers = NAMED | JSON
    body = json.dumps({"kind": "merge", "ids": [one], "to": other}).encode()
    made, history = pages.send(
        Request(path="/api/v1/edits", method="POST", headers=headers, body=body),
        Request(path="/api/v1/edits", headers=NAMED),
    )
    assert made.status == 200, made.body
    assert made.json["edit"]["by"] == "陈编辑"
    assert made.json["articles"] > 0
    assert history.json["edits"] == [made.json["edit"]]
    assert (history.json["undone"], history.json["names"]) == ([], {})
    # The history names an article of both stories.
    edit = made.json["edit"]
    assert set(history.json["articles"]) == {edit["into"], *edit["stories"]}


def test_json_edits_may_name_many_articles_with_indices(pages: Pages) -> None:
    before = pages.stories()
    one, *others = before
    # A request may name up to 1,000 articles, each with its index.
    places = [{"index": pages.index, "id": each} for each in others] * (1_000 // len(others))
    given = [
        {"kind": "merge", "ids": places, "to": one},
        {"kind": "merge", "ids": [others[0]] * 1_001, "to": one},
        {"kind": "merge", "ids": [{"id": others[0]}], "to": one},
        {"kind": "merge", "ids": [{"index": "another-index", "id": others[0]}], "to": one},
        {"kind": "merge", "ids": [{"index": "no/index", "id": others[0]}], "to": one},
    ]
    path = "/api/v1/edits"
    sent = [
        Request(path=path, method="POST", headers=NAMED | JSON, body=json.dumps(each).encode())
        for each in given
    ]
    answers = pages.send(*sent)
    assert [each.status for each in answers] == [200, 400, 400, 404, 400], [each.body for each in answers]
    assert set(pages.stories().values()) == {before[one]}


def test_edits_distinguish_articles_with_equal_ids_by_index(pages: Pages) -> None:
    older, newer = pages.index, f"{pages.index}-newer"
    with Dedup(pages.es, forest=pages.forest) as dedup:
        dedup.setup(newer, editorial=True)
        # In this index, each id belongs to a different article.
        turned = [*reversed(list(sample.articles(40)))]
        ids = [each["id"] for each in sample.articles(40)]
        feed(pages.es, dedup, newer, [{**each, "_id": id_} for id_, each in zip(ids, turned, strict=True)])
    pages.index = f"{older}*"
    hits = pages.es.search(index=pages.index, size=1_000)["hits"]["hits"]
    before = {(hit["_index"], hit["_id"]): hit["_source"]["dedup"]["story"] for hit in hits}
    roots = {name: story for (index, name), story in before.items() if index == older}
    one = next(name for name in ids if before[newer, name] != roots[name])
    other = next(name for name in ids if roots[name] not in (roots[one], before[newer, one]))
    for given in (
        {"chosen": [f"{older}/{other}", f"{older}/{one}"]},
        {"id": one, "index": older, "to": f"/article?id={other}&index={older}"},
    ):
        answer = pages.form(kind="merge", listed="", why="", **given)
        assert answer.status == 303, answer.body
        found = pages.es.search(index=pages.index, size=1_000)["hits"]["hits"]
        stories = {(hit["_index"], hit["_id"]): hit["_source"]["dedup"]["story"] for hit in found}
        assert stories == {
            place: roots[other] if story == roots[one] else story for place, story in before.items()
        }
        pages.form(kind="undo", number=str(len(pages.edits())))


def test_refused_edits_say_why_in_the_visitors_language(pages: Pages) -> None:
    one, other = pages.two()
    stories = pages.stories()
    count = collections.Counter(stories.values())
    lone = next(name for name, story in stories.items() if count[story] == 1)
    assert pages.form(kind="name", id=one, name="A name").status == 303
    assert pages.form(kind="undo", number="1").status == 303
    row, to = f"{pages.index}/{one}", f"/article?id={one}&size=5"
    of_list = f"/?{urlencode({'q': 'a&b', 'chosen': row})}"
    refused: list[tuple[dict[str, str], str, str]] = [
        (
            {"kind": "merge", "chosen": row, "back": "/?q=a%26b&chosen=old"},
            "choose at least two rows",
            of_list,
        ),
        (
            {"kind": "merge", "id": one, "to": one, "back": f"{to}&edited=1&moved=1&same=0"},
            "the articles already belong to that story",
            to,
        ),
        (
            {"kind": "move", "id": one, "back": to},
            "name an article of the other story, by its id or the address of its page",
            to,
        ),
        (
            {"kind": "split", "id": lone, "back": "//evil.example/\t/x"},
            "nothing would be left of the story: all of its articles are to be split off",
            "/evil.example/%09/x?",
        ),
        ({"kind": "name", "id": other}, "the story has this name and this note already", "/?"),
        ({"kind": "undo", "number": "1", "back": "/edits"}, "the edit has been undone already", "/edits?"),
    ]
    for values, reason, back in refused:
        for code in ("en", "zh"):
            answer = pages.form(NAMED | {"accept-language": code}, **values)
            assert answer.status == 400, answer.body
            words = html.unescape(answer.body).partition("<main")[2]
            assert f'<p class="note">{language(code).gettext(reason)}</p>' in words
            assert (reason in words) is (code == "en")
            assert f'<a href="{back}">' in words
    assert len(pages.edits()) == 2


def test_rows_without_index_and_id_are_refused(pages: Pages) -> None:
    for chosen in (["a", "b"], ["/a", "b/"]):
        answer = pages.form(kind="merge", why="", chosen=chosen)
        assert answer.status == 400
        assert "the form of this page is invalid" in answer.body
        assert "a chosen row must be given as INDEX/ID" in answer.body


@pytest.mark.parametrize("header", [HEADER, None])
def test_users_not_named_by_the_proxy_cannot_edit(pages: Pages, header: str | None) -> None:
    one, other = pages.two()
    before, headers = pages.stories(), {} if header else NAMED
    body = urlencode({"kind": "merge", "id": one, "to": other}).encode()
    given = [
        Request(path="/edit", method="POST", headers=FORM | headers, body=body),
        Request(path="/edits", headers=headers),
        Request(path="/api/v1/edits", headers=headers),
        Request(
            path="/api/v1/edits", method="POST", headers={"content-type": "application/json"}, body=b"{}"
        ),
    ]
    assert [each.status for each in pages.send(*given, header=header)] == [403] * 4
    assert pages.stories() == before
    (shown,) = pages.send(Request(path="/article", query=f"id={one}", headers=headers), header=header)
    assert 'action="/edit"' not in shown.body


def test_pages_of_other_sites_cannot_edit(pages: Pages) -> None:
    one, other = pages.two()
    before = pages.stories()
    body = urlencode({"kind": "merge", "id": one, "to": other}).encode()
    for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        given = Request(path="/edit", method="POST", headers=FORM | NAMED | foreign, body=body)
        # Edits are refused even if the site may read the responses.
        for origins in ((), ("*",)):
            (answer,) = pages.send(given, origins=origins)
            assert answer.status == 403
    assert pages.stories() == before


def test_invalid_forms_are_refused(pages: Pages) -> None:
    one, other = pages.two()
    refused: list[tuple[dict[str, str], int]] = [
        ({"kind": "merge"}, 400),
        ({"kind": "nonsense", "to": other}, 400),
        ({"kind": "split", "id": "none"}, 404),
        ({"kind": "undo", "number": "7"}, 400),
        ({"kind": "undo", "number": "x"}, 400),
        ({"kind": "merge", "to": "none"}, 404),
        ({"kind": "merge", "to": one}, 400),
        ({}, 400),
        ({f"field-{number}": "x" for number in range(20)}, 400),
    ]
    for values, status in refused:
        answer = pages.form(NAMED, **{"id": one, **values})
        assert answer.status == status, (values, answer.body)
        assert not re.search("Traceback|pydantic", answer.body)
