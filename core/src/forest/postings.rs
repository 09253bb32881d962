//! Lists of tagged numbers. Each list is contiguous in memory and grows by a few cache lines at a time.
//!
//! A search scans a list sequentially, so a long list costs little more than a short one. All lists of one size are
//! stored side by side. When a list grows, it moves to the next size, and the last list of the old size fills the
//! gap, so little memory is wasted.

use bytemuck::{Pod, Zeroable};

use super::chunks::Chunks;

/// The number of bits of a tag.
pub const TAG_BITS: u32 = 24;

const SLOTS: usize = 9;
// The number of cache lines in a page; pages are allocated as a whole. All lists in a page have the same size; an empty
// page may be used for another size.
const PAGE: usize = 256;
// Lists with more lines are allocated individually.
const MOST_LINES: usize = 64;
const SIZES: usize = sizes().0;
// PER_PAGE: how many lists of each size fit in a page. SIZE_OF: the size of a list, by its number of lines.
const PER_PAGE: [usize; MOST_LINES] = sizes().1;
const SIZE_OF: [usize; MOST_LINES + 1] = sizes().2;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line {
    numbers: [u32; SLOTS],
    // The low 16 bits and the high 8 bits of each tag.
    low: [u16; SLOTS],
    high: [u8; SLOTS],
    unused: u8,
}

const EMPTY: Line = Line { numbers: [0; SLOTS], low: [0; SLOTS], high: [0; SLOTS], unused: 0 };

impl Line {
    fn get(&self, slot: usize) -> (u32, u32) {
        (self.numbers[slot], u32::from(self.low[slot]) | u32::from(self.high[slot]) << 16)
    }

    fn set(&mut self, slot: usize, (number, tag): (u32, u32)) {
        self.numbers[slot] = number;
        self.low[slot] = tag as u16;
        self.high[slot] = (tag >> 16) as u8;
    }

    /// Returns a bit for each slot whose tag differs from `tag` in at most 3 of the low 16 bits.
    #[inline]
    fn near(&self, tag: u32) -> u32 {
        let mut near = 0;
        for (slot, own) in self.low.iter().enumerate() {
            let mut differing = own ^ tag as u16;
            for _ in 0..3 {
                differing &= differing.wrapping_sub(1);
            }
            near |= u32::from(differing == 0) << slot;
        }
        near
    }
}

#[derive(Clone, Copy, Default)]
struct Head {
    // The index of the first line, or the index in `long`.
    at: u32,
    len: u32,
}

impl Head {
    fn lines(self) -> usize {
        (self.len as usize).div_ceil(SLOTS)
    }
}

#[derive(Default)]
struct Size {
    pages: Vec<u32>,
    // The numbers of the lists, in the order in which they are stored.
    lists: Vec<u32>,
}

/// Numbered lists.
#[derive(Default)]
pub struct Postings {
    heads: Vec<Head>,
    lines: Chunks<Line>,
    sizes: [Size; SIZES],
    // The index of each page among the pages of its size.
    places: Vec<u32>,
    free_pages: Vec<u32>,
    long: Vec<Vec<Line>>,
    free_long: Vec<u32>,
}

impl Postings {
    /// Returns the memory used by all lists.
    pub fn size_bytes(&self) -> usize {
        let short = self.sizes.iter().zip(PER_PAGE).map(|(size, fit)| size.lists.len() * (PAGE / fit));
        let long = self.long.iter().map(Vec::capacity);
        (short.sum::<usize>() + long.sum::<usize>()) * size_of::<Line>()
            + self.heads.len() * size_of::<Head>()
    }

    /// Adds an empty list. Lists are numbered from 0.
    pub fn push_list(&mut self) {
        self.heads.push(Head::default());
    }

    /// Returns the length of a list.
    #[inline]
    pub fn count(&self, list: usize) -> usize {
        self.heads[list].len as usize
    }

    /// Fetches the beginning of a list into the processor's cache, before `near` reads it.
    #[inline]
    pub fn touch(&self, list: usize) -> u32 {
        self.lines(list).first().map_or(0, |line| line.numbers[0])
    }

    /// Calls `found` with the numbers in a list whose tags are within 3 bits of `tag`.
    #[inline]
    pub fn near(&self, list: usize, tag: u32, mut found: impl FnMut(u32)) {
        let mut left = self.count(list);
        for line in self.lines(list) {
            let mut near = line.near(tag);
            if left < SLOTS {
                near &= (1 << left) - 1;
            }
            while near != 0 {
                let (number, own) = line.get(near.trailing_zeros() as usize);
                if (own ^ tag).count_ones() <= 3 {
                    found(number);
                }
                near &= near - 1;
            }
            left = left.saturating_sub(SLOTS);
        }
    }

    /// Returns the numbers in a list, with their tags.
    pub fn all(&self, list: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let lines = self.lines(list);
        (0..self.count(list)).map(move |at| lines[at / SLOTS].get(at % SLOTS))
    }

    /// Adds a number to a list.
    pub fn add(&mut self, list: usize, number: u32, tag: u32) {
        let len = self.count(list);
        self.resize(list, len + 1);
        self.lines_mut(list)[len / SLOTS].set(len % SLOTS, (number, tag));
    }

    /// Removes a number from a list, if present.
    pub fn remove(&mut self, list: usize, number: u32) {
        let Some(at) = self.all(list).position(|each| each.0 == number) else { return };
        let last = self.count(list) - 1;
        let lines = self.lines_mut(list);
        lines[at / SLOTS].set(at % SLOTS, lines[last / SLOTS].get(last % SLOTS));
        self.resize(list, last);
    }

    /// Removes all numbers from a list.
    pub fn clear(&mut self, list: usize) {
        self.resize(list, 0);
    }

    #[inline]
    fn lines(&self, list: usize) -> &[Line] {
        let head = self.heads[list];
        match head.lines() {
            0 => &[],
            count if count <= MOST_LINES => self.lines.slice(head.at as usize, count),
            _ => &self.long[head.at as usize],
        }
    }

    fn lines_mut(&mut self, list: usize) -> &mut [Line] {
        let head = self.heads[list];
        match head.lines() {
            0 => &mut [],
            count if count <= MOST_LINES => self.lines.slice_mut(head.at as usize, count),
            _ => &mut self.long[head.at as usize],
        }
    }

    /// Changes the length of a list, and moves the list if it then needs another size.
    fn resize(&mut self, list: usize, len: usize) {
        let before = self.heads[list];
        let head = Head { len: len as u32, ..before };
        self.heads[list] = head;
        let (lines_before, lines) = (before.lines(), head.lines());
        if lines_before > MOST_LINES && lines > MOST_LINES {
            let long = &mut self.long[head.at as usize];
            if lines > long.capacity() {
                long.reserve_exact(lines / 8);
            }
            long.resize(lines, EMPTY);
        } else if size_of_list(lines_before) != size_of_list(lines) {
            let (at, kept) = (self.allocate(list, lines), lines.min(lines_before));
            for line in 0..kept {
                *self.line_mut(at, lines, line) = *self.line_mut(before.at, lines_before, line);
            }
            self.heads[list].at = at;
            self.free(before);
        }
    }

    /// Returns line number `line` of the list that begins at `at` and has `lines` lines.
    fn line_mut(&mut self, at: u32, lines: usize, line: usize) -> &mut Line {
        let at = at as usize;
        if lines > MOST_LINES { &mut self.long[at][line] } else { &mut self.lines[at + line] }
    }

    /// Allocates space for a list.
    fn allocate(&mut self, list: usize, lines: usize) -> u32 {
        if lines == 0 {
            return 0;
        }
        if lines > MOST_LINES {
            let at = self.free_long.pop().unwrap_or_else(|| {
                self.long.push(Vec::new());
                self.long.len() as u32 - 1
            });
            self.long[at as usize] = vec![EMPTY; lines];
            return at;
        }
        let number = SIZE_OF[lines];
        let size = &mut self.sizes[number];
        if size.lists.len() == size.pages.len() * PER_PAGE[number] {
            let page = self.free_pages.pop().unwrap_or_else(|| {
                (0..PAGE).for_each(|_| self.lines.push(EMPTY));
                self.places.push(0);
                self.places.len() as u32 - 1
            });
            self.places[page as usize] = size.pages.len() as u32;
            size.pages.push(page);
        }
        size.lists.push(list as u32);
        self.line_of(number, self.sizes[number].lists.len() - 1) as u32
    }

    /// Frees the space of a list, by moving the last list of its size into it.
    fn free(&mut self, head: Head) {
        let (at, lines) = (head.at as usize, head.lines());
        if lines == 0 {
            return;
        }
        if lines > MOST_LINES {
            self.long[at] = Vec::new();
            self.free_long.push(head.at);
            return;
        }
        let number = SIZE_OF[lines];
        let (per_page, own) = (PER_PAGE[number], PAGE / PER_PAGE[number]);
        let place = self.places[at / PAGE] as usize * per_page + at % PAGE / own;
        let last = self.sizes[number].lists.len() - 1;
        if place != last {
            let from = self.line_of(number, last);
            (0..own).for_each(|each| self.lines[at + each] = self.lines[from + each]);
            let moved = self.sizes[number].lists[last];
            self.heads[moved as usize].at = head.at;
        }
        self.sizes[number].lists.swap_remove(place);
        if last % per_page == 0 {
            self.free_pages.extend(self.sizes[number].pages.pop());
        }
    }

    /// Returns the index of a list's first line, by the list's place among the lists of its size.
    fn line_of(&self, number: usize, place: usize) -> usize {
        let per_page = PER_PAGE[number];
        self.sizes[number].pages[place / per_page] as usize * PAGE + place % per_page * (PAGE / per_page)
    }
}

/// Returns the index of the size for a list with `lines` lines: `SIZES` for an empty list, `SIZES + 1` for a long
/// list.
fn size_of_list(lines: usize) -> usize {
    match lines {
        0 => SIZES,
        _ if lines > MOST_LINES => SIZES + 1,
        _ => SIZE_OF[lines],
    }
}

/// Returns the number of sizes, the number of lists of each size in a page, and the index of a list's size by its
/// number of lines. The sizes are chosen so that lists of one size fill a page.
const fn sizes() -> (usize, [usize; MOST_LINES], [usize; MOST_LINES + 1]) {
    let (mut per_page, mut size_of) = ([0; MOST_LINES], [0; MOST_LINES + 1]);
    let (mut count, mut lines) = (0, 1);
    while lines <= MOST_LINES {
        per_page[count] = PAGE / lines;
        while lines <= MOST_LINES && PAGE / lines == per_page[count] {
            size_of[lines] = count;
            lines += 1;
        }
        count += 1;
    }
    (count, per_page, size_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::mixed;

    #[test]
    fn lists_contain_added_numbers_until_they_are_removed() {
        let mut postings = Postings::default();
        let mut expected: Vec<Vec<(u32, u32)>> = vec![Vec::new(); 50];
        (0..50).for_each(|_| postings.push_list());
        for number in 0..60_000_u32 {
            let random = mixed(u64::from(number)) as usize;
            // Some lists are much longer than others.
            let list = (random % 50).min(random / 64 % 50).min(random / 4_096 % 50);
            if random >> 20 & 3 == 0 && !expected[list].is_empty() {
                let at = (random >> 24) % expected[list].len();
                let (removed, _) = expected[list].swap_remove(at);
                postings.remove(list, removed);
            } else {
                let tag = (random >> 40) as u32 & ((1 << TAG_BITS) - 1);
                postings.add(list, number, tag);
                expected[list].push((number, tag));
            }
            if random >> 22 & 0x3fff == 0 {
                postings.clear(list);
                expected[list].clear();
            }
        }
        assert!(expected.iter().any(|list| list.len() > MOST_LINES * SLOTS));
        for (list, expected) in expected.iter_mut().enumerate() {
            let mut all: Vec<_> = postings.all(list).collect();
            all.sort_unstable();
            expected.sort_unstable();
            assert_eq!(&all, expected);
            let tag = expected.first().map_or(0, |first| first.1 ^ 0x80_8001);
            let mut near = Vec::new();
            postings.near(list, tag, |number| near.push(number));
            near.sort_unstable();
            expected.retain(|each| (each.1 ^ tag).count_ones() <= 3);
            assert_eq!(near, expected.iter().map(|each| each.0).collect::<Vec<_>>());
        }
        (0..50).for_each(|list| postings.clear(list));
        assert_eq!(postings.size_bytes(), 50 * size_of::<Head>());
        assert_eq!(postings.free_pages.len(), postings.places.len());
    }

    #[test]
    fn lists_of_one_size_fill_a_page() {
        for needed in 1..=MOST_LINES {
            let per_page = PER_PAGE[SIZE_OF[needed]];
            assert!(PAGE / per_page >= needed && PAGE - per_page * (PAGE / per_page) < PAGE / per_page);
            assert!(needed == 1 || PAGE / per_page <= needed * 4 / 3);
        }
    }
}
