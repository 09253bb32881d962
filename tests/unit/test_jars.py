"""Downloading the server's jars from a repository on this machine, which serves what it should or not."""

import contextlib
import functools
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from esdedup import NodeError
from esdedup.node.distribution import DEFAULT_VERSION, full_version, install, known_sums

NETTY = "org.elasticsearch.plugin:transport-netty4"
SERVER = "org.elasticsearch:elasticsearch"
# A version that is not in this package.
OTHER = "9.0.99"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"here": f"http://127.0.0.1:{server.server_port}"}
    finally:
        server.shutdown()
        server.server_close()


def publish(folder: Path, name: str, version: str, *, needs: str = "", sum_of: bytes | None = None) -> None:
    """Put an artifact into a repository, with the sum of `sum_of` if that is given."""
    group, artifact = name.split(":")
    place = folder / group.replace(".", "/") / artifact / version
    place.mkdir(parents=True)
    needed = (
        f"<dependency><groupId>x</groupId><artifactId>{needs}</artifactId><version>1</version></dependency>"
    )
    (place / f"{artifact}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><dependencies>{needed if needs else ''}</dependencies></project>"
    )
    (place / f"{artifact}-{version}.jar").write_bytes(jar())
    if sum_of is not None:
        (place / f"{artifact}-{version}.jar.sha1").write_text(hashlib.sha1(sum_of).hexdigest())


def jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        place = "META-INF/es-plugins/transport-netty4/plugin-descriptor.properties"
        archive.writestr(zipfile.ZipInfo(place), "name=transport-netty4\nmodulename=x\n")
    return content.getvalue()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where jars are installed."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("version", "extra", "published", "message"),
    [
        (
            DEFAULT_VERSION,
            "",
            jar(),
            rf"elasticsearch-{DEFAULT_VERSION}\.jar is not the file that was published",
        ),
        (DEFAULT_VERSION, "evil", jar(), r"no sum to check evil-1\.jar|is not the file that was published"),
        (OTHER, "", None, rf"no sum to check elasticsearch-{OTHER}\.jar"),
        (OTHER, "", b"another", rf"elasticsearch-{OTHER}\.jar is not the file that was published"),
    ],
    ids=["wrong", "one more", "no published sum", "another published sum"],
)
def test_a_jar_with_a_wrong_or_missing_sum_ends_the_download(
    tmp_path: Path, cache: Path, version: str, extra: str, published: bytes | None, message: str
) -> None:
    publish(tmp_path, SERVER, version, needs=extra, sum_of=published)
    publish(tmp_path, NETTY, version, sum_of=jar())
    if extra:
        publish(tmp_path, f"x:{extra}", "1", sum_of=jar())
    with serving(tmp_path) as repositories, pytest.raises(NodeError, match=message):
        install(version, repositories=repositories)
    assert [path.name for path in (cache / "elasticsearch").iterdir()] == ["install.lock"]


def test_jars_with_the_sums_published_beside_them_are_installed(tmp_path: Path, cache: Path) -> None:
    for name in (SERVER, NETTY):
        publish(tmp_path, name, OTHER, sum_of=jar())
    with serving(tmp_path) as repositories:
        home = install(OTHER, repositories=repositories)
        assert install(OTHER, repositories={}) == home
    assert (home / "lib" / f"elasticsearch-{OTHER}.jar").read_bytes() == jar()
    assert "modulename" not in (home / "modules/transport-netty4/plugin-descriptor.properties").read_text()


def test_the_package_has_the_sums_of_the_versions_that_names_stand_for() -> None:
    for name in ("8", "8.19", "9"):
        version = full_version(name)
        sums = known_sums(version)
        assert sums is not None
        assert {f"elasticsearch-{version}.jar", f"transport-netty4-{version}.jar"} < sums.keys()
        assert all(len(digest) == 64 for digest in sums.values())
