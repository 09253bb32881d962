"""Hashes of words, and of numbers in arrays."""

import dataclasses
import zlib
from collections.abc import Callable, Sequence

import mmh3
import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError

HashFunction = Callable[[bytes], int]
"""Hashes the UTF-8 bytes of a word to an unsigned integer."""

_LOW_32 = 0xFFFF_FFFF
_LOW_64 = 0xFFFF_FFFF_FFFF_FFFF


def murmur64(token: bytes) -> int:
    """Return the first 64 bits of MurmurHash3 (x64, 128 bits, seed 0) as an unsigned integer."""
    return mmh3.hash64(token, seed=0, x64arch=True, signed=False)[0]


def crc32(token: bytes) -> int:
    """Return the CRC-32 of ISO-HDLC, as used by gzip and PNG: 32 bits."""
    return zlib.crc32(token)


def python2(token: bytes) -> int:
    """Return the `hash` of a string in 64-bit Python 2, unsigned: h * 1000003 ^ c over the characters.

    This is the hash of a `unicode` object, the type of word that segmenters returned. A `str` in UTF-8 has a
    different hash, unless it is ASCII.
    """
    characters = token.decode()
    value = ord(characters[0]) << 7 if characters else 0
    for character in characters:
        value = value * 1_000_003 & _LOW_64 ^ ord(character)
    value ^= len(characters)
    # CPython replaces -1 by -2, since -1 indicates an error.
    return value - 1 if value == _LOW_64 else value


def times33(token: bytes) -> int:
    """Return Bernstein's hash, djb2: h * 33 + c over bytes, starting with 5381: 32 bits."""
    value = 5381
    for byte in token:
        value = value * 33 + byte & _LOW_32
    return value


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each value, computed by the finalizer of MurmurHash3, in the same shape."""
    values = values ^ values >> np.uint64(33)
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values


@dataclasses.dataclass(frozen=True)
class TokenHash:
    """The hash of a profile's words, with a name that is part of the profile's label.

    Different functions need different names. For use in several processes, the function must be importable.

    Raises:
        SettingError: The name is empty, or the number of bits is not from 1 to 64.
    """

    name: str
    # From the UTF-8 bytes of a word to an unsigned integer of `bits` bits.
    function: HashFunction
    bits: int = 64

    def __post_init__(self) -> None:
        if not self.name:
            raise SettingError("a custom hash needs a name, which becomes part of the profile's label")
        if not 1 <= self.bits <= 64:
            raise SettingError(f"the hash {self.name!r} has {self.bits} bits; it must have 1 to 64")

    def of_bytes(self, word: bytes) -> int:
        """Return the 64-bit hash of a word in UTF-8."""
        return int(self.of([word.decode()])[0])

    def of(self, words: Sequence[str]) -> npt.NDArray[np.uint64]:
        """Return the 64-bit hash of each word, uint64 ``(n,)``.

        A hash with fewer bits is extended by the finalizer of MurmurHash3, a permutation of 64-bit numbers in
        which every output bit depends on every input bit, so different hashes stay different. If the missing
        bits were zeros, they would be equal in all fingerprints.

        Raises:
            SettingError: The function did not return an integer of `bits` bits.
        """
        hashes = [self.function(word.encode()) for word in words]
        for word, value in zip(words, hashes, strict=True):
            if type(value) is not int or not 0 <= value < 1 << self.bits:
                raise SettingError(
                    f"the hash {self.name!r} returned {value!r} for {word!r}: it must be an integer from 0 "
                    f"to 2^{self.bits} - 1"
                )
        values = np.array(hashes, np.uint64)
        return values if self.bits == 64 else mixed(values)


MURMUR3 = TokenHash("murmur3", murmur64)
TOKEN_HASHES = {
    each.name: each
    for each in (
        MURMUR3,
        TokenHash("crc32", crc32, bits=32),
        TokenHash("python2", python2),
        TokenHash("times33", times33, bits=32),
    )
}
"""The hashes that a profile can name."""


def get_token_hash(name: str) -> TokenHash:
    """Return the hash of the given name; raise `SettingError` if there is none."""
    if name not in TOKEN_HASHES:
        raise SettingError(f"no hash {name!r}; there are {', '.join(TOKEN_HASHES)}")
    return TOKEN_HASHES[name]
