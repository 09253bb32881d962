"""The endpoint that returns the words of a text."""

import asyncio
from typing import Any

import orjson
import pytest

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.sidecar.app import create_app
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.paths import counting
from esdedup.sidecar.upstream import Upstream
from esdedup.sidecar.words_api import words_routes
from esdedup.text.weights import WordTable
from tests.support import asgi

TEXT = "开往外岛的渡轮星期一恢复通航，the harbour council said"
WEIGHED = KEYWORDS.with_changes(weighting=WordTable({"渡轮": 3, "harbour": 2}))


def ask(own: Profile, body: Any, *, query: str = "", content_type: str = "application/json") -> asgi.Response:
    app = create_app(
        Upstream(["http://localhost:9200"]),
        own=[words_routes(own, max_body_bytes=1_000)],
        answer=counting(Metrics()),
    )
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = {"content-type": content_type}
    request = asgi.Request(path="/v1/words", query=query, method="POST", headers=headers, body=content)
    return asyncio.run(asgi.send(app, request))


@pytest.mark.parametrize(
    ("own", "query", "used"),
    [
        (VERIFIED, "", KEYWORDS),
        (VERIFIED, "profile=classic", CLASSIC),
        (CLASSIC, "", CLASSIC),
        (WEIGHED, "", WEIGHED),
        (WEIGHED, "profile=keywords", WEIGHED),
        (WEIGHED, "profile=classic", CLASSIC),
    ],
    ids=lambda each: each.label if isinstance(each, Profile) else each,
)
def test_words_and_weights_come_from_the_profile(own: Profile, query: str, used: Profile) -> None:
    answer = ask(own, {"text": TEXT}, query=query)
    expected = Fingerprinter(used)
    (signature,) = expected.fingerprint([TEXT]).signatures.tolist()
    assert answer.json == {
        "profile": used.label,
        "fingerprint": f"{signature:016x}",
        "words": [
            {"word": each.word, "count": each.count, "weight": each.weight}
            for each in expected.features(TEXT)
        ],
        "is_cut": False,
    }


def test_a_text_without_letters_has_no_words() -> None:
    found = ask(CLASSIC, {"text": "!!!"}).json
    assert (found["fingerprint"], found["words"]) == (None, [])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"text": None}, 400),
        ({"text": ["a"]}, 400),
        ([], 400),
        (b"{", 400),
    ],
)
def test_a_body_without_a_text_is_refused(body: Any, status: int) -> None:
    answer = ask(CLASSIC, body)
    assert (answer.status, answer.json["status"]) == (status, status)


def test_fields_that_would_be_ignored_are_refused() -> None:
    answer = ask(CLASSIC, {"text": TEXT, "title": "a", "profile": "keywords"}, query="profil=classic")
    assert answer.status == 400
    assert answer.json["detail"].startswith("'profil', 'profile', 'title' would be ignored: the body takes")


def test_other_types_of_bodies_are_refused() -> None:
    assert ask(CLASSIC, {"text": TEXT}, content_type="text/html").status == 415
    assert ask(CLASSIC, {"text": TEXT}, query="profile=verified").status in {400, 422}
