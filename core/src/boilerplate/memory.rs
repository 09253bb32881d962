//! What pages have taught so far.

use super::contexts::{COLUMNS as CONTEXT_COLUMNS, Contexts};
use super::marks::Page;
use super::page_columns::{self, PageColumns};
use super::periods::{self, Periods};
use super::window::Window;

/// In the table of passages: added to the page if the passage is boilerplate.
pub const LEARNED: u32 = 1 << 31;

/// What is known by 64-bit keys. The first number of each key is a page, after which it is outdated some day; pages are
/// numbered from 1, so it is never 0.
#[derive(Debug)]
pub struct Memory {
    /// The number of the last page that was learned from.
    pub last_learned: u32,
    /// The two periods.
    pub window: Window,
    /// The pages that were learned from.
    pub pages: PageColumns,
    /// By the ids of pages: the page.
    pub numbers: Periods<1>,
    /// By the hashes of sites: the last page of the last block with pages of theirs, and the number of these.
    pub sites: Periods<2>,
    /// By the hashes of passages: the last page that was a new context; of boilerplate a page of the period in which
    /// it was last seen.
    pub passages: Periods<1>,
    /// By the hashes of passages that were seen again: a row of `Contexts`.
    pub contexts: Periods<CONTEXT_COLUMNS>,
    /// Whether changes are recorded, so that they can be undone and stored.
    pub is_recorded: bool,
}

/// A moment, to which changes can be undone.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The last page that had been learned from.
    pub last_learned: u32,
    window: Window,
    pages: page_columns::Moment,
    /// Of the tables.
    pub tables: [periods::Moment; 4],
}

impl Memory {
    /// Knows nothing yet.
    pub fn new(window: Window) -> Memory {
        Memory {
            last_learned: 0,
            window,
            pages: PageColumns::default(),
            numbers: Periods::default(),
            sites: Periods::default(),
            passages: Periods::default(),
            contexts: Periods::default(),
            is_recorded: false,
        }
    }

    /// Returns the memory that it takes.
    pub fn size_bytes(&self) -> usize {
        self.pages.size_bytes()
            + self.numbers.size_bytes()
            + self.sites.size_bytes()
            + self.passages.size_bytes()
            + self.contexts.size_bytes()
    }

    /// Returns what is known of a passage, as the table has it; 0 for nothing.
    #[inline]
    pub fn known(&self, hash: u64) -> u32 {
        self.passages.get(hash).map_or(0, |[value]| if self.window.has(value & !LEARNED) { value } else { 0 })
    }

    /// Returns the contexts of a passage, given what is known of it.
    pub fn contexts_of(&self, hash: u64, value: u32) -> Contexts {
        Contexts::of(hash, value, self)
    }

    /// Returns whether a page was seen before, by its id.
    pub fn is_seen(&self, id: u64) -> bool {
        self.numbers.get(id).is_some_and(|[page]| self.window.has(page))
    }

    /// Returns how many pages of a site were learned from.
    pub fn pages_of_site(&self, site: u32) -> u32 {
        self.sites.get(site.into()).map_or(0, |[last, count]| if self.window.has(last) { count } else { 0 })
    }

    /// Adds pages that were learned from; a new period has tables of its own.
    pub fn go_on(&mut self, learned: &[Page], window: Window) {
        let has_ended = window.present_from != self.window.present_from;
        if has_ended {
            self.pages.begin_period(self.last_learned + 1, self.is_recorded);
        }
        self.pages.extend(learned);
        self.last_learned += learned.len() as u32;
        self.window = window;
        if has_ended {
            self.numbers.begin_period(self.is_recorded);
            self.sites.begin_period(self.is_recorded);
            self.passages.begin_period(self.is_recorded);
            self.contexts.begin_period(self.is_recorded);
        }
    }

    /// Returns this moment.
    pub fn moment(&self) -> Moment {
        Moment {
            last_learned: self.last_learned,
            window: self.window,
            pages: self.pages.moment(),
            tables: [
                self.numbers.moment(),
                self.sites.moment(),
                self.passages.moment(),
                self.contexts.moment(),
            ],
        }
    }

    /// Undoes all changes since a moment.
    pub fn undo_to(&mut self, moment: &Moment) {
        let [numbers, sites, passages, contexts] = moment.tables;
        self.last_learned = moment.last_learned;
        self.window = moment.window;
        self.pages.undo_to(moment.pages);
        self.numbers.undo_to(numbers);
        self.sites.undo_to(sites);
        self.passages.undo_to(passages);
        self.contexts.undo_to(contexts);
    }

    /// Forgets what was recorded: it can no longer be undone.
    pub fn keep(&mut self) {
        self.pages.keep();
        self.numbers.keep();
        self.sites.keep();
        self.passages.keep();
        self.contexts.keep();
        self.is_recorded = false;
    }
}
