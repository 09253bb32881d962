"""Measures detection in other scripts: traditional characters, and texts of many languages with a typo."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import opencc

from benchmarks import articles
from benchmarks.rows import Row
from benchmarks.server import Run
from benchmarks.signatures import as_nodes
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.neighbours.relation import NeighbourIndex, relation_of

_BATCH = 1_000
# OpenCC's configurations: the first converts only characters, the second also replaces words by Taiwan's.
_CONVERSIONS = {"s2t": "traditional characters", "s2twp": "traditional characters and Taiwan's words"}


class _Script(NamedTuple):
    """The letters and separators of invented texts in a language."""

    letters: str
    # The separators between words, between phrases of a few words, and after a sentence.
    space: str = " "
    pause: str = ", "
    stop: str = ". "


def _range(first: str, last: str) -> str:
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


_LATIN = _range("a", "z")
_CYRILLIC = _range("а", "я")
_ARABIC = "ابتثجحخدذرزسشصضطظعغفقكلمنهوي"
_DEVANAGARI = "अआइईउऊएऐओऔ" + _range("क", "ह")
LANGUAGES = {
    "Amharic": _Script("ሀለሐመሠረሰሸቀበተቸነአከወዘየደገጠጸፈፐሁሉሙሩሱሹቁቡቱቹኑኡኩውዙዩዱጉጡጹፉፑ", stop="። "),
    "Arabic": _Script(_ARABIC),
    "Armenian": _Script(_range("ա", "ֆ"), stop="։ "),
    "Bengali": _Script("অআইঈউঊএঐওঔকখগঘঙচছজঝঞটঠডঢণতথদধনপফবভমযরলশষসহ", stop="। "),
    "Bulgarian": _Script(_CYRILLIC.replace("ы", "").replace("э", "")),
    "Burmese": _Script(_range("က", "အ"), space="", pause=" ", stop="။ "),
    "Czech": _Script(_LATIN + "áčďéěíňóřšťúůýž"),
    "French": _Script(_LATIN + "àâçéèêëîïôùûü"),
    "Georgian": _Script(_range("ა", "ჰ")),
    "German": _Script(_LATIN + "äöüß"),
    "Greek": _Script(_range("α", "ω").replace("ς", "")),
    "Hebrew": _Script(_range("א", "ת")),
    "Hindi": _Script(_DEVANAGARI, stop="। "),
    "Japanese": _Script(_range("ぁ", "ん") + "日本人年月国会社市長", space="", pause="、", stop="。"),
    "Khmer": _Script(_range("ក", "អ"), space="", pause=" ", stop="។ "),
    "Korean": _Script("가나다라마바사아자차카타파하고노도로모보소오조초코토포호기니디리미비시이지"),
    "Lao": _Script("ກຂຄງຈຊຍດຕຖທນບປຜຝພຟມຢຣລວສຫອຮ", space="", pause=" ", stop="\n\n"),
    "Persian": _Script(_ARABIC + "پچژگ"),
    "Polish": _Script(_LATIN + "ąćęłńóśźż"),
    "Portuguese": _Script(_LATIN + "ãáâàçéêíõóôú"),
    "Russian": _Script(_CYRILLIC),
    "Spanish": _Script(_LATIN + "áéíñóúü"),
    "Tamil": _Script("அஆஇஈஉஊஎஏஐஒஓகஙசஞடணதநபமயரலவழளறன"),
    "Telugu": _Script("అఆఇఈఉఊఎఏఐఒఓకఖగఘచఛజఝటఠడఢణతథదధనపఫబభమయరలవశషసహ"),
    "Thai": _Script(_range("ก", "ฮ"), space="", pause=" ", stop=" "),
    "Tibetan": _Script("ཀཁགངཅཆཇཉཏཐདནཔཕབམཙཚཛཝཞཟའཡརལཤསཧ", space="་", stop="། "),
    "Vietnamese": _Script(_LATIN + "ăâđêôơưáàảãạéèẻẽẹíìỉĩị"),
}
_TEXTS, _CHARACTERS = 100, 800
_VOCABULARY, _SENTENCE_PHRASES, _PHRASE_WORDS = 5_000, (1, 5), (3, 9)
_WORD_LETTERS = (2, 9)


def scripts(run: Run) -> list[Row]:
    """Measure the shares of Chinese articles near their conversions, and of invented texts near misprints."""
    rows = []
    for name in articles.CHINESE[:2]:
        texts = articles.texts_of(name)
        for configuration, meaning in _CONVERSIONS.items():
            convert = opencc.OpenCC(configuration).convert
            share = _near_each_other(texts, [convert(text) for text in texts])
            case = f"{articles.SETS[name]}, to {meaning}"
            rows.append(Row(table="scripts", case=case, ours=100 * share, unit="% found"))
    case = f"invented, one of {_CHARACTERS} characters exchanged"
    for language in LANGUAGES:
        texts, misprinted = texts_with_typos(language, run.size(_TEXTS))
        share = _near_each_other(texts, misprinted)
        rows.append(Row(table="scripts", case=f"{language}, {case}", ours=100 * share, unit="% found"))
    return rows


def texts_with_typos(language: str, count: int) -> tuple[list[str], list[str]]:
    """Invent texts of a language, and copies of these texts with one letter replaced."""
    random, script = np.random.default_rng(zlib.crc32(language.encode())), LANGUAGES[language]
    letters = list(script.letters)
    words = ["".join(random.choice(letters, random.integers(*_WORD_LETTERS))) for _ in range(_VOCABULARY)]
    texts = [_text(words, script, random) for _ in range(count)]
    return texts, [_misprinted(text, letters, random) for text in texts]


def _text(words: Sequence[str], script: _Script, random: np.random.Generator) -> str:
    text = ""
    while len(text) < _CHARACTERS:
        phrases = (_phrase(words, script, random) for _ in range(random.integers(*_SENTENCE_PHRASES)))
        text += script.pause.join(phrases) + script.stop
    return text


def _phrase(words: Sequence[str], script: _Script, random: np.random.Generator) -> str:
    # Words with lower numbers are more frequent.
    chosen = (len(words) * random.random(random.integers(*_PHRASE_WORDS)) ** 2).astype(int)
    return script.space.join(words[each] for each in chosen)


def _misprinted(text: str, letters: Sequence[str], random: np.random.Generator) -> str:
    at = int(random.choice([place for place, character in enumerate(text) if character in letters]))
    other = random.choice([letter for letter in letters if letter != text[at]])
    return text[:at] + str(other) + text[at + 1 :]


def _near_each_other(texts: list[str], others: list[str]) -> float:
    """Return the share of texts with a fingerprint that are near their counterpart."""
    fingerprinter, relation = Fingerprinter(DEFAULT), relation_of(DEFAULT)
    near = total = 0
    for at in range(0, len(texts), _BATCH):
        one = fingerprinter.fingerprint(texts[at : at + _BATCH])
        other = fingerprinter.fingerprint(others[at : at + _BATCH])
        index = NeighbourIndex(relation)
        index.add(as_nodes(one.signatures).tobytes())
        positions, rows = index.find_pairs(other.signatures)
        own = rows[rows == positions]
        near += int(one.exists[own].sum())
        total += int(one.exists.sum())
    return near / total
