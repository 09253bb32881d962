"""Content hashes are remembered: an article keeps its cluster when its fingerprint changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, Dedup, Maintenance, Profile
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import Fingerprints
from esdedup.maintenance import ViolationKind
from tests.support.forests import ARTICLES, feed, hashes, roots
from tests.support.names import Names
from tests.support.pages import ENOUGH, HARBOUR, MAIL, RIGHTS, stored_page

Change = Callable[[Fingerprints], Fingerprints]


def others_or_none(found: Fingerprints) -> Fingerprints:
    """Give every text another text's fingerprint, except the first three texts, which get none."""
    exists = found.exists & (np.arange(len(found.exists)) >= 3)
    signatures = np.where(exists, np.roll(found.signatures, 1), np.zeros_like(found.signatures))
    return found._replace(signatures=signatures, exists=exists)


def all_one(found: Fingerprints) -> Fingerprints:
    """Give every text the first text's fingerprint."""
    return found._replace(signatures=found.signatures[[0] * len(found.signatures)])


@pytest.fixture
def change_fingerprints(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Applies a change to all fingerprints computed from now on."""
    compute = Fingerprinter.fingerprint

    def changed(change: Change) -> None:
        monkeypatch.setattr(
            Fingerprinter,
            "fingerprint",
            lambda self, texts, passage_filter: change(compute(self, texts, passage_filter=passage_filter)),
        )

    return changed


def dedup_objects(es: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    """Return the values of each article that come from its node."""
    found = es.search(index=index, size=1_000, source_includes=["dedup"])["hits"]["hits"]
    names = ("fingerprint", "signature", "bands", "page", "root", "partition")
    return {hit["_id"]: {name: hit["_source"]["dedup"].get(name) for name in names} for hit in found}


def test_articles_fed_again_with_other_fingerprints_change_nothing(
    es: Elasticsearch, fed: tuple[str, str], change_fingerprints: Callable[[Change], None]
) -> None:
    """After a rebuild of the forest, nothing changes either."""
    index, forest = fed
    before, remembered = dedup_objects(es, index), hashes(es, forest)
    maintenance = Maintenance(es, forest=forest)
    count = maintenance.count()
    change_fingerprints(others_or_none)
    for is_rebuilt in (False, True):
        if is_rebuilt:
            es.indices.delete(index=forest)
            maintenance.rebuild([index])
        with Dedup(es, forest=forest, batch_size=70) as dedup:
            feed(es, dedup, index, ARTICLES)
        assert dedup_objects(es, index) == before, is_rebuilt
        assert maintenance.count() == count, is_rebuilt
        assert {each[:2] for each in hashes(es, forest)} == {each[:2] for each in remembered}, is_rebuilt
        assert list(maintenance.verify([index])) == [], is_rebuilt


def test_content_hashes_are_remembered_across_refresh_and_restart(
    es: Elasticsearch, index_name: Names, change_fingerprints: Callable[[Change], None]
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    some = ARTICLES[:20]
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        change_fingerprints(all_one)
        feed(es, dedup, index, some)
        before = dedup_objects(es, index)
        change_fingerprints(others_or_none)
        feed(es, dedup, index, some)
        assert dedup_objects(es, index) == before
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, some)
    assert dedup_objects(es, index) == before
    assert len(set(roots(es, index).values())) == Maintenance(es, forest=forest).count() == 1
    assert {name for name, _, _ in hashes(es, forest)} == {int(each["page"], 16) for each in before.values()}
    assert list(Maintenance(es, forest=forest).verify([index])) == []


# After learning from all pages, NOTES consist of boilerplate only. SHORT articles get no fingerprint.
NOTES = [
    {"_id": f"notes-{at}", "text": text, "url": f"https://{HARBOUR}/notes-{at}"}
    for at, text in enumerate((MAIL, RIGHTS, f"{RIGHTS} {MAIL}"))
]
SHORT = [{"_id": "empty", "text": "…"}, {"_id": "short", "text": "Ok"}]


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=lambda profile: profile.name)
def test_boilerplate_articles_keep_their_roots_when_fed_again(
    es: Elasticsearch, index_name: Names, profile: Profile
) -> None:
    """The articles are fed again with all boilerplate learned, with none learned, and without the forest."""
    index, forest = index_name("articles"), index_name("forest")
    first = [*NOTES[:1], *SHORT]
    articles = [*first, *(stored_page(number, HARBOUR) for number in range(ENOUGH)), *NOTES[1:]]
    maintenance = Maintenance(es, forest=forest)
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles)
    before, remembered = dedup_objects(es, index), hashes(es, forest)
    bare = {name for name, each in before.items() if each["fingerprint"] is None}
    assert bare == {"empty", "short", *(["notes-1", "notes-2"] if profile is CLASSIC else [])}
    assert len({before[f"notes-{at}"]["root"] for at in range(3)}) == 3
    assert {name for name, node, _ in remembered if node is None} == {
        int(before[name]["page"], 16) for name in bare - {"empty"}
    }
    count = maintenance.count()
    for accident in ("none", "learned_lost", "forest_lost"):
        if accident == "learned_lost":
            es.delete(index=forest, id="learned-1", refresh=True)
            assert maintenance.repair([index])[ViolationKind.LEARNED_DAMAGED]
        elif accident == "forest_lost":
            es.indices.delete(index=forest)
            maintenance.rebuild([index])
        with Dedup(es, forest=forest, profile=profile, batch_size=50) as dedup:
            # Less boilerplate may be known now than when the notes first arrived.
            feed(es, dedup, index, [*NOTES, *articles])
        assert dedup_objects(es, index) == before, accident
        assert maintenance.count() == count, accident
        assert {each[:2] for each in hashes(es, forest)} == {each[:2] for each in remembered}, accident
    assert list(maintenance.verify([index])) == []
