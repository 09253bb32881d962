"""The file that a command writes."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from esdedup.errors import SettingError


@contextlib.contextmanager
def opened_output(path: Path | None, inputs: list[Path]) -> Iterator[IO[str]]:
    """Open the output, by default standard output; a file appears under its name only when it is complete.

    Raises:
        SettingError: It cannot be written to, or is one of the inputs.
    """
    if path is None:
        yield sys.stdout
        return
    if any(each.exists() and path.exists() and path.samefile(each) for each in inputs):
        raise SettingError(f"{path} is an input file: write to another file")
    scratch = path if path.exists() and not path.is_file() else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        target = scratch.open("w", encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot write to {path}: {error.strerror}") from error
    try:
        with target:
            yield target
        if scratch != path:
            scratch.replace(path)
    except BaseException:
        if scratch != path:
            scratch.unlink(missing_ok=True)
        raise
