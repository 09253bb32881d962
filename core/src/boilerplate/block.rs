//! Pages that have been seen, and are learned from together.

use super::marks::Page;

/// A passage from which something is to be learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taught {
    /// Its hash.
    pub hash: u64,
    /// Its page, as a place in the block.
    pub place: u32,
    /// What is known of it, as the table of passages has it; 0 for nothing.
    pub value: u32,
    /// Its letters; 0 if it is left out of its page.
    pub letters: u32,
}

/// Pages in their order, and their passages page by page.
#[derive(Clone, Default, Debug)]
pub struct Block {
    /// The pages.
    pub pages: Vec<Page>,
    /// Those of their passages that teach something.
    pub passages: Vec<Taught>,
}

impl Block {
    /// Returns how many passages each page has, from a page on.
    pub fn counts(&self, from: usize) -> Vec<u32> {
        let mut counts = vec![0; self.pages.len() - from];
        for passage in self.passages_from(from) {
            counts[passage.place as usize - from] += 1;
        }
        counts
    }

    /// Returns the passages of the pages from one on.
    pub fn passages_from(&self, from: usize) -> &[Taught] {
        &self.passages[self.passages.partition_point(|passage| (passage.place as usize) < from)..]
    }
}
