//! The content hashes that are remembered, here called pages. Most are stored in the node that they created, the
//! others in separate entries.

use bytemuck::{Pod, Zeroable};

use super::chunks::Chunks;
use super::table::{NONE, Table};

/// The content hash of a text without letters and digits; it is not remembered.
pub const NO_PAGE: u64 = 0;

// Marks the numbers of pages with separate entries; the other numbers are rows of nodes.
const LONE: u32 = 1 << 31;

/// The remembered state of a page.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable, Debug)]
#[repr(C, packed(4))]
pub struct PageState {
    /// When the page was last seen, rounded up.
    pub seen_ms: i64,
    /// The row of the page's node; [`NONE`] if it has no node.
    pub row: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed(4))]
struct Lone {
    id: u64,
    last: PageState,
}

/// The pages of a forest, which refer to nodes only by row. Each `of_row` argument returns the page that created the
/// node in a row, and when that page was last seen with this node.
#[derive(Default)]
pub struct SeenPages {
    table: Table,
    lone: Chunks<Lone>,
    free: Vec<u32>,
    next_swept: usize,
}

impl SeenPages {
    /// Returns the number of pages with separate entries.
    pub fn lone_count(&self) -> usize {
        self.lone.len() - self.free.len()
    }

    /// Returns the memory used by the pages.
    pub fn size_bytes(&self) -> usize {
        self.table.size_bytes() + self.lone.size_bytes() + self.free.capacity() * size_of::<u32>()
    }

    /// Returns the latest state of a page, even if the page has expired.
    pub fn find(&self, page: u64, of_row: impl Fn(u32) -> (u64, i64)) -> Option<PageState> {
        let mut latest: Option<PageState> = None;
        self.table.scan(page as u32, &mut |number| {
            let (id, last) = read(&self.lone, number, &of_row);
            if id == page && latest.is_none_or(|before| last.seen_ms > before.seen_ms) {
                latest = Some(last);
            }
        });
        latest
    }

    /// Adds the page that created the node in row `number`.
    pub fn add(&mut self, page: u64, number: u32, of_row: impl Fn(u32) -> (u64, i64)) {
        if page != NO_PAGE {
            let lone = &self.lone;
            self.table.add(page as u32, number, |number| read(lone, number, &of_row).0 as u32);
        }
    }

    /// Removes the page that created the node in a row.
    pub fn remove(&mut self, page: u64, row: u32) {
        if page != NO_PAGE {
            self.table.remove(page as u32, row);
        }
    }

    /// Sets the state in a page's separate entry, or removes the entry if `last` is None; returns the previous state.
    pub fn set_lone(
        &mut self,
        page: u64,
        last: Option<PageState>,
        of_row: impl Fn(u32) -> (u64, i64),
    ) -> Option<PageState> {
        let at = self.find_lone(page);
        let before = at.map(|at| self.lone[at].last);
        match (at, last) {
            (Some(at), Some(last)) => self.lone[at].last = last,
            (Some(at), None) => self.remove_lone(at),
            (None, Some(last)) => {
                let lone = Lone { id: page, last };
                let at = self.free.pop().unwrap_or_else(|| {
                    self.lone.push(lone);
                    self.lone.len() as u32 - 1
                });
                self.lone[at as usize] = lone;
                self.add(page, LONE | at, of_row);
            }
            (None, None) => {}
        }
        before
    }

    /// Checks the next `count` entries, and removes the expired ones.
    pub fn sweep(&mut self, count: usize, live_since_ms: i64) {
        for _ in 0..count.min(self.lone.len()) {
            self.next_swept = (self.next_swept + 1) % self.lone.len();
            let lone = self.lone[self.next_swept];
            if lone.id != NO_PAGE && lone.last.seen_ms < live_since_ms {
                self.remove_lone(self.next_swept);
            }
        }
    }

    fn find_lone(&self, page: u64) -> Option<usize> {
        let mut at = None;
        self.table.scan(page as u32, &mut |number| {
            let place = (number & !LONE) as usize;
            if number & LONE != 0 && self.lone[place].id == page {
                at = Some(place);
            }
        });
        at
    }

    fn remove_lone(&mut self, at: usize) {
        self.table.remove(self.lone[at].id as u32, LONE | at as u32);
        self.lone[at] = Lone { id: NO_PAGE, last: PageState { row: NONE, seen_ms: 0 } };
        self.free.push(at as u32);
    }
}

/// Returns the id and the state of a page, by its number in the table.
fn read(lone: &Chunks<Lone>, number: u32, of_row: impl Fn(u32) -> (u64, i64)) -> (u64, PageState) {
    if number & LONE == 0 {
        let (page, seen_ms) = of_row(number);
        return (page, PageState { row: number, seen_ms });
    }
    let Lone { id, last } = lone[(number & !LONE) as usize];
    (id, last)
}
