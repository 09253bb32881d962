"""What travels between a feeder and a sidecar: pages and their fingerprints, and what was decided. Pure.

Each message is the length of a header as a little-endian number of 4 bytes, the header as JSON, and then
columns, one after the other, whose lengths the header says. All numbers are little-endian.

A feeder sends `PAGE` for each page and `PASSAGE` for each passage. If the pages are fingerprinted, it goes on
with a byte for each page, whether it has a fingerprint, and with the signatures. It gets an outcome for each
page, and a bit for each passage, the highest of a byte first: whether it is left out.

Without fingerprints, the bits are those that hold if the pages come now. With them, a page of which something
else is to be left out has the outcome 0 and the right bits; all others are assigned.
"""

import struct
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pydantic
from esdedup.ingest.fingerprinted_pages import Bools, FingerprintedPages, PassagesOfPages

from esdedup.elastic.limits import DEFAULT_LIMITS, MAX_ID_BYTES
from esdedup.errors import EsdedupError
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import NO_PAGE, Assignment, Kind
from esdedup.neighbours.relation import Relation, relation_of
from esdedup.text.passages import Passages

ASK_TYPE = "application/vnd.esdedup.assign.v1"
ANSWER_TYPE = "application/vnd.esdedup.assigned.v1"
"""The number is that of the format."""

MOST_PAGES = DEFAULT_LIMITS.bulk_documents
"""Of one message, as many as a batch has at most."""

PAGE = np.dtype([("id", "<u8"), ("passages", "<u4")])
PASSAGE = np.dtype([("hash", "<u8"), ("letters", "<u4"), ("flags", "u1")])
PROSE, FIGURES, LEFT_OUT = 1, 2, 4
"""The bits of `flags`; `LEFT_OUT` has a meaning with fingerprints only."""

_LENGTH = struct.Struct("<I")
# Of a passage: sums and ranks are computed in 64 bits.
_MOST_LETTERS = 2**31 - 1
_KINDS = (None, Kind.NEW_ROOT, Kind.JOINED, Kind.KNOWN, Kind.WITHOUT_FINGERPRINT)

_Header = TypeVar("_Header", bound=pydantic.BaseModel)
_Id = Annotated[str, pydantic.Field(max_length=MAX_ID_BYTES)]


class Malformed(EsdedupError):
    """A message is not in the format."""


class AskHeader(pydantic.BaseModel, extra="forbid", strict=True):
    """The header of what a feeder sends."""

    forest: str
    profile: str
    # How many there are.
    pages: Annotated[int, pydantic.Field(ge=0, le=MOST_PAGES)]
    # Of all pages together.
    passages: Annotated[int, pydantic.Field(ge=0)]
    is_fingerprinted: bool
    # Of each page; None for those that are not known.
    sites: list[str | None]
    articles: list[_Id | None]


class AnswerHeader(pydantic.BaseModel, extra="forbid", strict=True):
    """The header of what a feeder gets."""

    profile: str
    pages: Annotated[int, pydantic.Field(ge=0)]
    passages: Annotated[int, pydantic.Field(ge=0)]


def outcome_dtype(relation: Relation) -> np.dtype[Any]:
    """Return what an outcome is.

    Its kind is 0 for a page that is not assigned, whose other values mean nothing; 1 for a new root; 2 for a
    page that has joined a cluster; 3 for a page or node that was known; and 4 for a page without a
    fingerprint, of which only `seq` and `time_ms` count.
    """
    return np.dtype(
        [
            ("kind", "u1"),
            ("seq", "<i8"),
            ("time_ms", "<i8"),
            ("node", "u1", (relation.id_bytes,)),
            ("root", "u1", (relation.id_bytes,)),
            ("signature", relation.dtype),
        ]
    )


def ask_bytes(
    pages: PassagesOfPages, fingerprinted: FingerprintedPages | None, *, forest: str, profile: Profile
) -> bytes:
    """Return what a feeder sends.

    Args:
        pages: The pages.
        fingerprinted: The same with their fingerprints; None asks what to leave out.
        forest: The name of the forest.
        profile: Decides the fingerprints.
    """
    given = pages.passages
    header = AskHeader(
        forest=forest,
        profile=profile.label,
        pages=len(pages),
        passages=len(given.hashes),
        is_fingerprinted=fingerprinted is not None,
        sites=list(pages.sites),
        articles=list(pages.articles),
    )
    page_column = np.zeros(len(pages), PAGE)
    page_column["id"] = pages.pages
    page_column["passages"] = np.bincount(given.texts, minlength=len(pages))
    passages = np.zeros(len(given.hashes), PASSAGE)
    passages["hash"], passages["letters"] = given.hashes, given.letters
    passages["flags"] = PROSE * given.are_prose + FIGURES * given.have_figures
    columns = [page_column, passages]
    if fingerprinted is not None:
        passages["flags"] += (LEFT_OUT * fingerprinted.omitted).astype(np.uint8)
        columns += [fingerprinted.exists.astype(np.uint8), fingerprinted.signatures]
    return _message(header, columns)


def read_ask_header(content: bytes) -> AskHeader:
    """Return the header of what a feeder has sent.

    Raises:
        Malformed: It has none.
    """
    return _header(AskHeader, content)[0]


def read_ask(content: bytes, *, profile: Profile) -> PassagesOfPages | FingerprintedPages:
    """Return what a feeder has sent.

    Args:
        content: Its message.
        profile: The one of its header.

    Raises:
        Malformed: It is not in the format.
    """
    header, rest = _header(AskHeader, content)
    count = header.pages
    if not count == len(header.sites) == len(header.articles):
        raise Malformed("there must be as many sites and articles as pages: null where one is not known")
    dtypes: list[tuple[np.dtype[Any], int]] = [(PAGE, count), (PASSAGE, header.passages)]
    if header.is_fingerprinted:
        dtypes += [(np.dtype("u1"), count), (profile.signature_dtype, count)]
    page_column, passages, *fingerprints = _columns(rest, dtypes)
    counts = page_column["passages"].astype(np.int64)
    if counts.sum() != header.passages:
        raise Malformed(f"the pages have {counts.sum():,} passages, and the header says {header.passages:,}")
    if np.any((page_column["id"] == NO_PAGE) & (counts > 0)):
        raise Malformed("a page with passages has the id 0, which is that of pages without a letter or digit")
    if np.any(passages["letters"] > _MOST_LETTERS) or np.any(passages["flags"] > PROSE | FIGURES | LEFT_OUT):
        raise Malformed("a passage has too many letters, or an unknown flag")
    flags = passages["flags"]
    pages = PassagesOfPages(
        passages=Passages(
            hashes=passages["hash"].astype(np.uint64),
            letters=passages["letters"].astype(np.int64),
            are_prose=(flags & PROSE) > 0,
            have_figures=(flags & FIGURES) > 0,
            texts=np.repeat(np.arange(count), counts),
            text_count=count,
        ),
        pages=page_column["id"].astype(np.uint64),
        sites=header.sites,
        articles=header.articles,
    )
    if not header.is_fingerprinted:
        return pages
    exists, signatures = fingerprints[0] == 1, fingerprints[1].copy()
    if np.any(fingerprints[0] > 1) or np.any(exists & (pages.pages == NO_PAGE)):
        raise Malformed("a page without a letter or digit, whose id is 0, has a fingerprint")
    # As the fingerprinter leaves them.
    signatures[~exists] = np.zeros(1, signatures.dtype)
    if signatures.dtype.names:
        signatures["indexed"] = 0
    return FingerprintedPages(of=pages, omitted=(flags & LEFT_OUT) > 0, signatures=signatures, exists=exists)


def answer_bytes(decided: Sequence[Assignment | None], omitted: Bools, *, profile: Profile) -> bytes:
    """Return what a feeder gets.

    Args:
        decided: For each page its assignment; None if it is not assigned.
        omitted: Which passages are to be left out of the pages, bool ``(passages,)``.
        profile: The forest's.
    """
    relation = relation_of(profile)
    outcomes = np.zeros(len(decided), outcome_dtype(relation))
    for at, each in enumerate(decided):
        if each is None:
            continue
        outcomes["kind"][at] = _KINDS.index(each.kind)
        outcomes["seq"][at], outcomes["time_ms"][at] = each.seq, each.time_ms
        if each.node is not None and each.root is not None:
            outcomes["node"][at] = np.frombuffer(bytes.fromhex(each.node), np.uint8)
            outcomes["root"][at] = np.frombuffer(bytes.fromhex(each.root), np.uint8)
            outcomes["signature"][at] = np.frombuffer(each.signature, relation.dtype)[0]
    header = AnswerHeader(profile=profile.label, pages=len(decided), passages=len(omitted))
    return _message(header, [outcomes, np.packbits(omitted)])


def read_answer(content: bytes, *, profile: Profile) -> tuple[list[Assignment | None], Bools]:
    """Return what a feeder got: what `answer_bytes` takes.

    Raises:
        Malformed: It is not in the format, or of another profile.
    """
    header, rest = _header(AnswerHeader, content)
    if header.profile != profile.label:
        raise Malformed(f"it is of the profile {header.profile}")
    relation = relation_of(profile)
    packed = np.dtype("u1"), -(-header.passages // 8)
    outcomes, bits = _columns(rest, [(outcome_dtype(relation), header.pages), packed])
    if np.any(outcomes["kind"] >= len(_KINDS)):
        raise Malformed("an outcome is of a kind that is not known here")
    nodes, roots = (bytes(outcomes[name].tobytes()).hex() for name in ("node", "root"))
    digits, signatures = 2 * relation.id_bytes, np.ascontiguousarray(outcomes["signature"])
    decided: list[Assignment | None] = []
    for at, (number, seq, time_ms) in enumerate(
        zip(outcomes["kind"].tolist(), outcomes["seq"].tolist(), outcomes["time_ms"].tolist(), strict=True)
    ):
        if (kind := _KINDS[number]) is None:
            decided.append(None)
            continue
        place, has_node = slice(at * digits, (at + 1) * digits), kind is not Kind.WITHOUT_FINGERPRINT
        decided.append(
            Assignment(
                kind=kind,
                node=nodes[place] if has_node else None,
                root=roots[place] if has_node else None,
                seq=seq,
                time_ms=time_ms,
                signature=signatures[at].tobytes(),
            )
        )
    return decided, np.unpackbits(bits, count=header.passages).astype(bool)


def _message(header: pydantic.BaseModel, columns: Sequence[npt.NDArray[Any]]) -> bytes:
    content = header.model_dump_json().encode()
    return b"".join((_LENGTH.pack(len(content)), content, *(column.tobytes() for column in columns)))


def _header(kind: type[_Header], content: bytes) -> tuple[_Header, memoryview]:
    """Return the header of a message, and what follows."""
    if len(content) < _LENGTH.size:
        raise Malformed(f"it has {len(content)} bytes, and no header")
    (length,) = _LENGTH.unpack_from(content)
    if length > len(content) - _LENGTH.size:
        raise Malformed(f"its header is said to have {length:,} bytes, which are not all there")
    start = _LENGTH.size + length
    try:
        header = kind.model_validate_json(content[_LENGTH.size : start])
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the header"
        raise Malformed(f"its header cannot be read: {where}: {first['msg']}") from error
    return header, memoryview(content)[start:]


def _columns(rest: memoryview, dtypes: Sequence[tuple[np.dtype[Any], int]]) -> list[npt.NDArray[Any]]:
    """Return what follows a header: arrays of these types and lengths."""
    expected = sum(dtype.itemsize * count for dtype, count in dtypes)
    if len(rest) != expected:
        raise Malformed(f"{len(rest):,} bytes follow the header, which speaks of {expected:,}")
    columns, start = [], 0
    for dtype, count in dtypes:
        columns.append(np.frombuffer(rest, dtype, count, start))
        start += dtype.itemsize * count
    return columns
