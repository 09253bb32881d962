"""Run benchmarks by name, print their tables, write their rows as JSON."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import elastic, fingerprint, in_memory, memory, rows

_TABLES = {
    # First those that need real articles: where there are none, that shows at once.
    "fingerprint": fingerprint.fingerprint,
    "forest": in_memory.forest,
    "forest-verified": in_memory.forest_verified,
    "memory": memory.memory,
    "memory-verified": memory.memory_verified,
    "growth": in_memory.growth,
    "elastic": elastic.elastic,
    "elastic-verified": elastic.elastic_verified,
}


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(_TABLES)}; all if none is given.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Where to write the rows.")] = None,
) -> None:
    """Compare esdedup with its peers, in one run."""
    wanted = names or list(_TABLES)
    for name in wanted:
        if name not in _TABLES:
            raise typer.BadParameter(f"no benchmark {name!r}; there are {', '.join(_TABLES)}")
    found = [row for name in wanted for row in _TABLES[name]()]
    rows.show(found)
    if json is not None:
        rows.write(found, json)


if __name__ == "__main__":
    typer.run(main)
