"""`Boilerplate`: what the pages of a forest have taught so far."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.block import Block
from esdedup.boilerplate.changes import LEARNED, Changes, last_of_each
from esdedup.boilerplate.contexts import MOST_CONTEXTS, Contexts
from esdedup.boilerplate.known import Known
from esdedup.boilerplate.learned_state import LearnedState, are_next
from esdedup.boilerplate.marks import MARKS, ORIGIN, Origins
from esdedup.boilerplate.page_columns import PageColumns
from esdedup.boilerplate.rows import context_rows, passage_values
from esdedup.boilerplate.site_pages import COLUMNS as SITE_COLUMNS
from esdedup.boilerplate.site_pages import LEAST_BITS, SitePages, first_rows
from esdedup.boilerplate.tables import Tables
from esdedup.boilerplate.window import Window
from esdedup.neighbours.key_table import Keys, Values

# More pages at once take less time each, and are learned from later.
_BLOCK_PAGES = 64
# At the beginning and at the end of a page, where menus and footers are. Real pages have some 200 passages at
# most. A page that is made to flood may have 66,000, and would push out what a thousand others have taught.
_END_PASSAGES = 500
# A page takes as much memory as two passages. If pages did not count, those that bring no new passage would
# be kept for ever.
_PAGE_RECORDS = 2
# Of some 80,000 pages. Both periods together take some 200 MB at most.
_PERIOD_RECORDS = 2_500_000

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Boilerplate:
    """Knows which passages are boilerplate, and where others were seen.

    It forgets what was seen neither in the present period nor in the one before. So its memory is limited,
    and a redesigned site is learned anew.

    Changes are made in steps, such as batches: `begin`, then `Lesson.omit` or `apply`, then `keep` or `undo`.
    A step may contain others.
    """

    def __init__(
        self,
        *,
        block_pages: int = _BLOCK_PAGES,
        end_passages: int = _END_PASSAGES,
        least_article_bits: int = LEAST_BITS,
        period_records: int = _PERIOD_RECORDS,
    ) -> None:
        """Know nothing yet.

        Args:
            block_pages: How many pages are learned from together; at least 1.
            end_passages: A page teaches no more than its first and its last passages, so many of each.
            least_article_bits: A passage of so many articles of one site, in bits, is boilerplate under
                the conditions of `SitePages`.
            period_records: A period ends with the block of pages that brings the number of new passages and
                contexts, and twice that of pages, to this; at least 1.
        """
        self.block_pages = block_pages
        self.end_passages = end_passages
        self.least_article_bits = least_article_bits
        self._state = LearnedState(
            last_learned_page=0,
            block=Block(),
            window=Window(period_records),
            present=PageColumns(first=1),
            former=PageColumns(first=1),
        )
        self._tables = Tables()
        # Before each of the steps that have begun, the outermost first.
        self._before: list[LearnedState] = []

    @property
    def block(self) -> Block:
        """The pages that have been seen, but not been learned from yet."""
        return self._state.block

    @property
    def last_learned_page(self) -> int:
        """The number of the last page that was learned from."""
        return self._state.last_learned_page

    @property
    def last_page(self) -> int:
        """The number of the last page, learned from or not."""
        return self._state.last_page

    @property
    def window(self) -> Window:
        """The two periods."""
        return self._state.window

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""
        return self._state.present.size_bytes + self._state.former.size_bytes + self._tables.size_bytes

    def known(self, hashes: Keys) -> Known:
        """Return what is known of passages, by their hashes, ``(n,)``."""
        values = self._tables.get("passages", hashes)[:, 0]
        return Known(values=np.where(self._is_valid(values & ~LEARNED), values, 0).astype(np.uint32))

    def contexts(self, hashes: Keys, known: Known) -> Contexts:
        """Return the contexts of passages, by their hashes, ``(n,)``, and what is known of them."""
        pages = np.zeros((len(hashes), MOST_CONTEXTS), np.int64)
        site_pages = np.zeros((len(hashes), SITE_COLUMNS), np.int64)
        seen = np.flatnonzero((known.values > 0) & ~known.are_learned)
        rows = self._tables.get("contexts", hashes[seen])
        of_site, several = rows[:, :SITE_COLUMNS], rows[:, SITE_COLUMNS:]
        site_pages[seen] = np.where(self._is_valid(of_site[:, :1]), of_site, 0)
        pages[seen] = np.where(self._is_valid(several), several, 0)
        # Of most passages only one page is known.
        once = seen[~pages[seen].any(axis=1)]
        pages[once, 0] = known.pages[once]
        once = seen[site_pages[seen, 0] == 0]
        site_pages[once, 0] = known.pages[once]
        origins = self._of_pages("origins", site_pages[:, 0])
        site_pages[once] = first_rows(site_pages[once, 0], origins[once])
        return Contexts(
            hashes,
            pages,
            self._of_pages("marks", pages),
            self._of_pages("origins", pages),
            SitePages(site_pages, origins),
            are_learned=known.are_learned,
            are_unseen=known.values == 0,
        )

    def _of_pages(self, name: str, pages: Ints) -> npt.NDArray[np.uint32]:
        """Return the marks or the origins of pages; 0 for no page."""
        found = self._state.present.get(name, pages)
        is_former = (pages > 0) & (pages < self._state.present.first)
        found[is_former] = self._state.former.get(name, pages[is_former])
        return found

    def are_seen(self, pages: Keys) -> Bools:
        """Return which pages were seen before, by their ids, ``(n,)``."""
        return self._is_valid(self._tables.get("pages", pages)[:, 0])

    def pages_of_sites(self, sites: npt.NDArray[np.uint32]) -> Ints:
        """Return how many pages of sites were learned from, by the hashes of their names: int64 ``(n,)``."""
        last_page, count = self._tables.get("sites", sites.astype(np.uint64)).T
        return np.where(self._is_valid(last_page), count, 0).astype(np.int64)

    def number_of_sites(self, origins: Origins) -> Origins:
        """Number the pages of the block among those of their sites; return their origins with the numbers."""
        numbered = origins.copy()
        order = np.argsort(origins[:, 0], kind="stable")
        order = order[origins[order, 0] > 0]
        sites, first, counts = np.unique(origins[order, 0], return_index=True, return_counts=True)
        before = self.pages_of_sites(sites)
        numbered[order, 2] = np.arange(1, len(order) + 1) + np.repeat(before - first, counts)
        rows = np.stack((np.full(len(sites), self.last_page), before + counts), axis=1)
        self._tables.put("sites", sites.astype(np.uint64), rows)
        return numbered

    def learned(self) -> Keys:
        """Return the hashes of all passages that are boilerplate."""
        keys = self._tables.keys("passages")
        return keys[self.known(keys).are_learned]

    def number(self, pages: Keys) -> None:
        """Give the next numbers to pages, which `see` takes next; each once, by their ids, ``(n,)``."""
        first = self.last_page + 1
        self._tables.put("pages", pages, np.arange(first, first + len(pages)))

    def see(self, block: Block) -> None:
        """Keep pages that were seen, to be learned from together with others."""
        self._state = dataclasses.replace(self._state, block=self.block.then(block))

    def end_block(self, new: Keys, pages: Ints, contexts: Contexts, origins: Origins) -> None:
        """Learn from the pages of the block, and begin another.

        Args:
            new: Passages that were seen for the first time, ``(n,)``.
            pages: The page of each, ``(n,)``.
            contexts: Of all others, with those that the pages have added.
            origins: Of the pages, numbered.
        """
        last_page = self.last_page
        have_changed, values = passage_values(contexts, last_page=last_page)
        hashes = np.concatenate((new, contexts.hashes[have_changed]))
        self._tables.put("passages", hashes, np.concatenate((pages, values)))
        self._tables.put("contexts", *context_rows(contexts))
        changed = int(np.count_nonzero(have_changed | contexts.site_pages.have_grown))
        block = dataclasses.replace(self.block, origins=origins)
        records = _PAGE_RECORDS * len(block) + len(new) + changed
        self._go_on(block, window=self.window.after(records, page=last_page))

    def _go_on(self, learned: Block, *, window: Window) -> None:
        """Add pages that were learned from; a new period has tables and columns of its own."""
        state, first = self._state, self.last_learned_page + 1
        present, former = state.present, state.former
        has_ended = window.present_from != state.window.present_from
        if has_ended:
            present, former = PageColumns(first=first), present
        present.put(first, marks=learned.marks, origins=learned.origins)
        self._state = LearnedState(
            last_learned_page=self.last_learned_page + len(learned),
            block=Block(),
            window=window,
            present=present,
            former=former,
        )
        if has_ended:
            self._tables.begin_period()

    @property
    def has_begun(self) -> bool:
        """Whether a step has begun that was neither kept nor undone."""
        return bool(self._before)

    @property
    def is_torn(self) -> bool:
        """Whether an exception has come in the middle of a change, as from a signal handler: begin anew."""
        return self._tables.is_torn or len(self._before) != self._tables.depth

    def begin(self) -> None:
        """Begin a step."""
        self._before.append(self._state)
        self._tables.begin()

    def begin_trial(self) -> None:
        """Begin a step that will be undone, and leaves nothing behind."""
        self._before.append(self._state)
        self._tables.begin_trial()

    def undo(self) -> None:
        """End the last step that has begun, and undo its changes."""
        self._tables.undo()
        self._state = self._before[-1]
        self._before.pop()

    def keep(self) -> None:
        """End the last step that has begun, and keep its changes."""
        self._tables.keep()
        self._before.pop()

    def changes(self) -> Changes:
        """Return the changes of the last step that has begun."""
        before, block = self._before[-1], self.block
        if before.last_learned_page == self.last_learned_page:
            block = block.part(len(before.block), len(block))
        learned = np.arange(before.last_learned_page + 1, self.last_learned_page + 1)
        origins, new = self._of_pages("origins", learned), learned[learned > before.last_page]
        return Changes(
            puts=self._tables.puts(),
            marks=np.concatenate((self._of_pages("marks", new), block.marks)),
            origins=np.concatenate((origins[len(origins) - len(new) :], block.origins)),
            site_numbers=origins[:, 2],
            hashes=block.hashes,
            letters=block.letters,
            counts=np.bincount(block.places, minlength=len(block)).astype(np.uint32),
            last_learned_page=self.last_learned_page,
            last_page=self.last_page,
            window=self.window,
        )

    def apply(self, changes: Changes) -> None:
        """Make the changes of a step that began after what is known.

        The first changes may come after others that are outdated by now.

        Raises:
            ValueError: It began after something else.
        """
        if changes.last_page - changes.last_learned_page >= self.block_pages:
            raise ValueError("its block has too many pages")
        before = self._state if self.last_page else self._after_outdated(changes)
        if not are_next(changes, before):
            raise ValueError("it does not follow what was learned before it")
        self._state = before
        block, count = self.block.then(changes.block), changes.last_learned_page - self.last_learned_page
        if count:
            learned = block.part(0, count)
            learned.origins[:, 2] = changes.site_numbers[-count:]
            self._go_on(learned, window=changes.window)
        for name, puts in changes.puts.items():
            self._tables.put(name, *last_of_each(puts))
        block = block.part(count, len(block))
        block = dataclasses.replace(block, values=self.known(block.hashes).values)
        self._state = dataclasses.replace(self._state, block=block)

    def _after_outdated(self, changes: Changes) -> LearnedState:
        """Return the state before the first changes that are not outdated."""
        last_page = changes.first_page - 1
        last_learned_page = min(last_page, changes.last_learned_page)
        # Nothing is known of them, and nothing will be asked.
        count = last_page - last_learned_page
        return dataclasses.replace(
            self._state,
            last_learned_page=last_learned_page,
            block=Block(
                marks=np.zeros((count, MARKS), np.uint32), origins=np.zeros((count, ORIGIN), np.uint32)
            ),
            window=changes.window,
            present=PageColumns(first=last_learned_page + 1),
        )

    def _is_valid(self, pages: Values) -> Bools:
        """Return which numbers of pages are of the two periods; 0 is not."""
        is_valid: Bools = pages >= self.window.former_from
        return is_valid
