"""Directories and files that only this user can read and write."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from esdedup.errors import NodeError


def make_directory(path: Path) -> None:
    """Create a directory if it is missing; refuse a directory of another user."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if _is_foreign(path.stat()):
            raise NodeError(f"{path} belongs to another user; choose another directory")
        path.chmod(0o700)
    except OSError as error:
        raise NodeError(f"cannot create the directory {path}: {error.strerror}") from error


def open_anew(path: Path) -> BinaryIO:
    """Create an empty file, replacing any existing one, and open it for writing."""
    # An existing file could belong to another user or be a link.
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def read(path: Path) -> bytes:
    """Read a file created by `open_anew`; refuse other kinds of file, and files that others can write."""
    # Without this flag, which Windows lacks, opening a pipe would block until somebody writes to it.
    non_blocking = getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda path, flags: os.open(path, flags | non_blocking)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise NodeError(f"{path} is not a regular file; delete it")
        if _is_foreign(about) or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise NodeError(f"another user may have written {path}; delete it unless you trust it")
        return file.read()


def _is_foreign(about: os.stat_result) -> bool:
    # Windows has no user ids.
    return hasattr(os, "geteuid") and about.st_uid != os.geteuid()
