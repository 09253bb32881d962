//! The content hashes that are remembered, here called hashes. Most hashes are stored in the node that they
//! created; the other hashes, called extra hashes, have separate entries.

use bytemuck::{Pod, Zeroable};

use super::chunks::Chunks;
use super::table::{NONE, Table};

/// The content hash of a text without letters and digits; it is not remembered.
pub const NO_HASH: u64 = 0;

// Marks the numbers of extra hashes; the other numbers are rows of nodes.
const EXTRA: u32 = 1 << 31;

/// The remembered state of a content hash.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable, Debug)]
#[repr(C, packed(4))]
pub struct HashState {
    /// When the hash was last seen, rounded up.
    pub seen_ms: i64,
    /// The row of the hash's node; [`NONE`] if it has no node.
    pub row: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed(4))]
struct Extra {
    id: u64,
    last: HashState,
}

/// The content hashes of a forest, which refer to nodes only by row. Each `of_row` argument returns the hash that
/// created the node in a row, and when that hash was last seen with this node.
#[derive(Default)]
pub struct ContentHashes {
    table: Table,
    extra: Chunks<Extra>,
    free: Vec<u32>,
    next_swept: usize,
}

impl ContentHashes {
    /// Returns the number of extra hashes.
    pub fn extra_count(&self) -> usize {
        self.extra.len() - self.free.len()
    }

    /// Returns the memory used by the hashes.
    pub fn size_bytes(&self) -> usize {
        self.table.size_bytes() + self.extra.size_bytes() + self.free.capacity() * size_of::<u32>()
    }

    /// Returns the latest state of a hash, even if the hash has expired.
    pub fn find(&self, hash: u64, of_row: impl Fn(u32) -> (u64, i64)) -> Option<HashState> {
        let mut latest: Option<HashState> = None;
        self.table.scan(hash as u32, &mut |number| {
            let (id, last) = read(&self.extra, number, &of_row);
            if id == hash && latest.is_none_or(|before| last.seen_ms > before.seen_ms) {
                latest = Some(last);
            }
        });
        latest
    }

    /// Adds the hash that created the node in row `number`.
    pub fn add(&mut self, hash: u64, number: u32, of_row: impl Fn(u32) -> (u64, i64)) {
        if hash != NO_HASH {
            let extra = &self.extra;
            self.table.add(hash as u32, number, |number| read(extra, number, &of_row).0 as u32);
        }
    }

    /// Removes the hash that created the node in a row.
    pub fn remove(&mut self, hash: u64, row: u32) {
        if hash != NO_HASH {
            self.table.remove(hash as u32, row);
        }
    }

    /// Sets the state of an extra hash, or removes its entry if `last` is None; returns the previous state.
    pub fn set_extra(
        &mut self,
        hash: u64,
        last: Option<HashState>,
        of_row: impl Fn(u32) -> (u64, i64),
    ) -> Option<HashState> {
        let at = self.find_extra(hash);
        let before = at.map(|at| self.extra[at].last);
        match (at, last) {
            (Some(at), Some(last)) => self.extra[at].last = last,
            (Some(at), None) => self.remove_extra(at),
            (None, Some(last)) => {
                let extra = Extra { id: hash, last };
                let at = self.free.pop().unwrap_or_else(|| {
                    self.extra.push(extra);
                    self.extra.len() as u32 - 1
                });
                self.extra[at as usize] = extra;
                self.add(hash, EXTRA | at, of_row);
            }
            (None, None) => {}
        }
        before
    }

    /// Checks the next `count` entries, and removes the expired ones.
    pub fn sweep(&mut self, count: usize, live_since_ms: i64) {
        for _ in 0..count.min(self.extra.len()) {
            self.next_swept = (self.next_swept + 1) % self.extra.len();
            let extra = self.extra[self.next_swept];
            if extra.id != NO_HASH && extra.last.seen_ms < live_since_ms {
                self.remove_extra(self.next_swept);
            }
        }
    }

    fn find_extra(&self, hash: u64) -> Option<usize> {
        let mut at = None;
        self.table.scan(hash as u32, &mut |number| {
            let place = (number & !EXTRA) as usize;
            if number & EXTRA != 0 && self.extra[place].id == hash {
                at = Some(place);
            }
        });
        at
    }

    fn remove_extra(&mut self, at: usize) {
        self.table.remove(self.extra[at].id as u32, EXTRA | at as u32);
        self.extra[at] = Extra { id: NO_HASH, last: HashState { row: NONE, seen_ms: 0 } };
        self.free.push(at as u32);
    }
}

/// Returns the hash that has the given number in the table, and its state.
fn read(extra: &Chunks<Extra>, number: u32, of_row: impl Fn(u32) -> (u64, i64)) -> (u64, HashState) {
    if number & EXTRA == 0 {
        let (hash, seen_ms) = of_row(number);
        return (hash, HashState { row: number, seen_ms });
    }
    let Extra { id, last } = extra[(number & !EXTRA) as usize];
    (id, last)
}
