"""The sums of the server's jars: none is used that differs from the one meant.

For the default versions the sums are in this package (`jars/VERSION.sha256`, as `sha256sum` writes them), and
no other jar is accepted. For other versions each jar must have the SHA-1 sum that the repository publishes
beside it, which shows a damaged file, but not a forged one.
"""

import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import requests
from jgo.maven import PythonResolver

from esdedup.errors import NodeError

_TIMEOUT_S = 30


def known_sums(version: str) -> dict[str, str] | None:
    """Return the SHA-256 sum of each jar by its name; None if this package has none for the version."""
    file = resources.files("esdedup.node") / "jars" / f"{version}.sha256"
    if not file.is_file():
        return None
    return {name: digest for digest, name in map(str.split, file.read_text().splitlines())}


class CheckedResolver(PythonResolver):
    """Downloads artifacts, and refuses jars with a wrong sum."""

    def __init__(self, sums: dict[str, str] | None, progress: Any) -> None:
        """Download with these sums.

        Args:
            sums: From `known_sums`.
            progress: Called for each download.
        """
        super().__init__(progress_callback=progress)
        self._sums = sums

    def download(self, artifact: Any) -> Path | None:
        """Download an artifact.

        Raises:
            NodeError: It is a jar that has no known sum, or another one.
        """
        path: Path | None = super().download(artifact)
        # What other files say can only lead to other jars.
        if path is not None and path.suffix == ".jar":
            self._check(path, artifact)
        return path

    def _check(self, path: Path, artifact: Any) -> None:
        content = path.read_bytes()
        if self._sums is None:
            expected, found = (
                _published_sha1(artifact),
                hashlib.sha1(content, usedforsecurity=False).hexdigest(),
            )
        else:
            expected, found = self._sums.get(path.name), hashlib.sha256(content).hexdigest()
        if expected is None:
            raise NodeError(f"the download ended: there is no sum to check {path.name} with")
        if found != expected:
            raise NodeError(
                f"the download ended: {path.name} is not the file that was published: "
                f"its sum is {found} instead of {expected}"
            )


def _published_sha1(artifact: Any) -> str | None:
    """Return the sum that a repository publishes beside an artifact, None if it publishes none."""
    for repository in artifact.context.remote_repos.values():
        place = f"{repository}/{artifact.component.path_prefix.as_posix()}/{artifact.filename}.sha1"
        answer = requests.get(place, timeout=_TIMEOUT_S)
        if answer.status_code == requests.codes.ok and answer.text.split():
            return str(answer.text.split()[0])
    return None
