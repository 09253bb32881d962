"""Tables by code point: the class of each character, and its normal form.

They turn work on text into array look-ups for a whole batch. They are built on first use, from Python's
Unicode data and OpenCC's table of Chinese characters.
"""

import functools
import itertools
import unicodedata

import numpy as np
import numpy.typing as npt

ALNUM, HARD_END, FULL_STOP, SPACE, LATIN = (np.uint8(1 << bit) for bit in range(5))
"""Bits of `classes`: a letter or digit; a character that always ends a sentence; the full stop, which ends
one only before white space; white space; a Latin letter or digit."""

TOKEN_SHIFT = np.uint8(5)
"""The highest three bits of `classes`, from this one on, are the character's role in a token."""
JOINER, NUMBER, WORD, WIDE, TOKEN_END = (np.uint8(role) for role in range(1, 6))
"""Roles: a sign that belongs to a number if it is between two digits; a decimal digit; another letter or
digit; one that is a token alone, such as an East Asian one; the `SEPARATOR`. Characters outside tokens have
role 0."""

FIRST_WIDE = 0x2E80
"""East Asian scripts start at this code point."""

# Thai and Lao, Burmese, Khmer: without spaces between words, so a word cannot be told from a sentence.
_UNSPACED = (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))

DROPPED = np.uint32(0xFFFF_FFFF)
"""In `normal_forms`: the character is removed."""
CONTEXTUAL = np.uint32(0xFFFF_FFFE)
"""In `normal_forms`: the normal form has several characters, or depends on adjacent ones."""

SEPARATOR = "\x1e"
"""Follows each text of a batch. It ends a sentence, and no normalised text contains it."""

_HARD_ENDS = "。!?;\n\u061f\u06d4\u0964\u0965\u1362" + SEPARATOR
_SIZE = 0x110000
_BLOCK = 0x100
# Characters that are shown as nothing and are no format characters (category Cf): those that Unicode calls
# ignorable by default (Default_Ignorable_Code_Point in DerivedCoreProperties.txt, which covers code points
# that are not assigned yet), and the placeholder for an object.
_IGNORABLE = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065),
    *(*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000), 0xFFFC),
)
# They look like spaces without being any: the Braille pattern without dots, and the Hangul fillers that stand
# for no part of a syllable (ignorable by default, but fonts and browsers leave room for them).
_BLANK = (0x2800, 0x3164, 0xFFA0)
_MOST_MARKS = 30
# The Arabic ligature U+FDFA unfolds into 18 characters.
_LONGEST_FORM = 18
# Planes 4 to 13 are unassigned, 15 and 16 private.
ASSIGNED = 0x40000
"""All letters, digits and white space are below this code point."""


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of `text`, including lone surrogates: uint32 ``(n,)``."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@functools.cache
def classes() -> npt.NDArray[np.uint8]:
    """Return the class of every code point, its bits and its role in a token: uint8 ``(0x110000,)``."""
    table = np.zeros(_SIZE, np.uint8)
    characters = list(map(chr, range(ASSIGNED)))
    table[:ASSIGNED] |= np.fromiter(map(str.isalnum, characters), np.uint8, ASSIGNED) * ALNUM
    table[:ASSIGNED] |= np.fromiter(map(str.isspace, characters), np.uint8, ASSIGNED) * SPACE
    table[[ord(character) for character in _HARD_ENDS]] |= HARD_END
    table[ord(".")] |= FULL_STOP
    latin_letters = np.flatnonzero(table[:0x250] & ALNUM)
    table[latin_letters] |= LATIN
    roles = np.where(table & ALNUM, WORD, np.uint8(0))
    # Vowel signs and accents that no letter takes in are part of its word.
    marks = (unicodedata.category(character) in {"Mn", "Mc"} for character in characters)
    roles[:ASSIGNED][np.fromiter(marks, bool, ASSIGNED)] = WORD
    for wide in (*_UNSPACED, range(FIRST_WIDE, _SIZE)):
        own = roles[wide.start : wide.stop]
        own[own == WORD] = WIDE
    roles[:ASSIGNED][np.fromiter(map(str.isdecimal, characters), bool, ASSIGNED)] = NUMBER
    roles[[ord(character) for character in ".,:"]] = JOINER
    roles[ord(SEPARATOR)] = TOKEN_END
    return table | roles << TOKEN_SHIFT


def normal_forms() -> npt.NDArray[np.uint32]:
    """Return the normal form of every code point: uint32 ``(0x110000,)``, or `DROPPED` or `CONTEXTUAL`.

    A text without `CONTEXTUAL` characters can be normalised one character at a time.
    """
    return _forms_and_lengths()[0]


@functools.cache
def _forms_and_lengths() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """Return `normal_forms`, and how many characters each of them has, at least 1: uint8 ``(0x110000,)``."""
    table = np.arange(_SIZE, dtype=np.uint32)
    lengths = np.ones(_SIZE, np.uint8)
    table[_composing()] = CONTEXTUAL
    for first in itertools.chain(range(0, ASSIGNED, _BLOCK), range(0xE0000, 0xE1000, _BLOCK)):
        block = [chr(code_point) for code_point in range(first, first + _BLOCK)]
        spaced = " ".join(block)
        if normal_form(spaced) == spaced:
            continue
        for character in block:
            form = normal_form(character)
            lengths[ord(character)] = max(1, len(form))
            if unicodedata.combining(character) or len(form) > 1:
                table[ord(character)] = CONTEXTUAL
            elif not form:
                table[ord(character)] = DROPPED
            elif table[ord(form)] == CONTEXTUAL or unicodedata.combining(form):
                table[ord(character)] = CONTEXTUAL
            elif table[ord(character)] != CONTEXTUAL:
                table[ord(character)] = ord(form)
    return table, lengths


def normal_form(text: str) -> str:
    """Return `text` in NFKC, case folded, with traditional Chinese characters simplified.

    Invisible characters are removed, and other control characters become spaces, except for line breaks and
    tabs. The result can always be encoded as UTF-8.
    """
    # Invisible characters go first, since one between a letter and its accent would keep them apart.
    return _composed(text.translate(_invisible())).casefold().translate(_replacements())


def beginning(text: str, *, max_length: int) -> str:
    """Return as much of `text` as fits into `max_length` characters, each counted with its normal form.

    So the normal form of the result has at most `max_length` characters, and the rest is never unfolded.
    """
    text = text[:max_length]
    if len(text) * _LONGEST_FORM <= max_length:
        return text
    lengths = _forms_and_lengths()[1][code_points(text)].cumsum(dtype=np.int64)
    return text[: np.searchsorted(lengths, max_length, side="right")]


def normal_length(text: str) -> int:
    """Return how many characters the normal form of `text` has at most."""
    if text.isascii():
        return len(text)
    lengths = _forms_and_lengths()[1].take(code_points(text))
    return int(lengths.sum()) if lengths.max() > 1 else len(text)


def _composed(text: str) -> str:
    """Return `text` in NFKC, in time proportional to its length.

    Normalising sorts each run of combining marks, which takes quadratic time. No script needs more than 30
    marks in a row; longer runs are cut, as in the Stream-Safe Text Format (Unicode Standard Annex #15).
    """
    # Nearly no text has a mark at one of these places, of which a full run occupies one.
    sample = text[_MOST_MARKS - 1 :: _MOST_MARKS]
    if not sample or not _are_marks()[code_points(sample)].any():
        return unicodedata.normalize("NFKC", text)
    is_mark = _are_marks()[code_points(text)]
    places = np.arange(1, len(text) + 1)
    places -= np.maximum.accumulate(np.where(is_mark, 0, places))
    cuts = np.flatnonzero(is_mark & (places % _MOST_MARKS == 0)) + 1
    parts = itertools.pairwise((0, *cuts.tolist(), len(text)))
    return "".join([unicodedata.normalize("NFKC", text[start:end]) for start, end in parts])


@functools.cache
def _are_marks() -> npt.NDArray[np.bool_]:
    """Return which code points are combining marks, or have a normal form that begins with one."""
    table = np.zeros(_SIZE, bool)
    characters = map(chr, range(ASSIGNED))
    firsts = (
        unicodedata.normalize("NFKD", each)[0] if unicodedata.decomposition(each) else each
        for each in characters
    )
    table[:ASSIGNED] = np.fromiter(map(unicodedata.combining, firsts), bool, ASSIGNED)
    return table


@functools.cache
def _invisible() -> dict[int, str]:
    formats = (each for each in range(ASSIGNED) if unicodedata.category(chr(each)) == "Cf")
    return dict.fromkeys(itertools.chain(formats, _IGNORABLE), "") | dict.fromkeys(_BLANK, " ")


@functools.cache
def _replacements() -> dict[int, str]:
    table = _simplified()
    for code_point in range(ASSIGNED):
        category = unicodedata.category(chr(code_point))
        if category in {"Cc", "Cs", "Zl", "Zp"} and chr(code_point) not in "\n\t":
            table[code_point] = "\n" if chr(code_point) in "\v\f\x85\u2028\u2029" else " "
    return table


def _simplified() -> dict[int, str]:
    """Map each traditional character to a simplified one, regardless of context.

    In some phrases another character would be right. That does no harm here: both spellings of a text still
    get the same form.
    """
    # Imported here, since most commands normalise no text.
    import opencc

    ranges = (range(0x2E80, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x32000))
    characters = [chr(code_point) for code_point in itertools.chain(*ranges)]
    convert = opencc.OpenCC("t2s").convert
    once = convert("\n".join(characters))
    forms = convert(once).split("\n")
    return {
        ord(character): form
        for character, form in zip(characters, forms, strict=True)
        if form != character and len(form) == 1
    }


def _composing() -> list[int]:
    """Return the code points that may combine with the character before them, or be reordered with it."""
    second = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for code_point in range(ASSIGNED):
        character = chr(code_point)
        if unicodedata.combining(character):
            second.add(code_point)
        decomposed = unicodedata.decomposition(character)
        if decomposed and not decomposed.startswith("<"):
            second.update(int(part, 16) for part in decomposed.split()[1:])
    return sorted(second)
