"""Detects request heads that two servers may parse differently (request smuggling; RFC 9112, 11.2). Pure.

A proxy must refuse such requests. The parser, h11, accepts them for compatibility with old clients.
"""

import re

_END = re.compile(rb"\n\r?\n")
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FOLD = re.compile(rb"\n[ \t]")
_METHOD = re.compile(rb"[A-Z-]+ ")
_LENGTH = re.compile(rb"^content-length[ \t]*:", re.IGNORECASE | re.MULTILINE)
_CODING = re.compile(rb"^transfer-encoding[ \t]*:", re.IGNORECASE | re.MULTILINE)
_OLD_VERSION = b" HTTP/1.0"
_VERSIONS = (b" HTTP/1.1", _OLD_VERSION)


def framing_fault(begun: bytes) -> str | None:
    """Return the fault in the received part of a request's head; None if there is no fault so far."""
    # Blank lines before a request are ignored.
    begun = begun.lstrip(b"\r\n")
    end = _END.search(begun)
    head = begun if end is None else begun[: end.end()]
    first_line, line_end, _ = head.partition(b"\r\n")
    if _BARE_LINE_FEED.search(head):
        return "its lines must end with CR LF"
    if _FOLD.search(head):
        return "a header continues on the next line"
    if b" " in first_line and not _METHOD.match(first_line):
        return "the method must be in capitals"
    if line_end and not first_line.endswith(_VERSIONS):
        return "only HTTP/1.0 and HTTP/1.1 are supported"
    lengths, codings = len(_LENGTH.findall(head)), len(_CODING.findall(head))
    if lengths + codings > 1:
        return "more than one header gives the length of the body"
    if codings and first_line.endswith(_OLD_VERSION):
        return "HTTP/1.0 has no Transfer-Encoding"
    return None
