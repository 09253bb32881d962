"""Finds the code blocks of the documents, and runs all blocks of a document in order.

The blocks of a document share a directory and a server. Bash runs shell commands, and all Python blocks share
a namespace. A block with a title is a file of that name. A block after ``<!-- prints -->`` is the expected
output of the previous block, where ``…`` matches anything. tests/foreign/test_code_blocks.py lists all other
blocks, with the reason why they do not run.
"""

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
_PLACES = ("README*.md", "docs/**/*.md", "examples/*.md", "clients/*/README.md")
# Each translated guide, with its original. Both contain the same code, so only the originals are run.
TRANSLATED = {
    path: path.with_name(path.name.replace(".zh.", "."))
    for path in sorted(ROOT.glob("docs/guides/*.zh.md"))
    # The code of this guide differs: its editors have Chinese names.
    if path.name != "editors.zh.md"
}
DOCUMENTS = sorted({path for place in _PLACES for path in ROOT.glob(place)} - TRANSLATED.keys())
_BLOCK = re.compile(
    r"^(?P<prints><!-- prints -->\n+)?(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
# The ports and hosts that are replaced in the documents' code.
PORTS = ("9200", "9500", "9501", "8000")
_HOSTS = re.compile(r"\b(?:sidecar-1|sidecar-2)(?=:\d)")
RUN_S = 60
# Stand-ins for packages that need other servers.
STAND_INS = ROOT / "tests/support/stand_ins"


class Block(NamedTuple):
    """A block of code in a document."""

    document: str
    line: int
    language: str
    title: str | None
    # Whether the block is the expected output of the previous block.
    is_output: bool
    text: str

    @property
    def place(self) -> tuple[str, str]:
        """The document and the block's first line, which identify the block in `NOT_RUN`."""
        return self.document, self.text.splitlines()[0]

    @property
    def is_run(self) -> bool:
        """Whether the block is run, written to a file, or compared with output."""
        return self.is_output or self.title is not None or self.language in {"bash", "python"}


def blocks_of(path: Path) -> list[Block]:
    """Return the blocks of a document, in their order."""
    text = path.read_text("utf-8")
    return [
        Block(
            str(path.relative_to(ROOT)),
            text.count("\n", 0, found.start("indent")) + 1,
            found["language"],
            found["title"],
            bool(found["prints"]),
            re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
        )
        for found in _BLOCK.finditer(text)
    ]


class Given(NamedTuple):
    """Files and commands that a document presupposes."""

    # The contents of the files, by name.
    files: Mapping[str, str]
    # Bash commands, which run before the Python program.
    commands: str
    program: str = ""


class Follower:
    """Runs the blocks of a document in one directory."""

    def __init__(self, folder: Path, elasticsearch_url: str, command: str) -> None:
        """Replace the commands and ports of the document.

        Args:
            folder: An empty directory.
            elasticsearch_url: Replaces `http://localhost:9200`.
            command: The text of a script that replaces both `esdedup` and `python`.
        """
        self.folder = folder
        self._bin = folder / ".bin"
        self._pids = folder / ".pids"
        ports = {port: str(_free_port()) for port in PORTS[1:]}
        self._ports = {PORTS[0]: elasticsearch_url.rpartition(":")[2], **ports}
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._bin.mkdir()
        for name in ("esdedup", "python"):
            (self._bin / name).write_text(command)
            (self._bin / name).chmod(0o755)
        inherited = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL") if name in os.environ}
        self.environment = {
            **inherited,
            "PATH": f"{self._bin}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": f"{ROOT}:{STAND_INS}",
            "ELASTICSEARCH_URL": elasticsearch_url,
            "ESDEDUP_FOLLOWED_PIDS": str(self._pids),
            "ESDEDUP_FOLLOWED_PORTS": f"{ports['9500']} {ports['8000']}",
            "TOKEN": "a-token-of-32-characters-or-more-00",
        }

    def prepare(self, given: Given) -> None:
        """Write the files and run the commands that a document presupposes."""
        for name, text in given.files.items():
            (self.folder / name).write_text(text, "utf-8")
        for language, text in (("bash", given.commands), ("python", given.program)):
            self.follow(Block("prerequisites", 0, language, None, False, text))

    def follow(self, block: Block, *, may_fail: bool = False) -> str:
        """Run a block, or write its file; return its output.

        Args:
            block: Any block except an expected output.
            may_fail: Whether responses printed by curl may contain errors.
        """
        text = _HOSTS.sub("localhost", block.text)
        text = re.sub(r"\b(?:9200|9500|9501|8000)\b", lambda found: self._ports[found[0]], text)
        if block.title is not None:
            (self.folder / block.title).write_text(text, "utf-8")
            return ""
        return (
            self._shell(text, block, may_fail=may_fail)
            if block.language == "bash"
            else self._python(text, block)
        )

    def _shell(self, text: str, block: Block, *, may_fail: bool) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            check=False,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
        where = f"{block.document}, line {block.line}"
        assert done.returncode == 0, f"{where}:\n{text}\n{done.stdout}\n{done.stderr}"
        assert may_fail or not re.search(r'"errors? ?":(?!\s*false|\[\])', done.stdout), (
            f"{where}:\n{done.stdout}"
        )
        return done.stdout

    def _python(self, text: str, block: Block) -> str:
        printed = io.StringIO()
        # Leading empty lines give tracebacks the line numbers of the document.
        code = compile("\n" * block.line + text, str(ROOT / block.document), "exec")
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(code, self._names)
        return printed.getvalue()

    def end(self) -> None:
        """Stop background processes, and close clients."""
        for pid in self._pids.read_text().split() if self._pids.exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
        for value in self._names.values():
            if hasattr(value, "close") and type(value).__module__.startswith(("esdedup", "elasticsearch")):
                value.close()


@contextlib.contextmanager
def following(folder: Path, elasticsearch_url: str, command: str) -> Iterator[Follower]:
    """Yield a follower; stop its processes afterwards."""
    follower = Follower(folder, elasticsearch_url, command)
    try:
        yield follower
    finally:
        follower.end()


def prints(expected: str, printed: str) -> bool:
    """Return whether output matches the expected output in a document, ignoring white space."""
    parts = [re.escape(part) for part in " ".join(expected.split()).split("…")]
    return re.fullmatch(".*?".join(parts), " ".join(printed.split()), re.DOTALL) is not None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port
