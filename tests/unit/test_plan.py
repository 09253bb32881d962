"""Capacity plans, calculated from simple unit costs."""

import dataclasses
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import SettingError
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import (
    CostsFile,
    Deciding,
    LearnedCosts,
    Measured,
    PerText,
    ServerCosts,
    ServerWork,
    UnitCosts,
    costs_key,
    shipped,
)
from esdedup.plan.figures import figures
from esdedup.plan.model import MOST_BUSY, CapacityPlan, Workload, plan
from esdedup.text.segmenters import get_segmenter
from esdedup.text.weights import Tf
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign

MEASURED = Measured(on="2026-01-02", machine="a machine", versions={"numpy": "2"})
LEARNED = LearnedCosts(measured=MEASURED, memory_bytes=200e6, disk_bytes=100e6)
SERVER = ServerCosts(
    node_bytes=500,
    page_bytes=100,
    article_bytes=900,
    us_a_commit=50,
    arrivals_a_second=5_000,
    requests_a_batch=1.5,
    work=ServerWork(
        us_an_arrival=100,
        us_an_article=60,
        refresh_us_a_root=0.1,
        heap_bytes_a_root=2,
        measured_nodes=1_000,
        measured_articles=1_000,
        measured_roots=1_000,
    ),
)
COSTS = UnitCosts(
    profile="verified",
    layout="5choose2",
    whole=PerText(us_a_text=20, us_a_character=0.05),
    without_boilerplate=PerText(us_a_text=30, us_a_character=0.1),
    omitting=PerText(us_a_text=10, us_a_character=0.01),
    deciding=Deciding(us_at_first=20, first_nodes=1_000, us_a_doubling=2, measured_nodes=8_000),
    node_bytes=300,
    process_bytes=100e6,
    opening_bytes=30e6,
    opening_bytes_a_node=200,
    server=SERVER,
)
WORKLOAD = Workload(
    articles_a_day=864_000,
    reprints=0.4,
    edited=0.75,
    retention_days=30,
    mean_length=2_000,
    peak=3,
    owner_bytes=64e9,
)


def planned(of: Profile | None = None, /, **changes: float) -> CapacityPlan:
    return plan(dataclasses.replace(WORKLOAD, **changes), of or VERIFIED, COSTS, LEARNED)


def test_only_unchanged_reprints_make_no_node() -> None:
    found = planned()
    days = 30 + 2 / 24
    assert found.load.articles_a_second == 10
    assert found.peak_a_second == 30
    assert found.load.nodes == pytest.approx(864_000 * 0.9 * days, rel=1e-6)
    assert found.load.hashes == pytest.approx(864_000 * 0.1 * days, rel=1e-6)
    kept = planned(VERIFIED.with_changes(keep_boilerplate=True))
    assert (kept.load.nodes, kept.load.hashes) == (found.load.nodes, 0)
    assert planned(edited=1).load.nodes == planned(reprints=0).load.nodes > found.load.nodes


def test_times_of_owner_and_fingerprints_add_up() -> None:
    found = planned()
    assert found.fingerprint_us == 30 + 200
    deciding_us = 20 + 2 * math.log2(found.load.nodes / 1_000)
    assert found.owner_us == pytest.approx(30 + 200 + 10 + 20 + deciding_us + 50)
    assert found.owner_a_second == pytest.approx(MOST_BUSY * 1e6 / found.owner_us)
    kept = planned(VERIFIED.with_changes(keep_boilerplate=True))
    assert kept.fingerprint_us == 20 + 100
    assert kept.owner_us == pytest.approx(20 + 100 + deciding_us + 50)
    short = planned(VERIFIED.with_changes(max_text_length=1_000))
    assert short.fingerprint_us == 30 + 100


def test_memory_and_disk_follow_from_the_load() -> None:
    found = planned()
    each = found.memory_each
    assert found.forests == 1
    assert each.nodes == 300 * found.load.nodes
    assert each.hashes == 29 * found.load.hashes
    assert each.held == each.nodes + each.hashes + 300e6
    assert each.peak >= each.held + 200 * found.load.nodes
    assert found.forest_bytes == 500 * found.load.nodes + 100 * found.load.hashes + 100e6
    shown = {figure.name: figure.value for figure in figures(found)}
    assert shown["articles_gb"] == 900 * 864_000 * 30 / 1e9
    assert shown["article_shards"] == math.ceil(shown["articles_gb"] / 50)


def test_the_load_on_elasticsearch_is_estimated() -> None:
    found = {each.name: each.value for each in figures(planned())}
    roots = 864_000 * 30 * 0.6
    assert found["server_cores_peak"] == pytest.approx(30 * 160e-6)
    assert found["refresh_s"] == pytest.approx(roots * 0.1e-6)
    assert found["heap_mb"] == pytest.approx(roots * 2e-6)
    unknown = dataclasses.replace(
        planned(), costs=COSTS.model_copy(update={"server": SERVER.model_copy(update={"work": None})})
    )
    assert {each.name for each in figures(unknown)} == found.keys() - {
        "server_cores_peak",
        "refresh_s",
        "heap_mb",
    }


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("one owner is enough", {}),
        ("assignments per second", {"articles_a_day": 4e9, "retention_days": 0.1}),
        ("memory of an owner", {"owner_bytes": 4e9}),
        ("rows in memory", {"articles_a_day": 2e7, "peak": 1, "retention_days": 365, "owner_bytes": 1e15}),
    ],
)
def test_each_limit_of_an_owner_requires_more_forests(why: str, changes: dict[str, float]) -> None:
    found = planned(**changes)
    assert found.why == why
    assert (found.forests == 1) == (not changes)
    assert found.memory_each.peak <= found.workload.owner_bytes
    assert found.peak_a_second / found.forests <= found.owner_a_second
    assert found.load_each.nodes * 9 < 2**32


def test_shards_larger_than_advised_are_reported() -> None:
    def basis(**changes: float) -> str:
        return next(each.basis for each in figures(planned(**changes)) if each.name == "forest_shards")

    assert "up to 50)" in basis()
    large = planned(articles_a_day=86_400_000, peak=1, owner_bytes=1e15)
    assert large.forest_bytes_unmerged / large.forests > 50e9
    least = math.ceil(large.forest_bytes_unmerged / 50e9)
    assert f"this needs {least:,} forests" in basis(articles_a_day=86_400_000, peak=1, owner_bytes=1e15)


def test_costs_depend_on_settings_for_words() -> None:
    others = {
        costs_key(KEYWORDS.with_changes(segmenter=get_segmenter("words"))),
        costs_key(KEYWORDS.with_changes(weighting=Tf())),
        costs_key(KEYWORDS.with_changes(keyword_count=20)),
    }
    assert len(others) == 3
    assert "keywords" not in others
    # The key leaves out settings that do not affect costs, or whose costs are measured for each value.
    same = KEYWORDS.with_changes(keep_boilerplate=True, max_text_length=1_000)
    assert costs_key(same) == "keywords"
    with pytest.raises(SettingError, match="no unit costs for keywords-4-"):
        shipped().of(KEYWORDS.with_changes(weighting=Tf()), name="file")


@given(
    articles=st.floats(1, 1e8),
    days=st.floats(0.01, 1_000),
    reprints=st.floats(0, 1),
    edited=st.floats(0, 1),
    peak=st.floats(1, 20),
    length=st.floats(1, 1e5),
    keeps=st.booleans(),
)
def test_plans_have_the_fewest_forests_that_fit(
    articles: float, days: float, reprints: float, edited: float, peak: float, length: float, keeps: bool
) -> None:
    profile = VERIFIED.with_changes(keep_boilerplate=keeps)
    changes = {
        "articles_a_day": articles,
        "retention_days": days,
        "reprints": reprints,
        "edited": edited,
        "peak": peak,
        "mean_length": length,
    }
    found = planned(profile, **changes)

    def fits(forests: int) -> bool:
        # Whether one owner can handle an equal share of the articles.
        share = planned(profile, **changes | {"articles_a_day": articles / forests})
        return share.forests == 1

    assert fits(found.forests)
    assert found.forests == 1 or not fits(found.forests - 1)
    assert all(math.isfinite(each.value) and each.value >= 0 for each in figures(found))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"articles_a_day": 0}, "articles_a_day is 0; it must be greater than 0"),
        ({"articles_a_day": math.nan}, "articles_a_day is nan"),
        ({"retention_days": math.inf}, "retention_days is inf"),
        ({"mean_length": -1}, "mean_length is -1"),
        ({"reprints": 1.1}, "reprints is 1.1; it must be from 0 to 1"),
        ({"edited": math.nan}, "edited is nan"),
        ({"peak": 0.5}, "peak is 0.5; it must be at least 1"),
        ({"owner_bytes": 1e6}, "without any node; allow the owner more"),
        ({"articles_a_day": 1e15}, "this workload is too large"),
    ],
)
def test_invalid_workloads_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        planned(**changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-3], "file.json has no unit costs"),
        (lambda text: text.replace('"format":1', '"format":2'), "in format 2; this version reads 1"),
        (lambda text: text.replace('"node_bytes":300.0', '"node_bytes":-1'), "node_bytes: Input should be"),
        (lambda text: text.replace('"node_bytes":300.0', '"other":1'), "node_bytes: Field required"),
    ],
)
def test_invalid_cost_files_are_refused(change: Callable[[str], str], message: str) -> None:
    text = CostsFile(measured=MEASURED, costs=(COSTS,), learned=LEARNED).model_dump_json()
    assert CostsFile.read(text, name="file.json").costs == (COSTS,)
    with pytest.raises(SettingError, match=message):
        CostsFile.read(change(text), name="file.json")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_package_has_costs_for_every_profile(profile: str) -> None:
    chosen, held = PROFILES[profile], shipped()
    found = plan(WORKLOAD, chosen, held.of(chosen, name="shipped"), held.learned)
    assert found.forests >= 1
    assert 10 < found.costs.node_bytes < 1_000
    assert 20 < found.costs.server.node_bytes < 5_000


def test_a_hash_without_a_node_takes_29_bytes() -> None:
    store = MemoryStore(aging=AGING, relation=relation_of(CLASSIC))
    count = 200_000
    assign(store, as_batch([Arrival(None, 0, hash=each) for each in range(1, count + 1)]), now_ms=NOW_MS)
    assert store.size_bytes / count == pytest.approx(29, abs=3)
