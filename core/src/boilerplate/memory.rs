//! Stores learned boilerplate for the current and the previous period (see [`Window`]), and can undo changes.

use std::collections::VecDeque;

use bytemuck::cast_slice;

use super::pages::{Known, Page};
use super::sharded_table::ShardedTable;
use super::site_pages::COLUMNS as SITE_COLUMNS;

/// The number of contexts stored for a passage. With one more context, the passage becomes boilerplate of its site.
pub const MOST_CONTEXTS: usize = 4;
/// The number of columns for a passage that was seen again: first the columns of `SitePages`, then one column for
/// each context, with the number of its page (0 if unused).
pub const CONTEXT_COLUMNS: usize = SITE_COLUMNS + MOST_CONTEXTS;

/// Tables with 64-bit keys. The first number of an entry is the number of a page, which decides when the entry
/// becomes outdated. Pages are numbered from 1, so this number is never 0.
#[derive(Default)]
pub struct Memory {
    /// The number of the last page of the last block that ended.
    pub last_learned: u32,
    /// The two periods.
    pub window: Window,
    // The pages of both periods up to `last_learned`.
    pages: VecDeque<Page>,
    /// The numbers of pages. A page is found by its own id, and by the ids of its first and last passages.
    pub numbers: Periods<1>,
    /// By the hash of a site: the last page of the latest block with pages of the site, and the site's page count.
    pub sites: Periods<2>,
    /// [`Known`], by the local hashes of passages.
    pub passages: Periods<1>,
    /// A row of `Contexts`, by the local hashes of passages that were seen again.
    pub contexts: Periods<CONTEXT_COLUMNS>,
}

/// The number of columns of each table.
pub const WIDTHS: [usize; 4] = [1, 2, 1, CONTEXT_COLUMNS];

/// A moment to which changes can be undone.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// `last_learned` of the memory at that moment.
    pub last_learned: u32,
    window: Window,
    // The number of recorded changes of each table.
    recorded: [usize; 4],
}

impl Memory {
    /// Creates an empty memory.
    pub fn new(window: Window) -> Memory {
        Memory { window, ..Memory::default() }
    }

    /// Returns the number of bytes used.
    pub fn size_bytes(&self) -> usize {
        let tables = self.tables().map(Recorded::size_bytes).iter().sum::<usize>();
        tables + self.pages.capacity() * size_of::<Page>()
    }

    /// Returns a page; zeros if it is not stored.
    #[inline]
    pub fn page(&self, number: u32) -> Page {
        let place = number.checked_sub(self.first_page());
        place.and_then(|place| self.pages.get(place as usize)).copied().unwrap_or_default()
    }

    /// Returns the [`Known`] of the passage with this local hash.
    #[inline]
    pub fn known(&self, hash: u64) -> Known {
        let found = self.passages.get(hash).map(|[known]| Known(known));
        found.filter(|known| self.window.has(known.page())).unwrap_or_default()
    }

    /// Returns the number of the page with this id, if the page was seen before.
    pub fn number_of(&self, id: u64) -> Option<u32> {
        self.numbers.get(id).map(|[page]| page).filter(|page| self.window.has(*page))
    }

    /// Returns the number of a site's pages, not counting pages of the current block.
    pub fn pages_of_site(&self, site: u32) -> u32 {
        self.sites.get(site.into()).map_or(0, |[last, count]| if self.window.has(last) { count } else { 0 })
    }

    /// Adds the pages of a block that ended. If `window` has a new period, begins it in all tables.
    pub fn advance(&mut self, learned: &[Page], window: Window) {
        if window.present_from != self.window.present_from {
            self.tables_mut().into_iter().for_each(Recorded::begin_period);
        }
        self.pages.extend(learned);
        self.last_learned += learned.len() as u32;
        self.window = window;
    }

    /// Returns the current moment.
    pub fn moment(&self) -> Moment {
        let recorded = self.tables().map(Recorded::count);
        Moment { last_learned: self.last_learned, window: self.window, recorded }
    }

    /// Undoes all changes since a moment.
    pub fn undo_to(&mut self, moment: &Moment) {
        let added = (self.last_learned - moment.last_learned) as usize;
        self.pages.truncate(self.pages.len().saturating_sub(added));
        self.last_learned = moment.last_learned;
        self.window = moment.window;
        self.tables_mut().into_iter().zip(moment.recorded).for_each(|(table, count)| table.undo_to(count));
    }

    /// Makes all changes permanent: drops the data needed to undo them, and outdated pages.
    pub fn keep(&mut self) {
        self.tables_mut().into_iter().for_each(Recorded::keep);
        let outdated = self.window.former_from.saturating_sub(self.first_page());
        self.pages.drain(..outdated as usize);
    }

    /// Returns the entries put into each table since a moment.
    pub fn puts_since(&self, moment: &Moment) -> [Puts; 4] {
        let mut recorded = moment.recorded.into_iter();
        self.tables().map(|table| table.puts_since(recorded.next().unwrap_or(0)))
    }

    /// Returns the contents of each table.
    pub fn all(&self) -> [Puts; 4] {
        self.tables().map(Recorded::all)
    }

    /// Puts entries into each table. They can be undone if `is_recorded`.
    pub fn put_all(&mut self, puts: &[Puts; 4], is_recorded: bool) {
        self.tables_mut().into_iter().zip(puts).for_each(|(table, puts)| table.put_all(puts, is_recorded));
    }

    fn first_page(&self) -> u32 {
        self.last_learned + 1 - self.pages.len() as u32
    }

    fn tables(&self) -> [&dyn Recorded; 4] {
        [&self.numbers, &self.sites, &self.passages, &self.contexts]
    }

    fn tables_mut(&mut self) -> [&mut dyn Recorded; 4] {
        [&mut self.numbers, &mut self.sites, &mut self.passages, &mut self.contexts]
    }
}

/// The current and the previous period; boilerplate that was seen in neither is forgotten. A period is a series of
/// pages, and ends after the block in which its number of records (see `Pace`) reaches the capacity.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Window {
    /// The number of records after which a period ends, at least 1.
    pub capacity: u64,
    /// The number of records in the current period.
    pub count: u64,
    /// The number of the first page of the current period.
    pub present_from: u32,
    /// The number of the first page of the previous period.
    pub former_from: u32,
}

impl Window {
    /// Returns the first window.
    pub fn new(capacity: u64) -> Window {
        Window { capacity, count: 0, present_from: 1, former_from: 1 }
    }

    /// Returns the window after a block that ends with `last_page` and adds `records` records.
    pub fn after(&self, records: u64, last_page: u32) -> Window {
        let count = self.count + records;
        if count < self.capacity {
            return Window { count, ..*self };
        }
        Window { count: 0, present_from: last_page + 1, former_from: self.present_from, ..*self }
    }

    /// Returns whether a page belongs to one of the two periods; false for 0, which means no page.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        page >= self.former_from
    }
}

/// Entries in the order in which they were put into a table. If a key occurs several times, the last entry wins.
#[derive(Clone, Default, Debug)]
pub struct Puts {
    /// The keys.
    pub keys: Vec<u64>,
    /// The rows of all keys, concatenated.
    pub rows: Vec<u32>,
}

impl<const C: usize> FromIterator<(u64, [u32; C])> for Puts {
    fn from_iter<I: IntoIterator<Item = (u64, [u32; C])>>(puts: I) -> Puts {
        let (keys, rows): (Vec<u64>, Vec<[u32; C]>) = puts.into_iter().unzip();
        Puts { keys, rows: cast_slice(&rows).to_vec() }
    }
}

/// A table of any width whose changes can be undone.
trait Recorded {
    /// Begins a period: the current period becomes the previous one, and the previous one becomes outdated.
    fn begin_period(&mut self);
    /// Returns the number of recorded changes.
    fn count(&self) -> usize;
    /// Undoes all changes except the first `count`.
    fn undo_to(&mut self, count: usize);
    /// Makes the recorded changes permanent.
    fn keep(&mut self);
    fn puts_since(&self, count: usize) -> Puts;
    fn all(&self) -> Puts;
    fn put_all(&mut self, puts: &Puts, is_recorded: bool);
    fn size_bytes(&self) -> usize;
}

/// The tables of the current and the previous period; entries of the current period take precedence.
#[derive(Default)]
pub struct Periods<const C: usize> {
    present: ShardedTable<C>,
    former: ShardedTable<C>,
    // The changes that can be undone: each entry with its previous numbers, or None for the beginning of a period.
    recorded: Vec<Option<Put<C>>>,
    // The tables that became outdated when these periods began.
    outdated: Vec<ShardedTable<C>>,
}

#[derive(Clone, Copy)]
struct Put<const C: usize> {
    key: u64,
    numbers: [u32; C],
    before: [u32; C],
}

impl<const C: usize> Periods<C> {
    /// Returns the latest numbers of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<[u32; C]> {
        self.present.get(key).or_else(|| self.former.get(key))
    }

    /// Sets the numbers of a key in the current period.
    pub fn put(&mut self, key: u64, numbers: [u32; C]) {
        let before = self.present.put(key, numbers);
        self.recorded.push(Some(Put { key, numbers, before }));
    }

    /// Returns all keys and their latest numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, [u32; C])> + '_ {
        let former = self.former.iter().filter(|(key, _)| self.present.get(*key).is_none());
        self.present.iter().chain(former)
    }
}

impl<const C: usize> Recorded for Periods<C> {
    fn begin_period(&mut self) {
        let present = std::mem::take(&mut self.present);
        self.outdated.push(std::mem::replace(&mut self.former, present));
        self.recorded.push(None);
    }

    fn count(&self) -> usize {
        self.recorded.len()
    }

    fn undo_to(&mut self, count: usize) {
        for change in self.recorded.drain(count..).rev() {
            if let Some(Put { key, before, .. }) = change {
                self.present.put(key, before);
            } else if let Some(former) = self.outdated.pop() {
                self.present = std::mem::replace(&mut self.former, former);
            }
        }
    }

    fn keep(&mut self) {
        (self.recorded, self.outdated) = Default::default();
    }

    fn puts_since(&self, count: usize) -> Puts {
        self.recorded[count..].iter().flatten().map(|put| (put.key, put.numbers)).collect()
    }

    fn all(&self) -> Puts {
        self.iter().collect()
    }

    fn put_all(&mut self, puts: &Puts, is_recorded: bool) {
        let rows: &[[u32; C]] = cast_slice(&puts.rows);
        for (key, row) in puts.keys.iter().zip(rows) {
            if is_recorded {
                self.put(*key, *row);
            } else {
                self.present.put(*key, *row);
            }
        }
    }

    fn size_bytes(&self) -> usize {
        self.present.size_bytes() + self.former.size_bytes()
    }
}
