"""The documents for users and developers: what they name exists, and their example is what happens."""

import collections
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from esdedup import VERIFIED, sample
from esdedup.cli.app import app
from esdedup.fields import partition_of
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging, Arrivals, Forest, Kind
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks/README.md"])
# Read, not imported: it needs all the packages that benchmarks compare with.
BENCHMARKS = re.findall(
    r'^    "([a-z-]+)": \w+\.\w+,$', (ROOT / "benchmarks/__main__.py").read_text(), re.MULTILINE
)
SOURCES = {
    path.name
    for folder, files in (("esdedup", "*.py"), ("ingest", "*.py"), ("tests", "*.py"), ("core/src", "*.rs"))
    for path in (ROOT / folder).rglob(files)
}


def _words(document: str) -> str:
    """A document's text, wherever its lines are broken."""
    return " ".join((ROOT / document).read_text().split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_benchmark_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text()
    for path in re.findall(r"`(\w[\w./-]*(?:\.py|\.rs|\.md|\.txt|/))`", text):
        places = [ROOT / path, ROOT / "esdedup" / path, document.parent / path]
        assert path in SOURCES or any(place.exists() for place in places), path
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (document.parent / target).exists(), target
    for names in re.findall(r"python -m benchmarks((?:\s[a-z][a-z-]+)+)`", text):
        assert set(names.split()) <= {"all", *BENCHMARKS}, names


def test_every_command_is_described_and_no_other() -> None:
    text = (ROOT / "docs/commands.md").read_text()
    assert set(re.findall(r"^\| `esdedup (\w+)", text, re.MULTILINE)) == {
        *typer.main.get_group(app).list_commands(typer.Context(typer.main.get_group(app)))
    }


@pytest.fixture(scope="module")
def articles() -> list[dict[str, Any]]:
    """The sample corpus."""
    return list(sample.articles())


def test_the_example_of_a_batch_is_what_the_fingerprinter_computes(articles: list[dict[str, Any]]) -> None:
    text = _words("docs/fingerprints.md")
    relation = relation_of(VERIFIED)
    chosen = [articles[414 - 1]["text"], articles[456 - 1]["text"]]
    fingerprints = Fingerprinter(VERIFIED).fingerprint(chosen)
    signatures = fingerprints.signatures
    for first, second in zip(*relation.representatives(signatures).tolist(), strict=True):
        row = f"| `{first:016x}` | `{second:016x}` | {(first ^ second).bit_count()} |"
        assert row in text
    root, leaf = relation.ids(signatures)
    assert f'{{"fingerprint": "{leaf}"' in text
    (_, keys) = relation.terms(signatures.tobytes(), ARTICLES, are_indexed=False)
    assert f'"bands": ["{keys[0]}", "…"]' in text
    assert f"`{keys[0]}` for one, and a minhash one exact key: so the article has {len(keys)}." in text
    assert f'"page": "{fingerprints.pages[1]:016x}"' in text
    assert f'"root": "{root}"' in text
    assert f'"profile": "{VERIFIED.label}"' in text
    assert f'"length": {fingerprints.alphanumerics[1]}, "partition": {partition_of(root)}}}' in text
    overview = _words("ARCHITECTURE.md")
    assert f"the node's id, `{leaf[:8]}…`" in overview
    assert f"becomes a leaf of the root `{root[:8]}…`" in overview
    shown = {"fingerprint": f"{leaf[:8]}…", "root": f"{root[:8]}…", "page": f"{fingerprints.pages[1]:016x}"}
    assert all(f'"{name}": "{value}"' in overview for name, value in shown.items())


def test_the_example_of_a_page_is_what_clustering_the_sample_gives(articles: list[dict[str, Any]]) -> None:
    """Without a server: the clusters, and the numbers that the page shows of them."""
    arrivals = Arrivals.of(
        Fingerprinter(VERIFIED).fingerprint([article["text"] for article in articles]),
        times_ms=[None] * len(articles),
    )
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(VERIFIED))
    assignments = Forest(store).assign(arrivals, now_ms=0)
    roots = {article["id"]: each.root for article, each in zip(articles, assignments, strict=True)}
    sizes = collections.Counter(roots.values())
    matches = [article["id"] for article in articles if "greyholm" in article["title"].lower()]
    first, second = roots["sample-2889"], roots["sample-1949"]
    assert first is not None
    text = _words("ARCHITECTURE.md")
    assert f"{sizes[first]} and {sizes[second]} articles" in text
    clusters = len({roots[each] for each in matches})
    assert f"The {len(matches)} matches belong to {clusters} clusters." in text
    four = [roots[f"sample-{number:04d}"] for number in (414, 422, 456, 587)]
    assert len(set(four)) == 1
    assert sizes[four[0]] == 4
    assert assignments[587 - 1].kind is Kind.KNOWN
