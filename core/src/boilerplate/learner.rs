//! `Learner`: goes through pages in their order, says what is left out of each, and learns from them.
//!
//! Pages are learned from in blocks of a fixed number, and a page is judged by what the blocks before its own have
//! taught; so it does not matter how pages are cut into batches.

use super::block::{Block, Taught};
use super::judge::{Fate, Passage, judge};
use super::learn::{SiteRule, learn};
use super::marks::{Marks, Origin, Page};
use super::memory::{LEARNED, Memory};
use super::overrides::Overrides;
use super::steps::Step;
use super::window::Window;

/// How soon pages teach something, and how soon that is forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many pages are learned from together; at least 1.
    pub block_pages: usize,
    /// A page teaches no more than its first and its last passages, so many of each.
    pub end_passages: usize,
    /// A period ends with the block of pages that brings the number of new passages and contexts, and twice that of
    /// pages, to this; at least 1.
    pub period_records: u64,
    /// What makes a passage boilerplate of its site.
    pub site_rule: SiteRule,
}

/// A page that comes.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The page's id.
    pub id: u64,
    /// Where it comes from, not numbered yet.
    pub origin: Origin,
    /// Its site, as a scope of overrides.
    pub scope: u32,
    /// Its passages.
    pub passages: &'a [Passage],
}

/// What pages have taught, and those that have not taught anything yet.
#[derive(Debug)]
pub struct Learner {
    pub(super) pace: Pace,
    pub(super) memory: Memory,
    pub(super) block: Block,
    // Those that have begun, the outermost first; and the first block that has ended in each since.
    pub(super) steps: Vec<Step>,
    pub(super) ended: Vec<Block>,
}

impl Learner {
    /// Knows nothing yet.
    pub fn new(pace: Pace) -> Learner {
        let memory = Memory::new(Window::new(pace.period_records));
        Learner { pace, memory, block: Block::default(), steps: Vec::new(), ended: Vec::new() }
    }

    /// Returns what is known.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the pages that have been seen, but not been learned from yet.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Returns the number of the last page, learned from or not.
    pub fn last_page(&self) -> u32 {
        self.memory.last_learned + self.block.pages.len() as u32
    }

    /// Returns the hashes of all passages that are boilerplate, ascending.
    pub fn learned(&self) -> Vec<u64> {
        let hashes = self.memory.passages.all().map(|(hash, _)| hash);
        let mut learned: Vec<u64> = hashes.filter(|hash| self.is_learned(*hash)).collect();
        learned.sort_unstable();
        learned
    }

    /// Returns whether a passage is boilerplate.
    pub fn is_learned(&self, hash: u64) -> bool {
        self.memory.known(hash) >= LEARNED
    }

    /// Says for each passage of a page, in `omitted`, whether it is left out, and learns from the page.
    ///
    /// A page that was seen before teaches nothing.
    pub fn filter(&mut self, page: &Arrival, overrides: &Overrides, omitted: &mut [bool]) {
        let known: Vec<u32> = page.passages.iter().map(|passage| self.memory.known(passage.hash)).collect();
        let marks = self.judge(page, &known, overrides, omitted);
        if !page.passages.is_empty() && !self.memory.is_seen(page.id) {
            self.see(page, &known, marks, omitted);
            if self.block.pages.len() == self.pace.block_pages {
                self.learn_rest();
            }
        }
    }

    /// Learns from the pages of a block that is not full, as if no others would come.
    pub fn learn_rest(&mut self) {
        let block = self.take_block();
        if !block.pages.is_empty() {
            learn(&mut self.memory, &block, self.pace.site_rule);
            self.end_block(block);
        }
    }

    /// Finds out what is left out of a page, as far as the blocks before have taught it; returns its marks.
    fn judge(&self, page: &Arrival, known: &[u32], overrides: &Overrides, omitted: &mut [bool]) -> Marks {
        let mut passages = page.passages.to_vec();
        for (passage, value) in passages.iter_mut().zip(known) {
            passage.is_learned = *value >= LEARNED;
            overrides.apply(passage, page.scope);
        }
        let judged = judge(&passages);
        for (at, fate) in judged.fates.iter().enumerate() {
            omitted[at] = match fate {
                Fate::Kept => false,
                Fate::LeftOut => true,
                Fate::Doubtful => {
                    let contexts = self.memory.contexts_of(passages[at].hash, known[at]);
                    contexts.has_other(&judged.marks)
                }
            };
        }
        judged.marks
    }

    /// Keeps a new page, to be learned from.
    fn see(&mut self, page: &Arrival, known: &[u32], marks: Marks, omitted: &[bool]) {
        let number = self.last_page() + 1;
        self.memory.numbers.put(page.id, [number], self.memory.is_recorded);
        let place = self.block.pages.len() as u32;
        self.block.pages.push(Page { marks, origin: page.origin });
        let (end, count) = (self.pace.end_passages, page.passages.len());
        for at in (0..count).filter(|at| *at < end || at + end >= count) {
            let (passage, value) = (&page.passages[at], known[at]);
            // Boilerplate is recorded once a period.
            let is_recorded = value >= LEARNED && value & !LEARNED >= self.memory.window.present_from;
            if !is_recorded {
                let letters = if omitted[at] { 0 } else { passage.letters };
                self.block.passages.push(Taught { hash: passage.hash, place, value, letters });
            }
        }
    }
}
