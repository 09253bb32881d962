"""The sidecar's connections: how long a head, a body and an answer may take, and how many there may be."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn import Server

from esdedup.sidecar.server import config
from esdedup.sidecar.settings import Settings

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"Content-Length: 4\r\n\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        body = await Request(scope, receive).body()
        await PlainTextResponse(body)(scope, receive, send)
    else:
        # As an application begins and ends.
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
    server = Server(served)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


@pytest.mark.parametrize(
    ("half", "request_timeout_s"),
    [(b"", 600), (HEAD, 600), (HEAD + BODY + b"ab", 1)],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_request_that_does_not_arrive_is_given_up(half: bytes, request_timeout_s: float) -> None:
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


def test_a_body_may_take_longer_than_a_head_and_a_connection_be_idle() -> None:
    async def received() -> list[bytes]:
        async with listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            answers = []
            for _ in range(2):
                writer.write(HEAD + BODY + b"ab")
                # Longer than a head may take.
                await asyncio.sleep(0.4)
                writer.write(b"cd")
                answers.append((await asyncio.wait_for(reader.readuntil(b"abcd"), timeout=30))[:12])
                await asyncio.sleep(0.4)
            writer.close()
            return answers

    assert asyncio.run(received()) == [b"HTTP/1.1 200"] * 2


def test_connections_beyond_the_limit_are_closed() -> None:
    async def received() -> list[bytes]:
        async with listening() as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            answers: list[bytes] = []
            for reader, writer in held:
                try:
                    writer.write(HEAD + BODY + b"abcd")
                    answers.append(await asyncio.wait_for(reader.read(12), timeout=30))
                except ConnectionError:
                    answers.append(b"")
                writer.close()
            return answers

    assert asyncio.run(received()) == [b"HTTP/1.1 200"] * 3 + [b""] * 2


def test_probes_are_answered_however_many_connections_are_open() -> None:
    async def received() -> list[bytes]:
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
            return answers

    assert asyncio.run(received()) == [b"HTTP/1.1 200"] * 3


SMUGGLED = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "refused_at"),
    [
        ([HEAD + SMUGGLED], 0),
        ([HEAD + b"X-A: b", b"\r\n c\r\n" + BODY + b"abcd"], 0),
        ([HEAD + BODY + b"abcd" + HEAD + SMUGGLED], 1),
        ([HEAD + BODY + b"ab", b"cd" + HEAD[:9], HEAD[9:] + SMUGGLED], 1),
    ],
    ids=["at once", "in two parts", "behind another", "partly behind another"],
)
def test_what_two_servers_may_read_differently_is_refused(sent: list[bytes], refused_at: int) -> None:
    async def received() -> bytes:
        async with listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for part in sent:
                writer.write(part)
                await asyncio.sleep(0.1)
            answer = await asyncio.wait_for(reader.read(), timeout=20)
            writer.close()
            return answer

    answer = asyncio.run(received())
    assert answer.count(b"HTTP/1.1 200") == refused_at
    assert answer.count(b"HTTP/1.1 400") == 1
    assert answer.endswith(b"Invalid HTTP request received: " + answer.rpartition(b": ")[2])
