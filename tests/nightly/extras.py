"""Installs the wheel in new environments, with and without extras, and tries imports and commands.

python -m tests.nightly.extras [PYTHON…]     (interpreters with pip; by default the running interpreter)

pip installs the newest allowed versions, and only from wheels, except for jieba, which is plain Python and
has no wheel. So this also checks that users need no compiler, and that the allowed versions work together.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools import build_meta as b; print(b.build_wheel(sys.argv[1]))"
BUILT = (
    "core",
    "esdedup",
    "ingest",
    "mappings",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "NOTICE",
    "MANIFEST.in",
)
RUN_S = 300
# A Python program that must work with and without extras.
EVERYWHERE = (
    "-c",
    "import esdedup; esdedup.Dedup, esdedup.Reader, esdedup.explain('A ferry runs.', 'A ferry ran.')",
)
# The Python programs and the arguments of `esdedup` that must work, by extra.
USES: dict[str, list[tuple[str, ...]]] = {
    "": [EVERYWHERE, ("--version",), ("plan",)],
    "node": [
        EVERYWHERE,
        ("node", "start", "--port", "0", "--data", "node"),
        ("node", "stop", "--data", "node"),
    ],
    "parquet": [EVERYWHERE, ("-c", "import pyarrow.parquet")],
    "serve": [
        EVERYWHERE,
        ("-c", "import uvicorn; from esdedup.web.app import create_app"),
        ("serve", "--help"),
    ],
    "sidecar": [EVERYWHERE, ("-c", "import esdedup.sidecar.app"), ("sidecar", "--print-config")],
    "node,serve,sidecar": [EVERYWHERE, ("demo", "--help")],
}


def wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the checkout; return its path."""
    copy = folder / "checkout"
    copy.mkdir()
    for name in BUILT:
        copied = ROOT / name
        if copied.is_dir():
            shutil.copytree(
                copied, copy / name, ignore=shutil.ignore_patterns("__pycache__", "target", "*.so")
            )
        else:
            shutil.copy(copied, copy)
    command = [sys.executable, "-c", BUILD, str(folder)]
    done = subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True)
    return folder / done.stdout.splitlines()[-1]


def check(python: str, extra: str, built: Path, folder: Path) -> None:
    """Install the wheel with an extra into a new environment, and use it there."""
    environment = folder / "environment"
    subprocess.run([python, "-m", "venv", environment], check=True)
    binaries = environment / "bin"
    requirement = f"{built}[{extra}]" if extra else str(built)
    only = ["--only-binary", ":all:", "--no-binary", "jieba"]
    _run([binaries / "python", "-m", "pip", "install", "--quiet", *only, requirement], folder)
    for use in USES[extra]:
        program = binaries / ("python" if use[0] == "-c" else "esdedup")
        _run([program, *use], folder)


def _run(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def main(pythons: list[str]) -> None:
    """Check each extra with each Python."""
    with tempfile.TemporaryDirectory() as built_in:
        built = wheel(Path(built_in))
        for python in pythons:
            for extra in USES:
                with tempfile.TemporaryDirectory() as folder:
                    check(python, extra, built, Path(folder))
                sys.stdout.write(f"{python}: esdedup{f'[{extra}]' if extra else ''} installs and runs\n")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
