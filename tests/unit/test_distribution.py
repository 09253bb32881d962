"""The wheel and the source distribution: what they contain, and under which licence."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
BUILD = "from setuptools import build_meta as b; b.build_wheel('dist'); b.build_sdist('dist')"
# Compiling the crate can take a long time on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_000)]
COPIED = (
    "core",
    "esdedup",
    "ingest",
    "mappings",
    "locks",
    "deploy",
    "docs",
    "examples",
    "benchmarks",
    "tests",
)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the source distribution from a copy of the checkout; return their folder."""
    copy = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "target", "*.so")
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, copy)
    # Reuse the dependencies of the crate that have been compiled in the checkout.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "core" / "target")}
    command = [sys.executable, "-c", BUILD]
    subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True, timeout=900)
    return copy / "dist"


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    metadata = {name for name in names if name.startswith("esdedup-")}
    expected = {
        f"{folder}/{path.relative_to(ROOT / base)}"
        for folder, base in (
            ("esdedup", "esdedup"),
            ("esdedup/ingest", "ingest"),
            ("esdedup/mappings", "mappings"),
        )
        for path in (ROOT / base).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    assert names - metadata == expected | {"esdedup/_core.abi3.so"}


def test_one_wheel_serves_every_python_version(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert "-cp311-abi3-" in wheel.name


@pytest.mark.slow
def test_the_wheel_is_small(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.stat().st_size < 1_724_000


@pytest.mark.slow
def test_both_distributions_contain_the_licence(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        information = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        metadata = HeaderParser().parsestr(wheel.read(information).decode())
        licences = {
            Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if "/licenses/" in name
        }
    assert metadata["License-Expression"] == "Apache-2.0"
    assert licences == {name: (ROOT / name).read_text() for name in ("LICENSE", "NOTICE")}
    with tarfile.open(next(dist.glob("*.tar.gz"))) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert names >= {"LICENSE", "NOTICE", "CHANGELOG.md", "Makefile", "locks/dev.txt", "docs/queries.md"}
    assert names >= {"core/Cargo.toml", "core/Cargo.lock", "core/src/lib.rs", "core/data/characters.txt"}
    assert not any(name.startswith("core/target") for name in names)


def test_the_notice_names_versions_that_determine_fingerprints() -> None:
    notice = (ROOT / "NOTICE").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    for name in ("jieba", "OpenCC", "rjieba"):
        version = project.partition(f'"{name.lower()}==')[2].partition('"')[0]
        assert f"\n{name} {version}, " in notice


def test_lock_files_name_no_package_index_and_hash_everything() -> None:
    for path in (ROOT / "locks").iterdir():
        lines = path.read_text().splitlines()
        assert not [line for line in lines if "://" in line or line.startswith("--")]
        for number, line in enumerate(lines):
            if "==" in line and not line.startswith("#"):
                assert lines[number + 1].startswith("    --hash=sha256:")


def test_lock_files_satisfy_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for name, chosen in (
        ("demo", ["node", "serve", "sidecar"]),
        ("sidecar", ["serve", "sidecar"]),
        ("dev", list(extras)),
    ):
        pinned: dict[str, set[str]] = {}
        for line in (ROOT / "locks" / f"{name}.txt").read_text().splitlines():
            if "==" in line and not line.startswith("#"):
                package, _, rest = line.partition("==")
                pinned.setdefault(package, set()).add(rest.split(" ")[0])
        for text in [*project["dependencies"], *(each for extra in chosen for each in extras[extra])]:
            requirement = Requirement(text)
            versions = pinned.get(canonicalize_name(requirement.name), set())
            assert versions, f"{requirement} is missing from locks/{name}.txt: run make lock"
            assert all(map(requirement.specifier.contains, versions))


def test_demo_and_sidecar_use_locked_development_versions() -> None:
    def pins(name: str) -> set[str]:
        lines = (ROOT / "locks" / f"{name}.txt").read_text().splitlines()
        return {line.split(" ")[0] for line in lines if "==" in line and not line.startswith("#")}

    assert pins("build") <= pins("dev")
    assert pins("sidecar") < pins("demo") < pins("dev")
    assert not {pin for pin in pins("demo") if pin.startswith(("faiss", "matplotlib", "ruff", "pytest"))}
