"""Runs every code block in README and the documentation, except the blocks that `NOT_RUN` lists."""

import ast
import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from esdedup import node
from esdedup.sidecar.auth import TOKEN_HEADER
from tests import sample
from tests.support.code_blocks import DOCUMENTS, ROOT, TRANSLATED, Block, Given, blocks_of, following, prints
from tests.support.ready_command import ready
from tests.support.requests_shown import IN_DOCS

BLOCKS = {path: blocks_of(path) for path in DOCUMENTS}
# tests/foreign/test_haproxy.py follows this guide, which starts four nodes.
ELSEWHERE = ROOT / "docs/guides/data-nodes.md"
INSTALLED = "installs packages, as `make env` in .ci/run and tests/nightly/extras.py do"
RUN = "tests/foreign/test_embedded.py runs the same demo, and .ci/run runs `make test`"
# The reason why a block is not run, and what checks it instead, by document and first line.
NOT_RUN = {
    (
        "docs/fingerprints.md",
        '{"fingerprint": "554bf73b3635c2e9c7a06e0943e7bf48", "signature": "nCRw1UgRLwKqVRuj…", '
        '"bands": ["02bN58", "…"],',
    ): "shows the values added to an article; tests/unit/test_interface.py computes them",
    (
        "README.md",
        "make demo       # 3,000 sample articles, the list, and pages for your browser",
    ): RUN,
    (
        "README.zh.md",
        "make demo       # 导入 3,000 篇示例文章，显示列表，并给出可用浏览器打开的页面地址",
    ): RUN,
    **{(name, "make env"): INSTALLED for name in ("docs/tour.md", "docs/tour.zh.md")},
    **{
        (
            "clients/typescript/README.md",
            line,
        ): "tests/foreign/test_typescript_client.py builds and runs it"
        for line in (
            "npm ci && npm run build        # dist/index.js, and its types",
            'import { Client, Problem } from "esdedup-client";',
        )
    },
    ("docs/guides/kafka.md", "pip install esdedup kafka-python"): INSTALLED,
    (
        "docs/guides/fastapi.md",
        "uvicorn app:app --port 8000",
    ): "serves until it is stopped; tests/acceptance/test_mounted.py serves the same files",
    (
        "docs/guides/backup.md",
        "curl -X PUT 'localhost:9200/_snapshot/backup/monday?wait_for_completion=true' "
        "-H 'Content-Type: application/json' \\",
    ): "needs a repository for snapshots, which the embedded node lacks",
    (
        "docs/http.md",
        '{"type": "urn:esdedup:problem:article_not_found", "title": "Article not found", "status": 404,',
    ): "shows a response; tests/unit/test_web.py checks the format of errors",
    (
        "docs/guides/editors.md",
        '{"kind": "merge", "ids": ["42"], "to": "17", "why": "same press conference"}',
    ): "shows a body; tests/integration/test_editing_pages.py sends such bodies",
    (
        "docs/guides/editors.zh.md",
        '{"kind": "merge", "ids": ["42"], "to": "17", "why": "same press conference"}',
    ): "shows a body; tests/integration/test_editing_pages.py sends such bodies",
    (
        "docs/kibana.md",
        "curl -X POST \"$KIBANA_URL/api/saved_objects/_import\" -H 'kbn-xsrf: true' "
        "--form file=@mappings/kibana.ndjson",
    ): "needs Kibana; tests/integration/test_docs.py checks the file that Kibana imports",
    (
        "docs/guides/two-sidecars.md",
        "esdedup sidecar --url https://elasticsearch:9243 --ca-certs ca.crt",
    ): "needs TLS; tests/foreign/test_haproxy.py runs HAProxy with it",
    (
        "docs/sidecar.md",
        "esdedup sidecar --url https://elasticsearch:9200 --ca-certs ca.crt --token-file token",
    ): "needs Elasticsearch with TLS; tests/unit/test_sidecar_settings.py reads these options",
    ("docs/sidecar.md", "[sinks.news]"): "needs Vector; a test below reads it as TOML",
    (
        "docs/sidecar.md",
        "filter {",
    ): "needs Logstash; tests/unit/test_sidecar_enrich_api.py sends the same requests",
    (
        "docs/sidecar.md",
        'curl -X PUT "$ELASTICSEARCH_URL/_security/role/esdedup-sidecar" '
        "-H 'Content-Type: application/json' \\",
    ): "needs security features; tests/integration/test_sidecar_entry_points.py checks the roles",
}
FED = """
esdedup setup news
esdedup sidecar
curl -s 'localhost:9500/news/_bulk?refresh' -H 'Content-Type: application/json' --data-binary @articles.ndjson
"""
TEXT = "The ferry to the islands runs again from Monday, the harbour council said on Friday."
ARTICLES = "".join(
    f"{json.dumps(line)}\n"
    for number in (17, 18)
    for line in ({"index": {"_id": f"wire-{number}"}}, {"title": "Ferry", "text": f"{TEXT} {number}"})
)
# A stand-in for Logstash. It reads the settings of Logstash's output from the guide's file, and writes two
# articles.
LOGSTASH = """
import pathlib, re
from elasticsearch import Elasticsearch, helpers

given = dict(re.findall(r"(\\w+) => (.+)", pathlib.Path("news.conf").read_text()))
unquoted = {name: re.findall('"([^"]*)"', value) for name, value in given.items()}
header, token = unquoted["custom_headers"]
article = {"message": "%s", "@timestamp": "2026-11-22T08:00:00.000Z"}
with Elasticsearch(unquoted["hosts"], headers={header: token}) as client:
    (index,) = unquoted["index"]
    actions = [{"_index": index, "_id": number, "_source": article} for number in "12"]
    helpers.bulk(client, actions, refresh=True)
    hits = client.search(index=index)["hits"]["hits"]
print(header, len(hits), len({hit["_source"]["dedup"]["root"] for hit in hits}))
"""
# Two stories in one version each, and one story in two versions.
YARD = "It had been in the yard since March, where both of its engines were replaced."
EDITED = "".join(
    f"{json.dumps({'id': number, 'text': text})}\n"
    for number, text in (
        ("17", "Three goats that had been missing were found on the roof of the village school."),
        ("42", "The old lighthouse on the cape is a museum from May, its keeper told us at last."),
        ("51", f"The ferry to the outer islands runs again from Monday, the council said on Friday. {YARD}"),
        ("52", f"From Monday the ferry to the outer islands runs again, the council said. {YARD}"),
    )
)
DATED = json.dumps({"id": "1", "text": TEXT, "language": "en", "published_at": "2026-11-21T08:00:00Z"}) + "\n"
# The files, commands and Python code that a document presupposes.
GIVEN: dict[str, Given] = {
    "docs/sidecar.md": Given(
        {"articles.ndjson": ARTICLES},
        FED,
        "from elasticsearch import Elasticsearch, helpers\nfrom esdedup import Dedup\n"
        "es, token = Elasticsearch('http://localhost:9200'), 'a token'\n"
        "actions = [{'_index': 'news', '_id': '1', '_source': {'text': 'The ferry to the islands'}}]",
    ),
    "docs/http.md": Given({"articles.ndjson": ARTICLES}, FED),
    "docs/commands.md": Given({"articles.jsonl": DATED}, ""),
    **{f"docs/guides/editors{of}.md": Given({"articles.jsonl": EDITED}, "") for of in ("", ".zh")},
    "docs/pages.md": Given({"articles.ndjson": ARTICLES}, FED),
    "docs/queries.md": Given({"articles.ndjson": ARTICLES}, f"{FED}cp -r '{ROOT}/mappings' ."),
    "docs/fingerprints.md": Given(
        {
            "words.txt": "cloud\n",
            "article.txt": TEXT,
            "news.jsonl": "".join(f"{json.dumps({'id': n, 'text': f'{TEXT} {n}'})}\n" for n in "123"),
        },
        "esdedup setup news",
    ),
}


@pytest.fixture(scope="module")
def server(data_directory: Path) -> Iterator[str]:
    """A node for the documents alone, because all of its indices are deleted between documents."""
    yield node.start(data_directory, port=0, lifetime_s=900, with_parent=True).url
    node.stop(data_directory)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A script that replaces `esdedup` and `python`, without their start-up time."""
    with ready(tmp_path_factory.mktemp("ready")) as script:
        yield script


@pytest.fixture
def empty(server: str) -> str:
    """The node of the documents, after all indices and templates are deleted."""
    with Elasticsearch(server) as es:
        for index in es.indices.get(index="*", expand_wildcards="all"):
            es.indices.delete(index=index)
        es.options(ignore_status=404).indices.delete_index_template(name="*")
    return server


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path != ELSEWHERE and any(block.is_run for block in BLOCKS[path])],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_code_of_a_document_runs_in_order(path: Path, empty: str, command: str, tmp_path: Path) -> None:
    with following(tmp_path, empty, command) as follower:
        if str(path.relative_to(ROOT)) in GIVEN:
            follower.prepare(GIVEN[str(path.relative_to(ROOT))])
        printed = ""
        for block, after in itertools.zip_longest(BLOCKS[path], BLOCKS[path][1:]):
            if block.is_output:
                assert prints(block.text, printed), f"{path}, line {block.line}: {printed}"
            elif block.is_run and block.place not in NOT_RUN:
                printed = follower.follow(block, may_fail=after is not None and after.is_output)
        if path.name == "logstash.md":
            program = Block("stand-in for Logstash", 0, "python", None, False, LOGSTASH % TEXT)
            assert follower.follow(program) == f"{TOKEN_HEADER} 2 1\n"


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: path.name)
def test_a_translated_guide_has_the_code_of_its_original(path: Path) -> None:
    code = [(each.language, each.title, each.is_output, each.text) for each in blocks_of(path)]
    assert code == [
        (each.language, each.title, each.is_output, each.text) for each in blocks_of(TRANSLATED[path])
    ]


def test_every_guide_is_translated() -> None:
    guides = {path.name for path in (ROOT / "docs/guides").glob("*.md") if not path.name.endswith(".zh.md")}
    assert guides == {path.name for path in TRANSLATED.values()} | {"editors.md"}


def test_every_block_that_is_not_run_is_listed() -> None:
    others = {
        block.place
        for blocks in BLOCKS.values()
        for block in blocks
        # `test_docs` sends the requests in docs/queries.md, and checks that each has a name.
        if not block.is_run and (block.document, block.language) != ("docs/queries.md", "json")
    }
    # The additional block is the recipe that tests/integration/test_both_ways.py checks.
    assert sum(block.language == "json" for block in BLOCKS[ROOT / "docs/queries.md"]) == len(IN_DOCS) + 1
    places = {block.place for blocks in BLOCKS.values() for block in blocks}
    assert others - NOT_RUN.keys() == set()
    assert NOT_RUN.keys() - places == set()


def test_the_vector_settings_are_valid_toml() -> None:
    (block,) = (each for each in BLOCKS[ROOT / "docs/sidecar.md"] if each.language == "toml")
    sink = tomllib.loads(block.text)["sinks"]["news"]
    assert (sink["type"], sink["mode"], sink["bulk"]) == ("elasticsearch", "bulk", {"index": "news"})
    assert "X-Esdedup-Token" in sink["request"]["headers"]


def test_the_examples_run_one_after_the_other(empty: str, command: str, tmp_path: Path) -> None:
    articles = list(sample.articles(60))
    draft = next(each["text"] for each in articles if each["id"] == "sample-0014")
    with following(tmp_path, empty, command) as follower:
        given = {
            "articles.jsonl": "".join(f"{json.dumps(each)}\n" for each in articles),
            "draft.txt": f"{draft} And that is all.",
        }
        follower.prepare(Given(given, f"cp '{ROOT}'/examples/*.* ."))

        def run(text: str) -> str:
            return follower.follow(Block("examples", 0, "bash", None, False, text))

        counts = ast.literal_eval(run("python feed.py < articles.jsonl"))
        assert sum(counts.values()) == len(articles)
        stories = counts["new_root"]
        assert run("python front_page.py").startswith(f"{stories} stories, {len(articles)} articles\n")
        assert " 0 stories" in f" {run('python front_page.py nothing-has-this-word')}"
        spread = run("python newly_spread.py 4 seen.txt")
        assert spread.count(" was first)") >= 1
        assert run("python newly_spread.py 4 seen.txt") == ""
        found = run("python before_publishing.py < draft.txt")
        assert "% alike" in found
        assert not found.startswith("0 ")
        run("esdedup sidecar")
        to_sidecar = "ESDEDUP_SIDECAR_URL=http://localhost:9500"
        assert run(f"{to_sidecar} python feed_sidecar.py < articles.jsonl") == "60 indexed, 0 failed\n"
        sent = run(f"{to_sidecar} sh send.sh 'sent/1 ü' 'A \"quoted\" title' < draft.txt")
        assert '"result":"created"' in sent


def test_every_example_is_described_and_run() -> None:
    folder = ROOT / "examples"
    programs = {path.name for path in folder.iterdir() if path.suffix in {".py", ".sh"}}
    assert programs == set(re.findall(r"\]\((\w+\.\w+)\)", (folder / "README.md").read_text()))
    here = Path(__file__).read_text()
    assert all(f" {name}" in here for name in programs)
