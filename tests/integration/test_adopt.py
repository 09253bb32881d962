"""Adoption gives existing articles their roots, even during crashes and concurrent writes."""

import fnmatch
import functools
import json
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.adopt import Adoption
from esdedup.ingest.migrate import Migration

from esdedup import (
    AdoptionIntoCopies,
    ArticleRejected,
    Dedup,
    Fields,
    FieldsNotFound,
    IndexNotReady,
    Maintenance,
    Reader,
    ServerError,
    SettingError,
)
from esdedup.elastic.bulk import ArticleBulk
from esdedup.fingerprint.profile import DEFAULT
from esdedup.maintenance import ViolationKind
from tests import sample
from tests.acceptance.conftest import run_in
from tests.support.exploring import EFFORT
from tests.support.forests import feed, roots
from tests.support.names import Names
from tests.support.sidecar_process import ROOT, running

OWN = Fields(text="body", title="headline", time="date", source="publisher")
ARTICLES = [
    {
        "_id": each["id"],
        "headline": each["title"],
        "body": each["text"],
        "date": each["published_at"],
        "publisher": each["source"],
        "url": each["url"],
    }
    for each in sample.articles(240)
]
DAYS = 3


def stored(es: Elasticsearch, index_name: Names, articles: list[dict[str, Any]] = ARTICLES) -> str:
    """Index articles without esdedup, and return the alias of their daily indices.

    Consecutive articles are in different indices, so that the order by time alternates between the indices.
    """
    days = [index_name(f"day-{number}") for number in range(DAYS)]
    alias = f"{days[0]}-alias"
    actions = ({"_index": days[at % DAYS], **article} for at, article in enumerate(articles))
    helpers.bulk(es, actions, refresh=True)
    es.indices.put_alias(index=days, name=alias)
    return alias


def fed(es: Elasticsearch, index_name: Names, articles: list[dict[str, Any]] = ARTICLES) -> dict[str, str]:
    """Return the roots that articles get if they are fed in order of time."""
    index = index_name("fed")
    with Dedup(es, forest=index_name("fed-forest"), fields=OWN) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles, backfill=True)
    return roots(es, index)


def sources(es: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    es.indices.refresh(index=index)
    return {hit["_id"]: hit["_source"] for hit in helpers.scan(es, index=index)}


def check(es: Elasticsearch, alias: str, forest: str) -> None:
    """Check that articles are unchanged apart from their roots, and that `verify` finds no violation."""
    found = sources(es, alias)
    for article in ARTICLES:
        assert {name: found[article["_id"]][name] for name in article if name != "_id"} == {
            name: value for name, value in article.items() if name != "_id"
        }
    assert not list(Maintenance(es, forest=forest, fields=OWN).verify([alias]))


@pytest.mark.parametrize("learn_first", [False, True])
def test_adoption_gives_the_same_roots_as_feeding(
    es: Elasticsearch, index_name: Names, learn_first: bool
) -> None:
    alias, forest = stored(es, index_name), index_name("forest")
    adoption = Adoption(es, alias, fields=OWN)
    assert sum(each.without_root for each in adoption.found) == len(ARTICLES)
    assert not any(each.is_set_up for each in adoption.found)
    before = es.indices.get_mapping(index=alias)
    looked_at, repeated = adoption.repeated_of_latest(DEFAULT)
    assert es.indices.get_mapping(index=alias) == before
    with Dedup(es, forest=forest, fields=adoption.fields) as dedup:
        adoption.run(dedup, learn_first=learn_first)
    summary = adoption.summary
    assert (summary.read, summary.written, summary.skipped, summary.failed) == (len(ARTICLES),) * 2 + (0, 0)
    assert summary.new_roots + summary.joined + summary.known == len(ARTICLES)
    if not learn_first:
        # All articles lie within one retention period.
        assert (looked_at, repeated) == (len(ARTICLES), summary.joined + summary.known)
        assert roots(es, alias) == fed(es, index_name)
    check(es, alias, forest)
    page = Reader(es).list(alias, sort="similar-desc")
    assert (page.total_articles, page.not_enriched, page.not_set_up) == (len(ARTICLES), 0, ())
    # A second run finds nothing to do.
    again = Adoption(es, alias)
    assert again.fields == OWN
    with Dedup(es, forest=forest, fields=again.fields) as dedup:
        again.run(dedup)
    assert again.summary.read == 0


def test_templates_add_the_fields_to_later_indices(es: Elasticsearch, index_name: Names) -> None:
    alias = stored(es, index_name, ARTICLES[:6])
    first, tomorrow = min(es.indices.get(index=alias)), index_name("tomorrow")
    for name, priority in (("weaker", 1), ("stronger", 2), ("managed", None)):
        meta = {"managed": True} if priority is None else {}
        pattern = f"{tomorrow}*" if priority is None else f"{first}*"
        es.indices.put_index_template(
            name=f"{first}-{name}", index_patterns=[pattern, "other"], priority=priority or 3, meta=meta
        )
    try:
        adoption = Adoption(es, alias, fields=OWN)
        assert adoption.templates == (f"{first}-stronger",)
        with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
            adoption.run(dedup)
        es.indices.create(index=f"{first}-later", aliases={alias: {}})
        assert Dedup(es).require_ready(f"{first}-later") == OWN
        assert Reader(es).list(alias).not_set_up == ()
        es.indices.create(index=tomorrow)
        assert Adoption(es, f"{tomorrow},{first}", fields=OWN).templates == (f"{first}-stronger",)
    finally:
        es.options(ignore_status=404).indices.delete(index=f"{first}-later")
        for name in ("weaker", "stronger", "managed"):
            es.options(ignore_status=404).indices.delete_index_template(name=f"{first}-{name}")


def test_a_template_that_matches_other_indices_stays_unchanged(
    es: Elasticsearch, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    index, later, other = index_name("wide-2026"), index_name("wide-later"), index_name("wide-other")
    helpers.bulk(es, [{"_index": index, **each} for each in ARTICLES[:3]], refresh=True)
    es.indices.create(index=other)
    name = f"{index}-of"
    es.indices.put_index_template(
        name=name, index_patterns=[index, later, other], priority=3, template={"aliases": {f"{name}'s": {}}}
    )
    before = es.indices.get_index_template(name=name)
    try:
        adoption = Adoption(es, index, fields=OWN)
        with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
            adoption.run(dedup)
        assert (adoption.templates, adoption.summary.written) == ((), 3)
        assert es.indices.get_index_template(name=name) == before
        (text,) = (each.getMessage() for each in caplog.records if "applies to other indices too" in each.msg)
        assert f"such as {other}" in text
        # The proposed template has the contents of the existing one, and the next run accepts it.
        command = shlex.split(text.partition("for these indices: ")[2])
        put = json.loads(command[command.index("-d") + 1])
        assert put["priority"] == 4
        assert put["template"] == before["index_templates"][0]["index_template"]["template"]
        assert all(fnmatch.fnmatchcase(index, each) for each in put["index_patterns"])
        es.indices.put_index_template(name=f"{name}-esdedup", body=put | {"index_patterns": [index, later]})
        setting_up = command[command.index("&&") + 1 :]
        assert setting_up[:4] == ["esdedup", "setup", f"{name}-esdedup", "--template"]
        assert setting_up[setting_up.index("--text-field") + 1] == "body"
        assert not any("format" in each for each in setting_up)
        assert Adoption(es, index, fields=OWN).templates == (f"{name}-esdedup",)
        Dedup(es, fields=OWN).setup_template(f"{name}-esdedup")
        assert Dedup(es).require_ready(later) == OWN
        # A template whose pattern matches the default forest applies to other indices, too.
        es.indices.delete(index=other)
        es.indices.put_index_template(name=name, index_patterns=[index, "*dedup-fores*"], priority=5)
        assert Adoption(es, index, fields=OWN).templates == ()
    finally:
        for each in (name, f"{name}-esdedup"):
            es.options(ignore_status=404).indices.delete_index_template(name=each)


def test_a_killed_run_can_be_continued(es: Elasticsearch, elasticsearch_url: str, index_name: Names) -> None:
    alias, forest = stored(es, index_name), index_name("forest")
    fields = ("--text-field", "body", "--title-field", "headline", "--time-field", "date")
    command = [sys.executable, "-m", "esdedup", "adopt", alias, *fields, "--source-field", "publisher"]
    command += ["--url", elasticsearch_url, "--forest", forest, "--wait", "60", "--json"]
    with_root = {"exists": {"field": "dedup.root"}}
    # The run is killed twice in `make test`, twelve times in `make nightly`.
    for least in range(1, len(ARTICLES), 200 if EFFORT <= 1 else 20):
        with subprocess.Popen([*command, "--rate", "100"], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            deadline_s = time.monotonic() + 60
            while es.count(index=alias, query=with_root)["count"] < least:
                assert time.monotonic() < deadline_s
                es.indices.refresh(index=alias)
                time.sleep(0.02)
            process.kill()
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert roots(es, alias) == fed(es, index_name)
    check(es, alias, forest)


def test_articles_are_adopted_while_a_sidecar_is_fed(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    old, new = ARTICLES[:200], ARTICLES[200:]
    alias, forest = stored(es, index_name, old), index_name("forest")
    today = index_name("today")
    Dedup(es, forest=forest, fields=OWN).setup(today)
    es.indices.put_alias(index=today, name=alias)
    with running(elasticsearch_url, forest=forest) as sidecar:
        adoption = Adoption(es, alias, fields=OWN)
        with Elasticsearch(sidecar.url) as client:
            actions = ({"_index": today, **article} for article in new)
            feeder = threading.Thread(target=helpers.bulk, args=(client, actions), kwargs={"chunk_size": 20})
            feeder.start()
            with Dedup(es, forest=forest, fields=OWN, sidecar=sidecar.url) as dedup:
                adoption.run(dedup, backfill=False, most_per_s=1_000)
            feeder.join()
    assert (adoption.summary.written, adoption.summary.failed) == (len(old), 0)
    found = sources(es, alias)
    assert len(found) == len(ARTICLES)
    assert len({each["dedup"]["seq"] for each in found.values()}) == len(ARTICLES)
    check(es, alias, forest)


def test_concurrent_changes_to_articles_are_kept(es: Elasticsearch, index_name: Names) -> None:
    alias, forest = stored(es, index_name, ARTICLES[:60]), index_name("forest")
    one, other, gone = (each["_id"] for each in ARTICLES[:3])
    rejected: list[ArticleRejected] = []
    places = {hit["_id"]: hit["_index"] for hit in helpers.scan(es, index=alias)}
    blank = ARTICLES[4]["_id"]
    es.update(index=places[blank], id=blank, doc={"body": None}, refresh=True)
    adoption = Adoption(es, alias, fields=OWN, on_rejected=rejected.append)
    with Dedup(es, forest=forest, fields=OWN) as dedup:
        enrich = dedup.enrich

        def disturbed(actions: Any, **options: Any) -> Any:
            for action in enrich(actions, **options):
                # Before the write, change one article, give another one a root, and delete a third article.
                if action["_id"] == one and adoption.summary.skipped == 0:
                    es.index(index=places[one], id=one, document={"body": "Another text, and much shorter."})
                    es.index(index=places[other], id=other, document={"dedup": {"root": "theirs"}})
                    es.delete(index=places[gone], id=gone)
                yield action

        dedup.enrich = disturbed  # type: ignore[method-assign]
        adoption.run(dedup)
    assert [each.article for each in rejected] == [blank]
    found = sources(es, alias)
    assert found[one]["body"] == "Another text, and much shorter."
    assert found[one]["dedup"]["root"] != found[ARTICLES[5]["_id"]]["dedup"]["root"]
    assert found[other]["dedup"] == {"root": "theirs"}
    assert gone not in found
    assert "dedup" not in found[blank]
    assert (adoption.summary.skipped, adoption.summary.failed) == (3, 1)
    assert Counter("dedup" in each for each in found.values()) == {True: 58, False: 1}


def test_unknown_field_names_are_refused_before_writing(es: Elasticsearch, index_name: Names) -> None:
    alias = stored(es, index_name, ARTICLES[:6])
    before = es.indices.get_mapping(index=alias)
    for given in (None, Fields(text="body"), Fields(text="body", time="when", title="headline")):
        with pytest.raises(FieldsNotFound) as raised:
            Adoption(es, alias, fields=given)
        likely = {"text": "body", "title": "headline", "time": "date", "source": "publisher"}
        assert raised.value.likely.items() <= likely.items()
        assert raised.value.likely["time"] == "date"
    assert es.indices.get_mapping(index=alias) == before


def test_the_error_names_a_read_only_index(es: Elasticsearch, index_name: Names) -> None:
    alias = stored(es, index_name, ARTICLES[:6])
    (first, *_) = sorted(es.indices.get(index=alias))
    es.indices.put_settings(index=first, settings={"index.blocks.write": True})
    try:
        with pytest.raises(ServerError, match=f"{first}' is read-only .index.blocks.write"):
            Adoption(es, alias, fields=OWN)
        # Once its articles have roots, the index may be read-only again.
        es.indices.put_settings(index=first, settings={"index.blocks.write": False})
        with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
            Adoption(es, alias, fields=OWN).run(dedup)
        es.indices.refresh(index=alias)
        es.indices.put_settings(index=first, settings={"index.blocks.write": True})
        assert not any(each.without_root for each in Adoption(es, alias).found)
    finally:
        es.indices.put_settings(index=first, settings={"index.blocks.write": False})


def test_read_only_indices_are_adopted_into_copies(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    expected, forest = fed(es, index_name), index_name("forest")
    alias = stored(es, index_name)
    days = sorted(es.indices.get(index=alias))
    es.index(index=days[0], id="textless", document={"headline": "No text"}, refresh=True)
    es.indices.put_alias(index=days[1], name=f"{alias}-2", filter={"exists": {"field": "body"}})
    with pytest.raises(IndexNotReady, match="is not read-only"):
        AdoptionIntoCopies(es, alias, suffix="-copy", fields=OWN)
    # Like typical templates for daily indices, this one adds the alias, and its patterns match the copies.
    template = index_name("template")
    patterns = [f"{day}*" for day in days]
    es.indices.put_index_template(
        name=template, index_patterns=patterns, priority=50, template={"aliases": {alias: {}}}
    )
    for day in days:
        es.indices.add_block(index=day, block="write")
    # The first run is killed after it has written some articles.
    code = (
        "import os; from elasticsearch import Elasticsearch; from esdedup import *; "
        "from esdedup.elastic import bulk; bulk._CHUNK_ARTICLES = 50; "
        f"es = Elasticsearch({elasticsearch_url!r}); "
        f"adoption = AdoptionIntoCopies(es, {alias!r}, suffix='-copy', fields={OWN!r}); "
        f"dedup = Dedup(es, forest={forest!r}, fields={OWN!r}, batch_size=50); "
        "adoption.run(dedup, on_read=lambda count: os._exit(9))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 9
    assert sorted(es.indices.get(index=alias)) == days
    adoption = AdoptionIntoCopies(es, ",".join(patterns), suffix="-copy", fields=OWN)
    rejected: list[ArticleRejected] = []
    adoption._on_rejected = rejected.append
    with Dedup(es, forest=forest, fields=OWN, wait_s=60) as dedup:
        adoption.run(dedup)
    assert 0 < adoption.summary.written < len(ARTICLES)
    assert [each.article for each in rejected] == ["textless"]
    # Readers see no change before the swap.
    assert sorted(es.indices.get(index=alias)) == days
    adoption.swap()
    es.indices.delete_index_template(name=template)
    copies = [f"{day}-copy" for day in days]
    assert not es.indices.exists(index=[f"{copy}-copy" for copy in copies])
    assert sorted(es.indices.get(index=alias)) == copies
    assert es.indices.get_alias(name=f"{alias}-2")[copies[1]]["aliases"][f"{alias}-2"]["filter"]
    assert roots(es, alias) == expected
    page = Reader(es).list(alias)
    assert (page.total_articles, page.not_enriched) == (len(ARTICLES), 1)
    violations = list(Maintenance(es, forest=forest).verify([alias]))
    assert [each.kind for each in violations] == [ViolationKind.NO_ROOT]
    assert int(es.count(index=days)["count"]) == len(ARTICLES) + 1
    # Copies have the mappings and settings of their originals, and are writable.
    made = es.indices.get(index=copies[0])[copies[0]]
    assert made["settings"]["index"]["number_of_shards"] == "1"
    assert "blocks" not in made["settings"]["index"]
    es.indices.add_block(index=copies[0], block="write")
    with pytest.raises(IndexNotReady, match="set up already"):
        AdoptionIntoCopies(es, copies[0], suffix="-2")
    with pytest.raises(SettingError, match="suffix"):
        AdoptionIntoCopies(es, days[0], suffix="")


@pytest.mark.parametrize("kind", [None, "keyword", "text"])
def test_unsortable_times_need_a_runtime_field(
    es: Elasticsearch, index_name: Names, kind: str | None
) -> None:
    index = index_name("unsorted")
    body = {"body": {"type": "text"}} | ({} if kind is None else {"date": {"type": kind}})
    es.indices.create(index=index, mappings={"dynamic": False, "properties": body})
    late, early = ({**ARTICLES[0], "_id": each, "date": f"2026-11-0{each}"} for each in "21")
    helpers.bulk(es, ({"_index": index, **each} for each in (late, early)), refresh=True)
    with pytest.raises(IndexNotReady, match="does not map the field 'date' as a date or a number"):
        Adoption(es, index, fields=OWN)
    es.indices.put_mapping(index=index, runtime={"date": {"type": "date"}})
    adoption = Adoption(es, index, fields=OWN)
    with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
        adoption.run(dedup)
    assert {each: found["dedup"]["seq"] for each, found in sources(es, index).items()} == {"1": 1, "2": 2}


def test_indices_that_cannot_be_adopted_are_refused(es: Elasticsearch, index_name: Names) -> None:
    routed, forest = index_name("routed"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(routed, route_by_root=True)
        feed(es, dedup, routed, [{"_id": "1", "text": "A ferry goes to the island on Monday."}])
    es.index(index=routed, id="2", routing="x", document={"text": "No root"}, refresh=True)
    with pytest.raises(IndexNotReady, match="is routed by root"):
        Adoption(es, routed)
    with pytest.raises(IndexNotReady, match="is a forest"):
        Adoption(es, forest)
    with pytest.raises(SettingError, match="empty"):
        Adoption(es, "")
    for missing in ("test-no-such", "test-no-*"):
        with pytest.raises(IndexNotReady):
            Adoption(es, missing)


def read_only(es: Elasticsearch, index: str, articles: list[dict[str, Any]], **body: Any) -> None:
    """Create a read-only index of articles."""
    es.indices.create(index=index, **body)
    helpers.bulk(es, ({"_index": index, **each} for each in articles), refresh=True)
    es.indices.add_block(index=index, block="write")


def adopted_into_copies(es: Elasticsearch, index: str, forest: str) -> tuple[AdoptionIntoCopies, int]:
    adoption = AdoptionIntoCopies(es, index, suffix="-2", fields=OWN, on_rejected=lambda _: None)
    with Dedup(es, forest=forest, fields=OWN, wait_s=60) as dedup:
        adoption.run(dedup)
        return adoption, adoption.swap()


def test_repeated_adoption_leaves_the_aliases_of_copies_unchanged(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    day, forest = index_name("day"), index_name("forest")
    aliases: dict[str, dict[str, Any]] = {
        f"{day}-all": {"is_write_index": True},
        f"{day}-part": {"filter": {"exists": {"field": "body"}}, "is_hidden": True},
        f"{day}-routed": {"index_routing": "1", "search_routing": "1,2"},
    }
    read_only(es, day, ARTICLES[:30], aliases=aliases)
    _, moved = adopted_into_copies(es, f"{day}-all", forest)
    assert moved == 3
    # Adopt the alias again, which only the copy has now, then the index, then a pattern that matches both.
    for name in (f"{day}-all", day, f"{day}*"):
        adoption, moved = adopted_into_copies(es, name, forest)
        assert (adoption.summary.read, moved) == (0, 0)
        assert es.indices.get_alias(index=day)[day]["aliases"] == {}
        assert es.indices.get_alias(index=f"{day}-2")[f"{day}-2"]["aliases"] == aliases
    command = [sys.executable, "-m", "esdedup", "adopt", f"{day}-all", "--into", "-2", "--forest", forest]
    command += ["--url", elasticsearch_url]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "nothing was left to do" in ended.stderr) == (0, True)
    # An alias that is added to the index later moves to the copy, too.
    es.indices.put_alias(index=day, name=f"{day}-late")
    assert adopted_into_copies(es, day, forest)[1] == 1


def test_indices_that_cannot_be_copied_are_refused_early(es: Elasticsearch, index_name: Names) -> None:
    day, other, forest = index_name("day"), index_name("other"), index_name("forest")
    whole, part = f"{day}-all", f"{day}-part"
    read_only(es, day, ARTICLES[:4], aliases={whole: {}, part: {"filter": {"match_all": {}}}})
    read_only(es, f"{day}-2", ARTICLES[4:8], aliases={f"{day}-in-use": {}})
    es.indices.create(index=other, aliases={f"{day}-3": {}})
    before = es.indices.get(index=[day, f"{day}-2", other])
    for name, suffix, says in (
        (day, "-2", "which the copy of"),
        (f"{day}*", "-2", "which the copy of"),
        (day, "-3", "which the copy of"),
        (part, "-4", f"the alias '{part}' selects a part of it"),
        (f"{day}-p*", "-4", f"the alias '{part}' selects a part of it"),
        (day, "-X", "is not a valid name for an index"),
        (day, "-" + "x" * 255, "is not a valid name for an index"),
    ):
        with pytest.raises((IndexNotReady, SettingError), match=says):
            AdoptionIntoCopies(es, name, suffix=suffix, fields=OWN)
    es.indices.put_settings(index=day, settings={"index.blocks": {"read_only": True}})
    try:
        with pytest.raises(IndexNotReady, match=r"index\.blocks\.read_only"):
            AdoptionIntoCopies(es, whole, suffix="-4", fields=OWN)
    finally:
        es.indices.put_settings(index=day, settings={"index.blocks": {"read_only": None}})
    assert es.indices.get(index=[day, f"{day}-2", other]) == before
    # A copy of an index that has since been recreated is refused.
    adoption = AdoptionIntoCopies(es, day, suffix="-4", fields=OWN)
    with Dedup(es, forest=forest, fields=OWN) as dedup:
        adoption.run(dedup)
        es.indices.delete(index=day)
        read_only(es, day, ARTICLES[8:12])
        with pytest.raises(IndexNotReady, match="which the copy of"):
            adoption.swap()
    es.indices.delete(index=f"{day}-2,{day}-4")


@pytest.mark.parametrize("into", [False, True])
def test_articles_sharing_an_id_are_distinguished(es: Elasticsearch, index_name: Names, into: bool) -> None:
    first, second, forest = index_name("a"), index_name("b"), index_name("forest")
    textless = [{"_id": each["_id"], "headline": "No text"} for each in ARTICLES[:20]]
    routed = [{**each, "_routing": routing} for each in ARTICLES[20:23] for routing in ("1", "2")]
    shards = {"settings": {"number_of_shards": 5, "number_of_replicas": 0}}
    read_only(es, first, [*textless, *routed], **shards)
    read_only(es, second, ARTICLES[:20])
    both = f"{first},{second}"
    adoption: Adoption
    if into:
        adoption, _ = adopted_into_copies(es, both, forest)
        both = f"{first}-2,{second}-2"
    else:
        for each in (first, second):
            es.indices.put_settings(index=each, settings={"index.blocks.write": False})
        adoption = Adoption(es, both, fields=OWN, on_rejected=lambda _: None)
        with Dedup(es, forest=forest, fields=OWN) as dedup:
            adoption.run(dedup)
    summary = adoption.summary
    assert (summary.read, summary.written, summary.skipped, summary.failed) == (46, 26, 0, 20)
    es.indices.refresh(index=both)
    found = Counter("dedup" in hit["_source"] for hit in helpers.scan(es, index=both))
    assert found == {True: 26, False: 20}
    if into:
        es.indices.delete(index=both)


def test_writes_do_not_recreate_a_deleted_index(es: Elasticsearch, index_name: Names) -> None:
    gone = index_name("gone")
    update = {"_op_type": "update", "_source": {"doc": {}}, "if_seq_no": 0, "if_primary_term": 1}
    for action in (update, {"_op_type": "create", "_source": {}}):
        written = ArticleBulk(es, index=gone, only_existing=True).write(
            [{"_index": gone, "_id": "1", **action}]
        )
        with pytest.raises(IndexNotReady, match=f"one of these indices has been deleted: {gone}"):
            list(written)
        assert not es.indices.exists(index=gone)


def test_adoption_that_would_lose_data_is_refused_early(es: Elasticsearch, index_name: Names) -> None:
    cut, part, vectors = index_name("cut"), index_name("part"), index_name("vectors")
    read_only(es, cut, ARTICLES[:2], mappings={"_source": {"excludes": ["summary"]}})
    es.indices.create(index=part, aliases={f"{part}-seen": {"search_routing": "1"}})
    deep = {"parts": {"type": "nested", "properties": {"meaning": {"type": "dense_vector", "dims": 2}}}}
    read_only(es, vectors, ARTICLES[:2], mappings={"properties": deep})
    for refused in (lambda: Adoption(es, cut, fields=OWN), lambda: Migration(es, cut, to="other")):
        with pytest.raises(IndexNotReady, match="`_source` has `excludes`"):
            refused()
    for refused in (
        lambda: Adoption(es, f"{part}-s*", fields=OWN),
        lambda: Migration(es, f"{part}-seen", to="x"),
    ):
        with pytest.raises(IndexNotReady, match=f"the alias '{part}-seen' selects a part of it"):
            refused()
    with pytest.raises(IndexNotReady, match=r"has vectors \(meaning\)"):
        AdoptionIntoCopies(es, vectors, suffix="-2", fields=OWN)


def test_a_foreign_object_in_an_unsampled_article_is_kept(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("own")
    helpers.bulk(es, ({"_index": index, **each} for each in ARTICLES[:20]), refresh=True)
    rejected: list[ArticleRejected] = []
    with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
        dedup.setup(index)
        late = {"body": ARTICLES[20]["body"], "dedup": {"hash": "x"}}
        es.index(index=index, id="late", document=late, refresh=True)
        adoption = Adoption(es, index, fields=OWN, on_rejected=rejected.append)
        adoption.run(dedup)
    assert (adoption.summary.written, adoption.summary.failed) == (20, 1)
    assert "late" in str(rejected[0])
    assert "has a field 'dedup' that esdedup did not write" in str(rejected[0])
    assert sources(es, index)["late"] == late


def test_copies_keep_limits_and_the_final_pipeline(es: Elasticsearch, index_name: Names) -> None:
    day, forest = index_name("day"), index_name("forest")
    limits = {"max_terms_count": "70000", "max_ngram_diff": "3", "gc_deletes": "30s"}
    read_only(es, day, ARTICLES[:3], settings={**limits, "query": {"default_field": ["body"]}})
    es.indices.put_settings(index=day, settings={"final_pipeline": "of-theirs"})
    adopted_into_copies(es, day, forest)
    found = es.indices.get_settings(index=f"{day}-2")[f"{day}-2"]["settings"]["index"]
    assert {name: found[name] for name in limits} == limits
    assert (found["query"], found["final_pipeline"]) == ({"default_field": ["body"]}, "of-theirs")
    es.indices.delete(index=f"{day}-2")


def test_fields_that_few_articles_have_can_be_specified(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("mixed")
    mixed = [{"_id": str(at), "note": "Of another kind."} for at in range(300)] + ARTICLES[:2]
    helpers.bulk(es, ({"_index": index, **each} for each in mixed), refresh=True)
    with pytest.raises(FieldsNotFound):
        Adoption(es, index)
    rejected: list[ArticleRejected] = []
    adoption = Adoption(es, index, fields=OWN, on_rejected=rejected.append)
    with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
        adoption.run(dedup)
    summary = adoption.summary
    assert (summary.read, summary.written, summary.failed, len(rejected)) == (302, 2, 300, 300)


@pytest.mark.parametrize(
    ("own", "dynamic"), [({"hash": "x"}, False), ({"root": "theirs", "hash": "x"}, True), ("x", True)]
)
def test_a_foreign_dedup_object_stays_unchanged(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Path, own: Any, dynamic: bool
) -> None:
    index, forest = index_name("own"), index_name("forest")
    properties = {"body": {"type": "text"}, "date": {"type": "date"}}
    es.indices.create(index=index, mappings={"dynamic": dynamic, "properties": properties})
    articles = [{"_index": index, **each, "dedup": own} for each in ARTICLES[:3]]
    helpers.bulk(es, articles, refresh=True)
    before = es.indices.get_mapping(index=index)
    with Dedup(es, forest=forest, fields=OWN) as dedup:
        for refused in (lambda: Adoption(es, index, fields=OWN), lambda: dedup.setup(index)):
            with pytest.raises(IndexNotReady, match=r"their own field.* such as 'esdedup'"):
                refused()
        with pytest.raises(IndexNotReady):
            list(dedup.enrich(articles))
    with pytest.raises(IndexNotReady, match=r"lacks fields|their own field"):
        Reader(es).list(index)
    assert es.indices.get_mapping(index=index) == before
    given = ["--text-field", "body", "--time-field", "date", "--title-field", "headline"]
    given += ["--source-field", "publisher", "--forest", forest]
    run = functools.partial(run_in(tmp_path), "adopt", index, *given, url=elasticsearch_url)
    refused_run = run()
    assert (refused_run.code, "--dedup-field esdedup" in refused_run.err) == (3, True)
    assert run("--dedup-field", "esdedup").code == 0
    # The index stores the name of the object, so the reader finds the fields.
    assert Reader(es).list(index).total_articles == 3
    assert all(each["dedup"] == own and each["esdedup"]["root"] for each in sources(es, index).values())
