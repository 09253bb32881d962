"""The sidecar on a socket, its deployment files, and the heads of requests that it refuses."""

import asyncio
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from esdedup.ingest.settings import settings_of
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn import Server

from docs import made_from_code
from esdedup.serving.connections import listen
from esdedup.serving.framing import framing_fault
from esdedup.sidecar.server import config
from esdedup.sidecar.settings import Settings
from tests.support.wire import first_bytes, running

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"Content-Length: 4\r\n\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        body = b"" if scope["path"] == "/unread" else await Request(scope, receive).body()
        await PlainTextResponse(body)(scope, receive, send)
    else:
        # ASGI's lifespan protocol.
        for done in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{done}.complete"})


@contextlib.asynccontextmanager
async def listening(*, request_timeout_s: float = 600) -> AsyncIterator[int]:
    settings = Settings(
        port=0,
        header_timeout_s=0.3,
        request_timeout_s=request_timeout_s,
        keep_alive_s=60,
        max_connections=3,
    )
    served = config(application, settings)
    served.port = 0
    async with running(Server(served)) as port:
        yield port


@pytest.mark.parametrize(
    ("half", "request_timeout_s"),
    [(b"", 600), (HEAD, 600), (HEAD + BODY + b"ab", 1)],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_request_that_does_not_arrive_times_out(half: bytes, request_timeout_s: float) -> None:
    async def received() -> bytes:
        async with listening(request_timeout_s=request_timeout_s) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(half)
            try:
                return await asyncio.wait_for(reader.read(), timeout=20)
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

    assert asyncio.run(received()) == b""


async def test_head_body_and_idle_timeouts_differ() -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answers = []
        for _ in range(2):
            writer.write(HEAD + BODY + b"ab")
            # The pause is longer than the time limit for a request's head.
            await asyncio.sleep(0.4)
            writer.write(b"cd")
            answers.append((await asyncio.wait_for(reader.readuntil(b"abcd"), timeout=30))[:12])
            await asyncio.sleep(0.4)
        writer.close()
        assert answers == [b"HTTP/1.1 200"] * 2


async def test_connections_beyond_the_limit_are_closed() -> None:
    async with listening() as port:
        answers = await first_bytes(port, HEAD + BODY + b"abcd", connections=5)
        assert answers == [b"HTTP/1.1 200"] * 3 + [b""] * 2


async def test_probes_are_answered_beyond_the_connection_limit() -> None:
    async with listening() as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        answers: list[bytes] = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answers.append(await asyncio.wait_for(reader.read(12), timeout=30))
            writer.close()
        for _, writer in held:
            writer.close()
        assert answers == [b"HTTP/1.1 200"] * 3


SMUGGLED = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "refused_at"),
    [
        ([HEAD + SMUGGLED], 0),
        ([HEAD + b"X-A: b", b"\r\n c\r\n" + BODY + b"abcd"], 0),
        ([HEAD + BODY + b"abcd" + HEAD + SMUGGLED], 1),
        ([HEAD + BODY + b"ab", b"cd" + HEAD[:9], HEAD[9:] + SMUGGLED], 1),
    ],
    ids=["in one part", "in two parts", "after another", "partly after another"],
)
async def test_requests_with_ambiguous_framing_are_refused(sent: list[bytes], refused_at: int) -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in sent:
            writer.write(part)
            await asyncio.sleep(0.1)
        answer = await asyncio.wait_for(reader.read(), timeout=20)
        writer.close()
    assert answer.count(b"HTTP/1.1 200") == refused_at
    assert answer.count(b"HTTP/1.1 400") == 1
    assert answer.endswith(b"Invalid HTTP request received: " + answer.rpartition(b": ")[2])


ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = [ROOT / "docker-compose.yml", *(path for path in DEPLOY.rglob("*") if path.is_file())]
# Suffixes that Prometheus adds to the name of a histogram.
PARTS = ("_bucket", "_sum", "_count")


@pytest.mark.parametrize("apart", [False, True])
async def test_a_body_that_breaks_the_protocol_is_refused_once(
    apart: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The application responds before it has read the body."""
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /unread HTTP/1.1\r\nHost: localhost\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        if apart:
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(b"no length\r\n")
        answer = await asyncio.wait_for(reader.read(), timeout=20)
        writer.close()
    # If the fault arrives after a pause, the application has already responded.
    status = b"200" if apart else b"400"
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    assert answer.count(b"HTTP/1.1") == 1
    assert not any(each.exc_info for each in caplog.records), caplog.text


def expressions() -> list[str]:
    """Return all expressions of the dashboard and the alerts."""
    dashboard: dict[str, Any] = json.loads((DEPLOY / "grafana/esdedup.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    alerts = re.findall(r"expr: (?:>-\n)?(.*?)\n +for:", (DEPLOY / "alerts.yml").read_text(), re.DOTALL)
    assert len(alerts) == 6
    return shown + alerts


def test_dashboard_and_alerts_use_exactly_the_existing_metrics() -> None:
    described = {each.name: each for each in made_from_code.metrics()}
    histograms = {name for name, each in described.items() if each.type == "histogram"}
    series = {f"{name}{part}" for name in histograms for part in PARTS} | (described.keys() - histograms)
    used = {name for text in expressions() for name in re.findall(r"\besdedup_\w+", text)}
    assert used <= series
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in used} == set(described)


def test_labels_in_dashboard_and_alerts_exist() -> None:
    described = {each.name: each for each in made_from_code.metrics()}
    for text in expressions():
        assert text.count("(") == text.count(")")
        for name, label, values in re.findall(r'(esdedup_\w+)\{(\w+)=~?"([^"]*)"', text):
            metric = described[re.sub("_(bucket|sum|count)$", "", name)]
            assert metric.labels == (label,)
            assert set(values.split("|")) <= set(metric.values)
        for label in re.findall(r"by \((?:le, )?(\w+)\)", text):
            assert label == "le" or label in {each for metric in described.values() for each in metric.labels}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_in_deployment_files_is_a_setting(path: Path) -> None:
    known = {variable for setting in settings_of(Settings) for variable in setting.variables}
    assert set(re.findall(r"\bESDEDUP_SIDECAR_\w+", path.read_text())) <= known


def test_probes_of_pods_use_existing_paths() -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    assert re.findall(r"(\w+)Probe:\n +httpGet: \{path: (\S+),", text) == [
        ("startup", "/healthz"),
        ("liveness", "/healthz"),
        ("readiness", "/readyz"),
    ]
    # A service named esdedup-sidecar would set variables with the same prefix as those of the settings.
    assert "\n  name: esdedup\n" in text
    assert "enableServiceLinks: false" in text


def test_the_tests_named_for_each_threat_exist() -> None:
    threats = (ROOT / "docs/sidecar.md").read_text().partition("\n## Threats and protections")[2]
    named = set(re.findall(r"`(test_\w+)`", threats))
    assert len(named) > 10
    written = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named == {name for name in named if f"def {name}(" in written}


def test_all_mounted_files_exist() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    mounted = re.findall(r"- (\./[^:]+):", compose)
    assert len(mounted) == 6
    assert all((ROOT / path).is_file() for path in mounted)


def test_one_service_builds_the_image_for_all_services() -> None:
    """Compose refuses two builds of one image, and pulls images from registries unless told not to."""
    compose = (ROOT / "docker-compose.yml").read_text()
    assert len(re.findall(r"^ +build:", compose, re.MULTILINE)) == 1
    ours = re.findall(r"^ +image: esdedup\n(?: +#.*\n)*(.*)$", compose, re.MULTILINE)
    assert [each.strip() for each in ours] == ["pull_policy: never"] * 2


def test_compose_starts_every_service_within_limits() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert set(services) == {"elasticsearch", "sidecar-1", "sidecar-2", "feeder", "prometheus", "grafana"}
    # `docker compose up` leaves out services with a profile.
    assert not any("profiles" in each for each in services.values())
    assert all("mem_limit" in each for each in services.values())
    assert all(set(each.get("depends_on", ())) <= set(services) for each in services.values())


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "esdedup-sidecar.service").read_text()
    assert "ExecStart=/opt/esdedup/bin/esdedup sidecar --config " in text
    analyze = shutil.which("systemd-analyze")
    # Many containers have no systemd.
    if analyze is not None:
        installed = tmp_path / "esdedup-sidecar.service"
        installed.write_text(text.replace("/opt/esdedup/bin/esdedup", sys.executable))
        command = [analyze, "verify", "--man=no", str(installed)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


START = b"POST /news/_bulk HTTP/1.1\r\nHost: localhost\r\n"
TWICE = "more than one header gives the length of the body"
FAULTS = {
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n": TWICE,
    b"Content-Length: 3\r\nContent-Length: 3\r\n": TWICE,
    b"Transfer-Encoding: chunked\r\nX: y\r\ntransfer-ENCODING : identity\r\n": TWICE,
    b"X-A: b\r\n c\r\n": "a header continues on the next line",
    b"X-A: b\r\n\tc\r\n": "a header continues on the next line",
    b"X-A: b\nX-B: c\r\n": "its lines must end with CR LF",
}


@pytest.mark.parametrize(("headers", "fault"), FAULTS.items())
def test_faults_of_a_head_are_found(headers: bytes, fault: str) -> None:
    assert framing_fault(START + headers + b"\r\n") == fault
    # An incomplete head is checked as far as it has arrived.
    assert framing_fault(START + headers + b"X: y") == fault


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (b"post / HTTP/1.1\r\n\r\n", "the method must be in capitals"),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0 has no Transfer-Encoding"),
        (b"GET / HTTP/1.1\n\n", "its lines must end with CR LF"),
        (b"GET / HTTP/1.1\r\n\n", "its lines must end with CR LF"),
        (b"GET / HTTP/1.1\r\nA: b\r\n\n", "its lines must end with CR LF"),
        (b"GET / HTTP/2.0\r\n\r\n", "only HTTP/1.0 and HTTP/1.1 are supported"),
    ],
)
def test_faults_of_a_first_line_are_found(head: bytes, fault: str) -> None:
    assert framing_fault(head) == fault


@pytest.mark.parametrize(
    "request_bytes",
    [
        START + b"Content-Length: 40\r\n\r\nContent-Length: 1\nTransfer-Encoding: no\n head\n",
        START + b"Transfer-Encoding: chunked\r\n\r\n5\r\na\nb\nc\r\n0\r\n\r\n",
        b"\r\n\r\n" + START + b"\r\n",
        b"POS",
        b"M-SEARCH / HTTP/1.1\r\n\r\n",
        b"",
    ],
)
def test_valid_and_incomplete_heads_are_accepted(request_bytes: bytes) -> None:
    assert all(framing_fault(request_bytes[:end]) is None for end in range(len(request_bytes) + 1))


def test_responses_are_sent_without_waiting_for_acknowledgements() -> None:
    """Otherwise responses that uvicorn sends in two parts take up to 40 ms longer."""
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname(), timeout=10),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
