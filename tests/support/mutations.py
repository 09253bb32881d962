"""Bodies that were valid, with a few bytes, values or lines changed."""

from collections.abc import Callable

from hypothesis import strategies as st

_INSERTED = [
    *(
        b"",
        b"{",
        b"}",
        b'"',
        b",",
        b":",
        b" ",
        b"\\",
        b"\r",
        b"\n",
        b"\r\n",
        b"[",
        b"]",
        b"\0",
        b"\xff",
        b"\xc3",
    ),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud83d", b"\\u0000", b"null", b"true", b"-", b"1e999", b"9" * 400),
    *(
        b'"text":1,',
        b'"text":"b",',
        b'"dedup":{"root":"x"},',
        b'"_id":null,',
        b'"routing":"r",',
        b'"\\u0074ext":',
    ),
    *(b"[" * 2_000, b'{"a":' * 1_200, b"#", b"//", b"'"),
]


@st.composite
def mutated(draw: st.DrawFn, bodies: st.SearchStrategy[bytes], *, most: int = 3) -> bytes:
    """Return one of some bodies after up to so many changes."""
    body = draw(bodies)
    for _ in range(draw(st.integers(0, most))):
        body = draw(st.sampled_from(_CHANGES))(draw, body)
    return body


def _place(draw: st.DrawFn, body: bytes) -> int:
    return draw(st.integers(0, len(body)))


def _insert(draw: st.DrawFn, body: bytes) -> bytes:
    at = _place(draw, body)
    return body[:at] + draw(st.sampled_from(_INSERTED)) + body[at:]


def _insert_at_key(draw: st.DrawFn, body: bytes) -> bytes:
    """Insert where a key begins, so that it often stays JSON."""
    places = [at + 1 for at, byte in enumerate(body) if byte in b"{,:["]
    at = draw(st.sampled_from(places)) if places else 0
    return body[:at] + draw(st.sampled_from(_INSERTED)) + body[at:]


def _cut(draw: st.DrawFn, body: bytes) -> bytes:
    first, last = sorted((_place(draw, body), _place(draw, body)))
    return body[:first] + body[min(last, first + 40) :]


def _break_off(draw: st.DrawFn, body: bytes) -> bytes:
    return body[: _place(draw, body)]


def _change_byte(draw: st.DrawFn, body: bytes) -> bytes:
    at = _place(draw, body)
    return body[:at] + bytes([draw(st.integers(0, 255))]) + body[at + 1 :]


def _repeat(draw: st.DrawFn, body: bytes) -> bytes:
    first, last = sorted((_place(draw, body), _place(draw, body)))
    return body[:last] + body[first:]


def _move_lines(draw: st.DrawFn, body: bytes) -> bytes:
    return b"\n".join(draw(st.permutations(body.split(b"\n"))))


_CHANGES: list[Callable[[st.DrawFn, bytes], bytes]] = [
    *(_insert, _insert_at_key, _insert_at_key, _cut, _break_off, _change_byte, _repeat, _move_lines)
]
