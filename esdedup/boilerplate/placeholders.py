"""Placeholders: texts that many sites serve instead of articles, recognised by their titles.

The title of an article shares words with its text, and edited titles of one text resemble each other. The
titles of a placeholder belong to unrelated articles.
"""

import operator
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence

from esdedup.text.parsed import visible_text

MOST_LETTERS = 500
"""The maximum number of letters and digits in a placeholder."""

# The minimum number of sites that serve a placeholder, each with a different title.
_SITES = 5
# The maximum average share of title words that are in the text or previous title (see benchmarks/tried.md).
_MOST_SHARED = 0.2
# Shorter words, such as `the`, are ignored. In scripts without blanks, from Thai on, pairs of characters
# count as words.
_LETTERS_OF_A_WORD = 4
_WORD = re.compile(r"[^\W\d_]{2,}")
_FIRST_WITHOUT_BLANKS = "\u0e00"
# The maximum number of characters that are stored of a title or a site's name.
_LONGEST = 200


def is_placeholder(text: str, titles: Sequence[str]) -> bool:
    """Return whether a short text is a placeholder, given its titles, each from a different site."""
    words = [own for title in titles if (own := _words(title))]
    most = _MOST_SHARED * len(words)

    def shared(in_text: set[str]) -> float:
        return sum(len(own & (in_text | words[at - 1])) / len(own) for at, own in enumerate(words))

    # The titles alone usually rule out a placeholder, so the text need not be parsed.
    return len(words) >= _SITES and shared(set()) <= most and shared(_words(visible_text(text))) <= most


def _words(text: str) -> set[str]:
    letters, words = text.casefold(), set[str]()
    # Regular expressions would end a word at a vowel sign.
    marks = {ord(each): None for each in set(letters) if unicodedata.category(each)[0] == "M"}
    for word in _WORD.findall(letters.translate(marks) if marks else letters):
        if word >= _FIRST_WITHOUT_BLANKS:
            words.update(map(operator.add, word, word[1:]))
        elif len(word) >= _LETTERS_OF_A_WORD:
            words.add(word)
    return words


class PlaceholderWatch:
    """Detects placeholders among the articles of the latest clusters, in memory."""

    def __init__(self, *, max_clusters: int = 10_000) -> None:
        self._max_clusters = max_clusters
        # By root: one title per site, all different; None after the cluster was detected.
        self._titles: OrderedDict[str, dict[str, str] | None] = OrderedDict()
        self.noticed = 0

    def add(self, root: str, text: str, *, title: str, site: str) -> bool:
        """Add an article with a short text; return whether its cluster is now detected for the first time."""
        titles = self._titles.pop(root, {})
        self._titles[root] = titles
        if len(self._titles) > self._max_clusters:
            self._titles.popitem(last=False)
        site, title = site[:_LONGEST], title[:_LONGEST]
        if titles is None or site in titles or title in titles.values():
            return False
        titles[site] = title
        is_noticed = len(titles) >= _SITES and is_placeholder(text, list(titles.values()))
        if is_noticed:
            self._titles[root] = None
            self.noticed += 1
        elif len(titles) >= 2 * _SITES:
            titles.pop(next(iter(titles)))
        return is_noticed
