"""What the default profile finds in real, labelled articles, by the scorer that comes with them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run


@pytest.mark.parametrize(
    ("name", "precision", "recall"),
    [("zh_news", 0.99, 0.98), ("zh_short", 0.93, 0.87), ("en_wire", 0.95, 0.97)],
)
def test_duplicates_are_found_and_look_alikes_kept_apart(
    run: Run, shared: Path, tmp_path: Path, name: str, precision: float, recall: float
) -> None:
    data = shared / "data"
    assert run("cluster", str(data / f"{name}.jsonl"), "--output", "roots.jsonl").code == 0
    command: list[str | Path] = [
        sys.executable,
        shared / "eval" / "score.py",
        data / f"{name}.labels.tsv",
        "roots.jsonl",
    ]
    scores = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert scores["precision"] >= precision
    assert scores["recall"] >= recall
    assert scores["f1"] >= 0.9
