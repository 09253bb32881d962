"""Imports, extras, errors and mappings of the package, and checks of the test suite itself."""

import graphlib
import inspect
import os
import pickle
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from esdedup import CLASSIC, KEYWORDS, VERIFIED, errors
from esdedup.cli import main
from esdedup.cli.app import DECIDE_FINGERPRINTS, versions
from esdedup.cli.command import EXTRAS
from esdedup.elastic.forest.meta import FORMAT
from esdedup.elastic.mappings import article_index, dedup_properties, forest_index
from esdedup.fields import Fields
from esdedup.node import DEFAULT_VERSION
from tests.nightly.mutants import MUTANTS, Mutant

HEAVY = ("aiohttp", "elasticsearch", "fastapi", "jieba", "numpy", "opencc", "pydantic", "rich", "rjieba")


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import esdedup", HEAVY),
        ("from esdedup.cli import main", HEAVY),
        (
            "sys.argv[1:] = ['list', '--help']; from esdedup.cli import main; main()",
            ("elasticsearch", "numpy", "pygments"),
        ),
    ],
)
def test_startup_imports_no_heavy_packages(program: str, heavy: tuple[str, ...]) -> None:
    show = f"import atexit, sys; atexit.register(lambda: print(*sys.modules.keys() & {set(heavy)}))"
    shown = subprocess.run(
        [sys.executable, "-c", f"{show}\n{program}"], check=True, capture_output=True, text=True, timeout=60
    )
    assert shown.stdout.splitlines()[-1] == ""


def test_listing_does_not_import_the_core() -> None:
    program = "import sys, esdedup.reading.lists; print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    loaded = set(shown.stdout.split())
    packages = {each.split(".")[1] for each in loaded if each.startswith("esdedup.")}
    assert "reading" in packages
    assert packages.isdisjoint({"boilerplate", "fingerprint", "forest", "neighbours"})
    assert loaded.isdisjoint({"esdedup._core", "esdedup.elastic.forest", "esdedup.text.segmenters", "numpy"})


def test_versions_name_everything_that_determines_fingerprints() -> None:
    package, profiles, forest, fingerprints, *_, embedded, python = versions()
    assert package == f"esdedup {metadata.version('esdedup')}"
    assert profiles.split()[1:] == [f"{name}," for name in (VERIFIED.label, CLASSIC.label)] + [KEYWORDS.label]
    assert forest.endswith(f" {FORMAT}")
    # Requirements of extras, such as those of the documentation site, do not count.
    requirements = [Requirement(text) for text in metadata.requires("esdedup") or ()]
    core = [each for each in requirements if each.marker is None]
    pinned = {each.name for each in core if str(each.specifier).startswith("==")}
    assert pinned < set(DECIDE_FINGERPRINTS)
    assert all(f"{name} {metadata.version(name)}" in fingerprints for name in DECIDE_FINGERPRINTS)
    assert embedded == f"embedded Elasticsearch {DEFAULT_VERSION}"
    assert platform.python_version() in python


@pytest.mark.slow
def test_versions_are_shown_without_the_extras() -> None:
    every = tuple(module for modules in EXTRAS.values() for module in modules)
    done = run_without(every, "sys.argv = ['esdedup', '--version']; from esdedup.cli import main; main()")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pip install 'esdedup[node]'" in done.stdout


def run_without(modules: tuple[str, ...], program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program as if the given modules were not installed."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({modules}))"
    return subprocess.run(
        [sys.executable, "-c", f"{blocked}\n{program}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


NEEDED = {
    "node": (["node", "start"], ["node", "status"], ["node", "stop"], ["demo", "--once"]),
    "serve": (["serve", "--index", "x"], ["demo"]),
    "sidecar": (["sidecar"], ["demo", "--once"]),
}


@pytest.mark.parametrize(
    ("arguments", "extra", "module"),
    [
        (arguments, extra, module)
        for extra, commands in NEEDED.items()
        for arguments in commands
        for module in EXTRAS[extra]
    ],
)
def test_a_missing_extra_is_named_before_anything_is_done(
    arguments: list[str],
    extra: str,
    module: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sys, "argv", ["esdedup", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert (
        message == f"esdedup: this command requires {module}, not installed: pip install 'esdedup[{extra}]'\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_sidecar_without_pages_needs_no_web_packages() -> None:
    of_pages = tuple(set(EXTRAS["serve"]) - set(EXTRAS["sidecar"]))
    assert run_without(of_pages, "import esdedup.sidecar.app").returncode == 0
    program = (
        "sys.argv = ['esdedup', 'sidecar', '--pages', '--index', 'x']; from esdedup.cli import main; main()"
    )
    done = run_without(of_pages, program)
    assert done.returncode == 2
    assert done.stderr.endswith("pip install 'esdedup[serve]'\n")
    assert "Traceback" not in done.stderr


def test_every_package_of_an_extra_is_checked() -> None:
    distributions = metadata.packages_distributions()
    for extra, modules in EXTRAS.items():
        packages = {canonicalize_name(distributions[module][0]) for module in modules}
        required = [Requirement(text) for text in metadata.requires("esdedup") or ()]
        declared = {each for each in required if each.marker and f'extra == "{extra}"' in str(each.marker)}
        # aiohttp comes with the asynchronous client, whose requirement does not name it.
        expected = {canonicalize_name(each.name) for each in declared if not each.extras}
        assert packages - {"aiohttp"} == expected - {"aiohttp"}


@pytest.mark.slow
def test_the_demo_needs_no_benchmark_or_development_packages() -> None:
    others = (
        "datasketch",
        "faiss",
        "matplotlib",
        "rensa",
        "simhash",
        "hypothesis",
        "pytest",
        "testcontainers",
    )
    program = "import uvicorn, esdedup.cli.demo, esdedup.cli.serve, esdedup.node, esdedup.sidecar.app"
    assert run_without(others, program).returncode == 0


def test_every_error_has_our_base_class_and_documentation() -> None:
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and kind.__module__ == errors.__name__:
            # `ForestOwner` is not an error but an attribute of two errors.
            assert issubclass(kind, errors.EsdedupError) or kind is errors.ForestOwner
            assert kind.__doc__
            assert name in (errors.__doc__ or "")


OWNER = errors.ForestOwner(host="a", pid=7, since=datetime(2026, 1, 2, tzinfo=UTC), released=False)


@pytest.mark.parametrize(
    "error",
    [
        errors.SettingError("no"),
        errors.ArticleRejected("id", "is bad"),
        errors.TextFailed("id", "src/tokens.rs:7"),
        errors.ArticleNotFound("no", article="id", index="news"),
        errors.ServerUnavailable("no", status=503, index="news"),
        errors.ClientForked("no", process=7),
        errors.ClockMismatch("no", here_ms=2, server_ms=1),
        errors.ForestAhead("no", forest="f", time_ms=7),
        errors.IndexBlocked("no", status=429, index="news"),
        errors.IndexNotReady("no", index="news", missing_fields=("dedup.root",)),
        errors.ForestMissing("no", forest="f"),
        errors.ForestBusy("no", forest="f", owner=OWNER),
        errors.ForestLost("no", forest="f"),
        errors.ForestMismatch("no", forest="f", found=2, supported=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling_with_its_attributes(error: errors.EsdedupError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_an_owner_is_described_on_one_line() -> None:
    assert str(OWNER) == "process 7 on a has owned it since 2026-01-02 00:00:00 UTC"


def test_mappings_are_read_from_the_package() -> None:
    root = dedup_properties(Fields())["dedup"]["properties"]["root"]
    assert root == {"type": "keyword", "eager_global_ordinals": True}
    assert "near" in article_index(Fields(dedup="near"))["mappings"]["properties"]
    assert forest_index(meta={"format": 1})["mappings"]["_meta"] == {"esdedup": {"format": 1}}


ROOT = Path(__file__).parents[2]


def test_imports_of_the_crate_have_no_cycles() -> None:
    folder = ROOT / "core/src"
    files = {path.relative_to(folder).with_suffix("").parts: path for path in folder.rglob("*.rs")}
    imports: dict[tuple[str, ...], set[tuple[str, ...]]] = {module: set() for module in files}
    for module, path in files.items():
        code = path.read_text("utf-8").partition("#[cfg(test)]\nmod tests")[0]
        for start, names in re.findall(r"^[^/\n]*\b(crate|super)::([\w:]+)", code, re.MULTILINE):
            name = (*(module[:-1] if start == "super" else ()), *names.split("::"))
            imports[module] |= {name[:length] for length in range(1, len(name) + 1)} & files.keys()
    assert imports["forest", "laws"] >= {("forest", "nodes"), ("forest", "times")}
    # If there is a cycle, the error names its files.
    graphlib.TopologicalSorter(imports).prepare()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_the_code_each_mutant_replaces_occurs_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.path).read_text("utf-8").count(mutant.old) == 1
    assert all((ROOT / "tests" / each).exists() for each in mutant.likely)


@pytest.mark.parametrize(
    ("shared", "status", "message"), [("", 0, "1 skipped: no node"), ("x", 1, "1 failed")]
)
def test_skips_are_reported_or_fail(shared: str, status: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import pytest\ndef test(): pytest.skip('no node')\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml", str(tmp_path)]
    environment = {**os.environ, "ESDEDUP_SHARED": shared}
    run = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert run.returncode == status
    assert message in run.stdout
