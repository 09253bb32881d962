//! [`Learner`] processes pages in order: it decides which passages to omit, and learns from the pages.
//!
//! The learner learns from blocks of a fixed number of pages, and judges a page by the blocks before the page's own
//! block. So the division of pages into batches does not affect the result.

use std::collections::HashSet;

use super::contexts::Contexts;
use super::judge::{Fate, OverrideTable, PagePassage, judge};
use super::learning::{MOSTLY_NEW, learn, may_be_notice};
use super::memory::{Memory, Moment, Window};
use super::pages::{Block, Known, Marks, Occurrence, Origin, Page};
use super::site_pages::{FEW, sightings};
use crate::hashing::{BASE, mixed};

/// How fast boilerplate is learned and forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The number of pages in a block, at least 1.
    pub block_pages: usize,
    /// The maximum number of passages that are learned from each end of a page.
    pub end_passages: usize,
    /// The number of records after which a period ends, at least 1. Each new passage or context is a record, and
    /// each page counts as several records.
    pub period_records: u64,
    /// A passage can be boilerplate of its site if its set of articles has at least this many bits: see
    /// [`site_pages`](super::site_pages).
    pub least_article_bits: u32,
}

/// A page to be judged, which may have been seen before.
#[derive(Clone, Copy, Debug)]
pub struct IncomingPage<'a> {
    /// The page's id.
    pub id: u64,
    /// The page's origin, whose `number` is not set.
    pub origin: Origin,
    /// The hash of the page's title; 0 if the title is unknown or too short to distinguish articles.
    pub title: u64,
    /// A person's declarations about passages.
    pub overrides: &'a OverrideTable,
    /// The scope of the page's site in `overrides`.
    pub scope: u32,
    /// The page's passages.
    pub passages: &'a [PagePassage],
}

/// How widely a passage is spread over the pages of a young site.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// The passage is on no other page.
    Unseen,
    /// The passage is on some pages, but not on many; or it is already boilerplate.
    Few,
    /// The passage is on so many pages that it may belong to a notice: see
    /// [`is_shared`](super::site_pages::SitePages::is_shared).
    Many,
}

// A site with fewer pages is young: its pages are also judged by the pages of the current block.
const YOUNG_PAGES: u32 = 64;

/// The state of a learner at the beginning of a step, which is restored if the step is undone.
#[derive(Debug)]
pub struct StepStart {
    /// The state of the memory.
    pub moment: Moment,
    /// The number of pages in the current block.
    pub pages: usize,
    /// The number of passages in the current block.
    pub passages: usize,
    /// The length of the learner's `ended`.
    pub ended: usize,
}

/// A learner of boilerplate: its memory, and the pages from which it has not learned yet.
pub struct Learner {
    pub(super) pace: Pace,
    /// Learned data.
    pub memory: Memory,
    pub(super) block: Block,
    // The open steps, outermost first. For each step, `ended` has the first block that ended during the step.
    pub(super) steps: Vec<StepStart>,
    pub(super) ended: Vec<Block>,
}

impl Learner {
    /// Creates a learner that has seen no pages.
    pub fn new(pace: Pace) -> Learner {
        let memory = Memory::new(Window::new(pace.period_records));
        Learner { pace, memory, block: Block::default(), steps: Vec::new(), ended: Vec::new() }
    }

    /// Returns the number of the last page, including pages of the current block.
    pub fn last_page(&self) -> u32 {
        self.memory.last_learned + self.block.pages.len() as u32
    }

    /// Returns the local hashes of all boilerplate, ascending.
    pub fn learned(&self) -> Vec<u64> {
        let hashes = self.memory.passages.iter().map(|(hash, _)| hash);
        let mut learned: Vec<u64> = hashes.filter(|hash| self.is_learned(*hash)).collect();
        learned.sort_unstable();
        learned
    }

    /// Returns whether the passage with this local hash is boilerplate.
    pub fn is_learned(&self, hash: u64) -> bool {
        self.memory.known(hash).is_learned()
    }

    /// Sets `omitted` for each passage of a page, and learns from the page unless it was seen before.
    pub fn filter(&mut self, page: &IncomingPage, omitted: &mut [bool]) {
        let local = |passage: &PagePassage| page.origin.local_hash(passage.hash);
        let known: Vec<(u64, Known)> =
            page.passages.iter().map(local).map(|hash| (hash, self.memory.known(hash))).collect();
        let marks = self.judge(page, &known, omitted);
        if !page.passages.is_empty() && self.memory.number_of(page.id).is_none() {
            self.add_page(page, &known, marks, omitted);
            if self.block.pages.len() >= self.pace.block_pages {
                self.learn_rest();
            }
        }
    }

    /// Learns from the pages of the current block, even if the block is not full.
    pub fn learn_rest(&mut self) {
        let block = std::mem::take(&mut self.block);
        if !block.pages.is_empty() {
            learn(&mut self.memory, &block, self.pace.least_article_bits);
            self.end_block(block);
        }
    }

    /// Keeps a block that has ended, if it is needed to undo the last step.
    pub(super) fn end_block(&mut self, block: Block) {
        if self.steps.last().is_some_and(|step| step.ended == self.ended.len()) {
            self.ended.push(block);
        }
        self.forget_undoable();
    }

    /// Makes changes permanent if no step is open.
    pub(super) fn forget_undoable(&mut self) {
        if self.steps.is_empty() {
            self.memory.keep();
            self.ended.clear();
        }
    }

    /// Sets `omitted` for a page, and returns the page's marks.
    fn judge(&self, page: &IncomingPage, known: &[(u64, Known)], omitted: &mut [bool]) -> Marks {
        let mut marks = self.judge_without(page, known, |_| false, omitted);
        if let Some(spreads) = self.spreads_at_young_site(page, known) {
            let mut own = omitted.to_vec();
            let is_shared = |at: usize| spreads[at] == Spread::Many;
            let own_marks = self.judge_without(page, known, is_shared, &mut own);
            let letters = |is_counted: &dyn Fn(usize) -> bool| -> f64 {
                let counted = (0..known.len()).filter(|at| is_counted(*at));
                counted.map(|at| f64::from(page.passages[at].letters)).sum()
            };
            let (shared, rest) = (letters(&|at| is_shared(at) && !omitted[at]), letters(&|at| !own[at]));
            let new = letters(&|at| !own[at] && spreads[at] == Spread::Unseen);
            let is_larger_part = 0.0 < rest && rest < shared;
            // The page is a version of an article if it shares more text than a notice has, or if its other text is
            // only partly new.
            let is_version = !may_be_notice(shared, rest) || 0.0 < new && new < MOSTLY_NEW * rest;
            if is_larger_part && !is_version {
                omitted.copy_from_slice(&own);
                marks = own_marks;
            }
        }
        if let Some(from) = self.older_items(page, known, omitted) {
            for (passage, is_omitted) in page.passages.iter().zip(omitted).skip(from) {
                // A passage that is declared to be text is not omitted.
                let mut passage = PagePassage { is_learned: true, ..*passage };
                page.overrides.apply(&mut passage, page.scope);
                *is_omitted |= passage.is_learned;
            }
        }
        marks
    }

    /// Judges a page by earlier blocks. Passages for which `is_shared` returns true are treated as boilerplate.
    fn judge_without(
        &self,
        page: &IncomingPage,
        known: &[(u64, Known)],
        is_shared: impl Fn(usize) -> bool,
        omitted: &mut [bool],
    ) -> Marks {
        let mut passages = page.passages.to_vec();
        for (at, (passage, (hash, known))) in passages.iter_mut().zip(known).enumerate() {
            passage.is_learned = known.is_learned() || is_shared(at);
            page.overrides.apply(passage, page.scope);
            passage.hash = *hash;
        }
        let judged = judge(&passages);
        for ((is_omitted, fate), (hash, known)) in omitted.iter_mut().zip(judged.fates).zip(known) {
            *is_omitted = match fate {
                Fate::Kept => false,
                Fate::Omitted => true,
                Fate::Doubtful => Contexts::of(*hash, *known, &self.memory).has_other(&judged.marks),
            };
        }
        judged.marks
    }

    /// Returns how widely each passage of a page is spread, including pages of the current block. Returns None if the
    /// site is not young or no passage is on many pages.
    fn spreads_at_young_site(&self, page: &IncomingPage, known: &[(u64, Known)]) -> Option<Vec<Spread>> {
        let site = page.origin.site;
        let learned = self.memory.pages_of_site(site);
        let waiting = self.block.pages.iter().filter(|page| page.origin.site == site).count() as u32;
        let with_this = learned + waiting + 1;
        if site == 0 || learned >= YOUNG_PAGES || with_this < FEW {
            return None;
        }
        let hashes = known.iter().map(|(hash, _)| *hash);
        let seen_on = sightings(hashes, &self.block, site, [self.memory.last_learned, learned]);
        let spread = |(hash, known): &(u64, Known)| {
            let mut pages = Contexts::of(*hash, *known, &self.memory).site_pages;
            pages.add(&seen_on[hash]);
            match known.is_new() && seen_on[hash].is_empty() {
                true => Spread::Unseen,
                false if !known.is_learned() && pages.is_shared(&page.origin, with_this) => Spread::Many,
                false => Spread::Few,
            }
        };
        let spreads: Vec<Spread> = known.iter().map(spread).collect();
        spreads.contains(&Spread::Many).then_some(spreads)
    }

    /// If a page is a list of articles, returns the index of the first passage of its older items. These items follow
    /// new passages, begin with the first passage of an earlier page of the site, and have no new passages.
    ///
    /// A page that ends like an earlier page is a text with a new beginning, not a list. If the page that begins with
    /// that first passage has the same article or title, the given page is a version of that page.
    fn older_items(&self, page: &IncomingPage, known: &[(u64, Known)], omitted: &[bool]) -> Option<usize> {
        let IncomingPage { origin, title, .. } = page;
        let (last, of_last) = last_unlearned(known).filter(|_| origin.site > 0)?;
        let waiting = self.block.passages.iter().map(|passage| passage.hash);
        if of_last.is_new() && waiting.clone().all(|hash| hash != last)
            || self.memory.number_of(mixed(last ^ CLOSING)).is_some()
        {
            return None;
        }
        let mut kept = (0..known.len()).filter(|at| !omitted[*at]);
        let begun = |at: usize| self.memory.number_of(mixed(known[at].0 ^ OPENING));
        kept.next().filter(|first| begun(*first).is_none())?;
        let is_older =
            |at: &usize| begun(*at).is_some_and(|page| !self.page(page).origin.is_same_article(origin));
        let from = kept.find(is_older)?;
        if *title > 0 && self.memory.number_of(titled_opening(known[from].0, *title)).is_some() {
            return None;
        }
        let waiting: HashSet<u64> = waiting.collect();
        let is_seen = |(hash, known): &(u64, Known)| !known.is_new() || waiting.contains(hash);
        known[from..].iter().all(is_seen).then_some(from)
    }

    /// Returns a page of the memory or of the current block.
    fn page(&self, number: u32) -> Page {
        let waiting = number.checked_sub(self.memory.last_learned + 1);
        waiting.map_or_else(|| self.memory.page(number), |place| self.block.pages[place as usize])
    }

    /// Adds a new page to the current block.
    fn add_page(&mut self, page: &IncomingPage, known: &[(u64, Known)], marks: Marks, omitted: &[bool]) {
        let number = self.last_page() + 1;
        self.memory.numbers.put(page.id, [number]);
        if page.origin.site > 0 {
            let first = omitted.iter().position(|is_omitted| !is_omitted).map(|at| known[at].0);
            let titled = first.filter(|_| page.title > 0).map(|hash| titled_opening(hash, page.title));
            let last = last_unlearned(known).map(|(hash, _)| mixed(hash ^ CLOSING));
            let ends = first.map(|hash| mixed(hash ^ OPENING)).into_iter().chain(titled).chain(last);
            ends.for_each(|end| self.memory.numbers.put(end, [number]));
        }
        let place = self.block.pages.len() as u32;
        self.block.pages.push(Page { marks, origin: page.origin });
        let (end, count) = (self.pace.end_passages, page.passages.len());
        for at in (0..count).filter(|at| *at < end || at + end >= count) {
            let (hash, known) = known[at];
            // Boilerplate is recorded only once per period.
            let is_recorded = known.is_learned() && known.page() >= self.memory.window.present_from;
            if !is_recorded {
                let letters = if omitted[at] { 0 } else { page.passages[at].letters };
                self.block.passages.push(Occurrence { hash, place, known, letters });
            }
        }
    }
}

// These constants convert hashes of passages into ids in the table of page ids: `OPENING` for a page's
// first passage that is not omitted, `CLOSING` for its last passage that is not boilerplate.
const OPENING: u64 = BASE;
const CLOSING: u64 = !BASE;

/// Returns the id for a page's first passage combined with the page's title.
fn titled_opening(hash: u64, title: u64) -> u64 {
    mixed(hash ^ OPENING ^ title)
}

/// Returns the last passage that is not boilerplate.
fn last_unlearned(known: &[(u64, Known)]) -> Option<(u64, Known)> {
    known.iter().rfind(|(_, known)| !known.is_learned()).copied()
}
