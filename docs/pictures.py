"""Draws the pictures in `docs/ideas` from values that the code computes: ``python -m docs.pictures``."""

import collections
import itertools
from collections.abc import Iterator
from datetime import timedelta
from html import escape
from pathlib import Path

from esdedup import VERIFIED, explain
from esdedup.fingerprint.bands import PAIRS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import signed_sums, simhash
from esdedup.forest import Aging, Arrivals
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.text.hashing import murmur64
from tests import sample
from tests.support.assign import assign

FOLDER = Path(__file__).parent / "ideas"
INK, GREY, LIGHT, PAPER = "#1f2937", "#6b7280", "#e5e7eb", "#ffffff"
BLUE, SKY, RED, PALE = "#2563eb", "#dbeafe", "#dc2626", "#fecaca"
CELL = 11
SENTENCE = (
    "The ferry to the outer islands runs again from Monday, the harbour council said on Friday after a long "
    "and heated meeting, and the fare stays the same as before for islanders and for guests."
)
EDITED = SENTENCE.replace("on Friday", "late on Friday")
# The sentences of a story; OTHERS has the sentences that replace them one by one.
STORY = [
    f"The {what} of the harbour was {how} by the council on {day} after {why}."
    for what, how, day, why in zip(
        (
            "old crane",
            "north quay",
            "ferry pier",
            "fish hall",
            "light tower",
            "oil berth",
            "tug fleet",
            "dry dock",
        ),
        ("sold", "closed", "widened", "painted", "rented out", "dredged", "renamed", "insured"),
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "Easter"),
        ("a fire", "a vote", "a storm", "two strikes", "a long debate", "a survey", "a gift", "an audit"),
        strict=True,
    )
]
# The size of the corpus, and the first article and number of articles shown, chosen so that stories overlap.
SAMPLE, FIRST, ARRIVALS = 300, 192, 32
OTHERS = [
    f"A {who} from the {place} valley {did} {number} goats at the {season} fair."
    for who, place, did, number, season in zip(
        ("farmer", "teacher", "baker", "doctor", "singer", "guide", "mayor", "miller"),
        ("upper", "lower", "western", "eastern", "green", "dry", "long", "lost"),
        ("bought", "lost", "drew", "counted", "washed", "chased", "praised", "fed"),
        ("nine", "six", "forty", "eleven", "two", "thirty", "seven", "twelve"),
        ("spring", "summer", "autumn", "winter", "harvest", "cheese", "wool", "flower"),
        strict=True,
    )
]


def text(x: float, y: float, words: str, *, size: int = 13, fill: str = INK, anchor: str = "start") -> str:
    """Return a text element."""
    look = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}" {look}>{escape(words)}</text>'


def circle(x: float, y: float, radius: float, words: str, *, is_filled: bool) -> str:
    """Return a circle with words in it."""
    fill, ink = (BLUE, PAPER) if is_filled else (PAPER, INK)
    look = f'fill="{fill}" stroke="{BLUE}" stroke-width="1.5"'
    drawn = f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {look}/>'
    return drawn + text(x, y + 4, words, size=11, fill=ink, anchor="middle")


def box(x: float, y: float, width: float, height: float, *, fill: str, stroke: str = "none") -> str:
    """Return a rectangle."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{stroke}"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = GREY, dashed: bool = False) -> str:
    """Return a line."""
    look = f'stroke="{stroke}" stroke-width="1.5"' + (' stroke-dasharray="4 4"' if dashed else "")
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" {look}/>'


def svg(title: str, width: int, height: int, parts: Iterator[str]) -> str:
    """Return a picture."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
            f' height="{height}" role="img" font-family="system-ui, sans-serif">',
            f"<title>{escape(title)}</title>",
            box(0, 0, width, height, fill=PAPER),
            *parts,
            "</svg>\n",
        )
    )


def draw_simhash() -> Iterator[str]:
    """Draw the sums of the bits of four words."""
    words, width, left, step = ["ferry", "runs", "again", "monday"], 16, 120, 34
    sums = signed_sums([(word, 1) for word in words], width=width)
    whole = simhash([(word, 1) for word in words], width=width)
    yield text(16, 30, "Each word has a hash. In each column, a 1 counts +1 and a 0 counts −1.")
    for row, word in enumerate(words):
        y = 62 + 28 * row
        yield text(16, y, word)
        for at in range(width):
            bit = murmur64(word.encode()) >> (width - 1 - at) & 1
            yield text(left + step * at, y, str(bit), fill=BLUE if bit else GREY, anchor="middle")
    y = 62 + 28 * len(words)
    yield line(16, y - 18, left + step * (width - 1) + 20, y - 18)
    yield text(16, y + 4, "sum")
    for at, number in enumerate(sums):
        yield text(left + step * at, y + 4, f"{number:+d}" if number else "0", anchor="middle")
    yield text(16, y + 36, "simhash")
    for at in range(width):
        bit = whole >> (width - 1 - at) & 1
        yield box(left + step * at - 13, y + 19, 26, 24, fill=BLUE if bit else LIGHT)
        yield text(left + step * at, y + 36, str(bit), fill=PAPER if bit else INK, anchor="middle")
    yield text(
        16,
        y + 72,
        "Where most words agree, adding or removing a word changes nothing: so texts that share most",
        fill=GREY,
    )
    yield text(
        16, y + 90, "of their words share most of their bits. (16 bits are shown; there are 64.)", fill=GREY
    )


def simhashes() -> tuple[int, int]:
    """Return the simhashes of `SENTENCE` and `EDITED`."""
    found = explain(SENTENCE, EDITED)
    one, other = (int(each.representatives[0].simhash, 16) for each in (found.one, found.other))
    return one, other


def draw_bands() -> Iterator[str]:
    """Draw two simhashes in five blocks, and the keys that they share."""
    one, other = simhashes()
    layout, left = PAIRS, 16
    blocks = sorted({each for table in layout.tables for each in table})
    different = one ^ other
    same = [not any(different >> 63 - bit & 1 for bit in range(*block)) for block in blocks]
    count = different.bit_count()
    yield text(16, 28, f"Two versions of a sentence, {count} bits apart, cut into five blocks")

    def x_of(bit: int) -> float:
        return left + CELL * bit + 14 * next(at for at, block in enumerate(blocks) if bit < block[1])

    for row, value in enumerate((one, other)):
        for bit in range(64):
            is_one, is_other = value >> 63 - bit & 1, different >> 63 - bit & 1
            fill = (RED if is_one else PALE) if is_other else (BLUE if is_one else LIGHT)
            yield box(x_of(bit), 44 + 22 * row, CELL - 1, 18, fill=fill)
    for number, (block, is_same) in enumerate(zip(blocks, same, strict=True)):
        middle = (x_of(block[0]) + x_of(block[1] - 1) + CELL) / 2
        yield text(
            middle,
            108,
            f"{number + 1}{' equal' if is_same else ''}",
            fill=INK if is_same else RED,
            anchor="middle",
        )
    yield text(
        16, 142, "A key consists of two blocks. Three different bits change at most three blocks, so two"
    )
    yield text(16, 160, "blocks stay equal: simhashes within 3 bits of each other share a key.")
    terms = layout.terms([one, other])
    for at, (table, first, second) in enumerate(zip(layout.tables, *terms, strict=True)):
        x, y = 16 + 168 * (at % 5), 186 + 50 * (at // 5)
        names = "+".join(str(blocks.index(each) + 1) for each in table)
        yield box(
            x,
            y,
            158,
            40,
            fill=SKY if first == second else "#f9fafb",
            stroke=BLUE if first == second else LIGHT,
        )
        yield text(x + 8, y + 16, f"blocks {names}", size=11, fill=GREY)
        shown = first if first == second else f"{first} ≠ {second}"
        yield text(x + 8, y + 32, shown, size=12)


def versions() -> list[str]:
    """Return versions of a story, each with one more sentence replaced."""
    return [" ".join([*OTHERS[:number], *STORY[number:]]) for number in range(len(STORY))]


def roots(texts: list[str]) -> list[int]:
    """Return the position of each text's root, if the texts arrive in this order."""
    relation = relation_of(VERIFIED)
    arrivals = Arrivals.of(Fingerprinter(VERIFIED).fingerprint(texts), times_ms=[None] * len(texts))
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation)
    found = [each.root for each in assign(store, arrivals, now_ms=0)]
    return [found.index(root) for root in found]


def draw_chain() -> Iterator[str]:
    """Draw how much each version resembles the previous version and the first version."""
    texts = versions()
    belongs = roots(texts)
    left, bottom, wide, high = 60, 270, 88, 210
    yield text(16, 26, "Eight versions of a story, each with one more of its eight sentences replaced")
    for share in (0.0, 0.5, 1.0):
        yield line(left, bottom - high * share, left + wide * 8, bottom - high * share, stroke=LIGHT)
        yield text(left - 8, bottom - high * share + 4, f"{share:g}", size=11, fill=GREY, anchor="end")
    points: dict[str, list[tuple[float, float]]] = {"before": [], "root": []}
    for at, each in enumerate(texts):
        x = left + wide * at + 44
        is_root = belongs[at] == at
        yield circle(x, bottom + 34, 13, str(at + 1), is_filled=is_root)
        yield text(
            x, bottom + 66, "a root" if is_root else f"joins {belongs[at] + 1}", size=12, anchor="middle"
        )
        if at:
            points["before"].append((x, bottom - high * resemblance(texts[at - 1], each)))
            points["root"].append((x, bottom - high * resemblance(texts[0], each)))
    needed = explain(texts[0], texts[1]).whole_texts
    assert needed is not None
    y = bottom - high * needed.needed_for_root
    yield line(left, y, left + wide * 8, y, stroke=RED, dashed=True)
    yield text(
        left + wide * 8 - 4,
        y + 16,
        f"needed to join a root: {needed.needed_for_root:.2f}",
        size=12,
        fill=RED,
        anchor="end",
    )
    for name, colour in (("before", GREY), ("root", BLUE)):
        places = points[name]
        for (x1, y1), (x2, y2) in itertools.pairwise(places):
            yield line(x1, y1, x2, y2, stroke=colour)
        for x1, y1 in places:
            yield f'<circle cx="{x1:g}" cy="{y1:g}" r="3.5" fill="{colour}"/>'
    yield text(
        left + wide * 8 - 4, 52, "resemblance to the previous version", size=12, fill=GREY, anchor="end"
    )
    yield text(
        points["root"][-1][0] + 34,
        points["root"][-1][1] - 12,
        "to the first version",
        size=12,
        fill=BLUE,
        anchor="end",
    )


def resemblance(one: str, other: str) -> float:
    """Return the estimated resemblance, on which decisions are based."""
    compared = explain(one, other).whole_texts
    assert compared is not None
    return compared.resemblance


def draw_forest() -> Iterator[str]:
    """Draw articles of the sample corpus in the order of arrival: roots, and leaves that join them."""
    articles = list(sample.articles(SAMPLE))[FIRST : FIRST + ARRIVALS]
    belongs = roots([each["text"] for each in articles])
    shown = [root for root, count in collections.Counter(belongs).items() if count > 1]
    left, step, lane = 16, 27, 62
    yield text(
        16, 26, f"{ARRIVALS} articles in the order of their arrival: the clusters with more than one article"
    )
    for row, root in enumerate(shown):
        y = 76 + lane * row
        members = [at for at, each in enumerate(belongs) if each == root]
        yield line(left + step * root + 12, y, left + step * members[-1] + 12, y, stroke=LIGHT)
        title = f"{articles[root]['title'][:70]}"
        yield text(left + step * root, y - 20, title, size=12, fill=GREY)
        for at in members:
            yield circle(left + step * at + 12, y, 12, str(at + 1), is_filled=at == root)
    y = 76 + lane * len(shown)
    yield text(
        16,
        y - 12,
        "Filled: a root, which names the cluster permanently. Outlined: a leaf, which resembles its root.",
        fill=GREY,
    )


def draw_rules() -> Iterator[str]:
    """Draw an arrival without neighbours, with neighbours of one root, and with neighbours of two roots."""
    texts = versions()
    lone = " ".join(OTHERS)
    panels = (
        ("a", "No neighbour: a new root", [texts[0], texts[1], lone]),
        ("b", "All neighbours under one root: a leaf", [texts[0], texts[1], texts[2]]),
        ("c", "Several roots: a leaf of one of them", [texts[0], texts[1], texts[2], texts[4], texts[3]]),
    )
    wide = 290
    for number, (name, title, given) in enumerate(panels):
        left = 16 + wide * number
        *before, new = range(len(given))
        belongs = roots(given)
        trees = [each for each in before if belongs[each] == each]
        places = {root: (left + 60 + 130 * at, 100.0) for at, root in enumerate(trees)}
        for each in before:
            if (root := belongs[each]) != each:
                leaves = [other for other in before if belongs[other] == root != other]
                shift = 44 * leaves.index(each) - 22 * (len(leaves) - 1)
                places[each] = (places[root][0] + shift, 180.0)
        # A new root is drawn beside the other roots, and a leaf between its neighbours or below them.
        places[new] = (left + 190, 100 if belongs[new] == new else 180 if len(trees) == 1 else 250)
        yield text(left, 28, name, size=16, fill=BLUE)
        yield text(left + 18, 28, title)
        for each in before:
            if belongs[each] != each:
                yield line(*places[each], *places[belongs[each]], stroke=BLUE)
            if explain(given[each], given[new]).near:
                yield line(*places[new], *places[each], dashed=True)
        if belongs[new] != new:
            yield line(*places[new], *places[belongs[new]], stroke=BLUE)
        for each, (x, y) in places.items():
            yield circle(x, y, 14, str(each + 1), is_filled=belongs[each] == each)
        yield text(places[new][0], places[new][1] + 32, "arrives", size=12, fill=GREY, anchor="middle")
    yield text(
        16,
        306,
        "Filled: a root. Blue line: joined. Dashed: neighbours, which resemble each other as whole texts.",
        fill=GREY,
    )
    yield text(
        16,
        326,
        "c: verified joins the root that the arrival resembles most; classic and keywords join the root with",
        fill=GREY,
    )
    yield text(16, 344, "most leaves. In a tie, the oldest root wins.", fill=GREY)


def draw_principle() -> Iterator[str]:
    """Draw the way of an article from its fingerprint to its root, in Chinese."""
    one, other = simhashes()
    layout, left = PAIRS, 150
    blocks = sorted({each for table in layout.tables for each in table})
    different = one ^ other
    same = [not any(different >> 63 - bit & 1 for bit in range(*block)) for block in blocks]

    def x_of(bit: int) -> float:
        return left + 10 * bit + 14 * next(at for at, block in enumerate(blocks) if bit < block[1])

    yield text(16, 30, "1  指纹", size=15, fill=BLUE)
    for row, (name, value) in enumerate((("新到的文章", one), ("库中的文章", other))):
        y = 46 + 24 * row
        yield text(16, y + 13, name)
        for bit in range(64):
            is_one, is_other = value >> 63 - bit & 1, different >> 63 - bit & 1
            fill = (RED if is_one else PALE) if is_other else (BLUE if is_one else LIGHT)
            yield box(x_of(bit), y, 9, 18, fill=fill)
    yield text(16, 124, "2  分段", size=15, fill=BLUE)
    for number, (block, is_same) in enumerate(zip(blocks, same, strict=True)):
        middle = (x_of(block[0]) + x_of(block[1] - 1) + 10) / 2
        words = f"第 {number + 1} 段{'相同' if is_same else '不同'}"
        yield text(middle, 124, words, fill=INK if is_same else RED, anchor="middle")
    count = different.bit_count()
    shared = sum(a == b for a, b in zip(*layout.terms([one, other]), strict=True))
    yield text(
        left,
        150,
        f"两个指纹只差 {count} 位。差 3 位以内，五段中至少两段相同：任取两段为一个键，共 10 个键，"
        f"这里有 {shared} 个相同。",
        size=12,
        fill=GREY,
    )
    yield text(
        left,
        168,
        "道理相同：内存中分四段，一段一个键；Elasticsearch 中分六段，任取三段为一个键，误中更少。",
        size=12,
        fill=GREY,
    )
    yield text(16, 212, "3  候选", size=15, fill=BLUE)
    yield box(left, 192, 290, 32, fill=SKY, stroke=BLUE)
    yield text(left + 145, 213, "有相同键的文章，再比较全文", anchor="middle")
    yield text(16, 268, "4  根", size=15, fill=BLUE)
    for x, words in ((left, "全文相近：归入它所在组的根"), (left + 320, "都不相近：自成一组，它就是根")):
        yield line(left + 145, 224, x + 145, 248)
        yield box(x, 248, 290, 32, fill="#f9fafb", stroke=LIGHT)
        yield text(x + 145, 269, words, anchor="middle")
    yield text(
        left,
        306,
        "根的编号写进文章（dedup.root），永不改变；同一个根的文章在列表中只占一行。",
        size=12,
        fill=GREY,
    )


PICTURES = {
    "rules": ("The three cases of an arrival: no root, one root, several roots", 890, 356, draw_rules),
    "principle.zh": ("从指纹到根：分段、候选、比较全文", 890, 322, draw_principle),
    "forest": ("Articles in the order of their arrival, and their clusters", 900, 400, draw_forest),
    "simhash": ("How a simhash is made", 700, 300, draw_simhash),
    "bands": ("Two simhashes that are near each other share a key", 860, 300, draw_bands),
    "chain": ("No chain of small edits leads from one story to another", 800, 360, draw_chain),
}


def pictures() -> dict[Path, str]:
    """Return the content of each file."""
    return {
        FOLDER / f"{name}.svg": svg(title, width, height, draw())
        for name, (title, width, height, draw) in PICTURES.items()
    }


if __name__ == "__main__":
    for path, picture in pictures().items():
        path.write_text(picture, "utf-8")
