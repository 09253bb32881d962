"""Overrides: the example of the guide, and what the commands do with a file that is wrong."""

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Result, Run, lines

GUIDE = (Path(__file__).parents[2] / "docs/guides/sites.md").read_text()
(EXAMPLE,) = re.findall(r'```json title="overrides.jsonl"\n(.*?)```', GUIDE, re.DOTALL)
NOTICE = "All rights reserved. No part of this article may be copied without the consent of its publisher."
ARTICLES = [
    {"id": "notice", "url": "https://news.example/3", "text": NOTICE},
    {"id": "ferry", "url": "https://news.example/1", "text": f"The ferry sails again. {NOTICE}"},
    {"id": "goats", "url": "https://news.example/2", "text": f"Three goats found. {NOTICE}"},
    # Not the same page, which would stay without a fingerprint as it came first.
    {"id": "law", "url": "https://www.law.example/4", "text": f"{NOTICE} Ltd."},
]


def roots(done: Result) -> dict[str, str | None]:
    assert done.code == 0, done.err
    return {row["id"]: row["root"] for row in map(json.loads, done.out.splitlines())}


def test_the_example_of_the_guide(run: Run, tmp_path: Path) -> None:
    (tmp_path / "overrides.jsonl").write_text(EXAMPLE)
    (tmp_path / "news.jsonl").write_bytes(lines(*ARTICLES))
    plain = roots(run("cluster", "news.jsonl"))
    assert set(plain.values()) == {plain["ferry"]}
    overridden = roots(run("cluster", "news.jsonl", "--overrides", "overrides.jsonl"))
    assert len({overridden[each] for each in ("ferry", "goats", "law")}) == 3
    assert (overridden["notice"], overridden["law"] is None) == (None, False)
    # Where the articles name their sites themselves, the address counts no more.
    overridden = roots(run("cluster", "news.jsonl", "--overrides", "overrides.jsonl", "--site-field", "site"))
    assert overridden["law"] is None


def test_overrides_count_where_single_texts_are_fingerprinted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "overrides.jsonl").write_text(EXAMPLE)
    overrides = ["--overrides", "overrides.jsonl", "--json"]
    done = [
        run("fingerprint", *overrides, *site, stdin=NOTICE.encode())
        for site in ([], ["--site", "law.example"])
    ]
    assert [each.json["fingerprint"] is None for each in done] == [True, False]
    for article in ARTICLES:
        (tmp_path / str(article["id"])).write_bytes(lines(article))
    compared = run("explain", "notice", "law", *overrides).json
    assert [compared[each]["fingerprint"] is None for each in ("one", "other")] == [True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read overrides.jsonl: No such file or directory"),
        (b'{"text": "a"}\n\n{"txt": "a"}\n', "overrides.jsonl:3: 'txt' is none of boilerplate, text, site"),
        (
            b'{"text": "a"}\n{"boilerplate": "A!"}\n',
            "overrides.jsonl:2: passage 1 of its boilerplate is text in overrides.jsonl:1",
        ),
    ],
)
def test_a_file_that_is_wrong_is_a_usage_error(
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


def test_overrides_do_not_go_with_whole_pages(run: Run, tmp_path: Path) -> None:
    (tmp_path / "overrides.jsonl").write_text(EXAMPLE)
    done = run("cluster", "-", "--overrides", "overrides.jsonl", "--keep-boilerplate", stdin=b"")
    assert (done.code, "overrides would have no effect" in done.err) == (2, True)
