"""Downloads the server's jars once, by their Maven coordinates, into a directory that is never modified.

Every jar must match its SHA-256 sum in this package (`jars/VERSION.sha256`); other jars are refused.
"""

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from typing import Any

import filelock
import platformdirs
import requests
from jgo.env import EnvironmentBuilder
from jgo.maven import MavenContext, PythonResolver

from esdedup.errors import NodeError, SettingError

DEFAULT_VERSION = "9.5.3"
# The supported versions by the names that `--version` accepts.
_VERSIONS = {"8.19": "8.19.21", "8.19.21": "8.19.21", "9": DEFAULT_VERSION, DEFAULT_VERSION: DEFAULT_VERSION}
_NETTY = "transport-netty4"

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with a file's name and size in bytes; the context yields a callback for the bytes downloaded."""


def full_version(version: str) -> str:
    """Return the full version for a name such as ``8.19``; refuse versions that cannot be embedded."""
    if version not in _VERSIONS:
        raise SettingError(f"cannot embed Elasticsearch {version!r}: use {' or '.join(_VERSIONS)}")
    return _VERSIONS[version]


def install(version: str, *, progress: Progress | None = None) -> Path:
    """Return the home directory of a version's jars, after downloading the jars if necessary.

    Its contents are ``lib/`` (the class path) and ``modules/transport-netty4/``. Several processes may call
    this concurrently.
    """
    home = platformdirs.user_cache_path("esdedup") / "elasticsearch" / version
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(home.parent / "install.lock"):
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=home.parent, prefix=f"{version}-") as scratch:
                staging = Path(scratch) / "home"
                _lay_out(_download(version, Path(scratch), progress), staging)
                staging.rename(home)
    return home


def _download(version: str, scratch: Path, progress: Progress | None) -> list[Path]:
    coordinates = f"org.elasticsearch:elasticsearch:{version}+org.elasticsearch.plugin:{_NETTY}:{version}"
    sums = known_sums(version)
    # Do not use the user's Maven cache, because a damaged file in it would never be replaced.
    context = MavenContext(resolver=_CheckedResolver(sums, progress), repo_cache=scratch / "maven")
    try:
        environment = EnvironmentBuilder(context, cache_dir=scratch / "jgo").from_endpoint(coordinates)
    except (OSError, RuntimeError, ValueError, requests.RequestException) as error:
        raise NodeError(f"cannot download Elasticsearch {version}: {error}") from error
    jars = sorted(environment.path.rglob("*.jar"))
    if missing := sums.keys() - {jar.name for jar in jars}:
        raise NodeError(f"cannot download Elasticsearch {version}: {min(missing)} is not among its jars")
    return jars


def _lay_out(jars: list[Path], home: Path) -> None:
    library, module = home / "lib", home / "modules" / _NETTY
    library.mkdir(parents=True)
    module.mkdir(parents=True)
    for jar in jars:
        is_netty = jar.name.startswith(("netty-", _NETTY))
        shutil.copyfile(jar, (module if is_netty else library) / jar.name)
    plugin = next(module.glob(f"{_NETTY}-*.jar"))
    with zipfile.ZipFile(plugin) as archive:
        descriptor = archive.read(f"META-INF/es-plugins/{_NETTY}/plugin-descriptor.properties").decode()
    # Without the module's name, the plugin's classes are loaded from the class path, like the server's.
    lines = [line for line in descriptor.splitlines() if not line.startswith("modulename")]
    (module / "plugin-descriptor.properties").write_text("\n".join(lines) + "\n")


def known_sums(version: str) -> dict[str, str]:
    """Return the SHA-256 sums of a version's jars by name."""
    lines = (resources.files("esdedup.node") / "jars" / f"{version}.sha256").read_text().splitlines()
    return {name: digest for digest, name in map(str.split, lines)}


class _CheckedResolver(PythonResolver):
    """Downloads artifacts, and refuses jars without the known checksum."""

    def __init__(self, sums: dict[str, str], progress: Progress | None) -> None:
        super().__init__(progress_callback=progress)
        self._sums = sums

    def download(self, artifact: Any) -> Path | None:
        path: Path | None = super().download(artifact)
        # Other files, such as POMs, only name jars, and jars are checked.
        if path is None or path.suffix != ".jar":
            return path
        if path.name not in self._sums:
            raise NodeError(f"the download was stopped: there is no checksum for {path.name}")
        if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != self._sums[path.name]:
            raise NodeError(
                f"the download was stopped: {path.name} differs from the published file: "
                f"its checksum is {found} instead of {self._sums[path.name]}"
            )
        return path
