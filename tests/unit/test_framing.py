"""Requests that two servers may read differently are refused, whatever the parser takes."""

import pytest

from esdedup.serving.framing import framing_fault

START = b"POST /news/_bulk HTTP/1.1\r\nHost: localhost\r\n"
TWICE = "it says more than once how long its body is"
FAULTS = {
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n": TWICE,
    b"Content-Length: 3\r\nContent-Length: 3\r\n": TWICE,
    b"Transfer-Encoding: chunked\r\nX: y\r\ntransfer-ENCODING : identity\r\n": TWICE,
    b"X-A: b\r\n c\r\n": "a header goes on in the next line",
    b"X-A: b\r\n\tc\r\n": "a header goes on in the next line",
    b"X-A: b\nX-B: c\r\n": "its lines must end with CR LF",
}


@pytest.mark.parametrize(("headers", "fault"), FAULTS.items())
def test_what_is_wrong_with_a_head_is_found(headers: bytes, fault: str) -> None:
    assert framing_fault(START + headers + b"\r\n") == fault
    # A head that has not come whole is judged as far as it has.
    assert framing_fault(START + headers + b"X: y") == fault


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (b"post / HTTP/1.1\r\n\r\n", "methods are written in capitals"),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0 has no Transfer-Encoding"),
        (b"GET / HTTP/1.1\n\n", "its lines must end with CR LF"),
        (b"GET / HTTP/1.1\r\n\n", "its lines must end with CR LF"),
        (b"GET / HTTP/1.1\r\nA: b\r\n\n", "its lines must end with CR LF"),
        (b"GET / HTTP/2.0\r\n\r\n", "only HTTP/1.0 and HTTP/1.1 are spoken here"),
    ],
)
def test_what_is_wrong_with_a_first_line_is_found(head: bytes, fault: str) -> None:
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
def test_what_is_right_or_not_known_yet_is_taken(request_bytes: bytes) -> None:
    assert all(framing_fault(request_bytes[:end]) is None for end in range(len(request_bytes) + 1))
