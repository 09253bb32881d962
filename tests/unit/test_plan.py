"""Capacity plans, calculated from simple unit costs."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.unit_costs import Spent, keep_scale, searching_of
from esdedup.errors import SettingError
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import (
    CostsFile,
    LearnedCosts,
    Measured,
    PerNodes,
    PerText,
    Searching,
    ServerCosts,
    ServerWork,
    UnitCosts,
    costs_key,
    shipped,
)
from esdedup.plan.model import MOST_BUSY, CapacityPlan, Workload, short
from esdedup.text.segmenters import get_segmenter
from esdedup.text.weights import Tf
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign

MEASURED = Measured(on="2026-01-02", machine="a machine", versions={"numpy": "2"})
LEARNED = LearnedCosts(measured=MEASURED, memory_bytes=200e6, disk_bytes=100e6)
SEARCHING = Searching(
    node_bytes=800,
    cached_bytes=10,
    shard=PerNodes(us_at_first=30, first_nodes=1_000, us_a_doubling=1, us_a_million=4, measured_nodes=4_000),
    server_us=250,
    owner_us=50,
    owner_us_a_million=2,
    requests_a_batch=3,
    measured_shards=4,
)
SERVER = ServerCosts(
    node_bytes=500,
    page_bytes=100,
    article_bytes=900,
    us_a_commit=50,
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
    searching=SEARCHING,
)
COSTS = UnitCosts(
    profile="verified",
    layout="5choose2",
    whole=PerText(us_a_text=20, us_a_character=0.05),
    without_boilerplate=PerText(us_a_text=30, us_a_character=0.1),
    omitting=PerText(us_a_text=10, us_a_character=0.01),
    deciding=PerNodes(us_at_first=20, first_nodes=1_000, us_a_doubling=2, measured_nodes=8_000),
    node_bytes=300,
    process_bytes=100e6,
    opening_bytes=30e6,
    opening_bytes_a_node=200,
    server=SERVER,
)
COSTS_FILE = CostsFile(
    measured=MEASURED, costs=(COSTS, COSTS.model_copy(update={"profile": "classic"})), learned=LEARNED
)
WORKLOAD = Workload(articles_a_day=864_000, reprints=0.4, edited=0.75, mean_length=2_000)


def planned(of: Profile | None = None, /, **changes: float) -> CapacityPlan:
    return CapacityPlan(WORKLOAD.model_copy(update=changes), of or VERIFIED, COSTS_FILE)


def test_only_unchanged_reprints_make_no_node() -> None:
    found = planned()
    days = 30 + 2 / 24
    assert found["articles_a_second"] == 10
    assert found["peak_articles_a_second"] == 30
    assert found["nodes"] == pytest.approx(864_000 * 0.9 * days, rel=1e-6)
    assert found["pages"] == pytest.approx(864_000 * 0.1 * days, rel=1e-6)
    kept = planned(VERIFIED.with_changes(keep_boilerplate=True))
    assert (kept["nodes"], kept["pages"]) == (found["nodes"], 0)
    assert planned(edited=1)["nodes"] == planned(reprints=0)["nodes"] > found["nodes"]


def test_times_of_an_owner_add_up() -> None:
    found = planned()
    deciding_us = 20 + 2 * math.log2(found["nodes"] / 1_000)
    for us, of in (
        (30 + 200 + 10 + 20 + deciding_us + 50, VERIFIED),
        (20 + 100 + deciding_us + 50, VERIFIED.with_changes(keep_boilerplate=True)),
        (30 + 100 + 10 + 10 + deciding_us + 50, VERIFIED.with_changes(max_text_length=1_000)),
    ):
        assert planned(of)["owner_articles_a_second"] == pytest.approx(MOST_BUSY * 1e6 / us)


def test_memory_and_disk_follow_from_the_load() -> None:
    found = planned()
    nodes, hashes = found["nodes"], found["pages"]
    assert found.searching is None
    assert found["memory_bytes_mb"] == pytest.approx((300 * nodes + 29 * hashes) / 1e6)
    assert found["owner_memory_gb"] == pytest.approx((500 * nodes + 29 * hashes + 330e6) / 1e9)
    assert found["forest_gb"] == pytest.approx((500 * nodes + 100 * hashes + 100e6) / 1e9 / 0.8)
    assert found["articles_gb"] == pytest.approx(900 * 864_000 * 30 / 1e9)
    assert found["disk_gb"] == pytest.approx(2 * (found["forest_gb"] + found["articles_gb"]))
    assert planned(article_bytes=100)["articles_gb"] == pytest.approx(1_000 * 864_000 * 30 / 1e9)


def test_the_load_on_elasticsearch_is_estimated() -> None:
    found = planned()
    roots = 864_000 * 30 * 0.6
    assert found["server_cores_peak"] == pytest.approx(30 * 2 * 160e-6)
    assert planned(replicas=0)["server_cores_peak"] == pytest.approx(30 * 160e-6)
    assert found["requests_a_second"] == pytest.approx(30 / 1_000 * 2.5)
    assert found["refresh_s"] == pytest.approx(roots * 0.1e-6)
    assert found["heap_mb"] == pytest.approx(roots * 2e-6)


def test_a_forest_too_large_for_memory_is_searched() -> None:
    found = planned(owner_memory_gb=4)
    shards = math.ceil((800 * found["nodes"] + 100 * found["pages"] + 100e6) / 0.8 / 50e9)
    assert found.searching is SEARCHING
    assert found["forest_shards"] == shards == 1
    assert found["owner_memory_gb"] == pytest.approx(0.33)
    us = 260 + 300 + 30 + math.log2(found["nodes"] / 1_000) + (4 + 2) * found["nodes"] / 1e6
    assert found["owner_articles_a_second"] == pytest.approx(MOST_BUSY * 1e6 / us)
    shown = " ".join(found.sentences())
    needed_gb = planned()["owner_memory_gb"]
    assert f"the owner needs {short(needed_gb)} GB" in shown
    assert [short(each) for each in (2.736e13, 2.736e9, 1e6)] == [
        "27,400 billion",
        "2.74 billion",
        "1 million",
    ]
    # The retention that the sentence names just fits.
    days = float(shown.split("a retention of ")[1].split()[0])
    assert planned(owner_memory_gb=4, retention_days=days * 0.99).searching is None
    assert planned(owner_memory_gb=4, retention_days=days * 1.01).searching is SEARCHING


def test_the_nodes_that_memory_can_hold_are_limited() -> None:
    """Even if the owner has more memory."""
    found = planned(articles_a_day=3e7, owner_memory_gb=1e6)
    assert found["nodes"] > 2**32 // 10
    assert found.searching is SEARCHING
    assert "hold at most 429 million nodes" in " ".join(found.sentences())
    assert planned(CLASSIC, articles_a_day=3e7, owner_memory_gb=1e6).searching is None


def test_shards_are_searched_at_once_on_all_cores() -> None:
    found = planned(articles_a_day=8_640_000, retention_days=300, data_node_cores=2)
    nodes, shards, cores = found["nodes"], found["forest_shards"], 2 * found["data_nodes"]
    assert shards > cores > 2
    a_shard_us = 30 + math.log2(nodes / shards / 1_000) + 4 * nodes / shards / 1e6
    assert found["owner_articles_a_second"] == pytest.approx(
        MOST_BUSY * 1e6 / (260 + 300 + a_shard_us * shards / cores + 2 * nodes / 1e6)
    )
    used_us = shards * a_shard_us + 2 * (250 + 60)
    assert found["server_cores_peak"] == pytest.approx(found["peak_articles_a_second"] * used_us / 1e6)
    assert found["forest_gb"] / shards <= 50


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("more than the peak of 30", {}),
        (
            "more than the average of 579, but less than the peak of 1,740",
            {"articles_a_day": 5e7, "owner_memory_gb": 1},
        ),
        ("less than the average of 11,600", {"articles_a_day": 1e9}),
    ],
)
def test_an_owner_too_slow_for_the_peak_is_reported(said: str, changes: dict[str, float]) -> None:
    found = planned(retention_days=1, **changes)
    shown = " ".join(found.sentences())
    assert said in shown
    if "forests, each" in shown:
        forests = int(shown.split(" forests, each")[0].split()[-1].replace(",", ""))
        enough, few = (
            planned(retention_days=1, **changes | {"articles_a_day": changes["articles_a_day"] / number})
            for number in (forests, forests - 1)
        )
        assert enough.bears_peak
        assert not few.bears_peak
    else:
        assert not changes


def test_figures_beyond_the_measured_sizes_are_marked() -> None:
    exact = {"articles_a_second", "peak_articles_a_second", "nodes", "pages", "requests_a_second"}

    def extrapolated(**changes: float) -> set[str]:
        return {name for name, each in planned(**changes).figures.items() if each.is_extrapolated}

    assert extrapolated(articles_a_day=10, retention_days=1) == set()
    assert extrapolated() >= {"owner_memory_gb", "owner_articles_a_second", "forest_gb", "refresh_s"}
    assert not extrapolated() & exact
    assert planned().figures["forest_gb"].number.startswith("≈ ")
    # A forest of few nodes is searched as measured; with many nodes or shards, it is not.
    assert extrapolated(articles_a_day=100, retention_days=1, owner_memory_gb=0.3301) == set()
    assert "owner_articles_a_second" in extrapolated(articles_a_day=1e7)


def test_data_nodes_follow_from_disk_and_cores() -> None:
    assert [planned(replicas=replicas)["data_nodes"] for replicas in (0, 1, 2, 3)] == [1, 3, 3, 4]
    found = planned(data_node_disk_gb=20)
    assert found["data_nodes"] == math.ceil(found["disk_gb"] / (0.85 * 20)) > 3
    cached = planned(owner_memory_gb=1, data_node_memory_gb=0.1)
    assert cached["data_nodes"] == math.ceil(10 * cached["nodes"] * 2 / 0.05e9) > 3
    busy = planned(articles_a_day=8.64e8, retention_days=0.1, data_node_cores=1)
    assert busy["data_nodes"] == math.ceil(busy["server_cores_peak"] / MOST_BUSY) > 3


def searched(shards: int, nodes: int) -> Spent:
    """Return what a forest costs according to `SEARCHING`."""
    search_us, owner_us = shards * SEARCHING.shard.us(nodes / shards), 2 * nodes / 1e6
    return Spent(shards, nodes, 250 + search_us, 50 + owner_us, 3)


def test_costs_of_searching_are_fitted() -> None:
    found = [searched(shards, nodes) for shards in (1, 4) for nodes in (4_000, 4_000_000, 16_000_000)]
    fitted = searching_of(found, node_bytes=800)
    assert fitted.shard.first_nodes == 1_000
    assert (fitted.server_us, fitted.owner_us) == pytest.approx((250, 50))
    assert fitted.shard.us(64e6) == pytest.approx(SEARCHING.shard.us(64e6))
    assert fitted.owner_us_a_million == pytest.approx(2)
    falling = [each._replace(server_us=9 - each.nodes / 1e7) for each in found]
    shard = searching_of(falling, node_bytes=800).shard
    assert (shard.us_a_doubling, shard.us_a_million) == (0, 0)
    # The candidates of few nodes are not measured.
    assert searching_of(found[:1] + found[3:4], node_bytes=800).owner_us_a_million == 0


def test_costs_of_large_forests_are_read_from_the_output(tmp_path: Path) -> None:
    def printed(shards: int, nodes: int) -> str:
        found = searched(shards, nodes)
        values = {
            "forest": f"scale-{nodes}-{shards}",
            "server, µs of processor time an arrival": found.server_us,
            "owner, µs of processor time an arrival": found.owner_us,
            "requests a batch": {"_search": 2.0, "_bulk": 1.0},
        }
        return f"10:11:12 {json.dumps(values, indent=1)}\n"

    path = tmp_path / "costs.json"
    path.write_text(shipped().model_dump_json())
    log = "".join(printed(shards, nodes) for shards in (1, 4) for nodes in (4_000, 4_000_000, 16_000_000))
    keep_scale(f"10:11:12 chunk 1 of 3 is there\n{log}", MEASURED, path)
    found = CostsFile.read(path.read_text(), name="costs.json").of(VERIFIED).server.searching
    assert found.shard.us(64e6) == pytest.approx(SEARCHING.shard.us(64e6))
    assert (found.server_us, found.owner_us, found.requests_a_batch) == pytest.approx((250, 50, 3))
    assert (found.shard.measured_nodes, found.measured_shards) == (16_000_000, 4)
    assert found.measured == MEASURED


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
    with pytest.raises(SettingError, match=r"unit_costs.json has no unit costs for keywords-4-"):
        shipped().of(KEYWORDS.with_changes(weighting=Tf()))


@example(articles=1, days=0.01, reprints=1, edited=0, peak=1, length=1, keeps=False)
@given(
    articles=st.floats(1, 1e8),
    days=st.floats(0.01, 1_000),
    reprints=st.floats(0, 1),
    edited=st.floats(0, 1),
    peak=st.floats(1, 20),
    length=st.floats(1, 1e5),
    keeps=st.booleans(),
)
def test_every_workload_has_a_plan(
    articles: float, days: float, reprints: float, edited: float, peak: float, length: float, keeps: bool
) -> None:
    found = planned(
        VERIFIED.with_changes(keep_boilerplate=keeps),
        articles_a_day=articles,
        retention_days=days,
        reprints=reprints,
        edited=edited,
        peak=peak,
        mean_length=length,
    )
    assert (found.searching is None) == ("memory_bytes_mb" in found.figures)
    assert found["owner_memory_gb"] <= 64
    assert all(math.isfinite(each.value) and each.value >= 0 for each in found.figures.values())
    assert 2 <= len(list(found.sentences())) <= 4


@pytest.mark.parametrize(
    "changes",
    [{"articles_a_day": 0}, {"articles_a_day": math.nan}, {"retention_days": math.inf}, {"reprints": 1.1}],
)
def test_numbers_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        Workload(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"owner_memory_gb": 0.01}, "the owner needs 0.33 GB without any node"),
        ({"articles_a_day": 1e12, "retention_days": 1e4}, "this workload is too large"),
    ],
)
def test_impossible_workloads_are_refused(changes: dict[str, float], message: str) -> None:
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
    text = COSTS_FILE.model_dump_json()
    assert CostsFile.read(text, name="file.json").costs == COSTS_FILE.costs
    with pytest.raises(SettingError, match=message):
        CostsFile.read(change(text), name="file.json")


def test_earlier_files_of_costs_are_completed_from_the_package() -> None:
    server = SERVER.model_dump(exclude={"work", "searching"}) | {"arrivals_a_second": 5_000}
    costs = COSTS.model_dump() | {"server": server}
    found = UnitCosts.model_validate(costs).server
    usual = shipped().of(VERIFIED).server
    assert found == SERVER.model_copy(update={"work": usual.work, "searching": usual.searching})
    with pytest.raises(pydantic.ValidationError, match="Field required"):
        UnitCosts.model_validate(costs | {"profile": "another"})


@pytest.mark.parametrize("profile", PROFILES)
def test_the_package_has_costs_for_every_profile(profile: str) -> None:
    found = CapacityPlan(WORKLOAD, PROFILES[profile], shipped())
    assert 10 < found.costs.node_bytes < 1_000
    assert 20 < found.costs.server.node_bytes < found.costs.server.searching.node_bytes < 5_000


def test_a_hash_without_a_node_takes_29_bytes() -> None:
    store = MemoryStore(aging=AGING, relation=relation_of(CLASSIC))
    count = 200_000
    assign(store, as_batch([Arrival(None, 0, hash=each) for each in range(1, count + 1)]), now_ms=NOW_MS)
    assert store.size_bytes / count == pytest.approx(29, abs=3)
