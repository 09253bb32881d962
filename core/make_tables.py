"""Writes `data/characters.txt` and `data/references.txt`, the tables that are compiled into the crate.

Fingerprints depend on the tables, so they are generated once and checked in. Run this script with the locked
versions of unicodedata2, which has the tables of Unicode 18.0, and OpenCC:

.venv/bin/python core/make_tables.py
"""

import functools
import html
import html.entities
import itertools
import re
import unicodedata as of_python
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import unicodedata2 as unicodedata

FOLDER = Path(__file__).parent / "data"

# All letters, digits and white space are below this code point: planes 4 to 13 are unassigned, 15 and 16 are
# private.
ASSIGNED = 0x40000
CHARACTERS = [chr(code_point) for code_point in range(ASSIGNED)]
SEPARATOR = "\x1e"

# The bits and roles in `characters.rs`.
ALNUM, HARD_END, FULL_STOP, SPACE, LATIN = (1 << bit for bit in range(5))
TOKEN_SHIFT = 5
JOINER, NUMBER, WORD, WIDE, TOKEN_END = range(1, 6)
TRAILING, FINAL, MARK, UNASSIGNED, INVISIBLE, BLANK = (1 << bit for bit in range(6))

HARD_ENDS = "。!?;\n\u061f\u06d4\u0964\u0965\u1362" + SEPARATOR
# East Asian scripts start at this code point.
FIRST_WIDE = 0x2E80
# Thai and Lao, Burmese and Khmer have no spaces between words.
UNSPACED = (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))

# Signs that end a sentence in prose: full stops and similar signs of many scripts, and the colon before a
# quotation.
FINALS = ".:;!?。\u0589\u061f\u06d4\u0964\u0965\u0f0d\u104b\u1362\u17d4"
# Characters that may follow such a sign: quotation marks and brackets of all scripts (`“` ends a quotation in
# German, `«` in Danish), symbols such as emoji, and signs of markup.
TRAILING_CATEGORIES = frozenset({"Pi", "Pf", "Pe", "So", "Sk"})
TRAILING_SIGNS = "\"'`*_"

# Invisible characters other than format characters (category Cf): those that Unicode calls ignorable by
# default (Default_Ignorable_Code_Point in DerivedCoreProperties.txt, which includes unassigned code points),
# and the placeholder for an object.
IGNORABLE = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065),
    *(*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000), 0xFFFC),
)
# The Unicode name of a letter with an addition that does not decompose, such as a stroke.
_PLAIN_LATIN = re.compile(r"LATIN SMALL LETTER (?:DOTLESS )?(?P<letter>[A-Z])(?: WITH .*)?")
# Characters that look like spaces: the Braille pattern without dots, and the Hangul fillers that are not part
# of a syllable (ignorable by default, but fonts and browsers display a gap). The zero-width non-joiner
# separates the stems of Persian words, which some writers separate with a space.
BLANKS = (0x200C, 0x2800, 0x3164, 0xFFA0)

# Marks that are optional in texts: accents of Latin, Greek and Cyrillic letters, and the vowel signs of
# Arabic and Hebrew. Marks of other scripts distinguish letters, and so do the marks of Cyrillic letters such
# as `й`: Cyrillic letters that Unicode composes are different letters, except `ё` and two letters with a
# stress accent.
OPTIONAL_MARKS = (
    *(range(0x0300, 0x0370), range(0x0483, 0x0488), range(0x1AB0, 0x1B00), range(0x1DC0, 0x1E00)),
    *(range(0x2DE0, 0x2E00), range(0xA66F, 0xA67E), range(0xFE20, 0xFE30)),
    *(range(0x0591, 0x05C8), range(0x0610, 0x061B), range(0x064B, 0x0660), range(0x0670, 0x0671)),
    *(range(0x06D6, 0x06EE), range(0x08CA, 0x0900)),
)
CYRILLIC_ACCENTED = "ѐёѝ"
# Variants of Arabic letters, as in Lucene's ArabicNormalizer and PersianNormalizer, and the wasla. The
# tatweel is dropped, since it only stretches a word.
ARABIC_LETTERS = {
    **dict.fromkeys("\u0649\u06cc\u06d2", "\u064a"),
    **dict.fromkeys("\u0629\u06c1\u06d5\u06c3", "\u0647"),
    "\u06a9": "\u0643",
    "\u0671": "\u0627",
    "\u0640": "",
}


def characters() -> str:
    """Return the lines of `characters.txt`; `characters.rs` documents them."""
    version = unicodedata.unidata_version
    lines = [f"# Written by make_tables.py; Unicode {version}, OpenCC 1.4.2. See src/characters.rs."]
    lines += _runs("class", _class)
    lines += _runs("trait", _traits)
    forms = {each: normal_form(each) for each in CHARACTERS}
    composing = _composing()
    contextual = {
        each
        for each, form in forms.items()
        if len(form) > 1
        or (unicodedata.combining(each) and form)
        or (form and (form in composing or unicodedata.combining(form) > 0))
        or (each in composing and form != "")
    }
    # Whether a form combines with adjacent characters depends only on the form, except for dropped marks
    # after Cyrillic letters: see `normal_form.rs`.
    lines += _runs("contextual", lambda each: max(1, len(forms[each])) if each in contextual else 0)
    lines += _runs("dropped", lambda each: int(forms[each] == "" and each not in contextual))
    simple = {each: form for each, form in forms.items() if each not in contextual and form not in {"", each}}
    # Most of these characters are Chinese and have irregular forms, which are written as pairs.
    pairs = {each: form for each, form in simple.items() if _is_chinese(each) and _is_chinese(form)}
    lines += [f"pairs {''.join(row)}" for row in _rows([each + form for each, form in pairs.items()], 25)]
    lines += _shifts("form", {each: form for each, form in simple.items() if each not in pairs})
    for each in CHARACTERS:
        folded = case_folded(each).translate(_replacements())
        expected = simple.get(each, each)
        if unicodedata.normalize("NFKC", each) == each and folded != expected:
            lines.append(" ".join(["folded", _hex(each), *map(_hex, folded)]))
    decimals = {each: unicodedata.decimal(each) for each in CHARACTERS if _is_decimal(each)}
    zeros = [each for each, value in decimals.items() if value == 0]
    assert decimals == {chr(ord(zero) + value): value for zero in zeros for value in range(10)}
    lines += [f"zero {_hex(each)}" for each in zeros]
    return "".join(f"{line}\n" for line in lines)


def references() -> str:
    """Return the lines of `references.txt`: HTML's names of characters, sorted, with their code points."""
    names = sorted(html.entities.html5.items())
    return "".join(" ".join([name, *map(_hex, value)]) + "\n" for name, value in names)


def normal_form(text: str) -> str:
    """Return the normal form of a text with at most 30 consecutive marks."""
    visible = text.translate(_invisible())
    return case_folded(unicodedata.normalize("NFKC", visible)).translate(_replacements())


def case_folded(text: str) -> str:
    """Return a text with case folded."""
    return "".join(map(_case_folded, text))


@functools.cache
def _case_folded(character: str) -> str:
    is_new = of_python.category(character) == "Cn" and unicodedata.category(character) == "Lu"
    if not is_new:
        return character.casefold()
    # Python does not know this letter yet: find its small letter by name.
    return str(unicodedata.lookup(unicodedata.name(character).replace("CAPITAL", "SMALL")))


def is_alnum(character: str) -> bool:
    """Return whether a character is a letter or has a numeric value."""
    return unicodedata.category(character).startswith("L") or unicodedata.numeric(character, None) is not None


def _is_decimal(character: str) -> bool:
    return unicodedata.decimal(character, None) is not None


def _is_space(character: str) -> bool:
    return unicodedata.category(character) == "Zs" or unicodedata.bidirectional(character) in {"WS", "B", "S"}


def _class(character: str) -> int:
    flags = is_alnum(character) * ALNUM | _is_space(character) * SPACE
    flags |= (character in HARD_ENDS) * HARD_END | (character == ".") * FULL_STOP
    flags |= (character < "\u0250" and is_alnum(character)) * LATIN
    return flags | _role(character) << TOKEN_SHIFT


def _role(character: str) -> int:
    if character == SEPARATOR:
        return TOKEN_END
    if character in ".,:":
        return JOINER
    if _is_decimal(character):
        return NUMBER
    # A vowel sign or accent that does not combine with its letter is still part of the word.
    if not is_alnum(character) and unicodedata.category(character) not in {"Mn", "Mc"}:
        return 0
    code_point = ord(character)
    return WIDE if code_point >= FIRST_WIDE or any(code_point in each for each in UNSPACED) else WORD


def _traits(character: str) -> int:
    category = unicodedata.category(character)
    is_trailing = _is_space(character) or character in TRAILING_SIGNS
    is_trailing |= category in TRAILING_CATEGORIES and not is_alnum(character)
    traits = FINAL if character in FINALS else is_trailing * TRAILING
    first = unicodedata.normalize("NFKD", character)[0] if unicodedata.decomposition(character) else character
    traits |= (unicodedata.combining(first) > 0) * MARK
    traits |= (category == "Cn") * UNASSIGNED
    is_invisible = category == "Cf" or ord(character) in IGNORABLE
    return int(traits) | is_invisible * INVISIBLE | (ord(character) in BLANKS) * BLANK


@functools.cache
def _invisible() -> dict[int, str]:
    formats = (ord(each) for each in CHARACTERS if unicodedata.category(each) == "Cf")
    return dict.fromkeys(itertools.chain(formats, IGNORABLE), "") | dict.fromkeys(BLANKS, " ")


@functools.cache
def _replacements() -> dict[int, str]:
    """Map traditional characters, variants of letters and control characters to their replacements."""
    table = _simplified()
    for each in CHARACTERS:
        if (spelled := _spelled(each)) != each:
            table[ord(each)] = spelled
        if unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} and each not in "\n\t":
            table[ord(each)] = "\n" if each in "\v\f\x85\u2028\u2029" else " "
    return table


def _spelled(character: str) -> str:
    """Return a character of NFKC without optional marks and strokes, and with ASCII digits."""
    if _is_decimal(character):
        return str(unicodedata.decimal(character))
    if _is_own_letter(character):
        return character
    decomposed = unicodedata.normalize("NFD", character)
    kept = "".join(each for each in decomposed if not _is_optional(each))
    if kept == decomposed:
        kept = character
    letter = _PLAIN_LATIN.fullmatch(unicodedata.name(kept, "")) if len(kept) == 1 else None
    plain = letter["letter"].lower() if letter else unicodedata.normalize("NFC", kept)
    return ARABIC_LETTERS.get(plain, plain)


def _is_own_letter(character: str) -> bool:
    """Return whether a character is a small Cyrillic letter with a mark that is part of the letter."""
    is_cyrillic = unicodedata.name(character, "").startswith("CYRILLIC SMALL LETTER")
    return bool(is_cyrillic and unicodedata.decomposition(character) and character not in CYRILLIC_ACCENTED)


def _is_optional(character: str) -> bool:
    is_mark = unicodedata.category(character) == "Mn"
    return is_mark and any(ord(character) in each for each in OPTIONAL_MARKS)


def _simplified() -> dict[int, str]:
    """Map each traditional character to a simplified one, regardless of context.

    In some phrases, another simplified character would be correct. The difference is harmless, since both
    spellings of a text still get the same form.
    """
    import opencc

    ranges = (range(0x2E80, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x32000))
    each_alone = [chr(code_point) for code_point in itertools.chain(*ranges)]
    convert = opencc.OpenCC("t2s").convert
    forms = convert(convert("\n".join(each_alone))).split("\n")
    pairs = zip(each_alone, forms, strict=True)
    return {ord(each): form for each, form in pairs if form != each and len(form) == 1}


def _composing() -> set[str]:
    """Return the characters that may combine with the previous character or be reordered with it."""
    second = {chr(each) for each in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for character in CHARACTERS:
        if unicodedata.combining(character):
            second.add(character)
        decomposed = unicodedata.decomposition(character)
        if decomposed and not decomposed.startswith("<"):
            second.update(chr(int(part, 16)) for part in decomposed.split()[1:])
    return second


def _runs(name: str, value_of: Callable[[str], int]) -> Iterator[str]:
    """Yield `name first count value` for each range of characters with the same value, other than 0."""
    for value, group in itertools.groupby(CHARACTERS, value_of):
        run = list(group)
        if value:
            yield f"{name} {_hex(run[0])} {len(run)} {value:x}"


def _shifts(name: str, forms: Mapping[str, str]) -> Iterator[str]:
    """Yield `name first count step shift` for evenly spaced characters, equally far from their forms."""
    runs: list[list[int]] = []
    for character, form in forms.items():
        at, shift = ord(character), ord(form) - ord(character)
        if runs and runs[-1][3] == shift:
            first, count, step, _ = runs[-1]
            gap = at - first - (count - 1) * step if count > 1 else at - first
            if (count == 1 and gap <= 2) or (count > 1 and gap == step):
                runs[-1] = [first, count + 1, gap, shift]
                continue
        runs.append([at, 1, 1, shift])
    for first, count, step, shift in runs:
        yield f"{name} {first:x} {count} {step} {shift}"


def _rows(items: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    return (items[at : at + length] for at in range(0, len(items), length))


def _is_chinese(character: str) -> bool:
    """Return whether a character is a Chinese character that normalisation does not replace."""
    is_unified = unicodedata.name(character, "").startswith("CJK UNIFIED")
    return bool(is_unified and unicodedata.normalize("NFC", character) == character)


def _hex(character: str) -> str:
    return f"{ord(character):x}"


if __name__ == "__main__":
    FOLDER.joinpath("characters.txt").write_text(characters(), "utf-8")
    FOLDER.joinpath("references.txt").write_text(references(), "utf-8")
