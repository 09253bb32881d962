"""Migration to another forest, while clients read the articles and feed the current forest."""

import dataclasses
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.files import FileArticle
from esdedup.ingest.migrate import Migration

from esdedup import (
    CLASSIC,
    Dedup,
    Editor,
    EditRequest,
    Fields,
    ForestBusy,
    ForestIncomplete,
    ForestMismatch,
    IndexNotReady,
    Maintenance,
    Reader,
    ServerError,
    SettingError,
)
from esdedup.fingerprint.profile import DEFAULT
from tests import sample
from tests.support.forests import feed
from tests.support.names import Names
from tests.support.sidecar_process import ROOT, running

ARTICLES = [
    {"_id": each["id"], **{name: value for name, value in each.items() if name != "id"}}
    for each in sample.articles(400)
]
SOME = ARTICLES[:240]
NEXT = Fields(dedup="dedup_2")
FORGED = "f" * 32
RETENTION = timedelta(days=20)
DAYS = 3


@dataclasses.dataclass(frozen=True)
class Old:
    """Indices behind an alias, their forest, and the name of the forest to migrate to."""

    alias: str
    days: list[str]
    forest: str
    to: str

    def feed(self, es: Elasticsearch, articles: list[dict[str, Any]], **how: Any) -> None:
        with Dedup(es, forest=self.forest, profile=CLASSIC, retention=RETENTION, wait_s=30) as dedup:
            for at, day in enumerate(self.days):
                dedup.setup(day, forest=self.forest)
                feed(es, dedup, day, articles[at::DAYS], backfill=True, **how)
        es.indices.put_alias(index=self.days, name=self.alias)

    def migration(self, es: Elasticsearch) -> Migration:
        return Migration(es, self.alias, forest=self.forest, to=self.to)

    def dedup(self, es: Elasticsearch, migration: Migration) -> Dedup:
        return Dedup(
            es, forest=self.to, fields=migration.fields, retention=migration.retention, batch_size=50
        )

    def migrate(self, es: Elasticsearch, *, swap: bool = False) -> Migration:
        migration = self.migration(es)
        with self.dedup(es, migration) as dedup:
            migration.run(dedup)
            if swap:
                migration.swap(dedup)
        return migration


@pytest.fixture
def old(index_name: Names) -> Old:
    days = [index_name(f"day-{number}") for number in range(DAYS)]
    return Old(f"{days[0]}-alias", days, index_name("classic"), index_name("verified"))


def sources(es: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    es.indices.refresh(index=index)
    return {hit["_id"]: hit["_source"] for hit in helpers.scan(es, index=index)}


def roots(es: Elasticsearch, index: str, name: str) -> dict[str, str]:
    return {each: found[name]["root"] for each, found in sources(es, index).items()}


def check(es: Elasticsearch, old: Old, *, of: str = "dedup") -> None:
    """Check the roots of articles against a replay in the order of `seq` in the object `of`."""
    found = sources(es, old.alias)
    replay = Clustering(
        profile=DEFAULT,
        fields=Fields(time="dedup.seen", dedup="other"),
        use_time=True,
        retention=RETENTION,
        on_rejected=lambda rejected: pytest.fail(str(rejected)),
    )
    in_order = sorted(found.items(), key=lambda item: item[1][of]["seq"])
    articles = (FileArticle(place=name, id=name, article=each, size_bytes=0) for name, each in in_order)
    expected = {each.id: each.root for each in replay.cluster(articles)}
    assert {name: each["dedup_2"]["root"] for name, each in found.items()} == expected
    for each in found.values():
        assert each["dedup_2"]["published"] == each["dedup"]["published"]
        assert each["dedup_2"]["page"] == each["dedup"]["page"]
    assert not list(Maintenance(es, forest=old.to, fields=NEXT).verify([old.alias]))


def test_migrated_articles_are_found_by_new_and_old_roots(es: Elasticsearch, old: Old) -> None:
    old.feed(es, SOME)
    before, listed = sources(es, old.alias), Reader(es).list(old.alias, sort="similar-desc")
    overview = Reader(es).overview(old.alias)
    migration = old.migrate(es)
    assert (migration.fields, migration.retention) == (NEXT, RETENTION)
    assert (migration.summary.read, migration.summary.written) == (len(SOME),) * 2
    check(es, old)
    for name, each in sources(es, old.alias).items():
        assert {key: value for key, value in each.items() if key != "dedup_2"} == before[name]
    # Nothing has changed for readers, unless they request the new object.
    assert Reader(es).list(old.alias, sort="similar-desc") == listed
    assert Reader(es).overview(old.alias) == overview
    assert Reader(es, fields=NEXT).list(old.alias, sort="similar-desc").total_rows != listed.total_rows
    # A second run finds nothing to do.
    again = old.migrate(es, swap=True)
    assert again.summary.read == 0
    after = Reader(es).list(old.alias, sort="similar-desc", size=100)
    assert (after.total_articles, after.not_enriched) == (len(SOME), 0)
    assert after == Reader(es, fields=NEXT).list(old.alias, sort="similar-desc", size=100)
    assert not list(Maintenance(es, forest=old.to).verify([old.alias]))
    # A story is still found by its old root.
    reader, found = Reader(es), sources(es, old.alias)
    changed = {each["dedup"]["root"] for each in found.values()} - {
        each["dedup_2"]["root"] for each in found.values()
    }
    assert changed
    for root in changed:
        page = reader.cluster(old.alias, root, size=100)
        assert page.root in {
            each["dedup_2"]["root"] for each in found.values() if each["dedup"]["root"] == root
        }
        assert {row.id for row in page.rows} == {
            name for name, each in found.items() if each["dedup_2"]["root"] == page.root
        }
    now = next(iter(found.values()))["dedup_2"]["root"]
    assert reader.cluster(old.alias, now).root == now
    assert reader.cluster(old.alias, "none").total == 0


def test_callers_cannot_write_the_object_of_a_migration(
    es: Elasticsearch, elasticsearch_url: str, old: Old
) -> None:
    """A caller's dedup object is never stored, whatever its form; nor is the old object after the swap."""
    forged: list[dict[str, Any]] = [
        *({"dedup": {"root": FORGED}}, {"dedup.root": FORGED}),
        *({"dedup_2": {"root": FORGED}}, {"dedup_2.root": FORGED}),
        {"dedup_2": [{"root": FORGED}], "dedup_2.seq": 1},
    ]
    articles = [{key: value for key, value in each.items() if key != "_id"} for each in ARTICLES[:10]]
    # Before the migration begins, an object named `dedup_2` is an ordinary field.
    old.feed(
        es, [{"_id": f"before-{at}", **each, "dedup_2.root": FORGED} for at, each in enumerate(articles)]
    )
    old.migrate(es)
    day = old.days[0]

    def actions(interface: str) -> Iterator[dict[str, Any]]:
        for at, (names, article) in enumerate(zip(forged, articles, strict=False)):
            place, other = ({"_index": day, "_id": f"{interface}-{at}{end}"} for end in ("", "-other"))
            yield {**place, "_source": article | names}
            yield {**place, "_op_type": "update", "doc": {"clicks": 1} | names}
            yield {**other, "_op_type": "update", "doc": {"clicks": 1}, "upsert": article | names}
            yield {**other, "_op_type": "update", "doc": article | names, "doc_as_upsert": True}

    with Dedup(es, forest=old.forest, profile=CLASSIC) as dedup:
        helpers.bulk(es, dedup.enrich(actions("library")))
    with running(elasticsearch_url, "--profile", "classic", forest=old.forest) as sidecar:
        with Elasticsearch(sidecar.url) as client:
            helpers.bulk(client, actions("sidecar"))
            client.index(index=day, id="alone", document=articles[0] | forged[0] | forged[1])
        for names in forged:
            es.index(index=day, document=sidecar.post(f"/v1/enrich/one?index={day}", articles[0] | names))
    old.migrate(es, swap=True)
    check(es, old)
    with Dedup(es, forest=old.to) as dedup:
        helpers.bulk(es, dedup.enrich(actions("afterwards")))
    keys = {key for each in sources(es, old.alias).values() for key in each if key.startswith("dedup")}
    assert keys == {"dedup", "dedup_2"}
    found = [{"term": {f"{name}.root": FORGED}} for name in keys]
    assert es.count(index=old.alias, query={"bool": {"should": found}})["count"] == 0


def test_readers_see_either_the_old_or_the_new_list(es: Elasticsearch, old: Old) -> None:
    """During the swap, one reader is created for each request, and another reader uses cached mappings."""
    old.feed(es, SOME)
    holding, before = Reader(es), Reader(es).list(old.alias, sort="similar-desc")
    migration = old.migrate(es)
    es.indices.refresh(index=old.alias)
    after = Reader(es, fields=NEXT).list(old.alias, sort="similar-desc")
    assert before != after == Reader(es, fields=migration.fields).list(old.alias, sort="similar-desc")
    pages: list[list[Any]] = [[], []]
    over = threading.Event()

    def read(found: list[Any], reader: Reader | None) -> None:
        while not over.is_set():
            found.append((reader or Reader(es)).list(old.alias, sort="similar-desc"))

    threads = [threading.Thread(target=read, args=each) for each in zip(pages, (None, holding), strict=True)]
    for each in threads:
        each.start()
    with old.dedup(es, migration) as dedup:
        migration.swap(dedup)
    time.sleep(0.5)
    over.set()
    for each in threads:
        each.join()
    for found in pages:
        assert len(found) > 5
        assert all(page in (before, after) for page in found)
    assert pages[0][-1] == after


def test_feeding_continues_during_a_migration(es: Elasticsearch, elasticsearch_url: str, old: Old) -> None:
    """Until the swap, a sidecar receives new articles, changed texts and dates, and deletions."""
    old.feed(es, ARTICLES[:300])
    first = old.migrate(es)
    migration = old.migration(es)
    options = ("--profile", "classic")
    with (
        running(elasticsearch_url, *options, forest=old.forest) as sidecar,
        Elasticsearch(sidecar.url) as live,
    ):
        where = {hit["_id"]: hit["_index"] for hit in helpers.scan(es, index=old.alias)}

        def disturb() -> None:
            actions = ({"_index": old.days[0], **each} for each in ARTICLES[300:])
            for at, (ok, _) in enumerate(helpers.streaming_bulk(live, actions, chunk_size=5)):
                assert ok
                changed = ARTICLES[at]["_id"]
                if at % 4 == 0:
                    live.update(index=where[changed], id=changed, doc={"text": ARTICLES[299 - at]["text"]})
                elif at % 4 == 1:
                    live.update(
                        index=where[changed], id=changed, doc={"published_at": "2026-10-01T08:00:00Z"}
                    )
                elif at % 4 == 2:
                    whole = es.get(index=where[changed], id=changed)["_source"]
                    live.index(
                        index=where[changed], id=changed, document={**whole, "text": "A text, and no more."}
                    )
                else:
                    live.delete(index=where[changed], id=changed)

        feeder = threading.Thread(target=disturb)
        feeder.start()
        with old.dedup(es, migration) as dedup:
            while feeder.is_alive():
                migration.run(dedup)
            feeder.join()
            with pytest.raises(ForestBusy, match="in use"):
                migration.swap(dedup)
            migration.run(dedup)
    assert first.summary.read == 300
    with old.dedup(es, migration) as dedup:
        migration.swap(dedup)
    found = sources(es, old.alias)
    assert len(found) == 400 - 25
    replayed = {name: each["dedup_2"]["seq"] for name, each in found.items()}
    assert len(set(replayed.values())) == len(found)
    for each in found.values():
        assert each["dedup_2"]["page"] == each["dedup"]["page"]
        assert each["dedup_2"]["published"] == each["dedup"]["published"]
    assert not list(Maintenance(es, forest=old.to).verify([old.alias]))
    # A feeder of the old forest is refused; the error names the new forest.
    with Dedup(es, forest=old.forest, profile=CLASSIC) as dedup, pytest.raises(IndexNotReady, match=old.to):
        dedup.require_ready(old.days[0])
    with Dedup(es, forest=old.to) as dedup:
        feed(es, dedup, old.days[0], [{**ARTICLES[5], "_id": "later"}])
    later = sources(es, old.alias)["later"]
    assert "dedup" not in later
    assert later["dedup_2"]["root"] in {each["dedup_2"]["root"] for each in found.values()}


def test_a_killed_run_can_be_continued(es: Elasticsearch, elasticsearch_url: str, old: Old) -> None:
    old.feed(es, SOME)
    command = [sys.executable, "-m", "esdedup", "migrate", old.alias, "--to", old.to, "--forest", old.forest]
    command += ["--url", elasticsearch_url, "--wait", "60", "--json"]
    with_root = {"exists": {"field": "dedup_2.root"}}
    for least in (1, 201):
        with subprocess.Popen([*command, "--rate", "100"], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            deadline_s = time.monotonic() + 60
            while es.count(index=old.alias, query=with_root)["count"] < least:
                assert time.monotonic() < deadline_s
                es.indices.refresh(index=old.alias)
                time.sleep(0.02)
            process.kill()
    ended = subprocess.run(
        [*command, "--swap"], check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert f"now belongs to {old.to}" in ended.stderr
    check(es, old)


def test_a_migration_killed_during_the_swap_continues(es: Elasticsearch, old: Old) -> None:
    """Indices with different metadata are swapped one after the other."""
    old.feed(es, ARTICLES[:60])
    for at, day in enumerate(old.days):
        meta = es.indices.get_mapping(index=day)[day]["mappings"]["_meta"]
        es.indices.put_mapping(index=day, meta=meta | {"of the user": at})
    old.migrate(es)
    migration = old.migration(es)
    client = es.indices.put_mapping
    swapped: list[str] = []

    def killed(**given: Any) -> Any:
        if swapped:
            raise ServerError("killed")
        swapped.append(given["index"])
        return client(**given)

    with old.dedup(es, migration) as dedup:
        migration.run(dedup)
        migration._client = es.options()
        patched = type(es.indices)
        original = patched.put_mapping
        patched.put_mapping = lambda self, **given: killed(**given)  # type: ignore[method-assign]
        try:
            with pytest.raises(ServerError, match="killed"):
                migration.swap(dedup)
        finally:
            patched.put_mapping = original  # type: ignore[method-assign]
    old.migrate(es, swap=True)
    check(es, old)
    for day, each in es.indices.get_mapping(index=old.alias).items():
        meta = each["mappings"]["_meta"]
        assert meta["of the user"] == old.days.index(day)
        assert (meta["esdedup"]["fields"]["dedup"], meta["esdedup"]["forest"]) == ("dedup_2", old.to)
        assert (meta["esdedup"]["former"], meta["esdedup"]["next"]) == (["dedup"], None)
    with pytest.raises(SettingError, match=r"belong to the forest .* already"):
        old.migration(es)


def test_indices_created_during_a_migration_are_migrated(
    es: Elasticsearch, old: Old, index_name: Names
) -> None:
    old.feed(es, ARTICLES[:60])
    template, tomorrow, after = f"{old.alias}-template", index_name("tomorrow"), index_name("after")
    es.indices.put_index_template(name=template, index_patterns=[f"{old.days[0]}*", f"{after}*"])
    try:
        migration = old.migration(es)
        assert migration.templates == (template,)
        with old.dedup(es, migration) as dedup:
            migration.run(dedup)
            with Dedup(es, forest=old.forest, profile=CLASSIC) as present:
                present.setup(tomorrow, forest=old.forest)
                es.indices.put_alias(index=tomorrow, name=old.alias)
                feed(es, present, tomorrow, ARTICLES[60:80])
            migration.swap(dedup)
        assert len(roots(es, old.alias, "dedup_2")) == 80
        es.indices.create(index=after, aliases={old.alias: {}})
        assert Dedup(es, forest=old.to).require_ready(after) == NEXT
        assert Reader(es).list(old.alias).total_articles == 80
    finally:
        es.options(ignore_status=404).indices.delete(index=after)
        es.indices.delete_index_template(name=template)


def test_indices_that_are_not_set_up_are_not_migrated(es: Elasticsearch, old: Old, index_name: Names) -> None:
    old.feed(es, [*ARTICLES[:6], {"_id": "empty", "text": ""}])
    stranger = index_name("stranger")
    es.indices.create(index=stranger, aliases={old.alias: {}}, mappings={"_meta": {"theirs": 1}})
    es.index(index=stranger, id="s", document={"text": "Nobody has set this up."}, refresh=True)
    before = es.indices.get_mapping(index=stranger)
    migration = old.migrate(es, swap=True)
    assert migration.summary.written == 7
    assert es.indices.get_mapping(index=stranger) == before
    found = sources(es, old.alias)
    assert found["s"] == {"text": "Nobody has set this up."}
    assert found["empty"]["dedup_2"]["root"] == found["empty"]["dedup"]["root"]
    page = Reader(es).list(old.alias)
    assert (page.total_articles, page.not_enriched, page.not_set_up) == (7, 0, (stranger,))


def test_a_forest_of_an_earlier_format_can_be_migrated(es: Elasticsearch, old: Old) -> None:
    old.feed(es, ARTICLES[:60])
    meta = es.indices.get_mapping(index=old.forest)[old.forest]["mappings"]["_meta"]["esdedup"]
    es.indices.put_mapping(index=old.forest, meta={"esdedup": meta | {"format": 12}})
    with Dedup(es, forest=old.forest) as dedup, pytest.raises(ForestMismatch, match="esdedup migrate"):
        feed(es, dedup, old.days[0], ARTICLES[:1])
    migration = old.migrate(es, swap=True)
    assert (migration.retention, migration.summary.written) == (None, 60)
    assert not list(Maintenance(es, forest=old.to).verify([old.alias]))


def test_a_migrated_index_can_be_migrated_again(es: Elasticsearch, old: Old, index_name: Names) -> None:
    old.feed(es, ARTICLES[:60])
    old.migrate(es, swap=True)
    further = dataclasses.replace(old, forest=old.to, to=index_name("third"))
    migration = further.migrate(es, swap=True)
    assert migration.fields == Fields(dedup="dedup_3")
    found, reader = sources(es, old.alias), Reader(es)
    for each in found.values():
        for name in ("dedup", "dedup_2", "dedup_3"):
            assert reader.cluster(old.alias, each[name]["root"]).total > 0
    assert reader.list(old.alias).not_enriched == 0


def test_a_swap_drops_edits_only_on_request(es: Elasticsearch, old: Old) -> None:
    with Dedup(es, forest=old.forest, profile=CLASSIC) as dedup:
        for day in old.days:
            dedup.setup(day, forest=old.forest, editorial=True)
    old.feed(es, ARTICLES[:60])
    one, other = [row.id for row in Reader(es).list(old.alias).rows[:2]]
    Editor(es, forest=old.forest).edit(
        old.alias, EditRequest(kind="merge", ids=(other,), to=one), by="A. Chen"
    )
    with pytest.raises(SettingError, match=r"1 edits .* --drop-edits"):
        old.migrate(es, swap=True)
    editor, migration = Editor(es), old.migration(es)
    again = EditRequest(kind="undo", undoes=1)
    # Only the forest whose roots are read accepts edits, even after a refused swap.
    with pytest.raises(IndexNotReady, match="not to"):
        Editor(es, forest=old.to).edit(old.alias, again, by="A. Chen")
    editor.edit(old.alias, again, by="A. Chen")

    def edit_meanwhile(_: int) -> None:
        with pytest.raises(ForestIncomplete, match="migrated"):
            editor.edit(old.alias, EditRequest(kind="undo", undoes=2), by="A. Chen")

    with old.dedup(es, migration) as dedup:
        old.feed(es, ARTICLES[60:61])
        migration.swap(dedup, drop_edits=True, on_read=edit_meanwhile)
    # The indices still allow edits, but in the new forest, where each root is a story.
    assert not Editor(es, forest=old.to).history(old.alias).edits
    found = [hit["_source"]["dedup_2"] for hit in helpers.scan(es, index=old.alias)]
    assert {each["story"] == each["root"] for each in found} == {True}
    assert not [*Maintenance(es, forest=old.to).verify([old.alias])]


def test_impossible_migrations_are_refused(es: Elasticsearch, old: Old, index_name: Names) -> None:
    plain = index_name("plain")
    es.indices.create(index=plain)
    with pytest.raises(IndexNotReady, match="was set up"):
        Migration(es, plain, forest=old.forest, to=old.to)
    old.feed(es, ARTICLES[:3])
    with pytest.raises(SettingError, match="name a different new forest"):
        Migration(es, old.alias, forest=old.forest, to=old.forest)
    with pytest.raises(IndexNotReady, match=f"belongs to the forest '{old.forest}'"):
        Migration(es, old.alias, forest=old.to, to="another")
    old.migrate(es)
    with pytest.raises(IndexNotReady, match="is being migrated to the forest"):
        Migration(es, old.alias, forest=old.forest, to="another")
    # Editing cannot be enabled now, because the new objects would get no stories.
    with pytest.raises(IndexNotReady, match="after the migration"):
        Dedup(es, forest=old.forest).setup(old.days[0], editorial=True)


def test_an_unusable_target_leaves_indices_unchanged(es: Elasticsearch, old: Old, index_name: Names) -> None:
    old.feed(es, ARTICLES[:3])
    es.indices.create(index=(other := index_name("other")))
    with Dedup(es, forest=(classic := index_name("of-classic")), profile=CLASSIC) as dedup:
        dedup.open()
    before = es.indices.get_mapping(index=old.alias)
    for to in (other, old.alias, old.days[0], classic):
        migration = Migration(es, old.alias, to=to)
        with Dedup(es, forest=to, fields=migration.fields) as dedup, pytest.raises(ForestMismatch):
            migration.run(dedup)
    assert es.indices.get_mapping(index=old.alias) == before
    # Values that other programs stored under the same keys are ignored.
    for name, each in before.items():
        kept = each["mappings"]["_meta"]["esdedup"] | {"next": {"dedup": 1}, "copy_of": "x"}
        es.indices.put_mapping(index=name, meta={"esdedup": kept})
    old.migrate(es, swap=True)
