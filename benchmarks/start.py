"""What starting takes: importing the package and what programs use of it, and short commands."""

import resource
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.rows import Row, less_is_better
from benchmarks.run import Run

_TIMES = 10
_PROGRAMS = {
    "import esdedup": ("-c", "import esdedup"),
    "from esdedup import Dedup": ("-c", "from esdedup import Dedup"),
    "esdedup --version": ("-m", "esdedup", "--version"),
    "esdedup list --help": ("-m", "esdedup", "list", "--help"),
}
# Programs need a client of Elasticsearch in any case.
_PEERS = {"from esdedup import Dedup": ("import elasticsearch", ("-c", "import elasticsearch"))}
_EMPTY = ("an empty program", ("-c", "pass"))


def start(run: Run) -> Sequence[Row]:
    """Measure the processor time of whole processes, in milliseconds."""
    times = run.size(_TIMES)
    return [
        less_is_better("start", case, _least_ms(program, times), peer, _least_ms(theirs, times), "ms")
        for case, program in _PROGRAMS.items()
        for peer, theirs in [_PEERS.get(case, _EMPTY)]
    ]


def _least_ms(arguments: Sequence[str], times: int) -> float:
    """Return the least of several measurements: the first one reads files that are not in memory yet."""
    return min(_once_ms(arguments) for _ in range(times))


def _once_ms(arguments: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
