"""Bodies are unpacked as Elasticsearch unpacks them, and only as far as they may be."""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from random import Random

import pytest

from esdedup.serving.limits import HOLD
from esdedup.sidecar.bodies import unpacked
from esdedup.sidecar.bulk_request import RequestRefused

ONE, OTHER = b'{"index":{}}\n{"text":"a"}\n', Random(1).randbytes(50_000)
MOST_BYTES = 60_000


def _name(value: object) -> str:
    # Not the bytes themselves, in which the time is.
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


def _unpacked(body: bytes, *, encoding: str = "gzip", hold: Callable[[int], None] = lambda _: None) -> bytes:
    return asyncio.run(unpacked(body, scope={HOLD: hold}, encoding=encoding, most_bytes=MOST_BYTES))


@pytest.mark.parametrize(
    ("packed", "whole"),
    [
        (gzip.compress(ONE), ONE),
        (gzip.compress(b""), b""),
        # Files that were joined.
        (gzip.compress(ONE) + gzip.compress(OTHER), ONE + OTHER),
        (gzip.compress(OTHER) + gzip.compress(b"") + gzip.compress(ONE), OTHER + ONE),
        (gzip.compress(ONE) * 900, ONE * 900),
        # Files that were filled up.
        (gzip.compress(ONE) + bytes(512), ONE),
        (gzip.compress(bytes(MOST_BYTES)), bytes(MOST_BYTES)),
    ],
    ids=_name,
)
def test_all_that_is_packed_comes_out(packed: bytes, whole: bytes) -> None:
    sizes: list[int] = []
    assert _unpacked(packed, hold=sizes.append) == whole
    assert sizes == [len(whole)]


@pytest.mark.parametrize(
    ("packed", "status", "reason"),
    [
        (b"", 400, "breaks off"),
        (ONE, 400, "not gzip"),
        (gzip.compress(ONE)[:-1], 400, "breaks off"),
        (gzip.compress(ONE) + gzip.compress(ONE)[:-9], 400, "breaks off"),
        (gzip.compress(ONE)[:-8] + bytes(8), 400, "not gzip"),
        (gzip.compress(bytes(MOST_BYTES + 1)), 413, "60,000 bytes"),
        (gzip.compress(OTHER) * 2, 413, "60,000 bytes"),
        (gzip.compress(b"") * 10_001, 400, "10,000 parts"),
    ],
    ids=_name,
)
def test_what_is_damaged_or_too_large_is_refused(packed: bytes, status: int, reason: str) -> None:
    with pytest.raises(RequestRefused, match=reason) as refused:
        _unpacked(packed)
    assert refused.value.status == status


@pytest.mark.parametrize("window_bits", [zlib.MAX_WBITS, -zlib.MAX_WBITS])
def test_deflate_is_unpacked_with_its_header_and_without(window_bits: int) -> None:
    def packed(content: bytes) -> bytes:
        return zlib.compress(content, wbits=window_bits)

    sizes: list[int] = []
    assert _unpacked(packed(ONE), encoding="deflate", hold=sizes.append) == ONE
    assert sizes == [len(ONE)]
    for broken, status in ((packed(OTHER)[:-9], 400), (b"", 400), (packed(bytes(MOST_BYTES + 1)), 413)):
        with pytest.raises(RequestRefused) as refused:
            _unpacked(broken, encoding="deflate")
        assert refused.value.status == status


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "identity, gzip", "gzip, identity"])
def test_what_no_two_servers_may_unpack_alike_is_refused(encoding: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        _unpacked(gzip.compress(ONE), encoding=encoding)
    assert refused.value.status == 415
