"""Introduces thirty small faults in this checkout, one at a time, and shows whether the tests notice them.

For each fault, `python -m tests.nightly.mutants` runs the test files that are likely to notice it. If they
pass, the program runs all tests, unless `--likely` is given. Each run ends at its first failure. The checkout
is changed and restored, so it must have no uncommitted changes, and nothing else should run in it.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support import server


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A small change to one file that causes a fault."""

    # A short description of what goes wrong.
    fault: str
    # The file, from the root of the checkout.
    path: str
    # The code to replace, which must occur exactly once, and its replacement.
    old: str
    new: str
    # The test files, relative to tests/, that are likely to notice the fault; they are run first.
    likely: Sequence[str]


MUTANTS = [
    # text/ and fingerprint/
    Mutant(
        "content hashes ignore the upper bits of characters from the first supplementary plane",
        "core/src/tokens.rs",
        "if code < 0x10000 {",
        "if code < 0x20000 {",
        ("unit/test_fingerprinter.py", "unit/test_core.py"),
    ),
    Mutant(
        "a small part of an article joins its cluster, so a round-up merges all of its stories",
        "core/src/forest/agreement.rs",
        "&& share >= self.excerpt_share - slack",
        "&& share >= 0.0 - slack",
        ("unit/test_agreement.py",),
    ),
    Mutant(
        "the choice among keywords of equal weight depends on which of them the process read first",
        "esdedup/fingerprint/by_words.py",
        "np.lexsort((words.hashes[rows], -weights, texts))",
        "np.lexsort((rows, -weights, texts))",
        ("unit/test_words.py", "unit/test_fingerprinter.py"),
    ),
    # boilerplate/
    Mutant(
        "the first page of the previous period is forgotten a period too early",
        "core/src/boilerplate/memory.rs",
        "page >= self.former_from",
        "page > self.former_from",
        ("unit/test_boilerplate.py", "unit/test_learner.py"),
    ),
    Mutant(
        "an override for all sites takes precedence over an override for the page's own site",
        "core/src/boilerplate/judge.rs",
        "of_scope(scope).or_else(|| of_scope(EVERYWHERE))",
        "of_scope(EVERYWHERE).or_else(|| of_scope(scope))",
        ("unit/test_overrides.py", "unit/test_boilerplate.py"),
    ),
    # neighbours/
    Mutant(
        "a simhash that matches in two blocks is counted twice, so its key becomes frequent too early",
        "core/src/forest/index.rs",
        "                numbers.dedup();\n",
        "",
        ("unit/test_nodes.py", "contract/test_verified.py"),
    ),
    # forest/
    Mutant(
        "of two roots that an arrival resembles equally, the first found wins instead of the earliest",
        "core/src/forest/laws.rs",
        "-self.node(*root).seq);",
        "-i64::from(*root));",
        ("unit/test_nodes.py", "contract/test_store.py"),
    ),
    Mutant(
        "nodes made longer ago than the retention period still make a key frequent",
        "core/src/forest/laws.rs",
        "own.filter(counts).count() >= most",
        "own.count() >= most",
        ("unit/test_nodes.py", "contract/test_verified.py"),
    ),
    Mutant(
        "an article dated less than a day ahead does not advance the watermark",
        "core/src/forest/times.rs",
        "time_ms <= now_ms.saturating_add(DAY_MS)",
        "time_ms <= now_ms",
        ("integration/test_clocks.py",),
    ),
    # elastic/
    Mutant(
        "a standby waits for a silent owner during the default lease instead of the owner's lease",
        "esdedup/elastic/forest/lease.py",
        "_unchanged_s(claim.token, version) > claim.ttl_s",
        "_unchanged_s(claim.token, version) > DEFAULT_TTL_S",
        ("integration/test_lease.py",),
    ),
    Mutant(
        "candidates beyond the first page of search hits are missed",
        "esdedup/elastic/forest/candidates.py",
        "len(hits) >= size",
        "len(hits) > size",
        ("integration/test_frequent_keys.py", "contract/test_store.py"),
    ),
    Mutant(
        "nodes that are written while other nodes are loaded into memory are missing in memory",
        "esdedup/elastic/forest/loading.py",
        "            _load_also(nodes, self._written, self._live_since_ms[0])\n",
        "            pass\n",
        ("integration/test_memory_nodes.py",),
    ),
    Mutant(
        "a bulk request that is rejected as a whole is not split, so all of its articles are rejected",
        "esdedup/elastic/bulk.py",
        "elif len(articles) > 1 and _may_be_divided(result):",
        "elif len(articles) > 1 and not result and _may_be_divided(result):",
        ("unit/test_bulk.py",),
    ),
    # reading/
    Mutant(
        "a list of clusters accepts the cursor of a list of articles",
        "esdedup/reading/list_request.py",
        "None, self.dedup]",
        "None]",
        ("unit/test_reading.py",),
    ),
    Mutant(
        "a full page of sources has an additional row for the articles without a source",
        "esdedup/reading/versions.py",
        "len(names) == with_name < last",
        "len(names) == with_name <= last",
        ("integration/test_lists.py",),
    ),
    Mutant(
        "a sort by the smallest counts is reported as exact although no shard proves it",
        "esdedup/reading/ranking.py",
        "if not is_exact and self._is_descending and buckets:",
        "if not is_exact and buckets:",
        ("integration/test_odd_indices.py", "integration/test_lists.py"),
    ),
    Mutant(
        "an article that arrived exactly at the time of the last visit is counted as new",
        "esdedup/reading/list_request.py",
        '{"gt": self.arrived_since_ms, "format": "epoch_millis"}',
        '{"gte": self.arrived_since_ms, "format": "epoch_millis"}',
        ("integration/test_row_details.py",),
    ),
    # web/
    Mutant(
        "an article's address becomes a link unless the scheme is javascript or data",
        "esdedup/web/formats.py",
        'scheme.lower() in {"http", "https"}',
        'scheme.lower() not in {"javascript", "data"}',
        ("unit/test_web.py",),
    ),
    Mutant(
        "the API lists an article's own source although the request excludes it",
        "esdedup/web/api.py",
        "reader.sources(context.index, **query.model_dump())",
        'reader.sources(context.index, **query.model_dump() | {"other_sources": False})',
        ("integration/test_pages_options.py",),
    ),
    Mutant(
        "a downloaded title that begins with an at sign is a formula in a spreadsheet",
        "esdedup/web/downloads.py",
        '_FORMULA, _BREAKS = "=+-@"',
        '_FORMULA, _BREAKS = "=+-"',
        ("integration/test_downloads.py",),
    ),
    # ingest/
    Mutant(
        "a backfill accepts a date of 0",
        "ingest/dates.py",
        "(-24_107, -24_107), (-1, 0))",
        "(-24_107, -24_107), (1, 1))",
        ("unit/test_actions.py",),
    ),
    Mutant(
        "an upsert without a text may contain a forged root",
        "ingest/actions.py",
        'for part in ("doc", "upsert")\n        if isinstance(',
        'for part in ("doc",)\n        if isinstance(',
        ("unit/test_actions.py",),
    ),
    Mutant(
        "a stream that is flushed by time ends without an error when it fails",
        "ingest/batches.py",
        "        raise failure\n",
        "        return\n",
        ("unit/test_batches.py",),
    ),
    # sidecar/
    Mutant(
        "a body that arrives in parts is counted several times, and refused too early",
        "esdedup/serving/limits.py",
        "self._admit_more(size - of.held_bytes)",
        "self._admit_more(size)",
        ("unit/test_sidecar_guards.py",),
    ),
    Mutant(
        "a bulk response with rejected items says that there are no errors",
        "esdedup/sidecar/bulk.py",
        'values | {"errors": True, "items": items}',
        'values | {"items": items}',
        ("unit/test_sidecar_bulk.py",),
    ),
    Mutant(
        "a bulk request whose response was lost is sent to the next node, so articles are written twice",
        "esdedup/sidecar/upstream.py",
        "if method not in _IDEMPOTENT or begun:",
        "if begun:",
        ("unit/test_sidecar_proxy.py",),
    ),
    Mutant(
        "a caller who was refused may write when they try again within a minute",
        "esdedup/sidecar/auth.py",
        "for each in unknown if granted[each]}",
        "for each in unknown}",
        ("unit/test_sidecar_enrichment.py",),
    ),
    # maintenance/
    Mutant(
        "two articles with exchanged bands pass verification",
        "esdedup/maintenance/article_audit.py",
        "for group in interleaved(findable, _BANDS_CHECKED_AT_ONCE):",
        "for group in filter(None, [findable]):",
        ("integration/test_maintenance.py",),
    ),
    Mutant(
        "a rebuild accepts the articles of another forest, and adopts their roots",
        "esdedup/maintenance/records.py",
        "if known <= max_known * len(sample):",
        "if known < max_known * len(sample):",
        ("integration/test_maintenance.py",),
    ),
    # cli/
    Mutant(
        "`verify --repair` exits with 0 although violations are left",
        "esdedup/cli/maintenance.py",
        "    if found:\n",
        "    if found and not repair:\n",
        ("acceptance/test_maintenance.py",),
    ),
]


ROOT = Path(__file__).parents[2]
_EVERYTHING = ("tests", "--numprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder")
_TIMEOUT_S = 2_400


def _first_failure(*arguments: str) -> str | None:
    """Return the first test that fails; None if all pass."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    try:
        done = subprocess.run(
            command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return "the tests timed out"
    if done.returncode == 0:
        return None
    named = [each for each in done.stdout.splitlines() if each.startswith(("FAILED ", "ERROR "))]
    return named[0].split(" - ")[0] if named else done.stdout[-500:] + done.stderr[-500:]


def _noticed_by(mutant: Mutant, *, by_all: bool) -> str | None:
    path = ROOT / mutant.path
    original = path.read_text("utf-8")
    if original.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.path} does not contain this exactly once: {mutant.old}")
    path.write_text(original.replace(mutant.old, mutant.new), "utf-8")
    try:
        _compile(path)
        likely = [f"tests/{each}" for each in mutant.likely if (ROOT / "tests" / each).exists()]
        noticed = _first_failure(*likely)
        return _first_failure(*_EVERYTHING) if noticed is None and by_all else noticed
    finally:
        path.write_text(original, "utf-8")
        _compile(path)


def _compile(changed: Path) -> None:
    """Recompile the crate if one of its files was changed."""
    if changed.suffix == ".rs":
        subprocess.run(["make", "env"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Print which test noticed each fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only faults whose description contains this text")
    parser.add_argument("--likely", action="store_true", help="run only the files that are likely to notice")
    given = parser.parse_args()
    if subprocess.run(["git", "diff", "--quiet"], cwd=ROOT, check=False).returncode:
        raise SystemExit("commit your changes first: this program changes files and restores them")
    chosen = [each for each in MUTANTS if given.only in each.fault]
    missed = 0
    with server.running() as url:
        os.environ[server.URL_VARIABLE] = url
        for number, mutant in enumerate(chosen, 1):
            began_s = time.monotonic()
            test = _noticed_by(mutant, by_all=not given.likely)
            missed += test is None
            seconds = time.monotonic() - began_s
            print(f"{number:2} {seconds:5.0f} s  {mutant.fault}: {test or 'NOT NOTICED'}", flush=True)  # noqa: T201
    print(f"{len(chosen) - missed} of {len(chosen)} faults noticed")  # noqa: T201


if __name__ == "__main__":
    main()
