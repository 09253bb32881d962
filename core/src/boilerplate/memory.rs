//! What pages have taught so far, for the present period and the one before it, with changes that can be undone.

use super::contexts::{COLUMNS as CONTEXT_COLUMNS, Contexts};
use super::pages::Page;
use super::table::Table;

/// In the table of passages: added to the page if the passage is boilerplate.
pub const LEARNED: u32 = 1 << 31;

/// What is known by 64-bit keys. The first number of each key is a page, after which it is outdated some day; pages are
/// numbered from 1, so it is never 0.
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
    /// Of the pages, and of the tables.
    pub parts: [Part; 5],
}

impl Memory {
    /// Makes an empty memory.
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
        let tables = self.numbers.size_bytes() + self.sites.size_bytes() + self.passages.size_bytes();
        self.pages.size_bytes() + tables + self.contexts.size_bytes()
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
        if window.present_from != self.window.present_from {
            let (first, is_recorded) = (self.last_learned + 1, self.is_recorded);
            self.parts().into_iter().for_each(|part| part.begin_period(first, is_recorded));
        }
        self.pages.present.pages.extend_from_slice(learned);
        self.last_learned += learned.len() as u32;
        self.window = window;
    }

    /// Begins after pages of which nothing is known.
    pub fn begin_after(&mut self, last_learned: u32, window: Window) {
        self.pages.present.first = last_learned + 1;
        self.last_learned = last_learned;
        self.window = window;
    }

    /// Returns this moment.
    pub fn moment(&mut self) -> Moment {
        let parts = self.parts().map(|part| part.moment());
        Moment { last_learned: self.last_learned, window: self.window, parts }
    }

    /// Undoes all changes since a moment.
    pub fn undo_to(&mut self, moment: &Moment) {
        self.last_learned = moment.last_learned;
        self.window = moment.window;
        self.parts().into_iter().zip(moment.parts).for_each(|(part, moment)| part.undo_to(moment));
    }

    /// Forgets what was recorded: it can no longer be undone.
    pub fn keep(&mut self) {
        self.parts().into_iter().for_each(Undoable::keep);
        self.is_recorded = false;
    }

    fn parts(&mut self) -> [&mut dyn Undoable; 5] {
        [&mut self.pages, &mut self.numbers, &mut self.sites, &mut self.passages, &mut self.contexts]
    }
}

/// Two periods of pages. A period ends with the block that brings the number of records to its capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// At least 1.
    pub capacity: u64,
    /// The records of the present period.
    pub count: u64,
    /// The number of the first page of the present period.
    pub present_from: u32,
    /// The number of the first page of the period before it.
    pub former_from: u32,
}

impl Window {
    /// Returns the first window.
    pub fn new(capacity: u64) -> Window {
        Window { capacity, count: 0, present_from: 1, former_from: 1 }
    }

    /// Returns the window after so many records, the last of which are of this page.
    pub fn after(&self, records: u64, last_page: u32) -> Window {
        let count = self.count + records;
        if count < self.capacity {
            return Window { count, ..*self };
        }
        Window { count: 0, present_from: last_page + 1, former_from: self.present_from, ..*self }
    }

    /// Returns whether a page is of one of the two periods; 0 is none.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        page >= self.former_from
    }
}

/// A part of the memory, of two periods, with changes that can be undone.
trait Undoable {
    /// Forgets the former period; the present one takes its place, and a page begins a new one.
    fn begin_period(&mut self, first: u32, is_recorded: bool);
    fn moment(&self) -> Part;
    fn undo_to(&mut self, moment: Part);
    /// Forgets what was recorded.
    fn keep(&mut self);
}

/// A moment of a part.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    // The first page of the present period; of pages only.
    first: u32,
    // How many pages the period had, or how much had been put into the tables, and how much had been forgotten.
    count: usize,
    forgotten: usize,
}

/// Pages with consecutive numbers.
struct Span {
    first: u32,
    pages: Vec<Page>,
}

impl Default for Span {
    fn default() -> Self {
        Span { first: 1, pages: Vec::new() }
    }
}

/// What is kept of pages by their numbers, so that passages can be compared by their pages.
#[derive(Default)]
pub struct PageColumns {
    present: Span,
    former: Span,
    // While changes are recorded: those that were forgotten.
    forgotten: Vec<Span>,
}

impl PageColumns {
    /// Returns the memory that they take.
    pub fn size_bytes(&self) -> usize {
        (self.present.pages.capacity() + self.former.pages.capacity()) * size_of::<Page>()
    }

    /// Returns what is kept of a page; zeros if nothing is.
    #[inline]
    pub fn get(&self, number: u32) -> Page {
        let span = if number < self.present.first { &self.former } else { &self.present };
        let place = number.checked_sub(span.first);
        place.and_then(|place| span.pages.get(place as usize)).copied().unwrap_or_default()
    }
}

impl Undoable for PageColumns {
    fn begin_period(&mut self, first: u32, is_recorded: bool) {
        let present = std::mem::replace(&mut self.present, Span { first, pages: Vec::new() });
        let forgotten = std::mem::replace(&mut self.former, present);
        if is_recorded {
            self.forgotten.push(forgotten);
        }
    }

    fn moment(&self) -> Part {
        let Span { first, pages } = &self.present;
        Part { first: *first, count: pages.len(), forgotten: self.forgotten.len() }
    }

    fn undo_to(&mut self, moment: Part) {
        for former in self.forgotten.drain(moment.forgotten..).rev() {
            self.present = std::mem::replace(&mut self.former, former);
        }
        self.present.first = moment.first;
        self.present.pages.truncate(moment.count);
    }

    fn keep(&mut self) {
        self.forgotten = Vec::new();
    }
}

/// Keys and their numbers in the order in which they were put; of a key that comes several times, the last counts.
pub type Puts<const C: usize> = Vec<(u64, [u32; C])>;

/// The table of the present period and of the one before: what the present one has counts.
#[derive(Default)]
pub struct Periods<const C: usize> {
    present: Table<C>,
    former: Table<C>,
    // While changes are recorded: what was put, the numbers before, and the tables that were forgotten, each with
    // how much had been put by then.
    puts: Puts<C>,
    before: Vec<[u32; C]>,
    forgotten: Vec<(usize, Table<C>)>,
}

impl<const C: usize> Periods<C> {
    /// Returns the memory of both tables.
    pub fn size_bytes(&self) -> usize {
        self.present.size_bytes() + self.former.size_bytes()
    }

    /// Returns the latest numbers of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<[u32; C]> {
        self.present.get(key).or_else(|| self.former.get(key))
    }

    /// Sets the numbers of a key in the present period.
    pub fn put(&mut self, key: u64, numbers: [u32; C], is_recorded: bool) {
        let before = self.present.put(key, numbers);
        if is_recorded {
            self.puts.push((key, numbers));
            self.before.push(before);
        }
    }

    /// Returns all keys and their latest numbers.
    pub fn all(&self) -> impl Iterator<Item = (u64, [u32; C])> + '_ {
        let former = self.former.iter().filter(|(key, _)| self.present.get(*key).is_none());
        self.present.iter().chain(former)
    }

    /// Returns what was put since a moment.
    pub fn puts_since(&self, moment: Part) -> Puts<C> {
        self.puts[moment.count..].to_vec()
    }

    fn undo_puts(&mut self, count: usize) {
        let changed = self.puts.drain(count..).zip(self.before.drain(count..));
        for ((key, _), numbers) in changed.rev() {
            self.present.put(key, numbers);
        }
    }
}

impl<const C: usize> Undoable for Periods<C> {
    fn begin_period(&mut self, _: u32, is_recorded: bool) {
        let present = std::mem::take(&mut self.present);
        let forgotten = std::mem::replace(&mut self.former, present);
        if is_recorded {
            self.forgotten.push((self.puts.len(), forgotten));
        }
    }

    fn moment(&self) -> Part {
        Part { first: 0, count: self.puts.len(), forgotten: self.forgotten.len() }
    }

    fn undo_to(&mut self, moment: Part) {
        while self.forgotten.len() > moment.forgotten {
            if let Some((puts, former)) = self.forgotten.pop() {
                self.undo_puts(puts);
                self.present = std::mem::replace(&mut self.former, former);
            }
        }
        self.undo_puts(moment.count);
    }

    fn keep(&mut self) {
        (self.puts, self.before, self.forgotten) = Default::default();
    }
}
