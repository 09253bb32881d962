"""Removal restores articles and templates, even after crashes and during concurrent writes."""

import itertools
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.adopt import Adoption
from esdedup.ingest.remove import Removal

from esdedup import (
    VERIFIED,
    AdoptionIntoCopies,
    ArticleRejected,
    Dedup,
    ForestBusy,
    IndexBlocked,
    IndexNotReady,
    Migration,
    Reader,
)
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import REBUILT_SUFFIX, Meta
from tests.acceptance.conftest import run_in
from tests.integration.test_adopt import ARTICLES, OWN, sources, stored
from tests.support.forests import feed, roots
from tests.support.names import Names
from tests.support.sidecar_process import running


def adopted(es: Elasticsearch, index_name: Names, count: int = 60) -> tuple[str, str]:
    """Return the alias of adopted indices, and their forest."""
    alias, forest = stored(es, index_name, ARTICLES[:count]), index_name("forest")
    with Dedup(es, forest=forest, fields=OWN) as dedup:
        Adoption(es, alias, fields=OWN).run(dedup)
    es.indices.refresh(index=alias)
    return alias, forest


def test_removal_undoes_adoption(es: Elasticsearch, index_name: Names) -> None:
    alias, forest = stored(es, index_name, ARTICLES), index_name("forest")
    first = min(es.indices.get(index=alias))
    part, template = f"{first}-part", f"{first}-template"
    es.cluster.put_component_template(
        name=part, template={"mappings": {"properties": {"own": {"type": "long"}}}}
    )
    es.indices.put_index_template(
        name=template, index_patterns=[f"{first}*"], priority=3, composed_of=[part], template={"mappings": {}}
    )
    try:
        before = sources(es, alias)
        with Dedup(es, forest=forest, fields=OWN) as dedup:
            Adoption(es, alias, fields=OWN).run(dedup)
            dedup.setup_template(part)
        es.indices.refresh(index=alias)
        given = roots(es, alias)
        changes: list[int] = []
        removal = Removal(es, alias)
        assert (removal.total, removal.edits) == (len(ARTICLES), 0)
        assert (removal.forest, removal.forest_users) == (forest, ())
        assert set(removal.templates) == {part, template}
        removal.run(on_read=changes.append)
        assert (sum(changes), removal.summary.written, removal.summary.failed) == (*[len(ARTICLES)] * 2, 0)
        assert sources(es, alias) == before
        assert not es.indices.exists(index=forest)
        for each in es.indices.get_mapping(index=alias).values():
            assert each["mappings"]["_meta"] == {"esdedup": {"removed": True}}
        # New indices no longer get the fields.
        made = es.indices.simulate_template(name=template)["template"]["mappings"]
        assert "dedup" not in made["properties"]
        assert "esdedup" not in made.get("_meta", {})
        with pytest.raises(IndexNotReady, match="esdedup was removed from the index"):
            Reader(es).list(alias)
        again = Removal(es, alias)
        assert (again.total, again.forest, again.templates) == (0, None, ())
        # The articles can be adopted again, and get the same roots.
        with Dedup(es, forest=forest, fields=OWN) as dedup:
            Adoption(es, alias, fields=OWN).run(dedup)
        es.indices.refresh(index=alias)
        assert roots(es, alias) == given
        assert Reader(es).list(alias).total_articles == len(ARTICLES)
    finally:
        es.indices.delete_index_template(name=template)
        es.cluster.delete_component_template(name=part)


def test_an_interrupted_removal_can_be_continued(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias, forest = adopted(es, index_name, len(ARTICLES))
    removal = Removal(es, alias)
    write = removal._bulk.write

    def interrupted(actions: Any) -> Any:
        yield from write(itertools.islice(actions, 100))
        raise KeyboardInterrupt

    monkeypatch.setattr(removal._bulk, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        removal.run()
    assert removal.summary.written == 100
    assert es.indices.exists(index=forest)
    # Meanwhile, the index takes no articles.
    with pytest.raises(IndexNotReady, match="removed from"):
        Dedup(es, forest=forest).require_ready(min(es.indices.get(index=alias)))
    es.indices.refresh(index=alias)
    again = Removal(es, alias)
    assert again.total == len(ARTICLES) - 100
    again.run()
    assert sources(es, alias) == {
        each["_id"]: {name: value for name, value in each.items() if name != "_id"} for each in ARTICLES
    }
    assert not es.indices.exists(index=forest)


def test_a_forest_of_other_indices_is_kept_and_fed(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    leaving, staying, forest = index_name("leaving"), index_name("staying"), index_name("forest")
    old = [{**each, "text": each["body"]} for each in ARTICLES[:60]]
    with Dedup(es, forest=forest) as dedup:
        for index in (leaving, staying):
            dedup.setup(index)
            feed(es, dedup, index, old)
    kept = sources(es, staying)
    with running(elasticsearch_url, forest=forest) as sidecar, Elasticsearch(sidecar.url) as client:
        helpers.bulk(client, [{"_index": leaving, **old[0], "_id": "new"}])
        removal = Removal(es, leaving)
        assert removal.forest_users == (staying,)
        removal.run()
        # The sidecar passes articles of the index on, and enriches those of the other index.
        for index in (leaving, staying):
            helpers.bulk(client, [{"_index": index, **old[1], "_id": "later"}])
    assert not any("dedup" in each for each in sources(es, leaving).values())
    found = sources(es, staying)
    assert found.pop("later")["dedup"]["root"] == kept[old[1]["_id"]]["dedup"]["root"]
    assert found == kept
    assert removal.summary.written == 61


def test_an_index_that_records_no_forest_is_named(
    es: Elasticsearch,
    elasticsearch_url: str,
    index_name: Names,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (alias, forest), copy, own = adopted(es, index_name, 9), index_name("copy"), index_name("own")
    copied = [{"_index": copy, "_source": hit["_source"]} for hit in helpers.scan(es, index=alias)]
    helpers.bulk(es, copied, refresh=True)
    es.index(index=own, document={"dedup": {"root": "the user's own", "rank": 1}}, refresh=True)
    run, said = run_in(tmp_path, elasticsearch_url), f"{copy} records no forest, but its articles have roots"
    assert (Removal(es, alias).forest_users, said in run("remove", alias).err) == ((), False)
    monkeypatch.setattr("esdedup.ingest.remove.DEFAULT_FOREST", forest)
    users = Removal(es, alias).forest_users
    assert (copy in users, own in users) == (True, False)
    assert f"{said}: {forest} is kept for it" in run("remove", alias).err


def test_the_index_of_an_interrupted_rebuild_is_deleted(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Any
) -> None:
    (alias, forest), other = adopted(es, index_name, 9), index_name("other")
    rebuilt, run = f"{forest}{REBUILT_SUFFIX}", run_in(tmp_path, elasticsearch_url)
    ForestIndex.make(es, rebuilt, meta=Meta.of(VERIFIED))
    Dedup(es).setup(other, forest=forest)
    assert f"the forest {forest} is kept; used by: {other}" in run("remove", alias, "--yes").err
    assert es.indices.exists(index=rebuilt)
    assert f"the forest {forest} was deleted" in run("remove", other, "--yes").err
    assert not es.indices.get(index=f"{forest}*")


def test_a_forest_named_as_if_rebuilt_is_kept(es: Elasticsearch, index_name: Names) -> None:
    (alias, forest), other = adopted(es, index_name, 9), index_name("other")
    rebuilt = f"{forest}{REBUILT_SUFFIX}"
    ForestIndex.make(es, rebuilt, meta=Meta.of(VERIFIED))
    Dedup(es).setup(other, forest=rebuilt)
    Removal(es, alias).run()
    assert [*es.indices.get(index=f"{forest}*")] == [rebuilt]
    Removal(es, other).run()
    assert not es.indices.get(index=f"{forest}*")


def test_concurrent_changes_survive_a_removal(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias, _ = adopted(es, index_name)
    one, gone = ARTICLES[0]["_id"], ARTICLES[1]["_id"]
    places = {hit["_id"]: hit["_index"] for hit in helpers.scan(es, index=alias)}
    removal = Removal(es, alias)
    write = removal._bulk.write

    def disturbed(actions: Any) -> Any:
        def changing() -> Any:
            for action in actions:
                if action["_id"] == one and removal.summary.skipped == 0:
                    es.update(index=places[one], id=one, doc={"body": "changed"})
                    es.delete(index=places[gone], id=gone)
                yield action

        return write(changing())

    monkeypatch.setattr(removal._bulk, "write", disturbed)
    removal.run()
    found = sources(es, alias)
    assert found[one] == {name: each for name, each in ARTICLES[0].items() if name != "_id"} | {
        "body": "changed"
    }
    assert gone not in found
    assert not any("dedup" in each for each in found.values())
    assert (removal.summary.skipped, removal.summary.failed) == (2, 0)


def test_all_objects_are_removed_with_dotted_names(es: Elasticsearch, index_name: Names) -> None:
    alias, forest = adopted(es, index_name, 30)
    to = index_name("to")
    migration = Migration(es, alias, to=to)
    with Dedup(es, forest=to, fields=migration.fields) as dedup:
        migration.run(dedup)
        migration.swap(dedup)
    es.indices.refresh(index=alias)
    index, article = next((hit["_index"], hit) for hit in helpers.scan(es, index=alias))
    own = {key: value for key, value in article["_source"].items() if not key.startswith("dedup")}
    dotted = {f"dedup.{key}": value for key, value in article["_source"]["dedup"].items()}
    es.index(index=index, id=article["_id"], document=own | dotted, refresh=True)
    removal = Removal(es, alias)
    assert removal.forest == to
    removal.run()
    assert not any(key.startswith("dedup") for each in sources(es, alias).values() for key in each)
    # The forest before the migration belongs to no index.
    assert es.indices.exists(index=forest)


def test_an_index_routed_by_root_keeps_its_routing(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("routed")
    with Dedup(es, forest=index_name("forest"), fields=OWN) as dedup:
        dedup.setup(index, shards=2, route_by_root=True)
        feed(es, dedup, index, ARTICLES[:40])
    before = {hit["_id"]: hit["_routing"] for hit in helpers.scan(es, index=index)}
    Removal(es, index).run()
    es.indices.refresh(index=index)
    hits = list(helpers.scan(es, index=index))
    assert {hit["_id"]: hit["_routing"] for hit in hits} == before
    assert not any("dedup" in hit["_source"] for hit in hits)


def test_refused_articles_keep_the_forest(es: Elasticsearch, index_name: Names) -> None:
    alias, forest = adopted(es, index_name, 9)
    index = min(es.indices.get(index=alias))
    (one, *_) = (hit["_id"] for hit in helpers.scan(es, index=index))
    # Elasticsearch accepted this value before the field was mapped.
    es.indices.put_mapping(index=index, dynamic="false")
    es.update(index=index, id=one, doc={"late": "no number"}, refresh=True)
    es.indices.put_mapping(index=index, properties={"late": {"type": "long"}})
    rejected: list[ArticleRejected] = []
    removal = Removal(es, alias, on_rejected=rejected.append)
    removal.run()
    assert [each.article for each in rejected] == [one]
    assert (removal.summary.written, removal.summary.failed) == (8, 1)
    assert es.indices.exists(index=forest)
    es.indices.refresh(index=alias)
    assert Removal(es, alias).total == 1


def test_removal_refuses_indices_it_would_damage(es: Elasticsearch, index_name: Names) -> None:
    alias, forest = adopted(es, index_name, 9)
    first = min(es.indices.get(index=alias))
    plain, vectors = index_name("plain"), index_name("vectors")
    es.indices.create(index=plain)
    with pytest.raises(IndexNotReady, match="nothing to remove"):
        Removal(es, plain)
    with pytest.raises(IndexNotReady, match="is a forest"):
        Removal(es, forest)
    with pytest.raises(IndexNotReady, match="no such index"):
        Removal(es, f"{plain}-other")
    es.indices.create(
        index=vectors, mappings={"properties": {"v": {"type": "dense_vector", "dims": 2, "index": False}}}
    )
    Dedup(es, forest=forest).setup(vectors)
    with pytest.raises(IndexNotReady, match=r"has vectors .v.*_reindex"):
        Removal(es, vectors)
    es.indices.put_settings(index=first, settings={"index.final_pipeline": "stamp"})
    with pytest.raises(IndexNotReady, match="final pipeline 'stamp'"):
        Removal(es, alias)
    es.indices.put_settings(index=first, settings={"index.final_pipeline": "_none"})
    es.indices.put_settings(index=first, settings={"index.blocks.write": True})
    with pytest.raises(IndexBlocked, match="is read-only"):
        Removal(es, alias)
    es.indices.put_settings(index=first, settings={"index.blocks.write": None})
    with Dedup(es, forest=forest) as dedup:
        dedup.open()
        with pytest.raises(ForestBusy):
            Removal(es, alias).run()
    assert Removal(es, alias).total == 9
    # An index that is not a forest is never deleted, even if its name was recorded as the forest.
    for name, each in es.indices.get_mapping(index=alias).items():
        meta = each["mappings"]["_meta"]["esdedup"]
        es.indices.put_mapping(index=name, meta={"esdedup": meta | {"forest": plain}})
    removal = Removal(es, alias)
    assert removal.forest is None
    removal.run()
    assert es.indices.exists(index=plain)


def test_removed_indices_can_be_adopted_into_copies(es: Elasticsearch, index_name: Names) -> None:
    alias, forest = adopted(es, index_name, 9)
    days = [*es.indices.get(index=alias)]
    Removal(es, alias).run()
    es.indices.put_settings(index=alias, settings={"index.blocks.write": True})
    try:
        with Dedup(es, forest=forest, fields=OWN) as dedup:
            copying = AdoptionIntoCopies(es, alias, suffix="-2", fields=OWN)
            copying.run(dedup)
            copying.swap()
        assert Reader(es).list(alias).total_articles == 9
    finally:
        es.indices.delete(index=[f"{each}-2" for each in days], ignore_unavailable=True)


def test_the_command_reports_before_it_removes(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Any
) -> None:
    alias, forest = adopted(es, index_name, 9)
    before = sources(es, alias)
    run = run_in(tmp_path, elasticsearch_url)
    looked = run("remove", alias)
    assert looked.code == 0
    assert forest in looked.out
    assert "--yes changes the articles" in looked.err
    reported = run("remove", alias, "--json").json
    assert sum(reported.pop("articles").values()) == 9
    assert reported == {"forest": forest, "edits": 0, "forest_used_by": [], "templates": []}
    assert sources(es, alias) == before
    assert es.indices.exists(index=forest)
    done = run("remove", alias, "--yes", "--json")
    assert done.code == 0
    assert (done.json["read"], done.json["written"], done.json["failed"]) == (9, 9, 0)
    assert done.err.endswith(f"the forest {forest} was deleted\n")
    assert not es.indices.exists(index=forest)
    again = run("remove", alias, "--yes").out
    assert [line.split()[:2] for line in again.splitlines()][:2] == [["removed", "in"], ["written", "0"]]
    assert "new roots" not in again
    missing = run("remove", index_name("missing"))
    assert (missing.code, "no such index" in missing.err, "setup" in missing.err) == (3, True, False)
