"""What the tables keep of passages whose contexts a block of pages has changed."""

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.changes import LEARNED
from esdedup.boilerplate.contexts import Contexts
from esdedup.neighbours.key_table import Keys

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def passage_values(contexts: Contexts, *, last_page: int) -> tuple[Bools, Ints]:
    """Return which passages get another value in "passages", bool ``(n,)``, and the values of these.

    Args:
        contexts: Of the passages, with those that the block has added.
        last_page: Of the block.
    """
    added, are_learned = contexts.last_added, contexts.are_learned
    # With boilerplate of the period before, which was seen again.
    have_changed = are_learned | contexts.are_unseen | (added > 0)
    first_pages = contexts.site_pages.rows[:, 0]
    values = np.where(added > 0, added, np.where(are_learned, last_page, first_pages))
    values |= np.where(are_learned, LEARNED, 0)
    return have_changed, values[have_changed]


def context_rows(contexts: Contexts) -> tuple[Keys, Ints]:
    """Return the passages that get another row in "contexts", and these rows."""
    site_pages = contexts.site_pages
    have_several = (contexts.last_added > 0) & (np.count_nonzero(contexts.pages, axis=1) > 1)
    again = np.flatnonzero(~contexts.are_learned & (have_several | site_pages.have_grown))
    return contexts.hashes[again], np.concatenate((site_pages.rows[again], contexts.pages[again]), axis=1)
