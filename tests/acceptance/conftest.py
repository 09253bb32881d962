import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LONG = "and a text that is long enough to be told from others"


class Result:
    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        assert "Traceback" not in self.err, self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


def lines(*articles: Any) -> bytes:
    return b"".join(json.dumps(article).encode() + b"\n" for article in articles)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command as a user would."""

    def run(
        *arguments: object, stdin: bytes | None = None, url: str | None = None, **environment: str
    ) -> Result:
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("ES_", "ELASTIC"))
        }
        if url is not None:
            environment["ELASTICSEARCH_URL"] = url
        done = subprocess.run(
            [Path(sys.executable).parent / "esdedup", *map(str, arguments)],
            check=False,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            cwd=tmp_path,
            timeout=300,
            env=inherited | environment,
        )
        return Result(
            subprocess.CompletedProcess(
                done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
            )
        )

    return run
