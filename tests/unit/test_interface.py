"""The public interface and its documentation: names, signatures and examples."""

import ast
import collections
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, assert_type, cast

import numpy as np
import pydantic
import pytest
import typer
from elasticsearch import AsyncElasticsearch, Elasticsearch

import esdedup
from esdedup import (
    CLASSIC,
    VERIFIED,
    AsyncDedup,
    AsyncReader,
    Dedup,
    Maintenance,
    Page,
    Reader,
    SettingError,
    SimilarPage,
    maintenance,
)
from esdedup.cli.app import app
from esdedup.fields import partition_of
from esdedup.fingerprint import bands
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Kind
from esdedup.neighbours import explanation
from esdedup.neighbours.relation import relation_of
from esdedup.reading import overview, results, versions
from esdedup.text import hashing, segmenters, weights
from esdedup.times import DAY_MS
from tests import sample
from tests.support.assign import assigned

# The public interface: the names of `esdedup`, and the classes of other modules that its docstring mentions.
PUBLIC = {
    **{name: getattr(esdedup, name) for name in esdedup.__all__},
    **{name: value for name, value in vars(maintenance).items() if name[0].isupper()},
    **{
        name: value
        for module in (
            bands,
            explanation,
            hashing,
            overview,
            results,
            segmenters,
            versions,
            weights,
        )
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    },
}
OPERATIONS = [name for name in dir(Reader) if not name.startswith("_")]


def test_every_public_name_exists_once_and_has_types() -> None:
    listed = list(esdedup.__dir__())
    # No name is listed twice, even though the first use of a name makes it an attribute of the module.
    assert set(esdedup.__all__) <= set(listed)
    assert len(listed) == len(set(listed))
    source = ast.parse(Path(inspect.getfile(esdedup)).with_suffix(".pyi").read_text())
    imported = [
        (alias.name, alias.asname, str(node.module))
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert [name for name, *_ in imported] == list(esdedup.__all__)
    assert len(set(esdedup.__all__)) == len(esdedup.__all__)
    for name, exported, module in imported:
        assert name == exported
        assert getattr(importlib.import_module(module), name) is getattr(esdedup, name)


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Reeder'"):
        getattr(esdedup, "Reeder")  # noqa: B009 - mypy would refuse the attribute
    assert esdedup.__version__ == version("esdedup")


@pytest.mark.parametrize("name", OPERATIONS)
def test_both_readers_have_methods_with_equal_signatures(name: str) -> None:
    reading = inspect.signature(getattr(Reader, name))
    assert next(iter(reading.parameters)) == "self"
    assert "scope" not in reading.parameters
    for kind in (Reader, AsyncReader):
        method = getattr(kind, name)
        signature = inspect.signature(method)
        assert signature == reading
        assert method.__name__ == name
        assert inspect.getdoc(method) == inspect.getdoc(getattr(Reader, name))
        hints = typing.get_type_hints(method)
        assert hints["return"] == signature.return_annotation
        assert "Generator" not in str(hints["return"])
        for parameter in list(signature.parameters)[1:]:
            assert f"{parameter}:" in str(inspect.getdoc(method))
    assert inspect.iscoroutinefunction(getattr(AsyncReader, name))
    assert not inspect.iscoroutinefunction(getattr(Reader, name))


def test_signatures_and_values_print_in_one_short_line() -> None:
    assert repr(esdedup.VERIFIED) == "Profile('verified-5')"
    assert repr(esdedup.KEYWORDS.with_changes(keyword_count=5)) == "Profile('keywords-4-46a1578a')"
    assert inspect.signature(Reader).parameters["client"].annotation is Elasticsearch
    assert inspect.signature(AsyncReader).parameters["client"].annotation is AsyncElasticsearch
    for name in ("expire", "verify", "repair", "rebuild"):
        assert "<function" not in str(inspect.signature(getattr(Maintenance, name)))


def test_texts_are_explained_by_the_default_profile() -> None:
    text = "The ferry leaves at nine."
    assert esdedup.explain(text, text) == esdedup.explain(text, text, esdedup.VERIFIED)


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_use_only_public_types(name: str) -> None:
    public = [value for value in PUBLIC.values() if inspect.isclass(value)]
    for where, hint in _hints(PUBLIC[name]):
        for kind in _types_in(hint):
            if kind.__module__.startswith("esdedup."):
                assert kind in public, f"{name}.{where} needs {kind.__module__}.{kind.__name__}"


def _hints(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and types of everything a caller passes or receives: parameters, results and fields."""
    callables: list[Callable[..., Any]] = []
    if inspect.isfunction(value):
        callables = [value]
    elif inspect.isclass(value):
        if issubclass(value, pydantic.BaseModel) or hasattr(value, "__dataclass_fields__"):
            yield from typing.get_type_hints(value).items()
        members = [getattr(value, name) for name in dir(value) if not name.startswith("_")]
        callables = [member for member in members if inspect.isroutine(member)]
        if "__init__" in vars(value):
            callables.append(value.__init__)
    for each in callables:
        if (getattr(each, "__module__", None) or "").startswith("esdedup"):
            yield from (
                (f"{each.__name__}({what})", hint) for what, hint in typing.get_type_hints(each).items()
            )


def _types_in(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint):
        yield hint
    for part in typing.get_args(hint):
        for each in part if isinstance(part, list) else [part]:
            yield from _types_in(each)


async def _types_as_mypy_sees_them(reader: Reader, awaited: AsyncReader, dedup: Dedup) -> None:
    """This function is never called; mypy checks its types."""
    assert_type(reader.list("news", sort="newest", size=3), Page)
    assert_type(dedup.reader.list("news"), Page)
    assert_type(dedup.reader.source_names("news"), tuple[str, ...])
    assert_type(await awaited.similar("news", "1"), SimilarPage)
    reader.list("news", sort="upwards")  # type: ignore[arg-type]
    reader.list("news", scope=None)  # type: ignore[call-arg]


def test_results_of_reading_contain_no_mutable_lists() -> None:
    for result in vars(results).values():
        if isinstance(result, type) and issubclass(result, pydantic.BaseModel):
            for field, hint in typing.get_type_hints(result).items():
                assert "list[" not in str(hint), (result.__name__, field)


ADDRESS = "http://127.0.0.1:9"
TAKERS: list[Callable[..., Any]] = [Dedup, AsyncDedup, Reader, AsyncReader, Maintenance]


class Other:
    """A type that no argument accepts."""


@pytest.fixture
def client() -> Iterator[Elasticsearch]:
    with Elasticsearch(ADDRESS) as client:
        yield client


def client_for(taker: Callable[..., Any]) -> Any:
    return (AsyncElasticsearch if taker in {AsyncDedup, AsyncReader} else Elasticsearch)(ADDRESS)


@pytest.mark.parametrize(
    ("taker", "name"),
    [(taker, name) for taker in TAKERS for name in inspect.signature(taker).parameters],
)
def test_the_error_names_an_argument_of_a_wrong_type(taker: Callable[..., Any], name: str) -> None:
    usual: dict[str, Any] = {
        each.name: each.default
        for each in inspect.signature(taker).parameters.values()
        if each.default is not inspect.Parameter.empty
    }
    with pytest.raises(SettingError, match=f"^{name} is an Other; .* needs "):
        taker(**({"client": client_for(taker)} | usual | {name: Other()}))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("retention", 7, "retention is an int; Dedup needs a timedelta or None"),
        ("profile", 3, "profile is an int; Dedup needs a Profile or a str"),
        ("batch_size", "100", "batch_size is a str; Dedup needs an int"),
        ("batch_size", True, "batch_size is a bool; Dedup needs an int"),
        ("batch_size", 1.5, "batch_size is a float; Dedup needs an int"),
        ("lookup", 1, "lookup is an int; Dedup needs 'memory' or 'search' or None"),
        ("sidecar", [1], "sidecar is a list; Dedup needs a str or a list of str or None"),
        ("sidecar_ca_certs", "ca.pem", "sidecar_ca_certs is a str; Dedup needs a Path or None"),
        ("lookup", "disk", "lookup is 'disk'; it must be 'memory' or 'search'"),
        ("profile", "modern", "no profile 'modern'; there are classic, keywords, verified"),
    ],
)
def test_errors_name_the_accepted_types_or_values(
    client: Elasticsearch, name: str, given: object, message: str
) -> None:
    with pytest.raises(SettingError) as raised:
        Dedup(client, **{name: cast("Any", given)})
    assert str(raised.value) == message


def test_a_standard_profile_may_be_given_by_its_name(client: Elasticsearch) -> None:
    for taker in (Dedup, Reader):
        assert taker(client, profile="classic") is not None
    assert Dedup(client, profile="classic")._profile == CLASSIC


def test_numbers_of_compatible_types_are_accepted(client: Elasticsearch) -> None:
    Dedup(client, batch_size=int(np.int64(10)), wait_s=1)
    Dedup(client, batch_size=cast("int", np.int64(10)), wait_s=float(np.float32(1)), retention=timedelta(1))


def test_methods_name_the_types_they_need(client: Elasticsearch) -> None:
    with pytest.raises(
        SettingError, match=r"retention is an int; Maintenance\.rebuild needs a timedelta or None"
    ):
        Maintenance(client).rebuild(["news"], retention=cast("timedelta", 7))
    with pytest.raises(SettingError, match="client is an Elasticsearch; AsyncReader needs an AsyncElast"):
        AsyncReader(client_for(AsyncReader)).with_client(cast("AsyncElasticsearch", client))


ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks/README.md"])
# Parsed instead of imported, since the import needs all the packages that the benchmarks compare.
BENCHMARKS = re.findall(
    r'^    "([a-z-]+)": \w+\.\w+,$', (ROOT / "benchmarks/__main__.py").read_text(), re.MULTILINE
)
SOURCES = {
    path.name
    for folder, files in (("esdedup", "*.py"), ("ingest", "*.py"), ("tests", "*.py"), ("core/src", "*.rs"))
    for path in (ROOT / folder).rglob(files)
}


def _words(document: str) -> str:
    """Return the text of a document with its line breaks replaced by spaces."""
    return " ".join((ROOT / document).read_text().split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_benchmarks_named_in_documents_exist(document: Path) -> None:
    text = document.read_text()
    for path in re.findall(r"`(\w[\w./-]*(?:\.py|\.rs|\.md|\.txt|/))`", text):
        places = [ROOT / path, ROOT / "esdedup" / path, document.parent / path]
        assert path in SOURCES or any(place.exists() for place in places), path
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (document.parent / target).exists(), target
    for names in re.findall(r"python -m benchmarks((?:\s[a-z][a-z-]+)+)`", text):
        assert set(names.split()) <= {"all", *BENCHMARKS}, names


def test_exactly_the_existing_commands_are_documented() -> None:
    text = (ROOT / "docs/commands.md").read_text()
    assert set(re.findall(r"^\| `esdedup (\w+)", text, re.MULTILINE)) == {
        *typer.main.get_group(app).list_commands(typer.Context(typer.main.get_group(app)))
    }


@pytest.fixture(scope="module")
def articles() -> list[dict[str, Any]]:
    return list(sample.articles())


def test_the_documented_batch_matches_the_fingerprinter(articles: list[dict[str, Any]]) -> None:
    text = _words("docs/fingerprints.md")
    relation = relation_of(VERIFIED)
    chosen = [articles[414 - 1]["text"], articles[456 - 1]["text"]]
    fingerprints = Fingerprinter(VERIFIED).fingerprint(chosen)
    signatures = fingerprints.signatures.copy()
    for first, second in zip(*relation.representatives(signatures).tolist(), strict=True):
        row = f"| `{first:016x}` | `{second:016x}` | {(first ^ second).bit_count()} |"
        assert row in text
    leaf = relation.ids(signatures)[1]
    # The root's id also depends on the retention period in which the root was made.
    signatures["origin"] = int(re.findall(r'"seen": (\d+)', text)[0]) // (30 * DAY_MS)
    root = relation.ids(signatures)[0]
    assert f'{{"fingerprint": "{leaf}"' in text
    (_, keys) = relation.terms(signatures.tobytes(), ARTICLES, are_indexed=False)
    assert f'"bands": ["{keys[0]}", "…"]' in text
    assert f"`{keys[0]}`), and each minhash has one exact key, which makes {len(keys)} keys." in text
    content_hash = f"{fingerprints.content_hashes[1]:016x}"
    assert f'"page": "{content_hash}"' in text
    assert f'"root": "{root}"' in text
    assert f'"profile": "{VERIFIED.label}"' in text
    assert f'"length": {fingerprints.alphanumerics[1]}, "partition": {partition_of(root)}}}' in text
    overview = _words("ARCHITECTURE.md")
    assert f"the node's id, `{leaf[:8]}…`" in overview
    assert f"becomes a leaf of the root `{root[:8]}…`" in overview
    shown = {"fingerprint": f"{leaf[:8]}…", "root": f"{root[:8]}…", "page": content_hash}
    assert all(f'"{name}": "{value}"' in overview for name, value in shown.items())


def test_the_documented_results_match_the_clustering(articles: list[dict[str, Any]]) -> None:
    """The clusters, and the numbers that a results page shows, are computed without a server."""
    assignments = assigned([article["text"] for article in articles])
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
