"""`LearnedState`: what changes with each block of pages, but for the tables."""

import dataclasses

from esdedup.boilerplate.block import Block
from esdedup.boilerplate.changes import Changes
from esdedup.boilerplate.page_columns import PageColumns
from esdedup.boilerplate.window import Window


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedState:
    """All but what the tables contain."""

    # The last page that was learned from, and the pages since.
    last_learned_page: int
    block: Block
    window: Window
    # Of the present period and of the one before.
    present: PageColumns
    former: PageColumns

    @property
    def last_page(self) -> int:
        """The number of the last page, learned from or not."""
        return self.last_learned_page + len(self.block)


def are_next(changes: Changes, before: LearnedState) -> bool:
    """Return whether a step that began in a state can have made these changes."""
    count, window = changes.last_learned_page - before.last_learned_page, changes.window
    # A block that ends takes all pages before it.
    is_possible = window == before.window if count == 0 else count >= len(before.block)
    return (
        is_possible
        and changes.first_page == before.last_page + 1
        and len(changes.site_numbers) >= count
        and window.former_from >= before.window.former_from
        and window.present_from >= before.window.present_from
    )
