"""The scoring of benchmarks, and that it follows the rules of the labels' own script."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.articles import SETS, articles_of, labels_of, labels_path
from benchmarks.detection import Roots, Score


def labels(**pairs: str) -> dict[frozenset[str], str]:
    return {frozenset(pair): label for pair, label in pairs.items()}


def test_pairs_are_counted() -> None:
    roots = {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d", "f": None, "g": None}
    score = Score.of(roots, labels(ab="pos", ac="grey", de="hardneg", fg="pos"))
    assert (score.positives, score.true_positives, score.false_positives, score.grey) == (2, 1, 2, 1)
    assert score.largest_cluster == 3
    assert score.precision.value == pytest.approx(1 / 3)
    assert score.recall.value == 1 / 2
    assert score.f1.value == pytest.approx(2 / 5)


def test_a_root_may_be_called_as_an_article_that_is_alone() -> None:
    assert Score.of({"a": "b", "b": None}, {}).false_positives == 0


def test_intervals_hold_the_share() -> None:
    roots = {f"{side}{number}": str(number) for number in range(40) for side in "ab"}
    right = {frozenset((f"a{number}", f"b{number}")): "pos" for number in range(30)}
    score = Score.of(roots, right)
    assert score.precision.low < score.precision.value == 0.75 < score.precision.high
    assert score.recall.value == score.recall.high == 1
    # Thirty groups without a mistake do not show that there is none.
    assert 0.85 < score.recall.low < 0.95


def test_wrong_pairs_of_one_cluster_are_one_mistake() -> None:
    right = {frozenset((f"a{number}", f"b{number}")): "pos" for number in range(100)}
    pairs = {f"{side}{number}": f"p{number}" for number in range(100) for side in "ab"}
    one_large = pairs | {f"x{number}": "x" for number in range(8)}
    many_small = pairs | {f"{side}{number}": f"x{number}" for number in range(28) for side in "xy"}
    large, small = (Score.of(roots, right).precision for roots in (one_large, many_small))
    assert large.value == small.value
    assert large.high - large.low > small.high - small.low


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), list(zip(SETS, (1, 3, 40, 40, 3), strict=True)))
def test_same_as_the_script_of_the_labels(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    monkeypatch.setenv("ESDEDUP_SHARED", str(shared))
    draw = random.Random(size)
    ids = list(articles_of(name))
    roots: dict[str, str | None] = {
        article: draw.choice((None, str(draw.randrange(len(ids) // size)))) for article in ids
    }
    # So that some are found.
    for one, other in list(map(tuple, labels_of(name)))[::2]:
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
