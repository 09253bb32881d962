"""The benchmarks: timed functions, scores, and the documents that quote their results."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import render, results
from benchmarks.articles import SETS, Articles, articles_of, labels_of, labels_path
from benchmarks.detection import Roots, Score
from benchmarks.detectors import hashed_by
from benchmarks.processes import STEPS
from benchmarks.results import ROOT, Measured, Result
from esdedup import Profile
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import PROFILES
from tests import sample


def test_every_timed_function_exists() -> None:
    for places in STEPS.values():
        for owner, name in places:
            assert callable(getattr(owner, name)), name


def test_hash_functions_can_be_replaced_temporarily() -> None:
    texts = [article["text"] for article in sample.articles(3)]
    for profile in PROFILES.values():

        def of(seed: int, profile: Profile = profile) -> bytes:
            with hashed_by(seed):
                return Fingerprinter(profile).fingerprint(texts).signatures.tobytes()

        first = of(0)
        assert len({first, of(1), of(2)}) == 3
        assert of(0) == first


_SAME_PAIRS = """
import numpy as np
from benchmarks.in_memory import PEERS, RADIUS, peer
from benchmarks.signatures import as_bytes
from benchmarks.signatures import Held
from esdedup import CLASSIC

random = np.random.default_rng(1)
held = Held.random(CLASSIC, 2_000, random)
batch = held.batch(1_000, random)
apart = np.bitwise_count(batch[:, None] ^ held.signatures)
expected = set(zip(*map(np.ndarray.tolist, np.nonzero(apart <= 3))))
for name in PEERS:
    index = peer(name)
    index.add(as_bytes(CLASSIC, held.signatures))
    limits, _, rows = index.range_search(as_bytes(CLASSIC, batch), RADIUS)
    found = zip(np.repeat(np.arange(len(batch)), np.diff(limits.astype(int))).tolist(), rows.tolist())
    print(len(expected) > 200 and set(found) == expected)
"""


@pytest.mark.slow
def test_both_settings_of_faiss_find_all_pairs() -> None:
    """Run in a separate process, because the compared packages are large."""
    command = [sys.executable, "-c", _SAME_PAIRS]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert shown.stdout.split() == ["True", "True"]


_ONLINE = """
from benchmarks.online import STEPS, Ours
from benchmarks.online import PEERS
from tests import sample

print(all(callable(getattr(owner, name)) for places in STEPS.values() for owner, name in places))
held = {str(at): {"text": each["text"]} for at, each in enumerate(sample.articles(40))}
held |= {f"{name} again": each for name, each in held.items()}
for ours in (Ours(held).in_batches(), Ours(held).singly()):
    print(all(ours[name] == ours[f"{name} again"] for name in map(str, range(40))))
texts = [each["text"] for each in held.values()]
for peer in PEERS:
    for is_chinese in (False, True):
        roots = peer.cluster(texts, is_chinese, 0.7)
        print(roots[:40] == roots[40:] and 1 < len(set(roots)) < 40)
"""


@pytest.mark.slow
def test_esdedup_and_every_compared_library_find_copies_online() -> None:
    """Run in a separate process, because the compared packages are large."""
    command = [sys.executable, "-c", _ONLINE]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert shown.stdout.split() == 11 * ["True"]


@pytest.mark.slow
def test_every_benchmark_can_be_imported() -> None:
    """Run in a separate process, because the compared packages are large and print messages."""
    command = [sys.executable, "-m", "benchmarks", "--help"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "elastic-classic" in " ".join(shown.stdout.split())


# Shares, rates, sizes and durations.
FIGURE = re.compile(r"(?<![\d.])\d+(?:\.\d+)?%|\d[\d,.]*(?: \w+)?/s\b|\d[\d,.]* (?:bytes a node|µs|ms|MB)\b")
# Scores such as precisions. In documents checked only for `FIGURE`, decimals are thresholds or tested bounds.
DECIMAL = re.compile(r"(?<![\d.])\d\.\d{2,}(?![\d.])")
QUOTING = {
    ROOT / "README.md": (FIGURE, DECIMAL),
    ROOT / "benchmarks/README.md": (FIGURE, DECIMAL),
    **dict.fromkeys(sorted(ROOT.glob("docs/**/*.md")), (FIGURE,)),
    **dict.fromkeys((ROOT / "docs/quality.md", ROOT / "docs/costs.md"), (FIGURE, DECIMAL)),
}
# Versions, the confidence level of intervals, values of an option and of a query, and assumptions of a plan.
NOT_MEASURED = {"3.11", "8.19", "95%", "0.01", "50%", "30%", "70%", "85%"}
# Blocks that are calculated, not measured.
CALCULATED = re.compile(r"<!-- results: capacity.*?<!-- end of results -->", re.DOTALL)
MEASURED = Measured(
    on="2026-01-02",
    machine="a machine",
    system="a system",
    versions={"numpy": "2"},
    code="c0de",
    took_s=7,
    seeds=2,
)


def quality(**precisions: str) -> Result:
    rows = [
        {
            "set": name,
            "method": "verified (default)",
            "threshold": "",
            "precision": precision,
            "recall": "0.5",
            "of edited pairs": "0.4",
        }
        for name, precision in precisions.items()
    ]
    return Result(measured=MEASURED, tables={"quality": rows})


def test_documents_match_the_file_of_results() -> None:
    kept = results.load(results.QUOTED)
    assert render.DOCUMENT.read_text() == render.document(kept)
    for path in render.QUOTING:
        assert path.read_text() == render.quoted(path.read_text(), kept)


@pytest.mark.parametrize("path", QUOTING, ids=lambda path: path.name)
def test_documents_quote_only_figures_from_the_results(path: Path) -> None:
    held = " ".join(
        cell
        for result in results.load(results.QUOTED).values()
        for rows in result.tables.values()
        for row in rows
        for cell in row.values()
    )
    for pattern in QUOTING[path]:
        found = set(pattern.findall(CALCULATED.sub("", path.read_text())))
        assert found <= {*pattern.findall(held), *NOT_MEASURED}, found


@pytest.fixture(scope="module")
def articles() -> Articles:
    return {each["id"]: each for each in list(sample.articles())[:600]}


def labels(**pairs: str) -> dict[frozenset[str], str]:
    return {frozenset(pair): label for pair, label in pairs.items()}


def test_pairs_are_scored_against_the_labels() -> None:
    roots = {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d", "f": None, "g": None}
    score = Score.of(roots, labels(ab="pos", ac="grey", de="hardneg", fg="pos"))
    assert (score.positives, score.true_positives, score.false_positives, score.grey) == (2, 1, 2, 1)
    assert score.largest_cluster == 3
    assert score.precision.value == pytest.approx(1 / 3)
    assert score.recall.value == 1 / 2
    assert score.f1.value == pytest.approx(2 / 5)


def test_intervals_contain_the_measured_share() -> None:
    roots = {f"{side}{number}": str(number) for number in range(40) for side in "ab"}
    right = {frozenset((f"a{number}", f"b{number}")): "pos" for number in range(30)}
    score = Score.of(roots, right)
    assert score.precision.low < score.precision.value == 0.75 < score.precision.high
    assert score.recall.value == score.recall.high == 1
    # Thirty groups without a mistake do not prove that there are no mistakes.
    assert 0.85 < score.recall.low < 0.95


def test_wrong_pairs_of_one_cluster_count_as_one_mistake() -> None:
    right = {frozenset((f"a{number}", f"b{number}")): "pos" for number in range(100)}
    pairs = {f"{side}{number}": f"p{number}" for number in range(100) for side in "ab"}
    one_large = pairs | {f"x{number}": "x" for number in range(8)}
    many_small = pairs | {f"{side}{number}": f"x{number}" for number in range(28) for side in "xy"}
    large, small = (Score.of(roots, right).precision for roots in (one_large, many_small))
    assert large.value == small.value
    assert large.high - large.low > small.high - small.low


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), list(zip(SETS, (1, 3, 40, 40, 3), strict=True)))
def test_scores_match_those_of_the_evaluation_script(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    monkeypatch.setenv("ESDEDUP_SHARED", str(shared))
    draw = random.Random(size)
    ids = list(articles_of(name))
    roots: dict[str, str | None] = {
        article: draw.choice((None, str(draw.randrange(len(ids) // size)))) for article in ids
    }
    # Give both articles of every second pair one root. Sort them, since a set's order differs per process.
    for one, other in list(map(sorted, labels_of(name)))[::2]:
        roots[one] = roots[other] = f"pair of {one}"
    assert ours(name, roots) == theirs(shared, name, roots, tmp_path / "roots.jsonl")


def ours(name: str, roots: Roots) -> dict[str, float]:
    score = Score.of(roots, labels_of(name))
    return {
        "precision": round(score.precision.value, 4),
        "recall": round(score.recall.value, 4),
        "f1": round(score.f1.value, 4),
        "positives": score.positives,
        "true_positives": score.true_positives,
        "false_positives": score.false_positives,
        "grey": score.grey,
        "largest_cluster": score.largest_cluster,
        "documents": len(roots),
    }


def theirs(shared: Path, name: str, roots: Roots, path: Path) -> dict[str, float]:
    path.write_text(
        "".join(json.dumps({"id": article, "root": root}) + "\n" for article, root in roots.items())
    )
    script: list[str | Path] = [
        sys.executable,
        shared / "eval/score.py",
        labels_path(name),
        path,
    ]
    answer = subprocess.run(script, check=True, capture_output=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found
