"""Runs HAProxy with a configuration from the guides."""

import contextlib
import functools
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.code_blocks import ROOT, blocks_of
from tests.support.sidecar_process import until

# Debian installs it in a directory that is not on every user's path.
PROGRAM = shutil.which("haproxy") or shutil.which("/usr/sbin/haproxy")
START_S, STOP_S = 30.0, 10.0
needs_haproxy = pytest.mark.skipif(PROGRAM is None, reason="HAProxy is not installed: apt install haproxy")


@contextlib.contextmanager
def running(guide: str, title: str, addresses: Mapping[str, str], *, folder: Path) -> Iterator[None]:
    """Run HAProxy until the block ends.

    Args:
        guide: The document that contains the configuration.
        title: The configuration's file name.
        addresses: The addresses to use in place of the guide's; nothing else is changed.
        folder: The directory in which HAProxy runs.
    """
    (text,) = (block.text for block in blocks_of(ROOT / "docs/guides" / guide) if block.title == title)
    for name, address in addresses.items():
        assert text.count(f" {name}") == 1
        text = text.replace(f" {name}", f" {address}")
    (folder / title).write_text(text)
    assert PROGRAM is not None
    subprocess.run([PROGRAM, "-c", "-f", title], cwd=folder, check=True, capture_output=True)
    with subprocess.Popen([PROGRAM, "-db", "-f", title], cwd=folder, stderr=subprocess.PIPE) as process:
        try:
            for name, address in addresses.items():
                if name.startswith(":"):
                    until(functools.partial(_listens, address), START_S)
            assert process.poll() is None
            yield
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
        return True
    return False
