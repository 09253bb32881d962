"""The command `esdedup sidecar`, as operators run it."""

import http.client
import http.server
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.settings import settings_of

from esdedup import Dedup, SidecarError, SidecarUnavailable
from esdedup.sidecar.settings import Settings
from tests.acceptance.conftest import Run

TOKEN = "0123456789abcdef"
PATIENCE_S = 60.0


class _Elasticsearch(http.server.BaseHTTPRequestHandler):
    """Echoes each request; holds back the response to `/slow` until `may_answer` is set."""

    received = threading.Event()
    may_answer = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.received.set()
            self.may_answer.wait(PATIENCE_S)
        body = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the base class calls it by this name

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


@pytest.fixture(scope="module")
def elasticsearch() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Elasticsearch) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def sidecar(url: str, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str, int]]:
    """Run the command; yield its process, host and port."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ES", "ELASTIC"))}
    command = [str(Path(sys.executable).parent / "esdedup"), "sidecar", "--url", url, "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=inherited) as process:
        late = threading.Timer(PATIENCE_S, process.kill)
        late.start()
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"listening at https?://(\S+):(\d+)", line)
            assert found, line + process.stderr.read()
            yield process, found[1], int(found[2])
        finally:
            late.cancel()
            process.kill()


def get(connection: http.client.HTTPConnection, path: str, **headers: str) -> tuple[int, str]:
    connection.request(
        "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    response = connection.getresponse()
    return response.status, response.read().decode()


def is_listening(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=PATIENCE_S).close()
    except OSError:
        return False
    return True


def test_the_sidecar_checks_tokens_and_finishes_accepted_requests(elasticsearch: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with (
        sidecar(elasticsearch, "--token-file", str(tmp_path / "token")) as (process, host, port),
        ExitStack() as opened,
    ):
        connection = opened.enter_context(closing(http.client.HTTPConnection(host, port, timeout=PATIENCE_S)))
        assert get(connection, "/healthz") == (200, '{"status":"alive"}')
        assert get(connection, "/readyz")[0] == 503
        assert get(connection, "/_cat/indices")[0] == 401
        assert (
            "esdedup_requests_refused_total"
            in get(connection, "/metrics", Authorization=f"Bearer {TOKEN}")[1]
        )
        passed = json.loads(
            get(connection, "/news/_search?q=a", X_Esdedup_Token=TOKEN, Authorization="ApiKey x")[1]
        )
        assert passed["path"] == "/news/_search?q=a"
        assert passed["headers"]["authorization"] == "ApiKey x"
        assert "x-esdedup-token" not in passed["headers"]

        answers: list[tuple[int, str]] = []
        slow = threading.Thread(
            target=lambda: answers.append(get(connection, "/slow", X_Esdedup_Token=TOKEN))
        )
        slow.start()
        assert _Elasticsearch.received.wait(PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        while is_listening(host, port):
            time.sleep(0.05)
        _Elasticsearch.may_answer.set()
        slow.join(PATIENCE_S)
        assert [status for status, _ in answers] == [200]
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "slowly",
    [
        "atexit.register(time.sleep, 60)",
        # The event loop closes after the signal has been handled.
        "asyncio.Runner.close = lambda _: time.sleep(60)",
    ],
)
def test_a_sidecar_that_exits_slowly_was_not_interrupted(elasticsearch: str, slowly: str) -> None:
    """On a busy machine, a process may need seconds to exit after its server has stopped."""
    slow = f"import asyncio, atexit, time; from esdedup.cli import main; {slowly}; main()"
    command = [sys.executable, "-c", slow, "sidecar", "--url", elasticsearch, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"listening at http://(\S+):(\d+)", process.stderr.readline())
        assert found
        # The server does not handle signals before it answers.
        with closing(http.client.HTTPConnection(found[1], int(found[2]), timeout=PATIENCE_S)) as connection:
            assert get(connection, "/healthz")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert "interrupted" not in process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0


def test_the_sidecar_serves_tls(elasticsearch: str, tmp_path: Path) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", "req", "-x509", "-nodes", *files, *names], check=True, capture_output=True)
    with sidecar(elasticsearch, "--tls-cert-file", certificate, "--tls-key-file", key) as (_, host, port):
        trusting = ssl.create_default_context(cafile=certificate)
        with closing(
            http.client.HTTPSConnection(host, port, timeout=PATIENCE_S, context=trusting)
        ) as connection:
            assert get(connection, "/healthz")[0] == 200
        # The library accepts the certificate only if `trusting` is its file. The response is 503, because
        # this sidecar owns no forest.
        url = f"https://{host}:{port}"
        with pytest.raises(SidecarUnavailable, match="503 "):
            enrich_through(url, trusting=Path(certificate))
        with pytest.raises(SidecarError, match="pass the correct sidecar_ca_certs"):
            enrich_through(url, trusting=None)


def enrich_through(url: str, *, trusting: Path | None) -> None:
    with (
        Elasticsearch("http://localhost:1") as client,
        Dedup(client, sidecar=url, sidecar_ca_certs=trusting, sidecar_patience_s=0.1) as dedup,
    ):
        list(dedup.enrich([{"text": "an article"}]))


def test_a_file_that_is_not_a_certificate_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("nonsense")
    refused = run("sidecar", "--port", 0, "--tls-cert-file", "x.pem", "--tls-key-file", "x.pem")
    assert refused.code == 2
    assert "the certificate cannot be used" in refused.err


def test_help_lists_every_setting_with_variable_and_default(run_process: Run) -> None:
    # Help lines may break anywhere, even at a hyphen.
    shown = "".join(run_process("sidecar", "--help", COLUMNS="250").out.split())
    for setting in settings_of(Settings):
        if setting.flag is not None:
            for part in (setting.flag, setting.description, *setting.variables):
                assert "".join(part.split()) in shown
            assert setting.kind is bool or not setting.default or f"default:{setting.default}]" in shown
    assert "--token<" not in shown


def test_settings_are_printed_and_read_back(run: Run, tmp_path: Path) -> None:
    given = ("--port", 7, "--allow-host", "a", "--allow-host", "b", "--insecure", "--host", "0.0.0.0")
    printed = run(
        "sidecar", *given, "--print-config", ESDEDUP_SIDECAR_TOKEN=TOKEN, ESDEDUP_SIDECAR_WORKERS="3"
    )
    assert (printed.code, TOKEN in printed.out) == (0, False)
    assert "\nport = 7\n" in printed.out
    assert '\nallow_hosts = ["a", "b"]\n' in printed.out
    assert "\nworkers = 3\n" in printed.out
    (tmp_path / "sidecar.toml").write_text(printed.out)
    again = run("sidecar", "--config", "sidecar.toml", "--print-config", ESDEDUP_SIDECAR_TOKEN=TOKEN)
    assert again.out == printed.out


def test_invalid_settings_are_usage_errors(run: Run) -> None:
    refused = run("sidecar", "--host", "0.0.0.0")
    assert (refused.code, "--token-file (ESDEDUP_SIDECAR_TOKEN_FILE)" in refused.err) == (2, True)
    refused = run("sidecar", ESDEDUP_SIDECAR_WORKER="3")
    assert (refused.code, "did you mean ESDEDUP_SIDECAR_WORKERS?" in refused.err) == (2, True)


def test_errors_at_startup_are_json_like_the_log() -> None:
    command = [sys.executable, "-m", "esdedup", "sidecar", "--host", "0.0.0.0", "--log-format", "json"]
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (refused.returncode, json.loads(refused.stderr)["level"]) == (2, "error")


def test_a_stopped_sidecar_says_what_it_did(elasticsearch: str) -> None:
    with sidecar(elasticsearch, "--log-format", "json") as (process, host, port):
        for path, body in (("/news", None), ("/v1/words", b'{"text": "the harbour council"}')):
            with closing(http.client.HTTPConnection(host, port, timeout=PATIENCE_S)) as connection:
                connection.request("GET" if body is None else "POST", path, body)
                assert connection.getresponse().status == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE_S)
    *_, last = map(json.loads, log.splitlines())
    assert re.fullmatch(
        r"stopped after \d:\d\d:\d\d: 2 requests, 0 articles, 0 requests refused, \d+ errors of .*",
        last["message"],
    )
    assert last["level"] == "info"
