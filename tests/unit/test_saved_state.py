"""The state of a clustering: a later run goes on exactly; other and damaged files are refused."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from esdedup.ingest import saved_state
from hypothesis import given, settings
from hypothesis import strategies as st

from esdedup import CLASSIC, VERIFIED, ClusteredArticle, Profile, StateUnusable, cluster
from tests import sample
from tests.support import stream
from tests.support.pages import pages

Part = list[dict[str, Any]]
MEMBERS = ["boilerplate-1", "nodes-1", "state.json"]


def articles(profile: Profile) -> Part:
    """Versions of stories, web pages with boilerplate, and reprints, over four weeks."""
    every = [*stream.articles(200, profile), *pages(200), *sample.articles(200)]
    return [
        {**each, "id": number, "published_at": f"2026-01-{1 + number * 28 // len(every):02d}T00:00:00Z"}
        for number, each in enumerate(every)
    ]


ARTICLES = {profile.name: articles(profile) for profile in (VERIFIED, CLASSIC)}


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=repr)
@pytest.mark.parametrize("days", [None, 3, 30])
def test_parts_are_clustered_like_the_whole(
    tmp_path: Path, profile: Profile, days: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_state, "_ENOUGH_BYTES", 10_000)
    monkeypatch.setattr(saved_state, "_ENOUGH_PAGES", 100)
    retention = None if days is None else timedelta(days=days)
    every, chance = ARTICLES[profile.name], random.Random(days)
    whole, sizes = tmp_path / "whole", [1, 10, 31, 150, 300]
    expected = list(cluster(every, profile=profile, retention=retention, state=whole))
    found: list[ClusteredArticle] = []
    while len(found) < len(every):
        part = every[len(found) :][: chance.choice(sizes)]
        found += cluster(part, profile=profile, retention=retention, state=tmp_path / "parts")
    assert found == expected
    assert members(tmp_path / "parts")[-1] == members(whole)[-1] == "state.json"
    if days == 3:
        # Expired nodes are left out.
        assert (tmp_path / "parts").stat().st_size < 0.9 * size_without_expiry(tmp_path, profile)


def size_without_expiry(tmp_path: Path, profile: Profile) -> int:
    list(cluster(ARTICLES[profile.name], profile=profile, state=tmp_path / "without"))
    return (tmp_path / "without").stat().st_size


def members(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "stories.state"
    list(cluster(ARTICLES["verified"][:300], state=path))
    assert sorted(members(path)) == MEMBERS
    return path


def again(path: Path, **options: Any) -> list[ClusteredArticle]:
    return list(cluster(ARTICLES["verified"][:20], state=path, **options))


def has_new_roots(found: list[ClusteredArticle]) -> bool:
    return any(each.is_original and each.root is not None for each in found)


def test_the_file_holds_no_texts_and_no_ids(saved: Path) -> None:
    content = saved.read_bytes()
    for each in ARTICLES["verified"][:300]:
        assert each["text"][:20].encode() not in content
    with zipfile.ZipFile(saved) as archive:
        head = json.loads(archive.read("state.json"))
    assert head["format"] == saved_state.FORMAT
    assert head["rules"]["profile"] == VERIFIED.label


def test_another_profile_is_refused(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(StateUnusable, match="was made with the profile 'verified-5', not 'classic-4'"):
        again(saved, profile=CLASSIC)
    assert saved.read_bytes() == before
    assert not has_new_roots(again(saved))


def test_times_must_be_used_again_with_the_same_retention(saved: Path, tmp_path: Path) -> None:
    path, week = tmp_path / "state", timedelta(days=7)
    path.write_bytes(saved.read_bytes())
    # A state without times accepts times with any retention: its texts are last seen at the first time.
    text = max((each["text"] for each in ARTICLES["verified"][:300]), key=len)

    def is_original(day: int) -> bool:
        article = {"id": day, "text": text, "published_at": f"2026-01-{day:02d}T00:00:00Z"}
        (found,) = cluster([article], state=path, retention=week)
        return found.is_original

    assert [is_original(1), is_original(5), is_original(20)] == [False, False, True]
    timed = path.read_bytes()
    with pytest.raises(StateUnusable, match=r"has times: use --time-field \(in Python: retention\)"):
        again(path)
    with pytest.raises(StateUnusable, match="another retention"):
        again(path, retention=timedelta(days=3))
    assert path.read_bytes() == timed


def test_a_file_that_another_process_replaces_is_left(tmp_path: Path) -> None:
    path, lock = tmp_path / "state", tmp_path / ".state.lock"
    lock.touch()
    with pytest.raises(StateUnusable, match=r"is being replaced by another process; .*\.state\.lock"):
        again(path)
    assert list(tmp_path.iterdir()) == [lock]
    lock.unlink()
    again(path)
    assert list(tmp_path.iterdir()) == [path]


def test_an_unfinished_run_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state"
    found = cluster(ARTICLES["verified"][:20], state=path)
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
    running = cluster(ARTICLES["verified"][:20], state=path)
    next(running)
    again(path)
    with pytest.raises(StateUnusable, match="was changed by another process"):
        list(running)
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "state"):
        with pytest.raises(StateUnusable, match="cannot be"):
            again(path)
    for content in (b"", b"PK", b'{"format": 1}', ARTICLES["verified"][0]["text"].encode()):
        other = tmp_path / "other"
        other.write_bytes(content)
        with pytest.raises(StateUnusable, match="is not a state of esdedup, or is damaged"):
            again(other)
        assert other.read_bytes() == content


Change = Callable[[dict[str, bytes]], None]


def changed_head(**values: Any) -> Change:
    def change(content: dict[str, bytes]) -> None:
        content["state.json"] = json.dumps(json.loads(content["state.json"]) | values).encode()

    return change


def rewritten(saved: Path, target: Path, change: Change, *, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(saved) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    change(content)
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, each in content.items():
            archive.writestr(name, each)
    return target


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed_head(format=2), "another version"),
        (changed_head(format=None, others=[[]]), "another version"),
        (changed_head(rules={}), "damaged"),
        (changed_head(rules=[]), "damaged"),
        (changed_head(state=[1]), "damaged"),
        (changed_head(state=[1, 2**63, 3]), "damaged"),
        (changed_head(retention_ms=0), "damaged"),
        (changed_head(retention_ms="1"), "damaged"),
        (changed_head(members={"nodes": 2, "boilerplate": 1}), "damaged"),
        (lambda content: content.pop("nodes-1"), "damaged"),
        (lambda content: content.pop("state.json"), "damaged"),
        (lambda content: content.update({"boilerplate-1": b"wrong"}), "damaged"),
        (lambda content: content.update({"state.json": b"[" * 50_000}), "damaged"),
    ],
)
def test_wrong_contents_are_refused(saved: Path, tmp_path: Path, change: Change, reason: str) -> None:
    with pytest.raises(StateUnusable, match=reason):
        again(rewritten(saved, tmp_path / "wrong", change))


def test_a_compressed_archive_is_refused(saved: Path, tmp_path: Path) -> None:
    bomb = rewritten(saved, tmp_path / "bomb", lambda _: None, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(StateUnusable, match="damaged"):
        again(bomb)


@given(data=st.data())
@settings(max_examples=60)
def test_a_damaged_file_is_refused_or_harmless(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content, path = bytearray(saved.read_bytes()), tmp_path_factory.mktemp("damaged") / "state"
    at = data.draw(st.integers(0, len(content) - 1) | st.integers(len(content) - 400, len(content) - 1))
    if data.draw(st.booleans()):
        del content[at:]
    else:
        content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        found = again(path)
    except StateUnusable:
        assert path.read_bytes() == content
    else:
        # For example, the time of a member was damaged.
        assert not has_new_roots(found)


@given(nodes=st.binary(max_size=300), kept=st.integers(0, 5_000), learned=st.binary(max_size=100))
@settings(max_examples=60)
def test_wrong_nodes_do_not_crash(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, nodes: bytes, kept: int, learned: bytes
) -> None:
    def change(content: dict[str, bytes]) -> None:
        content["nodes-1"] = content["nodes-1"][:kept] + nodes
        if learned:
            content["boilerplate-1"] = learned

    path = rewritten(saved, tmp_path_factory.mktemp("wrong") / "state", change)
    if learned:
        with pytest.raises(StateUnusable):
            again(path)
    else:
        assert len(again(path)) == 20
        assert io.BytesIO(path.read_bytes()).read(2) == b"PK"
