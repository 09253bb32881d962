"""Renders the file of results and the unit costs: all tables, and the tables that documents quote.

This module needs none of the compared packages.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmarks import results
from benchmarks.articles import AS_THEY_COME, MORE, SETS
from benchmarks.lookup import rows as lookup
from benchmarks.results import ROOT, Cells, Result
from esdedup.fingerprint.profile import VERIFIED
from esdedup.plan.costs import shipped
from esdedup.plan.model import CapacityPlan, Workload, short

_ARTICLES_A_DAY = (1e6, 1e7, 1e8)
_DAYS = (30, 365)
# More than memory can use, and hardly enough to search.
_MUCH_GB, _LITTLE_GB = 1e6, 0.5
# The columns of tables of plans, with all nodes in memory and searched for: their headings and figures.
_IN_MEMORY = {"in memory: GB": "owner_memory_gb", "articles/s": "owner_articles_a_second"}
_SEARCHED = {"searched: shards": "forest_shards", "articles/s": "owner_articles_a_second"}
_MORE = {"disk, GB": "disk_gb", "data nodes": "data_nodes", "their cores for dedup": "server_cores_peak"}


def _capacity(in_memory: Mapping[str, str], searched: Mapping[str, str]) -> Iterator[str]:
    """Yield a table of plans, with a row for each number of articles a day and retention."""
    headings = ["articles a day", "kept, days", "nodes", "articles/s at the peak", *in_memory, *searched]
    yield _row(headings)
    yield "|" + "---|" * len(headings)
    for articles, days in itertools.product(_ARTICLES_A_DAY, _DAYS):
        held, sought = (
            CapacityPlan(
                Workload(articles_a_day=articles, retention_days=days, owner_memory_gb=owner_gb),
                VERIFIED,
                shipped(),
            )
            for owner_gb in (_MUCH_GB, _LITTLE_GB)
        )
        cells = [sought.figures[name].number for name in ("nodes", "peak_articles_a_second")]
        cells += ["–" if held.searching else held.figures[name].number for name in in_memory.values()]
        cells += [sought.figures[name].number for name in searched.values()]
        yield _row([short(articles), f"{days}", *cells])


def _capacity_in_full() -> Iterator[str]:
    """Yield the assumptions of the plans, and a table with all columns."""
    usual, held = Workload(), shipped()
    yield (
        f"Calculated for `{VERIFIED.name}`. Of the articles, {usual.reprints:.0%} are reprints; of the "
        f"reprints, {usual.edited:.0%} are edited. Articles have {usual.mean_length:,.0f} characters, and "
        f"the peak is {usual.peak:g} times the average. Every shard has {usual.replicas} replica. A data "
        f"node has {usual.data_node_disk_gb:,.0f} GB of disk, {usual.data_node_memory_gb:g} GB of memory and "
        f"{usual.data_node_cores} cores. Unit costs were measured on {held.measured.machine} "
        f"({held.measured.on})."
    )
    yield ""
    yield from _capacity(_IN_MEMORY | _MORE, _SEARCHED | _MORE)


def _plan_in_short() -> Iterator[str]:
    """Yield the needs of a typical workload, as `esdedup plan` calculates them."""
    needs = {
        "memory of the process that decides which story an article belongs to, GB": "owner_memory_gb",
        "disk of the forest, including deleted documents, GB": "forest_gb",
        "disk of the fields that are added to articles, GB": "articles_gb",
        "articles a second at the peak of this stream": "peak_articles_a_second",
        "maximum articles a second with that process": "owner_articles_a_second",
    }
    found = CapacityPlan(Workload(), VERIFIED, shipped())
    yield from ("| a million articles a day, kept for 30 days | |", "|---|---|")
    yield from (_row([title, found.figures[name].number]) for title, name in needs.items())


Results = Mapping[str, Result]

DOCUMENT = ROOT / "benchmarks/results.md"
QUOTING = (
    ROOT / "README.md",
    ROOT / "README.zh.md",
    *(ROOT / f"docs/{name}.md" for name in ("capacity", "costs", "lookup", "quality", "quality.zh")),
)
"""Documents with blocks that are generated from the results."""

_NAMES = SETS | MORE
_SHARES = {"precision": "precision", "recall": "recall", "of edited pairs": "edited"}
# The methods whose quality documents show, by benchmark, with their names in the documents.
_METHODS = {
    "quality": {
        "verified (default)": "`verified` (default)",
        "verified, pages kept whole": "`verified` with `keep_boilerplate`",
        "verified, two looks": "`verified` after a first pass over all articles",
        "verified, all sites new": "`verified` where all sites are new",
        "classic": "`classic`: the longest sentence, TF-IDF",
        "keywords": "`keywords`: the 80 heaviest TF-IDF words",
    },
    "quality-peers": {
        "datasketch MinHashLSH(256), MinHash.jaccard checked": "datasketch `MinHashLSH(256)`, checked",
        "simhash Simhash(text), its own features": "simhash `Simhash(text)`",
    },
}
# The rows on speed and memory that documents show, by table: texts that their case and peer contain.
_COSTS = {
    "fingerprint": ("verified, batches of", "RMinHash(128).update"),
    "forest": ("nodes, the whole of assign", ""),
    "forest-large": ("nodes, the whole of assign", ""),
    "memory": ("arrays", ""),
    "memory-classic": ("arrays", ""),
    "elastic": ("", ""),
    "ingest": ("", ""),
    "sidecar": ("", ""),
    "takeover": ("", ""),
    "reading-list": ("newest, everything, 1,000,000 articles, p50", ""),
}
# Tables that documents quote completely, or describe.
_WHOLE = {
    *("layouts", "layouts-elastic", "layouts-stores", "postings", "search-language", "plan-large"),
    *("month", "month: is it flat?"),
    *("sets", "excerpts", "excerpts-summary", "resemblance", "as-they-come"),
    *("reading-list", "reading-count", "reading-widget"),
}
# The methods that README shows.
_SHORT_METHODS = {
    "quality": ("verified (default)", "classic"),
    "quality-peers": tuple(_METHODS["quality-peers"]),
}
_BLOCK = re.compile(r"(<!-- results: ([a-z-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


def document(kept: Results) -> str:
    """Return all results as Markdown."""
    parts = [
        "# Results\n",
        "The rows that documents quote, generated from `results.json` by `make benchmarks`. "
        "[README.md](README.md) describes the benchmarks.\n",
    ]
    for name, result in kept.items():
        parts.append(f"## {name}\n")
        parts.append("\n".join(_measured(name, result)) + "\n")
        for table, rows in result.tables.items():
            if table != name:
                parts.append(f"### {table}\n")
            parts.append("\n".join(_table(rows)) + "\n")
    return "\n".join(parts)


def quoted(text: str, kept: Results) -> str:
    """Return a document with its blocks regenerated."""
    return _BLOCK.sub(lambda found: found[1] + "\n".join(_BLOCKS[found[2]](kept)) + "\n" + found[3], text)


def quoted_rows(measured: Results) -> dict[str, Result]:
    """Return the rows that documents quote."""
    found = {}
    for name, result in measured.items():
        tables = {
            table: chosen
            for table, rows in result.tables.items()
            if (chosen := [row for row in rows if _is_quoted(table, row)])
        }
        if tables:
            found[name] = dataclasses.replace(result, tables=tables)
    return found


def _is_quoted(table: str, row: Cells) -> bool:
    return (
        table in _WHOLE
        or row.get("method") in _METHODS.get(table, ())
        or (table in _COSTS and _is_cost(table, row))
    )


def _is_cost(table: str, row: Cells) -> bool:
    part_of_case, part_of_peer = _COSTS[table]
    return bool(row["ours"]) and part_of_case in row["case"] and part_of_peer in row["against"]


def write_documents(measured: Results) -> None:
    """Keep the rows of results that documents quote, and regenerate the documents."""
    kept = results.load(results.QUOTED) | quoted_rows(measured)
    results.save(kept, results.QUOTED)
    DOCUMENT.write_text(document(kept), encoding="utf-8")
    for path in QUOTING:
        path.write_text(quoted(path.read_text(encoding="utf-8"), kept), encoding="utf-8")


def _measured(name: str, result: Result) -> Iterator[str]:
    measured = result.measured
    versions = ", ".join(f"{each} {version}" for each, version in measured.versions.items())
    yield f"`python -m benchmarks {name}`, {measured.on}, in {measured.took_s:,} s, code {measured.code}."
    yield f"{measured.machine}; {measured.system}; {versions}."


def _table(rows: Sequence[Cells]) -> Iterator[str]:
    yield _row(rows[0])
    yield "|" + "---|" * len(rows[0])
    for row in rows:
        yield _row(row.values())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _quality(kept: Results) -> Iterator[str]:
    """Yield the table of quality, with three rows for each method and a column for each set."""
    shown = {name: kept[name].tables[name] for name in _METHODS if name in kept}
    sets = list(dict.fromkeys(row["set"] for rows in shown.values() for row in rows))
    yield _row(["method", "", *(SETS[name] for name in sets)])
    yield "|" + "---|" * (2 + len(sets))
    for name, rows in shown.items():
        for method, named in _METHODS[name].items():
            of_set = {row["set"]: row for row in rows if row["method"] == method}
            thresholds = " / ".join(filter(None, (row["threshold"] for row in of_set.values())))
            for cell, share in _SHARES.items():
                label = named + (f", {thresholds}" if thresholds else "")
                cells = [of_set[each][cell] if each in of_set else "" for each in sets]
                yield _row([label if cell == "precision" else "", share, *cells])


def _cost(kept: Results) -> Iterator[str]:
    """Yield a table of speed and memory, with the chosen rows of each benchmark that was run."""
    columns = ("case", "ours", "theirs", "unit", "against")
    yield _row(["", "esdedup", "peer", "", "the peer"])
    yield "|" + "---|" * len(columns)
    tables = {name: rows for result in kept.values() for name, rows in result.tables.items()}
    for name in _COSTS:
        for row in tables.get(name, []):
            if _is_cost(name, row):
                yield _row([row[column] for column in columns])


def _quality_summary(kept: Results) -> Iterator[str]:
    """Yield precision, recall and articles per second, by method and set."""
    shown = {name: kept[name].tables[name] for name in _SHORT_METHODS if name in kept}
    sets = list(dict.fromkeys(row["set"] for rows in shown.values() for row in rows))
    yield _row(["precision / recall", *(SETS[name] for name in sets)])
    yield "|" + "---|" * (1 + len(sets))
    positives = {row["set"]: row["pairs"] for rows in shown.values() for row in rows}
    yield _row(["*labelled pairs*", *(f"*{positives[name]}*" for name in sets)])
    for name, rows in shown.items():
        for method in _SHORT_METHODS[name]:
            of_set = {row["set"]: row for row in rows if row["method"] == method}
            # Show values without their intervals.
            pairs = (
                (of_set[each]["precision"].split()[0], of_set[each]["recall"].split()[0]) for each in sets
            )
            yield _row([_METHODS[name][method], *(" / ".join(pair) for pair in pairs)])
    speeds = {row["case"].partition(",")[0]: row for row in _rows(kept, "fingerprint")}
    peer = "rensa `RMinHash(128)`: articles a second"
    for named, column in (("`verified`: articles a second", "ours"), (peer, "theirs")):
        yield _row([named, *(speeds.get(SETS[name], {}).get(column, "") for name in sets)])


def _sets(kept: Results) -> Iterator[str]:
    """Yield the table of the labelled sets."""
    counts = ("pairs", "edited", "grey", "look-alikes")
    yield _row(["set", "", "articles", *counts])
    yield "|" + "---|" * (3 + len(counts))
    for row in _rows(kept, "sets"):
        name = row["set"]
        yield _row([f"`{name}`", _NAMES[name], row["of"], *(row[each] for each in counts)])


def _as_they_come(kept: Results) -> Iterator[str]:
    """Yield precision and recall on texts as they are delivered, with a row for each set."""
    shares = ("precision", "recall", "f1")
    yield _row(["set", "", "documents", "pairs", *shares, "false pairs"])
    yield "|" + "---|" * (5 + len(shares))
    for row in _rows(kept, "as-they-come"):
        name = row["set"]
        cells = (row["of"], row["pairs"], *(row[each] for each in shares), row["false"])
        yield _row([f"`{name}`", AS_THEY_COME[name], *cells])


def _by_set(rows: Sequence[Cells], kinds: Sequence[str], cell: Sequence[str]) -> Iterator[str]:
    """Yield a row for each kind and a column for each set; `cell` names the columns that a cell combines."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    yield _row([*("" for _ in kinds), *(_NAMES[name] for name in sets)])
    yield "|" + "---|" * (len(kinds) + len(sets))
    for kind in dict.fromkeys(tuple(row[each] for each in kinds) for row in rows):
        of_set = {row["set"]: row for row in rows if tuple(row[each] for each in kinds) == kind}
        cells = [[of_set[name][each] for each in cell] if name in of_set else [] for name in sets]
        yield _row([*kind, *(" of ".join(each) for each in cells)])


def _rows(kept: Results, table: str) -> Sequence[Cells]:
    return next((result.tables[table] for result in kept.values() if table in result.tables), [])


# The words of tables in README.zh.md.
_CHINESE = {
    "precision / recall": "精确率 / 召回率",
    "long Chinese news": "中文长新闻",
    "Chinese bulletins": "中文快讯",
    "English wire": "英文通稿",
    "Chinese pages": "中文网页",
    "English pages": "英文网页",
    "*labelled pairs*": "*标注的文章对*",
    "`verified` (default)": "`verified`（默认）",
    "`classic`: the longest sentence, TF-IDF": "`classic`：最长的句子，TF-IDF",
    "datasketch `MinHashLSH(256)`, checked": "datasketch `MinHashLSH(256)`，逐对核对",
    "`verified`: articles a second": "`verified`：每秒处理的文章",
    "rensa `RMinHash(128)`: articles a second": "rensa `RMinHash(128)`：每秒处理的文章",
    "articles a day": "每天的文章",
    "kept, days": "保留天数",
    "nodes": "节点",
    "articles/s at the peak": "高峰每秒的文章",
    "in memory: GB": "放在内存里：GB",
    "searched: shards": "在索引里查找：分片",
    "articles/s": "每秒处理的文章",
}
_LARGE = re.compile(r"([\d.]+) (million|billion)")


def _in_chinese(lines: Iterable[str]) -> Iterator[str]:
    """Translate the cells of a table."""

    def number(found: re.Match[str]) -> str:
        ten_thousands = float(found[1]) * (100 if found[2] == "million" else 100_000)
        return f"{ten_thousands / 10_000:g} 亿" if ten_thousands >= 10_000 else f"{ten_thousands:,g} 万"

    for line in lines:
        cells = [_CHINESE.get(cell, cell) for cell in line.split(" | ")]
        ends = [_CHINESE.get(cell.strip("| "), cell.strip("| ")) for cell in (cells[0], cells[-1])]
        cells[0], cells[-1] = f"| {ends[0]}", f"{ends[1]} |"
        yield line if line.startswith("|---") else _LARGE.sub(number, " | ".join(cells))


_BLOCKS: Mapping[str, Callable[[Results], Iterator[str]]] = {
    "quality": _quality,
    "in-short": _quality_summary,
    "in-short-zh": lambda kept: _in_chinese(_quality_summary(kept)),
    "sets": _sets,
    "as-they-come": _as_they_come,
    "excerpts": lambda kept: _by_set(_rows(kept, "excerpts"), ["part", "fed"], ["all"]),
    "excerpts-summary": lambda kept: _by_set(_rows(kept, "excerpts-summary"), ["what"], ["share", "of"]),
    "resemblance": lambda kept: _by_set(_rows(kept, "resemblance"), ["resemblance"], ["precision / recall"]),
    "cost": _cost,
    "capacity": lambda _: _capacity_in_full(),
    "capacity-in-short": lambda _: _capacity(_IN_MEMORY, _SEARCHED),
    "capacity-in-short-zh": lambda _: _in_chinese(_capacity(_IN_MEMORY, _SEARCHED)),
    "plan-in-short": lambda _: _plan_in_short(),
    "lookup-memory": lambda kept: lookup.table_of(kept, lookup.MEMORY),
    "lookup-elastic": lambda kept: lookup.table_of(kept, lookup.ELASTIC),
    "lookup-stores": lambda kept: lookup.sizes_of(kept, lookup.STORES),
    "postings": lambda kept: _table(_rows(kept, "postings")),
}
