"""Makes each fault of `tests/support/mutants.py` in this checkout, and shows whether the tests notice.

`python -m tests.nightly.mutants` runs for each fault the files that are likely to notice it. If they do not,
it runs all tests, unless `--likely` is given. Both end at the first failure. The checkout is changed and
restored: nothing may be uncommitted, and nothing else should run there.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support import server
from tests.support.mutants import MUTANTS, Mutant

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
        return "the tests did not end"
    if done.returncode == 0:
        return None
    named = [each for each in done.stdout.splitlines() if each.startswith(("FAILED ", "ERROR "))]
    return named[0].split(" - ")[0] if named else done.stdout[-500:] + done.stderr[-500:]


def _noticed_by(mutant: Mutant, *, by_all: bool) -> str | None:
    path = ROOT / mutant.path
    original = path.read_text("utf-8")
    if original.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.path} does not have this once: {mutant.old}")
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
    """Install the package anew if the crate was changed."""
    if changed.suffix == ".rs":
        subprocess.run(["make", "env"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Print for each fault which test noticed it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose description has these words")
    parser.add_argument("--likely", action="store_true", help="run no other files than those that are likely")
    given = parser.parse_args()
    if subprocess.run(["git", "diff", "--quiet"], cwd=ROOT, check=False).returncode:
        raise SystemExit("commit your changes first: this changes files and restores them")
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
