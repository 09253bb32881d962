"""Scores of the profiles on real labelled articles, computed by the scorer supplied with the data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run


@pytest.mark.parametrize(
    ("name", "profile", "precision", "recall", "f1"),
    [
        ("zh_news", "verified", 0.99, 0.985, 0.99),
        ("zh_short", "verified", 0.93, 0.93, 0.93),
        ("en_wire", "verified", 0.96, 0.97, 0.965),
        # Scores of other profiles change only if fingerprints change, which golden vectors would show.
        ("zh_news", "classic", 0.82, 0.83, 0.82),
        ("en_wire", "keywords", 0.81, 0.85, 0.81),
    ],
)
def test_duplicates_are_found_and_look_alikes_kept_apart(
    run: Run,
    shared: Path,
    tmp_path: Path,
    name: str,
    profile: str,
    precision: float,
    recall: float,
    f1: float,
) -> None:
    """The minimum scores are slightly below the measured scores, to catch unintended losses of quality."""
    data = shared / "data"
    given = () if profile == "verified" else ("--profile", profile)
    assert run("cluster", str(data / f"{name}.jsonl"), *given, "--output", "roots.jsonl").code == 0
    command: list[str | Path] = [
        sys.executable,
        shared / "eval" / "score.py",
        data / f"{name}.labels.tsv",
        "roots.jsonl",
    ]
    scores = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert scores["precision"] >= precision
    assert scores["recall"] >= recall
    assert scores["f1"] >= f1
