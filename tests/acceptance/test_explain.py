"""`esdedup explain`, as a user runs it."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import CLASSIC, VERIFIED, Dedup, Override, Overrides, Profile, Reader
from esdedup.boilerplate.overrides import NO_OVERRIDES
from esdedup.elastic.forest.meta import Lookup
from esdedup.fingerprint.profile import PROFILES
from tests import sample
from tests.acceptance.conftest import Run
from tests.support.exploring import times_effort
from tests.support.forests import in_both_lookups, roots
from tests.support.names import Names

SAMPLE = [article["text"] for article in sample.articles(20)]
SENTENCES = [
    " ".join("".join(draw.choices("abcdefghij", k=6)) for _ in range(12 + number % 3)) + "."
    for draw in [Random(32)]
    for number in range(60)
]
# SECOND is near every other text. THIRD, unlike FOURTH, may join FIRST's cluster, but is not near FIRST.
FIRST, SECOND, THIRD, FOURTH = (" ".join(SENTENCES[first : first + 20]) for first in (0, 3, 4, 7))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "one.txt", tmp_path / "other.json"
    one.write_text(SAMPLE[0])
    other.write_text(json.dumps({"id": "2", "text": SAMPLE[0] + " One more sentence."}))
    return one, other


@pytest.fixture
def feed(es: Elasticsearch, index_name: Names) -> Callable[..., tuple[str, str]]:
    """Feed texts to a new index in order, each published on the given day of January 2026."""

    def feed(
        texts: Mapping[str, str | dict[str, str]],
        days: Sequence[int] = (),
        profile: Profile = VERIFIED,
        overrides: Overrides = NO_OVERRIDES,
        lookup: Lookup = "memory",
    ) -> tuple[str, str]:
        index, forest = index_name("news"), index_name("forest")
        actions = [
            {"_index": index, "_id": name, "published_at": f"2026-01-{day:02}"}
            | (text if isinstance(text, dict) else {"text": text})
            for (name, text), day in zip(texts.items(), days or [1] * len(texts), strict=True)
        ]
        how: dict[str, Any] = {"retention": timedelta(days=3), "overrides": overrides, "lookup": lookup}
        with Dedup(es, forest=forest, profile=profile, **how) as dedup:
            dedup.setup(index)
            helpers.bulk(es, dedup.enrich(actions, backfill=True), refresh=True)
        return index, forest

    return feed


@pytest.fixture
def explain(online: Run) -> Callable[..., Any]:
    """Return the explanation for two articles as JSON."""

    def explain(one: str, other: str, index: str, forest: str, *options: object) -> Any:
        arguments = ["explain", one, other, "--index", index, "--forest", forest, *options]
        found = online(*arguments, "--json")
        assert (found.code, found.err) == (0, "")
        return found.json

    return explain


@pytest.mark.parametrize("profile", PROFILES)
def test_explain_prints_every_stage_for_two_files(run: Run, files: tuple[Path, Path], profile: str) -> None:
    found = run("explain", *files, "--profile", profile, "--json").json
    assert found["profile"] == PROFILES[profile].label
    assert {"one", "other", "pairs", "nearest", "whole_texts", "rule", "near", "may_join"} <= set(found)
    assert (found["whole_texts"] is None) is (profile != "verified")
    people = run("explain", *files, "--profile", profile)
    assert people.code == 0
    for stage in (
        "1 The texts",
        "2 Their representatives",
        "3 What they have in common",
        "4 The decision",
    ):
        assert stage in people.out
    assert found["one"]["representatives"][0]["simhash"] in people.out


def test_explain_reads_standard_input_and_the_same_file_twice(run: Run, files: tuple[Path, Path]) -> None:
    found = run("explain", "-", files[1], "--json", stdin=files[1].read_bytes()).json
    assert found["rule"] == "equal"
    assert run("explain", files[0], files[0], "--json").json["rule"] == "equal"
    named = json.dumps({"body": {"html": SAMPLE[0]}}).encode()
    found = run("explain", files[0], "-", "--text-field", "body.html", "--json", stdin=named).json
    assert found["rule"] == "equal"


def test_explain_handles_empty_and_huge_texts(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    found = run("explain", "empty", files[0])
    assert (found.code, "too short" in found.out, "stands alone" in found.out) == (0, True, True)
    (tmp_path / "huge").write_text(" ".join(SENTENCES) * 2_000)
    assert run("explain", "huge", files[0], "--json").json["rule"] == "nothing_in_common"


@pytest.mark.parametrize(
    ("content", "arguments", "code", "message"),
    [
        (b"", ["none.txt", "-"], 2, "cannot read none.txt"),
        (b"", [".", "-"], 2, "cannot read ."),
        (b"", ["-", "-"], 2, "standard input can be read only once"),
        (b"", ["-"], 2, "Missing argument 'B'"),
        (b"", ["one.txt", "-", "--profile", "none"], 2, "no profile 'none'"),
        (b"", ["one.txt", "-", "--index", "x", "--keywords", "5"], 2, "requires --profile"),
        (b"", ["one.txt", "-", "--index", "x", "--max-text-length", "5"], 2, "requires --profile"),
        (b"", ["one.txt", "-", "--index", "x", "--stop-words", "x"], 2, "--stop-words requires --profile"),
        (b"\xff\xfe", ["one.txt", "-"], 1, "standard input: is not UTF-8"),
        (b'{"id": 1}', ["one.txt", "-"], 1, "has no field 'text'"),
        (b'{"text": [1]}', ["one.txt", "-"], 1, "is a list, not a string"),
        (b'{"text": "a"} and more', ["one.txt", "-"], 1, "begins like a JSON object"),
        (b'{"a":' * 10_000, ["one.txt", "-"], 1, "begins like a JSON object"),
    ],
)
def test_unreadable_input_is_refused(
    run: Run, files: tuple[Path, Path], content: bytes, arguments: list[str], code: int, message: str
) -> None:
    result = run("explain", *arguments, stdin=content)
    assert result.code == code
    assert message in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n\n{"text": "b"}\n', "many.json has several articles, the second on line 3"),
        ('\ufeff{"text": "a"} {"text"', "many.json has several articles, the second on line 1"),
        ('[\n  {"text": "a"}, {"text": "b"}]', "many.json is a JSON array of articles"),
        ("[{}", "many.json is a JSON array of articles"),
    ],
)
def test_a_file_with_several_articles_is_refused(
    run: Run, files: tuple[Path, Path], tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "many.json").write_text(content)
    result = run("explain", files[0], "many.json")
    assert (result.code, message in result.err) == (2, True)
    assert "one article per file" in result.err
    assert "--index" in result.err


def test_text_in_brackets_is_not_a_json_array(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text('["So it is," he said] about {"the weather"} of the last few days')
    assert run("explain", "text", "text", "--json").json["rule"] == "equal"


def test_terminal_escapes_in_texts_are_neutralised(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a [bold]text[/bold] with \x1b[31m colours\x07 in its one long sentence")
    found = run("explain", "text", "text")
    assert (found.code, "\x1b" in found.out, "[bold]text" in found.out) == (0, False, True)


def test_outcomes_are_reported_for_pairs(online: Run, es: Elasticsearch, feed: Any, explain: Any) -> None:
    index, forest = feed({"a": FIRST, "b": SECOND, "copy": FIRST, "other": SAMPLE[0], "empty": ""})
    found = explain("a", "b", index, forest)
    assert (found["outcome"], found["same_cluster"]) == ("together", True)
    assert found["comparison"]["rule"] == "resemble"
    root, leaf = found["one"], found["other"]
    assert (root["node"], root["live_leaves"], root["to_root"]) == ("live", 1, None)
    assert (leaf["node"], leaf["root_node"], leaf["root"]) == ("live", "live", root["fingerprint"])
    # `to_root` names the first article that arrived with the root's text: "a", not its copy.
    assert leaf["to_root"]["article"] == "a"
    assert (leaf["neighbour"]["article"], leaf["neighbour"]["way"]) == ("a", "root")
    assert leaf["to_root"]["way"] == "root"
    assert leaf["to_root"]["whole_texts"]["exact_resemblance"] is not None
    outcomes = {"a": "same_article", "copy": "one_node", "other": "apart", "empty": "no_fingerprint"}
    assert {other: explain("a", other, index, forest)["outcome"] for other in outcomes} == outcomes
    people = online("explain", "a", "b", "--index", index, "--forest", forest)
    assert (people.code, "One cluster, as the comparison says." in people.out) == (0, True)
    assert f"5 In the index: B is b in {index}" in people.out
    refused = online("explain", "a", "b", "--index", index, "--forest", "none")
    assert (refused.code, f"belongs to the forest '{forest}'" in refused.err) == (3, True)
    es.indices.put_mapping(index=index, meta={})
    without = online("explain", "a", "b", "--index", index, "--forest", "none")
    assert (without.code, "there is no forest 'none'" in without.out) == (0, True)


@pytest.mark.parametrize(
    ("texts", "days", "one", "other", "outcome", "words"),
    [
        (
            {"a": FIRST, "b": SECOND, "c": THIRD},
            *([1, 1, 1], "c", "a", "through_others", "other articles link them"),
        ),
        (
            {"a": FIRST, "b": SECOND, "d": FOURTH},
            *([1, 1, 1], "b", "d", "far_from_root", "B, which arrived later, does not agree with"),
        ),
        (
            {"d": FOURTH, "a": FIRST, "b": SECOND},
            *([1, 1, 1], "d", "b", "other_root", "when B arrived, it had neighbours in several clusters"),
        ),
        (
            {"a": FIRST, "b": SECOND},
            *([1, 9], "a", "b", "expired", "so A had expired when B arrived"),
        ),
    ],
)
def test_clusters_that_contradict_the_comparison_are_explained(
    online: Run,
    feed: Any,
    explain: Any,
    texts: dict[str, str],
    days: list[int],
    one: str,
    other: str,
    outcome: str,
    words: str,
) -> None:
    index, forest = feed(texts, days)
    found = explain(one, other, index, forest)
    assert (found["outcome"], found["retention_days"]) == (outcome, 3)
    assert found["comparison"]["near"] is not found["same_cluster"]
    people = online("explain", one, other, "--index", index, "--forest", forest)
    assert words in " ".join(people.out.split())
    if outcome == "through_others":
        assert found["one"]["neighbour"]["article"] == "b"
    if outcome == "expired":
        assert found["one"]["node"] == "expired"


PAGE = "https://news.example/2026/11/ferry"
# Each version keeps most of the previous one, and v3 half of v1. By resemblance, v2 and v3 are not near v1.
VERSIONS = [" ".join(SENTENCES[first : first + 20]) for first in (0, 6, 9)]


def test_explain_names_versions_of_an_article(online: Run, feed: Any, explain: Any) -> None:
    articles = {f"v{at}": {"text": text, "url": PAGE} for at, text in enumerate(VERSIONS, 1)}
    late = " ".join(SENTENCES[:11] + SENTENCES[40:49])
    index, forest = feed(
        articles | {"x": {"text": SAMPLE[0], "url": PAGE}, "late": {"text": late, "url": PAGE}}
    )
    for one, other in (("v1", "v2"), ("v2", "v1"), ("v3", "v1")):
        found = explain(one, other, index, forest)
        assert (found["outcome"], found["comparison"]["rule"]) == ("together", "version")
    # v3 joined as a version of v2, which was then the latest version, and not of v1.
    assert found["one"]["neighbour"]["article"] == "v2"
    assert [found["one"][each]["way"] for each in ("neighbour", "to_root")] == ["address"] * 2
    people = online("explain", "v3", "v1", "--index", index, "--forest", forest)
    words = " ".join(people.out.split())
    assert "They have the same address or id, and the later text has enough of the earlier one" in words
    assert "it may join as a version of its article" in words
    assert "it may not join" not in words
    # "late" has half of v1, but an unrelated text ("x") had replaced the article at this address.
    assert explain("v1", "late", index, forest)["outcome"] == "unexplained"


def test_files_with_the_same_address_are_versions(run: Run, tmp_path: Path) -> None:
    for at, (text, page) in enumerate([(VERSIONS[0], PAGE), (VERSIONS[1], PAGE), (VERSIONS[1], f"{PAGE}s")]):
        (tmp_path / f"{at}.json").write_text(json.dumps({"id": str(at), "text": text, "url": page}))
    rules = [run("explain", "0.json", f"{at}.json", "--json").json["rule"] for at in (1, 2)]
    assert rules == ["version", "unlike"]


def test_identical_placeholders_are_not_equal(run: Run, tmp_path: Path, feed: Any, explain: Any) -> None:
    (tmp_path / "one").write_text("Access denied")
    assert run("explain", "one", "one", "--json").json["rule"] == "no_fingerprint"
    assert run("fingerprint", "--json", stdin=b"Access denied").json["fingerprint"] is None
    index, forest = feed({"a": "Access denied", "b": "Access denied"})
    found = explain("a", "b", index, forest)
    assert found["outcome"] == found["comparison"]["rule"] == "no_fingerprint"


def a_hundred() -> list[dict[str, str]]:
    """Return articles of twenty stories in random order; some share an address or an id."""
    draw, found = Random(7), list[dict[str, str]]()
    for story in range(20):
        text = [" ".join("".join(draw.choices("abcdefghij", k=6)) for _ in range(9)) + "." for _ in range(30)]
        table = [
            f"Wind {a} knots, rain {b} mm, at {c} degrees, {d} %."
            for a, b, c, d in (draw.sample(range(10, 99), 4) for _ in range(2))
        ]
        kinds = {
            "story": text[:20],
            "copy": text[:20],
            "edited": text[:18] + text[20:22],
            "half": text[:12],
            "part": text[3:10],
            "version": text[6:26],
            "later": text[9:29],
            "id": text[6:26],
            "table": [*text[:4], table[0]],
            "next-table": [*text[:4], table[1]],
            "wall": ["Access denied"],
        }
        for kind in draw.sample(list(kinds), 5):
            page = f"https://{kind}.example/2026/{story}"
            if kind in {"story", "version", "later"}:
                page = f"https://news.example/2026/{story}"
            found.append({"_id": f"{story} {kind}", "text": " ".join(kinds[kind])})
            found[-1] |= {} if kind == "id" else {"url": page}
    draw.shuffle(found)
    # These are earlier texts of the articles that are updated later.
    earlier = [
        {"_id": each["_id"], "text": " ".join(each["text"].split(".")[:14]) + " so it was"}
        for each in found
        if "url" not in each
    ]
    return [*earlier, *found]


def test_explanations_agree_with_clusters(es: Elasticsearch, feed: Any) -> None:
    index, forest = feed({f"{at}": each for at, each in enumerate(a_hundred())})
    ids, reader, outcomes = list(roots(es, index)), Reader(es, forest=forest), Counter[str]()
    pairs, draw = list(itertools.combinations(ids, 2)), Random(1)
    of_a_story = [pair for pair in pairs if pair[0].split()[0] == pair[1].split()[0]]
    few = min(times_effort(100), len(of_a_story))
    for one, other in [*draw.sample(of_a_story, few), *draw.sample(pairs, 20)]:
        found = reader.explain(index, one, other)
        articles, comparison = [found.one, found.other], found.comparison
        earlier, later = sorted(articles, key=lambda each: each.order)
        assert found.same_cluster == (earlier.root == later.root)
        # `to_root` and `neighbour` are None if an update has replaced the text.
        leaves = [each for each in articles if each.fingerprint not in {None, each.root}]
        for known in (each for leaf in leaves for each in (leaf.to_root, leaf.neighbour) if each is not None):
            assert known.way is not None, leaves
        if None in {each.fingerprint for each in articles}:
            assert {str(found.outcome), str(comparison.rule)} == {"no_fingerprint"}
        elif comparison.near and not found.same_cluster:
            reason = "other_root" if later.root != later.fingerprint else "unexplained"
            assert found.outcome == (
                reason if later.to_other_root is None or later.to_other_root.way else "far_from_root"
            )
            assert reason == "other_root" or later.to_other_root is None or not later.to_other_root.way
        elif comparison.near != found.same_cluster:
            assert found.outcome == "through_others"
        outcomes[found.outcome if found.outcome != "together" else comparison.rule] += 1
    assert {"version", "excerpt", "one_node", "through_others", "other_root"} < set(outcomes), outcomes


@in_both_lookups
def test_explain_works_without_root_text(es: Elasticsearch, feed: Any, explain: Any, lookup: Lookup) -> None:
    index, forest = feed({"a": FIRST, "b": SECOND, "c": THIRD}, lookup=lookup)
    es.delete(index=index, id="a", refresh=True)
    found = explain("b", "c", index, forest)
    assert found["outcome"] == "together"
    if lookup == "memory":
        # Only the deleted article had the root's signature.
        assert [found[each]["to_root"] for each in ("one", "other")] == [None, None]
        return
    for each in (found["one"], found["other"]):
        assert (each["to_root"]["article"], each["to_root"]["way"]) == (None, "root")
        assert each["to_root"]["whole_texts"]["exact_resemblance"] is None
    assert found["one"]["neighbour"]["article"] is None


def test_explain_lists_other_indices(es: Elasticsearch, feed: Any, explain: Any, index_name: Names) -> None:
    alias = index_name("alias")
    old, forest = feed({"a": FIRST, "b": SECOND})
    new, _ = feed({"x": SAMPLE[0], "y": SAMPLE[1], "a": FIRST}, profile=CLASSIC)
    for index in (old, new):
        es.indices.put_alias(index=index, name=alias)
    es.indices.put_mapping(index=new, meta={})  # older indices do not store the name of their forest
    found = explain("a", "b", alias, forest)
    assert found["outcome"] == "other_profiles"
    assert (found["one"]["index"], found["one"]["also_in"]) == (new, [old])
    assert (found["other"]["index"], found["other"]["also_in"]) == (old, [])
    es.indices.delete_alias(index=[old, new], name=alias)


def test_explain_reports_other_profiles_and_texts(es: Elasticsearch, feed: Any, explain: Any) -> None:
    index, forest = feed({"a": FIRST, "b": SECOND})
    own = explain("a", "b", index, forest, "--profile", "keywords")
    assert (own["comparison"]["profile"], own["outcome"]) == ("keywords-4", "compared_otherwise")
    assert (own["one"]["text_is_same"], own["one"]["node"]) == (None, None)
    es.update(index=index, id="b", doc={"text": SAMPLE[0]}, refresh=True)
    changed = explain("a", "b", index, forest)
    assert (changed["outcome"], changed["other"]["text_is_same"]) == ("text_changed", False)
    es.index(index=index, id="plain", document={"text": FIRST}, refresh=True)
    assert explain("a", "plain", index, forest)["outcome"] == "no_root"


def test_explain_reports_articles_that_stay_without_fingerprint(online: Run, feed: Any, explain: Any) -> None:
    """When the article arrived, an override made all but one word boilerplate; the override is gone now."""
    notice = "No part of this article may be copied without the consent of its publisher."
    # Because of "Photo", the content hash is remembered; in `verified`, "Photo" would become the fingerprint.
    index, forest = feed(
        {"notice": f"{notice}\n\nPhoto", "only": notice, "a": FIRST},
        profile=CLASSIC,
        overrides=Overrides.of([Override(boilerplate=notice)]),
    )
    found = explain("notice", "a", index, forest)
    assert found["outcome"] == found["comparison"]["rule"] == "no_fingerprint"
    assert [found[name]["text_is_same"] for name in ("one", "other")] == [True, True]
    assert [found[name]["stays_without"] for name in ("one", "other")] == [True, None]
    assert [found["comparison"][name]["is_todays"] for name in ("one", "other")] == [False, True]
    assert explain("only", "a", index, forest)["one"]["text_is_same"] is None
    people = online("explain", "notice", "a", "--index", index, "--forest", forest)
    assert people.code == 0
    words = " ".join(people.out.split())
    assert "compared without a fingerprint, since it had none on arrival" in words
    assert "none; its content hash is remembered, so the text gets none" in words


def test_explain_reports_missing_articles(online: Run, run: Run, es: Elasticsearch, feed: Any) -> None:
    index, _ = feed({"a": FIRST, "b": SECOND})
    es.update(index=index, id="b", doc={"dedup": {"profile": "verified-9"}}, refresh=True)
    es.index(index=index, id="textless", document={"title": "x"}, refresh=True)
    for arguments, code, message in (
        (["a", "none", "--index", index], 1, "there is no article 'none'"),
        (["a", "textless", "--index", index], 1, "has no field 'text'"),
        (["a", "", "--index", index], 2, "is empty"),
        (["b", "a", "--index", index], 2, "'verified-9'"),
        (["a", "a", "--index", f"{index}-none"], 3, "there is no index"),
    ):
        result = online("explain", *arguments)
        assert (result.code, message in result.err) == (code, True)
    assert run("explain", "a", "b", "--index", index, url="http://localhost:1").code == 3
