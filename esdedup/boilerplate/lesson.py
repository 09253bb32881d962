"""`Lesson`: what a batch of pages teaches, and which of their passages are left out of their fingerprints.

Boilerplate repeats while the rest of the page differs; an article repeats with the rest. So a passage becomes
boilerplate when it has been seen in five contexts, and a page is a new context only if its longest other
passages are none of those of the contexts before. Passages that are boilerplate already do not count as the
rest, nor, if there are others, do lists.

Where sites are known, a passage also becomes boilerplate by being on many pages of one site: `SitePages`.

A list is a row of passages that do not end as sentences do: menus, headlines, teasers that break off. It is
left out even before it is known, if enough text remains; if not, what was seen in another context. A page
that is mostly rows of figures keeps these.

What a person has pinned as boilerplate counts as known, and what is pinned as text as prose that is not.

Pages are learned from in blocks of a fixed number, so that many are compared at once: a page is judged by
what the blocks before its own have taught, in whatever batches the pages come. Only the end of a first look,
after which the same pages come again, ends a block before it is full.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.block import Block
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.boilerplate.contexts import Contexts
from esdedup.boilerplate.judged import Judged
from esdedup.boilerplate.known import Known
from esdedup.boilerplate.marks import Marks, Origins, origins_of
from esdedup.boilerplate.pins import NO_PINS, Pins, apply_pins
from esdedup.neighbours.key_table import Keys
from esdedup.text.groups import are_first
from esdedup.text.passages import Passages

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


# The share of a page, one in so many of its letters, that is new if it brings an article of its own.
_OWN_SHARE = 4


class _Judgement(NamedTuple):
    """What is left out of some pages, and what they may teach."""

    passages: Passages
    # uint64 (text_count,): the ids of the pages.
    pages: Keys
    known: Known
    marks: Marks
    origins: Origins
    # bool (n,): of the passages.
    omitted: Bools


class Lesson:
    """Goes through the pages of one batch, in their order."""

    def __init__(
        self,
        boilerplate: Boilerplate,
        *,
        pins: Pins = NO_PINS,
        sites: Iterable[str | None] = itertools.repeat(None),
        articles: Iterable[str | None] = itertools.repeat(None),
    ) -> None:
        """Go on from what is known, and add to it.

        Args:
            boilerplate: What is known.
            pins: What counts instead for the passages that they name.
            sites: Of the pages, in their order.
            articles: Likewise: the page of an article may change and come again.
        """
        self._boilerplate = boilerplate
        self._pins = pins
        self._sites = iter(sites)
        self._articles = iter(articles)

    def omit(self, passages: Passages, pages: Keys, assumed: Bools | None = None) -> Bools:
        """Return which passages of the next pages to leave out, bool ``(n,)``, and learn from these pages.

        A page that was seen before teaches nothing.

        Args:
            passages: Of the pages.
            pages: The ids of the pages, uint64 ``(text_count,)``.
            assumed: What somebody has taken to be left out, ``(n,)``. A page for which that is wrong is
                passed over: it counts as not seen. None: whatever is left out is right.
        """
        boilerplate, omitted, start = self._boilerplate, np.zeros(len(passages.hashes), bool), 0
        are_taken = np.ones(len(pages), bool)
        are_new, period = self._are_new(passages, pages), boilerplate.window.present_from
        while start < len(pages):
            if boilerplate.window.present_from != period:
                # The period that has ended took with it what was known of some of these pages.
                period = boilerplate.window.present_from
                are_new[start:] = self._are_new(passages.of_texts(start, len(pages)), pages[start:])
            # A block goes as far as the page that fills it.
            room = boilerplate.block_pages - len(boilerplate.block)
            stop = min(start + int(are_new[start:].cumsum().searchsorted(room)) + 1, len(pages))
            some = self._judge(passages.of_texts(start, stop), pages[start:stop])
            first, last = passages.texts.searchsorted((start, stop))
            omitted[first:last] = some.omitted
            if assumed is not None:
                are_taken[start:stop] = ~_any_of_texts(some.passages, some.omitted != assumed[first:last])
                if not are_taken[start:stop].all():
                    # The same page may come again.
                    rest = self._are_new(
                        passages.of_texts(start, len(pages)), pages[start:], are_taken[start:]
                    )
                    are_new[start:] = rest
            self._see(some, are_new[start:stop])
            if len(boilerplate.block) == boilerplate.block_pages:
                self._learn()
            start = stop
        return omitted

    def learn_rest(self) -> None:
        """Learn from the pages of a block that is not full, as if no others would come."""
        if len(self._boilerplate.block):
            self._learn()

    def changes(self) -> Changes:
        """Return what has been learned since the last step of the boilerplate began."""
        return self._boilerplate.changes()

    def _are_new(self, passages: Passages, pages: Keys, are_taken: Bools | None = None) -> Bools:
        """Return which pages have passages and were not seen before: bool ``(text_count,)``."""
        are_new = _any_of_texts(passages, np.ones(len(passages.texts), bool))
        are_new &= ~self._boilerplate.are_seen(pages)
        if are_taken is not None:
            are_new &= are_taken
        unseen = np.flatnonzero(are_new)
        # Of the same page twice, the first.
        _, first = np.unique(pages[unseen], return_index=True)
        are_new[:] = False
        are_new[unseen[first]] = True
        return are_new

    def _judge(self, passages: Passages, pages: Keys) -> _Judgement:
        """Find out what is left out of the next pages, as far as the blocks before have taught it."""
        known = self._boilerplate.known(passages.hashes)
        sites = list(itertools.islice(self._sites, passages.text_count))
        articles = list(itertools.islice(self._articles, passages.text_count))
        judged = Judged.of(*apply_pins(self._pins, passages, known.are_learned, sites=sites))
        omitted = judged.are_omitted
        doubtful = np.flatnonzero(judged.are_doubtful & (known.pages > 0))
        if len(doubtful):
            hashes, marks = passages.hashes[doubtful], judged.marks[passages.texts[doubtful]]
            contexts = self._boilerplate.contexts(hashes, Known(values=known.values[doubtful]))
            omitted[doubtful] = contexts.have_other(marks)
        origins = origins_of(sites, articles, pages)
        return _Judgement(passages, pages, known, judged.marks, origins, omitted)

    def _see(self, some: _Judgement, are_new: Bools) -> None:
        """Keep those pages that are new, bool ``(text_count,)``, to be learned from."""
        passages, known = some.passages, some.known
        # Boilerplate is recorded once a period.
        is_recorded = known.are_learned & (known.pages >= self._boilerplate.window.present_from)
        are_at_ends = _are_at_ends(passages, self._boilerplate.end_passages)
        taught = np.flatnonzero(are_new[passages.texts] & are_at_ends & ~is_recorded)
        self._boilerplate.number(some.pages[are_new])
        self._boilerplate.see(
            Block(
                marks=some.marks[are_new],
                origins=some.origins[are_new],
                hashes=passages.hashes[taught],
                places=(are_new.cumsum() - 1)[passages.texts[taught]],
                values=known.values[taught],
                letters=np.where(some.omitted, 0, passages.letters)[taught].astype(np.uint32),
            )
        )

    def _learn(self) -> None:
        """Learn from the block, and begin another."""
        boilerplate, block = self._boilerplate, self._boilerplate.block
        # By passage, then by page.
        order = np.argsort(block.hashes, kind="stable")
        hashes, places, values = block.hashes[order], block.places[order], block.values[order]
        is_first = are_first(hashes)
        first_page, origins = boilerplate.last_learned_page + 1, boilerplate.number_of_sites(block.origins)
        have_own = _have_own_text(block, is_new=is_first & (values == 0), places=places, order=order)
        # Most passages are seen for the first time, and once.
        is_alone = is_first & np.append(is_first[1:], True) & (values == 0)
        new = np.flatnonzero(is_alone)
        rest = np.flatnonzero(~is_alone)
        contexts = boilerplate.contexts(
            hashes[rest[is_first[rest]]], Known(values=values[rest[is_first[rest]]])
        )
        passages, of_rest = is_first[rest].cumsum() - 1, places[rest]
        # A page may have a passage several times.
        is_open = ~contexts.are_learned[passages] & (are_first(passages) | are_first(of_rest))
        passages, of_rest = passages[is_open], of_rest[is_open]
        pages, own_origins = first_page + of_rest, origins[of_rest]
        contexts.site_pages.add(passages, pages, own_origins, have_own[of_rest])
        _add_contexts(contexts, passages, pages, block.marks[of_rest], own_origins)
        contexts.are_learned |= contexts.site_pages.are_boilerplate(
            boilerplate.pages_of_sites(contexts.site_pages.sites), least_bits=boilerplate.least_article_bits
        )
        boilerplate.end_block(hashes[new], first_page + places[new], contexts, origins)


def _any_of_texts(passages: Passages, chosen: Bools) -> Bools:
    """Return which texts have a passage that is chosen, bool ``(n,)``: bool ``(text_count,)``."""
    return np.bincount(passages.texts[chosen], minlength=passages.text_count) > 0


def _are_at_ends(passages: Passages, count: int) -> Bools:
    """Return which passages are among the first or the last of their page, so many of each: bool ``(n,)``."""
    sizes = np.bincount(passages.texts, minlength=passages.text_count)
    places = np.arange(len(passages.texts)) - (sizes.cumsum() - sizes)[passages.texts]
    are_at_ends: Bools = (places < count) | (places >= sizes[passages.texts] - count)
    return are_at_ends


def _have_own_text(block: Block, *, is_new: Bools, places: Ints, order: Ints) -> Bools:
    """Return which pages of a block have new text of their own, beside what was seen before: bool ``(p,)``.

    Args:
        block: The pages.
        is_new: Which of its passages were not seen before, as sorted by `order`, ``(n,)``.
        places: The pages of the passages, likewise.
        order: The order of the passages.
    """
    letters = block.letters[order].astype(np.int64)
    new = np.bincount(places[is_new], letters[is_new], len(block))
    have_own: Bools = new * _OWN_SHARE >= np.bincount(places, letters, len(block))
    return have_own & (new > 0)


def _add_contexts(contexts: Contexts, passages: Ints, pages: Ints, marks: Marks, origins: Origins) -> None:
    """Add pages to the contexts of their passages, as far as they are new, in their order.

    Args:
        contexts: Of some passages.
        passages: Places of these, ascending: of each as many as it has pages, ``(m,)``.
        pages: Ascending for each passage, ``(m,)``.
        marks: Of the pages, ``(m, MARKS)``.
        origins: Of the pages, ``(m, ORIGIN)``.
    """
    left = np.arange(len(passages))
    while len(left):
        left = left[contexts.are_new(passages[left], marks[left], origins[left])]
        # The first page that is left is a new context of its passage; so may others be after that.
        is_next = are_first(passages[left])
        added = left[is_next]
        contexts.add(passages[added], pages[added], marks[added], origins[added])
        left = left[~is_next]
