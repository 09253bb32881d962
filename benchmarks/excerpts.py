"""Checks that excerpts and revisions of real articles join their story, and round-ups and look-alikes do not.

Look-alikes are labelled pairs of real articles. The other texts are made from articles of which no two are a
labelled pair.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks import articles, detectors
from benchmarks.articles import Articles
from benchmarks.server import Run
from esdedup.fingerprint.profile import DEFAULT

EXCERPTS, ROUND_UPS, REVISIONS, LOOK_ALIKES = "excerpts", "round-ups", "revisions", "look-alikes"
SUMMARY = "excerpts-summary"
AFTER, BEFORE = "after", "before"
"""When a derived text is fed: after all articles that it is made of, or before them."""
_A_FIGURE = "a figure"
# The minimum length of articles by set, in units: a Chinese character is 1, any other word or number 2.
_LONG = dict.fromkeys(("zh_news", "en_wire", "ar"), 600)
_SHORT = dict.fromkeys(("zh_short", "zh_fin", "zh_weibo"), 60)
_STORIES, _IN_A_ROUND_UP = 300, 5
_SHARES = (0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_POSITIONS: Mapping[str, float] = {"first": 0.0, "middle": 0.5, "last": 1.0}
_CHINESE = "\u3400-\u9fff"
_TOKEN = re.compile(rf"[{_CHINESE}]|[^\W{_CHINESE}]+")
_FIGURE = re.compile(r"\d+")
_MADE_OF = "made of "

Texts = Mapping[str, str]
"""The text of each article, or a text derived from it, by the article's id."""


class Fate(NamedTuple):
    """The outcome of a text derived from an article."""

    # Whether the text has the article's root.
    joined: bool
    # Whether the text has another root, and one of the two roots is linked as a part of the other.
    linked: bool
    # Whether the text or the article joined or was linked to an unrelated article.
    wrong: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counted:
    """The outcome of texts of one kind, derived from one set."""

    table: str
    # The name of the set.
    case: str
    # The columns that identify a kind.
    kind: Mapping[str, str]
    # The number of texts by outcome.
    counts: Mapping[str, int]
    # The number of all texts.
    of: int

    def cells(self) -> dict[str, str]:
        counts = {name: str(count) for name, count in self.counts.items()}
        return {"set": self.case, **self.kind, **counts, "of": str(self.of)}


def excerpts(run: Run) -> list[Counted]:
    """Count the outcomes of excerpts, round-ups, revisions and look-alikes in the default profile."""
    rows: list[Counted] = []
    for name, least_units in (_LONG | _SHORT).items():
        stories = Stories(name, _drawn(name, run.size(_STORIES), least_units))
        if name in _LONG:
            for order in (AFTER, BEFORE):
                rows += [_of_excerpts(stories, order, share) for share in _SHARES]
                rows.append(of_round_ups(stories, order))
        rows += _of_revisions(stories)
        rows += _of_look_alikes(name)
    return [*_summary(rows), *rows]


_Kind = Mapping[str, str]
_SMALL = ("35%", "40%", "50%")
# The rows of the summary, by title: the table whose rows are summed, a filter of kinds, the counts to add.
_LINES: Mapping[str, tuple[str, Callable[[_Kind], bool], Sequence[str]]] = {
    "excerpts of 60%: joined": (EXCERPTS, lambda kind: kind["part"] == "60%", ["joined"]),
    "excerpts of 35 to 50%, after the whole: joined or linked": (
        EXCERPTS,
        lambda kind: kind["part"] in _SMALL and kind["fed"] == AFTER,
        ["joined", "linked"],
    ),
    "excerpts of 35 to 50%, before the whole: joined or linked": (
        EXCERPTS,
        lambda kind: kind["part"] in _SMALL and kind["fed"] == BEFORE,
        ["joined", "linked"],
    ),
    "excerpts of any length: joined or linked to another story": (EXCERPTS, lambda _: True, ["wrong"]),
    "round-ups of five stories: stories joined to each other": (ROUND_UPS, lambda _: True, ["together"]),
    "round-ups of five stories: stories joined to a round-up": (ROUND_UPS, lambda _: True, ["joined"]),
    "revisions, one to three words: joined": (
        REVISIONS,
        lambda kind: kind["changed"] != _A_FIGURE,
        ["joined"],
    ),
    "revisions, one figure: joined": (REVISIONS, lambda kind: kind["changed"] == _A_FIGURE, ["joined"]),
    "look-alikes: joined": (LOOK_ALIKES, lambda _: True, ["joined"]),
}


def _summary(rows: Sequence[Counted]) -> Iterator[Counted]:
    """Sum the rows of each line of the summary, for each set."""
    for (what, (table, is_chosen, counts)), name in itertools.product(_LINES.items(), _LONG | _SHORT):
        chosen = [row for row in rows if (row.table, row.case) == (table, name) and is_chosen(row.kind)]
        if of := sum(row.of for row in chosen):
            share = sum(row.counts[each] for row in chosen for each in counts) / of
            kind = {"what": what, "share": f"{share:.3f}"}
            yield Counted(table=SUMMARY, case=name, kind=kind, counts={}, of=of)


def _drawn(name: str, count: int, least_units: int) -> Texts:
    """Draw articles of at least `least_units`, no two of them a labelled pair, in their order of arrival."""
    held, taken = articles.articles_of(name), set[str]()
    alike: dict[str, set[str]] = {article: set() for article in held}
    for one, other in map(tuple, articles.labels_of(name)):
        alike[one].add(other)
        alike[other].add(one)
    for article in np.random.default_rng(1).permutation(np.array(list(held), object)):
        if len(taken) < count and not alike[article] & taken and _units(held[article]["text"]) >= least_units:
            taken.add(article)
    return {article: each["text"] for article, each in held.items() if article in taken}


def _units(text: str) -> int:
    return sum(1 if _is_chinese(token) else 2 for token in _TOKEN.findall(text))


def _is_chinese(token: str) -> bool:
    return re.match(f"[{_CHINESE}]", token) is not None


def excerpt(text: str, share: float, position: float) -> str:
    """Return a share of a text, from its beginning if `position` is 0, from its end if `position` is 1."""
    tokens = list(_TOKEN.finditer(text))
    count = max(1, round(share * len(tokens)))
    first = round(position * (len(tokens) - count))
    return text[tokens[first].start() : tokens[first + count - 1].end()]


def with_edits(text: str, words: Sequence[str]) -> str:
    """Replace evenly spread words, or pairs of Chinese characters, by the given words; keep all figures."""
    tokens = [token for token in _TOKEN.finditer(text) if not _FIGURE.search(token[0])]
    for number, word in reversed(list(enumerate(words, 1))):
        at = number * len(tokens) // (len(words) + 1)
        last = min(at + _is_chinese(tokens[at][0]), len(tokens) - 1)
        text = text[: tokens[at].start()] + word + text[tokens[last].end() :]
    return text


def with_another_figure(text: str) -> str | None:
    """Add one to the middle figure of a text; return None if the text has no figures."""
    figures = list(_FIGURE.finditer(text))
    if not figures:
        return None
    middle = figures[len(figures) // 2]
    return text[: middle.start()] + str(int(middle[0]) + 1) + text[middle.end() :]


class Found:
    """The outcome of feeding texts, in order, to an empty forest."""

    def __init__(self, texts: Texts) -> None:
        held: Articles = {name: {"text": text} for name, text in texts.items()}
        found = list(detectors.assigned(held, DEFAULT))
        self.roots = {each.id: each.root for each in found}
        self._linked = {each.id: {each.part_of, each.has_part} - {None} for each in found}
        self._first = {root: name for name, root in reversed(self.roots.items()) if root is not None}

    def are_joined(self, one: str, other: str) -> bool:
        return self.roots[one] is not None and self.roots[one] == self.roots[other]

    def are_linked(self, one: str, other: str) -> bool:
        """Return whether two texts have different roots, one of which is linked as a part of the other."""
        are_linked = self.roots[other] in self._linked[one] or self.roots[one] in self._linked[other]
        return are_linked and not self.are_joined(one, other)

    def named_by(self, name: str) -> set[str]:
        """Return the first text of each story that a text joined or is linked to."""
        return {self._first[root] for root in (self.roots[name], *self._linked[name]) if root is not None}


class Stories:
    """Articles that are not duplicates of each other, and their outcome without derived texts."""

    def __init__(self, name: str, texts: Texts) -> None:
        self.name, self.texts, self.alone = name, texts, Found(texts)

    def found_with(self, made: Texts, order: str) -> Found:
        """Feed the articles together with derived texts."""
        return Found({**self.texts, **made} if order == AFTER else {**made, **self.texts})

    def fates(self, made: Texts, order: str) -> list[Fate]:
        """Feed the articles with derived texts, given by article id; return the derived texts' fates."""
        roots = self.alone.roots
        found = self.found_with({_MADE_OF + story: text for story, text in made.items()}, order)
        fates = []
        for story in made:
            one = _MADE_OF + story
            named = {name.removeprefix(_MADE_OF) for name in found.named_by(one) | found.named_by(story)}
            # Ignore stories that are joined even without derived texts.
            is_wrong = any(roots[name] != roots[story] for name in named)
            fates.append(Fate(found.are_joined(one, story), found.are_linked(one, story), is_wrong))
        return fates


def _counted(table: str, name: str, kind: Mapping[str, str], found: Sequence[Fate]) -> Counted:
    counts = dict(zip(Fate._fields, np.sum(found, axis=0).tolist(), strict=True))
    return Counted(table=table, case=name, kind=kind, counts=counts, of=len(found))


def _of_excerpts(stories: Stories, order: str, share: float) -> Counted:
    by_position = {
        position: stories.fates(
            {each: excerpt(text, share, at) for each, text in stories.texts.items()}, order
        )
        for position, at in _POSITIONS.items()
    }
    found = list(itertools.chain(*by_position.values()))
    shares = {
        position: " + ".join(f"{value:.3f}" for value in np.mean(some, axis=0)[:2])
        for position, some in {**by_position, "all": found}.items()
    }
    kind = {"part": f"{100 * share:.0f}%", "fed": order, **shares}
    return _counted(EXCERPTS, stories.name, kind, found)


def of_round_ups(stories: Stories, order: str) -> Counted:
    """Count stories joined to another story by a round-up, joined to a round-up, or linked to a round-up."""
    groups = list(zip(*[iter(stories.texts)] * _IN_A_ROUND_UP, strict=False))
    of_groups = {_MADE_OF + " ".join(group): group for group in groups}
    made = {each: "\n\n".join(stories.texts[story] for story in group) for each, group in of_groups.items()}
    found = stories.found_with(made, order)
    together = {
        story
        for one, other in itertools.combinations(stories.texts, 2)
        if found.are_joined(one, other) and not stories.alone.are_joined(one, other)
        for story in (one, other)
    }
    joined = {
        story for story, each in itertools.product(stories.texts, made) if found.are_joined(story, each)
    }
    pairs = [(each, story) for each, group in of_groups.items() for story in group]
    return Counted(
        table=ROUND_UPS,
        case=stories.name,
        kind={"fed": order},
        counts={
            "together": len(together),
            "joined": len(joined),
            "linked": sum(found.are_linked(*pair) for pair in pairs),
        },
        of=len(pairs),
    )


def _of_revisions(stories: Stories) -> Iterator[Counted]:
    random = np.random.default_rng(2)
    words = [
        first + (second if _is_chinese(first) else "")
        for text in stories.texts.values()
        for first, second in itertools.pairwise(_TOKEN.findall(text))
        if not _FIGURE.search(first + second)
    ]

    def edited(count: int) -> Callable[[str], str]:
        return lambda text: with_edits(text, random.choice(words, count).tolist())

    changes: Mapping[str, Callable[[str], str | None]] = {
        "a word": edited(1),
        "two words": edited(2),
        "three words": edited(3),
        _A_FIGURE: with_another_figure,
    }
    for change, changed in changes.items():
        made = {each: other for each, text in stories.texts.items() if (other := changed(text)) is not None}
        yield _counted(REVISIONS, stories.name, {"changed": change}, stories.fates(made, AFTER))


def _of_look_alikes(name: str) -> Iterator[Counted]:
    """Count look-alikes (pairs that differ in figures or days) whose two articles have the same root."""
    alike = [tuple(pair) for pair, label in articles.labels_of(name).items() if label == "hardneg_template"]
    if alike:
        roots = detectors.clustered(articles.articles_of(name), DEFAULT)
        joined = sum(roots[one] is not None and roots[one] == roots[other] for one, other in alike)
        yield Counted(table=LOOK_ALIKES, case=name, kind={}, counts={"joined": joined}, of=len(alike))
