"""The oldest client of Elasticsearch that the package allows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from esdedup import Reader
from tests.support.forests import ARTICLES
from tests.support.names import Names

ROOT = Path(__file__).parents[2]
VERSION = "8.19"
CLIENT = [f"elasticsearch=={VERSION}.*", "elastic-transport==8.*"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_client_8_19_feeds_and_reads_like_the_newest(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Path
) -> None:
    """Installed into a directory of its own, which comes before the environment's packages."""
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        str(tmp_path),
        *CLIENT,
    ]
    installed = subprocess.run(install, check=False, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"client {VERSION} cannot be installed: {installed.stderr.strip()[-300:]}")
    index, forest = index_name("older"), index_name("forest")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.older_client", elasticsearch_url, index, forest],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["version"].startswith(VERSION)
    assert got["violations"] == 0
    reader = Reader(es, forest=forest)
    page = reader.list(index, sort="similar-desc")
    assert page.total_articles == len(ARTICLES)
    expected = {
        "list": page.model_dump(mode="json"),
        "similar": reader.similar(index, page.rows[0].id).model_dump(mode="json"),
        "text": reader.similar_to_text(index, str(ARTICLES[0]["text"])).model_dump(mode="json"),
    }
    assert got["waited"] == got["awaited"] == expected
