"""Sockets that listen."""

import socket

from esdedup.serving.connections import listen


def test_answers_are_sent_without_waiting_for_acknowledgements() -> None:
    """What uvicorn sends in two parts would take up to 40 ms longer."""
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname(), timeout=10),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
