"""The commands `cluster`, `fingerprint` and `weights`; help texts, threads and faults in the core."""

import bz2
import csv
import gzip
import itertools
import json
import lzma
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from backports import zstd
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.learn import LOOK_AHEAD_PAGES
from esdedup.ingest.records import FileRecord, read_records

from esdedup import Fields
from esdedup.cli.app import _PLACES
from esdedup.text.hashing import murmur64
from tests import sample
from tests.acceptance.conftest import LONG, Run, lines
from tests.support import excerpts
from tests.support.faults import PLACE, fail_at
from tests.support.names import Names
from tests.support.pages import pages


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "sample.jsonl"
    path.write_text("".join(json.dumps(article) + "\n" for article in sample.articles(500)))
    return path


def test_cluster_writes_a_root_for_each_article(run: Run, corpus: Path, tmp_path: Path) -> None:
    result = run("cluster", corpus)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert result.code == 0
    assert [row["id"] for row in rows] == [article["id"] for article in sample.articles(500)]
    columns = ("id", "root", "is_original", "part_of", "has_part", "fingerprint")
    assert {tuple(row) for row in rows} == {columns}
    ids = {row["fingerprint"] for row in rows}
    assert all(row["root"] in ids for row in rows)
    assert max(Counter(row["root"] for row in rows).values()) > 20
    again = run("cluster", "-", "--output", "roots.jsonl", stdin=gzip.compress(corpus.read_bytes()))
    assert again.code == 0
    assert (tmp_path / "roots.jsonl").read_text() == result.out


def test_one_article_of_each_story_is_kept(run: Run, corpus: Path, tmp_path: Path) -> None:
    rows, first, longest = (
        list(map(json.loads, run("cluster", corpus, *keep).out.splitlines()))
        for keep in ((), ("--keep", "first"), ("--keep", "longest"))
    )
    roots = {row["id"]: row["root"] for row in rows}
    originals = {row["id"] for row in rows if row["is_original"]}
    # The articles are written as they were read.
    articles = {article["id"]: article for article in sample.articles(500)}
    assert first == [article for article in articles.values() if article["id"] in originals]
    assert all(articles[each["id"]] == each for each in longest)
    assert [roots[each["id"]] for each in longest] == list(dict.fromkeys(roots.values()))
    text = next(sample.articles(1))["text"]
    texts = {"a": text, "b": "!!!", "c": f"{text} It is longer.", "d": f"{text}!", "e": "!!!"}
    given = "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()).encode()
    found = run("cluster", "-", "--keep", "longest", stdin=given).out.splitlines()
    assert [json.loads(each)["id"] for each in found] == ["c", "b", "e"]


def test_rows_are_written_as_csv_and_compressed(run: Run, corpus: Path, tmp_path: Path) -> None:
    rows = list(map(json.loads, run("cluster", corpus).out.splitlines()))
    for name, opened in (
        ("a.csv", open),
        ("a.csv.gz", gzip.open),
        ("a.csv.bz2", bz2.open),
        ("a.xz", lzma.open),
        ("a.jsonl.zst", zstd.open),
    ):
        assert run("cluster", corpus, "--output", name).code == 0
        with opened(tmp_path / name, "rt") as file:
            found = list(csv.DictReader(file)) if ".csv" in name else list(map(json.loads, file))
        assert [row["root"] for row in found] == [row["root"] for row in rows]
    assert run("cluster", corpus, "--output", "a.parquet").code == 0
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == rows
    kept = list(map(json.loads, run("cluster", corpus, "--keep", "longest").out.splitlines()))
    for name in ("kept.csv", "kept.parquet"):
        assert run("cluster", corpus, "--keep", "longest", "--output", name).code == 0
        again = list(read_records(tmp_path / name, on_bytes=lambda _: None))
        assert [each.fields for each in again if isinstance(each, FileRecord)] == kept


@pytest.mark.parametrize("name", ["a.tsv", "a.xlsx", "a.parquet.gz", "a.zip"])
def test_unknown_endings_name_those_that_are_known(run: Run, corpus: Path, tmp_path: Path, name: str) -> None:
    refused = run("cluster", corpus, "--output", name)
    known = "known endings are .jsonl, .ndjson, .json, .csv, .parquet; except after .parquet, .gz, .bz2, .xz"
    assert (refused.code, known in refused.err) == (2, True)
    assert not (tmp_path / name).exists()
    refused = run("weights", corpus, "--output", "weights.csv")
    assert (refused.code, "known endings are .json;" in refused.err) == (2, True)


def test_a_state_continues_earlier_clusters(run: Run, corpus: Path, tmp_path: Path) -> None:
    whole = run("cluster", corpus).out.splitlines()
    every = corpus.read_text().splitlines(keepends=True)
    for number, part in enumerate((every[:200], every[200:])):
        found = run("cluster", "-", "--state", "stories", stdin="".join(part).encode()).out.splitlines()
        assert found == (whole[200:] if number else whole[:200])
    other = run("cluster", corpus, "--state", "stories", "--profile", "classic")
    assert (other.code, other.out) == (3, "")
    assert "was made with the profile 'verified-5', not 'classic-4'" in other.err
    timed = run("cluster", corpus, "--state", "stories", "--time-field", "published_at")
    assert (timed.code, len(timed.out.splitlines())) == (0, len(whole))
    untimed = run("cluster", corpus, "--state", "stories")
    assert (untimed.code, untimed.out) == (3, "")
    assert "has times: use --time-field" in untimed.err


@pytest.mark.parametrize(
    ("excerpt_first", "links"), [(False, ("excerpt", "part_of")), (True, ("story", "has_part"))]
)
def test_the_later_of_story_and_excerpt_is_linked(
    run: Run, excerpt_first: bool, links: tuple[str, str]
) -> None:
    story, _, excerpt, *_ = excerpts.articles()
    fed = [excerpt, story] if excerpt_first else [story, excerpt]
    text = "".join(json.dumps({"id": each["_id"], "text": each["text"]}) + "\n" for each in fed)
    first, later = map(json.loads, run("cluster", "-", stdin=text.encode()).out.splitlines())
    assert (later["id"], first["part_of"], first["has_part"]) == (links[0], None, None)
    assert {name: later[name] for name in ("part_of", "has_part")} == {
        "part_of": None,
        "has_part": None,
        links[1]: first["root"],
    }


def test_cluster_reports_rejected_articles_and_null_roots(run: Run) -> None:
    lines = (
        b'{"id": "1", "text": ""}\n{"id": "2"}\nnonsense\n{"id": "3", "text": "a text that is long enough"}\n'
    )
    result = run("cluster", "-", stdin=lines)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert result.code == 1
    others = dict.fromkeys(("root", "part_of", "has_part", "fingerprint"))
    assert rows[0] == {"id": "1", "is_original": True, **others}
    assert rows[1]["root"] == rows[1]["fingerprint"]
    assert "standard input:2 (id '2'): has no field 'text'" in result.err
    assert "standard input:3: is not JSON" in result.err
    assert "4 read, 2 clustered, 2 failed, 1 roots, 1 without a fingerprint" in result.err


def test_edited_reprints_join_a_cluster_only_within_its_retention(run: Run) -> None:
    story = next(sample.articles(1))["text"]
    texts = [(story, "2026-01-01"), (f"{story} Corrected.", "2026-01-03"), (f"{story} Again.", "2026-03-01")]
    lines = "".join(
        json.dumps({"id": str(number), "text": text, "at": at}) + "\n"
        for number, (text, at) in enumerate(texts)
    )

    def errors_with(*options: object) -> str:
        return run("cluster", "-", *options, stdin=lines.encode()).err

    assert "3 clustered, 0 failed, 1 roots" in errors_with()
    assert "3 clustered, 0 failed, 2 roots" in errors_with("--time-field", "at")
    assert "3 clustered, 0 failed, 1 roots" in errors_with("--time-field", "at", "--retention-days", 60)
    assert "3 clustered, 0 failed, 3 roots" in errors_with("--time-field", "at", "--retention-days", 1)
    shown = run("cluster", "--help").out
    assert (
        "for how many days after its last article a cluster accepts more articles. Default: 30."
        in " ".join(shown.split())
    )


def test_rss_dates_are_parsed_and_odd_dates_counted(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    def errors_of(*dates: object) -> str:
        articles = [{"id": str(n), "text": "the very same text", "at": date} for n, date in enumerate(dates)]
        lines = "".join(json.dumps(article) + "\n" for article in articles)
        return run("cluster", "-", "--time-field", "at", stdin=lines.encode()).err

    errors = errors_of("Thu, 01 Jan 2026 08:00:00 GMT", "Sun, 01 Mar 2026 08:00:00 +0100")
    # The first cluster had expired when the second article arrived, so that article is a root, too.
    assert "2 clustered, 0 failed, 2 roots\n" in errors
    errors = errors_of("01.01.2026", None, 1_767_225_600, "2026-01-01")
    assert "4 clustered, 0 failed, 1 roots, 3 undated\n" in errors
    (logged,) = caplog.messages
    assert logged.startswith(
        "standard input:1 (id '0'): its date in 'at', of the form 00.00.0000, cannot be read"
    )


def test_fingerprint_prints_the_representatives_of_a_text(run: Run) -> None:
    text = b"Short one. The ferry line has ordered four electric ships for its crossing."
    result = run("fingerprint", "--json", stdin=text)
    shown = result.json
    sentences = ["short one", "the ferry line has ordered four electric ships for its crossing"]
    assert [each["passage"] for each in shown["representatives"]] == [*sentences, None]
    assert len(shown["fingerprint"]) == 32
    # There are two keys for each sentence, and one for the minhash.
    assert len(shown["bands"]) == 5
    shown = run("fingerprint", "--json", "--profile", "classic", stdin=text).json
    assert [each["passage"] for each in shown["representatives"]] == sentences[1:]
    assert len(shown["fingerprint"]) == 16
    assert (len(shown["bands"]), len(shown["asked_bands"])) == (2, 66)
    assert set(shown["bands"]) < set(shown["asked_bands"])
    assert {feature["word"] for feature in shown["features"]} >= {"ferry", "electric"}
    people = run("fingerprint", "--profile", "classic", stdin=text)
    assert people.code == 0
    assert shown["fingerprint"] in people.out
    assert shown["bands"][0] in people.out
    assert "ferry" in people.out


def test_fingerprint_prints_the_text_verbatim(run: Run) -> None:
    text = "if a<b and c>d, [bold]this[/bold] is a :cat: or an array[0] and ends so \\"
    for profile in ("verified", "classic"):
        assert text in run("fingerprint", "--profile", profile, stdin=text.encode()).out


def test_fingerprint_shows_each_step_of_a_simhash(run: Run) -> None:
    options = ("fingerprint", "--profile", "classic", "--word-weights", "CSDN=4 博客=5 csdn=4", "--steps")
    shown = run(*options, "--json", stdin=b"not read").json
    assert {each["word"]: each["weight"] for each in shown["features"]} == {"csdn": 8, "博客": 5}
    hashes = shown["hashes"]
    assert hashes["csdn"] == f"{murmur64(b'csdn'):064b}"
    added = {
        word: [weight if bit == "1" else -weight for bit in hashes[word]]
        for word, weight in (("csdn", 8), ("博客", 5))
    }
    assert shown["sums"] == [one + other for one, other in zip(*added.values(), strict=True)]
    signs = "".join("1" if each > 0 else "0" for each in shown["sums"])
    people = " ".join(run(*options, stdin=b"").out.split())
    for text in (hashes["博客"], " ".join(map(str, added["csdn"])), f"signs {signs}"):
        assert text in people
    assert f"{int(signs, 2):016x}" == shown["fingerprint"]
    crc32 = run(*options, "--json", "--token-hash", "crc32", stdin=b"").json
    assert crc32["fingerprint"] != shown["fingerprint"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps"], "--steps and --word-weights apply to the profiles classic and keywords"),
        (["--word-weights", "a=1"], "--steps and --word-weights apply to the profiles classic"),
        (["--profile", "classic", "--word-weights", "ferry"], "'ferry' is not a word with its weight"),
        (["--profile", "classic", "--word-weights", "=4"], "'=4' is not a word with its weight"),
        (["--profile", "classic", "--word-weights", " "], "has no word with a weight above 0"),
        (["--profile", "classic", "--word-weights", "a=0"], "has no word with a weight above 0"),
        (["--profile", "classic", "--word-weights", "a=1 a=2"], "'a' occurs twice, with different weights"),
        (["--profile", "classic", "--word-weights", "a=1,b=2"], "'a=1,b=2' is not a word with"),
        (["--profile", "classic", "--word-weights", "a=nan"], "'a=nan' is not a word with"),
        (["--profile", "classic", "--word-weights", "a=1", "--weights", "tf"], "names all words"),
    ],
)
def test_impossible_steps_and_word_weights_are_refused(run: Run, options: list[str], message: str) -> None:
    refused = run("fingerprint", *options, stdin=b"")
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err


@pytest.mark.parametrize(
    ("typed", "meant"), [(["lst"], "'list'"), (["node", "strat"], "'start'"), (["finger"], "'fingerprint'")]
)
def test_the_command_that_was_meant_is_suggested(run: Run, typed: list[str], meant: str) -> None:
    refused = run(*typed)
    assert (refused.code, refused.out) == (2, "")
    assert f"No such command {typed[-1]!r}. Did you mean {meant}" in refused.err


def test_shells_complete_commands_and_options(run: Run) -> None:
    for typed, offered in (("li", "list"), ("list --so", "--sort"), ("node sta", "status")):
        words = ["esdedup", *typed.split()]
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        assert offered in run(_ESDEDUP_COMPLETE="complete_bash", **asked).out.splitlines()
    assert "complete -o default -F _esdedup_completion esdedup" in run("--show-completion", "bash").out


@pytest.mark.parametrize("text", [b"", b"!!!", "😀".encode() * 9])
def test_texts_without_letters_have_no_fingerprint(run: Run, text: bytes) -> None:
    assert run("fingerprint", "--json", stdin=text).json["fingerprint"] is None
    assert "none" in run("fingerprint", stdin=text).out


def test_invalid_utf_8_has_no_fingerprint(run: Run) -> None:
    refused = run("fingerprint", "--json", stdin=b"ferr\xff")
    assert (refused.code, refused.out) == (1, "")
    assert "standard input: is not UTF-8 (byte 5)" in refused.err


def test_custom_weights_change_features_and_profile(run: Run, tmp_path: Path) -> None:
    (tmp_path / "weights.json").write_text('{"ferry": 3, "ships": 2}')
    options = ("--json", "--profile", "classic", "--weights", "weights.json")
    shown = run("fingerprint", *options, stdin=b"the ferry has ships").json
    assert [(each["word"], each["weight"]) for each in shown["features"]] == [("ferry", 3.0), ("ships", 2.0)]
    assert set(shown["sums"]) <= {-5, -1, 1, 5}
    signs = "".join("1" if each > 0 else "0" for each in shown["sums"])
    assert f"{int(signs, 2):016x}" == shown["fingerprint"]
    assert shown["profile"] != "classic-4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cluster", "none.jsonl"], "cannot read none.jsonl"),
        (["cluster", "-", "--profile", "nonsense"], "no profile 'nonsense'"),
        (["cluster", "-", "--keywords", "5"], "--keywords applies to"),
        (["cluster", "-", "--profile", "keywords", "--keywords", "0"], "Invalid value for '--keywords'"),
        (["similar", "--index", "news", "--id", "1", "--profile", "classic"], "require --text"),
        (["similar", "--index", "news", "--id", "1", "--forest", "other"], "require --text"),
        (["cluster", "-", "--weights", "tf"], "--weights applies to"),
        (["cluster", "-", "--retention-days", "2"], "--retention-days requires --time-field"),
        (["cluster", "-", "--profile", "classic", "--weights", "none.json"], "neither tf-idf nor tf"),
        (["cluster", "-", "--output", "no/such/dir"], "cannot write"),
        (["cluster", "-", "--state", "-"], "--state names a file"),
        (["index", "-", "--index", "news", "--refused", "-"], "--refused names a file"),
        (["cluster"], "FILE"),
        (["nonsense"], "nonsense"),
        (["list"], "--index"),
    ],
)
def test_usage_errors_exit_with_2_and_explain_why(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = run(*arguments, stdin=b"")
    assert result.code == 2
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


_COMMANDS = (
    "setup index learn adopt remove migrate merge split move name edits list similar show serve explain "
    "stats expire verify rebuild cluster fingerprint plan weights demo node sidecar"
)
COMMANDS = _COMMANDS.split()


def test_help_lists_every_command(run: Run) -> None:
    top = run("--help")
    assert top.code == 0
    described = re.findall(r"^  (\w+)  ", top.out.partition("Commands:")[2], re.MULTILINE)
    assert sorted(described) == sorted(COMMANDS)


@pytest.mark.parametrize(
    "command", [*((name,) for name in COMMANDS), *(("node", name) for name in ("start", "stop", "status"))]
)
def test_help_of_every_command_has_an_example(run: Run, command: tuple[str, ...]) -> None:
    shown = run(*command, "--help")
    assert shown.code == 0
    text = " ".join(shown.out.split())
    assert f"Usage: esdedup {' '.join(command)}" in text
    if command != ("node",):
        assert re.search(rf"Example: .*\besdedup {' '.join(command)}\b", text)
    # Every option has a description.
    for line, following in itertools.pairwise(shown.out.splitlines()):
        if line.startswith("  --"):
            assert "  " in line.strip() or following.startswith(10 * " "), line


def test_each_command_module_can_be_imported_alone() -> None:
    modules = sorted(set(_PLACES.values()))
    program = """if True:
        import importlib, os, sys
        # Import the slow third-party packages only once.
        import elasticsearch, numpy, pydantic.main, typer.rich_utils
        import esdedup.cli.app
        for module in sys.argv[1:]:
            if os.fork() == 0:
                importlib.import_module(f"esdedup.cli.{module}")
                print(module, flush=True)
                os._exit(0)
            os.wait()
        """
    shown = subprocess.run(
        [sys.executable, "-c", program, *modules], check=True, capture_output=True, text=True
    )
    assert (shown.stdout.split(), shown.stderr) == (modules, "")


def test_each_command_on_articles_accepts_field_names(run: Run) -> None:
    names = {f"--{role}-field" for role in Fields().names}
    others = {"expire", "cluster", "fingerprint", "plan", "weights", "demo", "node"}
    # `migrate` and `remove` take the field names from the indices.
    for command in set(COMMANDS) - others - {"migrate", "remove"}:
        assert names <= set(run(command, "--help").out.split())


def test_help_states_how_many_pages_learning_reads_ahead(run: Run) -> None:
    for command in ("index", "cluster"):
        shown = " ".join(run(command, "--help").out.split())
        assert f"Read the articles twice, {LOOK_AHEAD_PAGES:,} at a time" in shown


def test_a_closed_pipe_ends_output_without_a_traceback(corpus: Path) -> None:
    esdedup = Path(sys.executable).parent / "esdedup"
    shell = f"'{esdedup}' cluster '{corpus}' | head -1"
    done = subprocess.run(["bash", "-c", shell], check=True, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_the_input_file_is_never_overwritten(run: Run, corpus: Path, tmp_path: Path) -> None:
    before = corpus.read_bytes()
    result = run("cluster", corpus, "--output", corpus)
    assert (result.code, "is also an input file" in result.err) == (2, True)
    state = tmp_path / "state"
    result = run("cluster", corpus, "--state", state, "--output", state)
    assert (result.code, "is also an input file" in result.err, state.exists()) == (2, True, False)
    assert run("cluster", corpus, "--output", "-").out == run("cluster", corpus).out != ""
    assert corpus.read_bytes() == before
    assert run("cluster", corpus, corpus, "--output", "roots.jsonl").code == 1
    rows = (tmp_path / "roots.jsonl").read_text().splitlines()
    assert len(rows) == len({json.loads(row)["id"] for row in rows}) == before.count(b"\n")
    assert {each.name for each in tmp_path.iterdir()} == {"sample.jsonl", "roots.jsonl"}


def test_full_disks_and_closed_input_are_reported(run_process: Run, corpus: Path) -> None:
    result = run_process("cluster", corpus, "--output", "/dev/full")
    assert (result.code, "No space left" in result.err) == (3, True)
    esdedup = Path(sys.executable).parent / "esdedup"
    shell = f"'{esdedup}' cluster '{corpus}' > /dev/full"
    done = subprocess.run(["bash", "-c", shell], check=False, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    closed = subprocess.run(
        ["bash", "-c", f"'{esdedup}' fingerprint <&-"], check=False, capture_output=True, text=True
    )
    assert (closed.returncode, "standard input is closed" in closed.stderr) == (2, True)


ARTICLES = lines(
    {"id": "1", "text": LONG},
    {"id": "2", "text": f"{LONG} amid grumbleweed"},
    {"id": "3", "text": f"Another one, {LONG}"},
)
REPORTED = f"standard input:2 (id '2'): its text triggered a bug in esdedup; please report it: {PLACE}"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(monkeypatch, "grumbleweed", when_parsed=True)


@pytest.mark.usefixtures("failing")
def test_cluster_names_articles_on_which_the_core_fails(run: Run) -> None:
    done = run("cluster", "-", stdin=ARTICLES)
    assert (done.code, len(done.out.splitlines()), REPORTED in done.err) == (1, 2, True)


@pytest.mark.usefixtures("failing")
def test_index_names_articles_on_which_the_core_fails(online: Run, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    online("setup", index)
    options = ("--index", index, "--forest", forest, "--json")
    done = online("index", "-", *options, stdin=ARTICLES)
    assert (done.code, done.json["written"], done.json["failed"]) == (1, 2, 1)
    assert REPORTED in done.err


# Boilerplate is learned while these pages are processed, so the order of processing matters.
PAGES = lines(*pages(300))


def test_threads_do_not_change_clusters(run: Run) -> None:
    alone = run("cluster", "-", stdin=PAGES)
    assert run("cluster", "-", "--workers", 4, stdin=PAGES).out == alone.out
    assert len(alone.out.splitlines()) == 300
    assert run("cluster", "-", "--workers", 0, stdin=PAGES).code == 2


def test_threads_do_not_change_indexed_articles(online: Run, es: Elasticsearch, index_name: Names) -> None:
    # Both runs use the same index name, because it is part of the signatures.
    found, index = [], index_name("articles")
    for workers in (1, 4):
        forest = index_name("forest")
        online("setup", index)
        how = ("--index", index, "--forest", forest, "--workers", workers, "--json")
        assert json.loads(online("index", "-", *how, stdin=PAGES).out)["written"] == 300
        es.indices.refresh(index=index)
        hits = sorted(helpers.scan(es, index=index), key=lambda hit: hit["_id"])
        found.append([{**hit["_source"]["dedup"], "seen": 0, "published": 0} for hit in hits])
        es.indices.delete(index=index)
    assert found[0] == found[1]


WEIGHED = (
    '{"id": 1, "text": "the ferry has ships"}\n'
    '{"id": 2, "text": "the ferry of the north"}\n'
    '{"id": 3, "text": "the north"}\n'
    '{"id": 4, "text": "<b>NORTH</b> and south"}\n'
)


def test_fingerprint_uses_the_weights_computed_from_articles(run: Run, tmp_path: Path) -> None:
    made = run("weights", "-", "--output", "weights.json", stdin=WEIGHED.encode())
    assert (made.code, made.out) == (0, "")
    assert "4 read, 4 counted, 0 failed, 3 words, median weight 0.510826" in made.err
    table = json.loads((tmp_path / "weights.json").read_text())
    # Two weights are ln(5/3), and one is ln(5/2).
    assert table == {
        "default": 0.510826,
        "articles": 4,
        "words": {"ferry": 0.916291, "north": 0.510826, "the": 0.510826},
    }
    options = ("--json", "--profile", "keywords", "--weights", "weights.json")
    shown = run("fingerprint", *options, stdin=b"the ferry to somewhere")
    assert {each["word"]: each["weight"] for each in shown.json["features"]} == {
        "ferry": 0.916291,
        "the": 0.510826,
        "to": 0.510826,
        "somewhere": 0.510826,
    }
    assert shown.err == ""


def test_weights_counts_and_reports_bad_articles(run: Run) -> None:
    lines = WEIGHED + 'nonsense\n{"id": 5}\n{"id": 1, "text": "again"}\n'
    made = run("weights", "-", "--min-articles", "1", stdin=lines.encode())
    assert made.code == 1
    assert json.loads(made.out)["articles"] == 4
    assert "7 read, 4 counted, 3 failed, 8 words" in made.err
    assert "standard input:5: is not JSON" in made.err
    assert "standard input:6 (id '5'): has no field 'text'" in made.err
    assert "standard input:7: repeats the id '1'" in made.err


def test_a_dictionary_keeps_weighted_words_whole(run: Run, tmp_path: Path) -> None:
    (tmp_path / "weights.json").write_text('{"long-term": 3, "plan": 1}')
    (tmp_path / "words.txt").write_text("long-term 10 n\n")
    (tmp_path / "stop.txt").write_text("plan\n")
    options = ("fingerprint", "--json", "--profile", "classic", "--weights", "weights.json")
    shown = run(*options, stdin=b"a Long-Term plan")
    assert "1 of 2 words with a weight have no effect" in shown.err
    assert "'long-term' (as long | - | term); add them to a dictionary" in shown.err
    assert [each["word"] for each in shown.json["features"]] == ["plan"]
    helped = run(*options, "--dictionary", "words.txt", stdin=b"a Long-Term plan")
    assert helped.err == ""
    assert [each["word"] for each in helped.json["features"]] == ["long-term", "plan"]
    stopped = run(
        *options, "--dictionary", "words.txt", "--stop-words", "stop.txt", stdin=b"a Long-Term plan"
    )
    assert [each["word"] for each in stopped.json["features"]] == ["long-term"]
    assert len({each.json["profile"] for each in (shown, helped, stopped)}) == 3


def test_segmenter_and_token_hash_change_clusters(run: Run, tmp_path: Path) -> None:
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sample.articles(120)))
    made = run("weights", "news.jsonl", "--segmenter", "2-grams", "--output", "weights.json")
    assert made.code == 0
    options = ["--profile", "classic", "--segmenter", "2-grams", "--token-hash", "times33"]
    options += ["--weights", "weights.json"]
    alone = run("cluster", "news.jsonl", *options)
    assert alone.code == 0
    assert run("cluster", "news.jsonl", "--workers", "2", *options).out == alone.out
    assert run("cluster", "news.jsonl", "--profile", "classic").out != alone.out
    assert "have no effect" not in alone.err


def test_a_smaller_maximum_distance_gives_more_clusters(run: Run, tmp_path: Path) -> None:
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sample.articles(120)))
    roots = []
    for bits in "0123":
        made = run("cluster", "news.jsonl", "--profile", "classic", "--max-distance-bits", bits)
        roots.append({json.loads(line)["root"] for line in made.out.splitlines()})
    assert len(roots[0]) > len(roots[3])
    assert sorted(map(len, roots), reverse=True) == [*map(len, roots)]
    assert made.out == run("cluster", "news.jsonl", "--profile", "classic").out


def test_a_higher_resemblance_threshold_gives_more_clusters(run: Run, tmp_path: Path) -> None:
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sample.articles(120)))
    roots = []
    for resemblance in ("0.4", "0.66", "0.95"):
        made = run("cluster", "news.jsonl", "--resemblance", resemblance)
        roots.append({json.loads(line)["root"] for line in made.out.splitlines()})
    assert len(roots[0]) < len(roots[1]) < len(roots[2])
    (tmp_path / "text").write_text("The ferry line has ordered four electric ships for the islands.")
    labels = [
        run("fingerprint", *how, "--json", stdin=(tmp_path / "text").read_bytes()).json["profile"]
        for how in ((), ("--resemblance", "0.66"), ("--resemblance", "0.95"))
    ]
    assert labels[:2] == ["verified-5"] * 2
    assert labels[2].startswith("verified-5-")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["weights", "none.jsonl"], "cannot read none.jsonl"),
        (["weights", "-"], "no word occurs in 2 or more of the 1 articles"),
        (["weights", "-", "--min-articles", "0"], "Invalid value for '--min-articles'"),
        (["weights", "-", "--segmenter", "spaces"], "no segmenter 'spaces'"),
        (["weights", "-", "--dictionary", "none"], "cannot read none"),
        (["weights", "-", "--segmenter", "words", "--dictionary", "news"], "applies to the segmenter jieba"),
        (["weights", "-", "--min-articles", "1", "--output", "no/such/dir"], "cannot write"),
        (["weights"], "FILE"),
        (
            ["cluster", "-", "--segmenter", "words"],
            "--segmenter applies to the profiles classic and keywords",
        ),
        (["cluster", "-", "--stop-words", "x"], "--stop-words applies to"),
        (["cluster", "-", "--profile", "classic", "--token-hash", "md5"], "no hash 'md5'"),
        (["cluster", "-", "--max-distance-bits", "4"], "Invalid value for '--max-distance-bits'"),
        (
            ["cluster", "-", "--resemblance", "0.39"],
            "'--resemblance': Input should be greater than or equal to",
        ),
        (["cluster", "-", "--resemblance", "0.96"], "'--resemblance': Input should be less than or equal to"),
        (["cluster", "-", "--resemblance", "nan"], "Invalid value for '--resemblance'"),
        (["cluster", "-", "--profile", "classic", "--resemblance", "0.7"], "applies to the profile verified"),
    ],
)
def test_usage_errors_of_word_options_exit_with_2(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments, stdin=b'{"id": 1, "text": "one text of some words"}')
    assert result.code == 2
    assert message in result.err
