//! [`Learner`]: goes through pages in their order, says what is left out of each, and learns from them.
//!
//! Pages are learned from in blocks of a fixed number, and a page is judged by what the blocks before its own have
//! taught; so it does not matter how pages are cut into batches.

use std::collections::HashSet;

use super::contexts::Contexts;
use super::judge::{Fate, OverrideTable, PagePassage, judge};
use super::learning::{MOSTLY_NEW, learn, may_be_notice};
use super::memory::{Memory, Moment, Window};
use super::pages::{Block, Known, Marks, Occurrence, Origin, Page};
use super::site_pages::{FEW, sightings};
use crate::hashing::{BASE, mixed};

/// How soon pages teach something, and how soon that is forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many pages are learned from together; at least 1.
    pub block_pages: usize,
    /// How many passages a page teaches at most from its beginning, and how many from its end.
    pub end_passages: usize,
    /// A period ends with the block of pages that brings the number of new passages and contexts, and twice that of
    /// pages, to this; at least 1.
    pub period_records: u64,
    /// In how many articles of a site, counted in bits, a passage must be to be boilerplate.
    pub least_article_bits: u32,
}

/// A page that comes to be judged, seen before or not.
#[derive(Clone, Copy, Debug)]
pub struct IncomingPage<'a> {
    /// The page's id.
    pub id: u64,
    /// Where it comes from, not numbered yet.
    pub origin: Origin,
    /// The hash of its title; 0 if that is unknown, or too short to distinguish articles.
    pub title: u64,
    /// What is declared about passages.
    pub overrides: &'a OverrideTable,
    /// The scope of its site there.
    pub scope: u32,
    /// Its passages.
    pub passages: &'a [PagePassage],
}

/// On how many pages of a young site a passage was seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Never,
    /// It was seen, but not on many pages; or it is boilerplate already.
    OnFew,
    /// It was seen on so many pages that it may belong to a notice:
    /// [`is_shared`](super::site_pages::SitePages::is_shared).
    OnMany,
}

// A site with fewer pages is young: its pages are judged also by its pages that have not been learned from yet.
const YOUNG_PAGES: u32 = 64;

/// The state of a learner when a step began, which is restored if the step is undone.
#[derive(Debug)]
pub struct StepStart {
    /// When it began.
    pub moment: Moment,
    /// How many pages the block had then.
    pub pages: usize,
    /// How many passages it had.
    pub passages: usize,
    /// How many blocks had ended.
    pub ended: usize,
}

/// What pages have taught, and the pages that have not been learned from yet.
pub struct Learner {
    pub(super) pace: Pace,
    /// What is known.
    pub memory: Memory,
    pub(super) block: Block,
    // The steps that have begun, the outermost first; and for each the first block that has ended since.
    pub(super) steps: Vec<StepStart>,
    pub(super) ended: Vec<Block>,
}

impl Learner {
    /// Makes a learner that has seen no pages.
    pub fn new(pace: Pace) -> Learner {
        let memory = Memory::new(Window::new(pace.period_records));
        Learner { pace, memory, block: Block::default(), steps: Vec::new(), ended: Vec::new() }
    }

    /// Returns the number of the last page, learned from or not.
    pub fn last_page(&self) -> u32 {
        self.memory.last_learned + self.block.pages.len() as u32
    }

    /// Returns the local hashes of all passages that are boilerplate, ascending.
    pub fn learned(&self) -> Vec<u64> {
        let hashes = self.memory.passages.iter().map(|(hash, _)| hash);
        let mut learned: Vec<u64> = hashes.filter(|hash| self.is_learned(*hash)).collect();
        learned.sort_unstable();
        learned
    }

    /// Returns whether a passage is boilerplate, by its local hash.
    pub fn is_learned(&self, hash: u64) -> bool {
        self.memory.known(hash).is_learned()
    }

    /// Says for each passage of a page, in `omitted`, whether it is left out, and learns from the page.
    ///
    /// A page that was seen before teaches nothing.
    pub fn filter(&mut self, page: &IncomingPage, omitted: &mut [bool]) {
        let local = |passage: &PagePassage| page.origin.local_hash(passage.hash);
        let known: Vec<(u64, Known)> =
            page.passages.iter().map(local).map(|hash| (hash, self.memory.known(hash))).collect();
        let marks = self.judge(page, &known, omitted);
        if !page.passages.is_empty() && self.memory.number_of(page.id).is_none() {
            self.see(page, &known, marks, omitted);
            if self.block.pages.len() >= self.pace.block_pages {
                self.learn_rest();
            }
        }
    }

    /// Learns from the pages of a block that is not full, as if no others would come.
    pub fn learn_rest(&mut self) {
        let block = std::mem::take(&mut self.block);
        if !block.pages.is_empty() {
            learn(&mut self.memory, &block, self.pace.least_article_bits);
            self.end_block(block);
        }
    }

    /// Keeps a block that has ended, if its step needs it to be undone.
    pub(super) fn end_block(&mut self, block: Block) {
        if self.steps.last().is_some_and(|step| step.ended == self.ended.len()) {
            self.ended.push(block);
        }
        self.forget_undoable();
    }

    /// Makes changes final, once no step is left.
    pub(super) fn forget_undoable(&mut self) {
        if self.steps.is_empty() {
            self.memory.keep();
            self.ended.clear();
        }
    }

    /// Finds out what is left out of a page; returns its marks.
    fn judge(&self, page: &IncomingPage, known: &[(u64, Known)], omitted: &mut [bool]) -> Marks {
        let mut marks = self.judge_without(page, known, |_| false, omitted);
        if let Some(seen) = self.seen_at_young_site(page, known) {
            let mut own = omitted.to_vec();
            let is_shared = |at: usize| seen[at] == Seen::OnMany;
            let own_marks = self.judge_without(page, known, is_shared, &mut own);
            let letters = |is_counted: &dyn Fn(usize) -> bool| -> f64 {
                let counted = (0..known.len()).filter(|at| is_counted(*at));
                counted.map(|at| f64::from(page.passages[at].letters)).sum()
            };
            let (shared, rest) = (letters(&|at| is_shared(at) && !omitted[at]), letters(&|at| !own[at]));
            let new = letters(&|at| !own[at] && seen[at] == Seen::Never);
            let is_larger_part = 0.0 < rest && rest < shared;
            // A version of an article shares more text than a notice has, or has part of its rest from an earlier
            // version.
            let is_version = !may_be_notice(shared, rest) || 0.0 < new && new < MOSTLY_NEW * rest;
            if is_larger_part && !is_version {
                omitted.copy_from_slice(&own);
                marks = own_marks;
            }
        }
        if let Some(from) = self.older_items(page, known, omitted) {
            for (passage, is_omitted) in page.passages.iter().zip(omitted).skip(from) {
                // A passage that is declared to be text stays.
                let mut passage = PagePassage { is_learned: true, ..*passage };
                page.overrides.apply(&mut passage, page.scope);
                *is_omitted |= passage.is_learned;
            }
        }
        marks
    }

    /// Judges a page by what earlier blocks have taught, and by which of its passages its site has on other pages.
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
                Fate::LeftOut => true,
                Fate::Doubtful => Contexts::of(*hash, *known, &self.memory).has_other(&judged.marks),
            };
        }
        judged.marks
    }

    /// Returns on how many pages each passage of a page was seen, including pages of the present block; None if the
    /// site is not young, or no passage was seen on many pages.
    fn seen_at_young_site(&self, page: &IncomingPage, known: &[(u64, Known)]) -> Option<Vec<Seen>> {
        let site = page.origin.site;
        let learned = self.memory.pages_of_site(site);
        let waiting = self.block.pages.iter().filter(|page| page.origin.site == site).count() as u32;
        let with_this = learned + waiting + 1;
        if site == 0 || learned >= YOUNG_PAGES || with_this < FEW {
            return None;
        }
        let hashes = known.iter().map(|(hash, _)| *hash);
        let seen_on = sightings(hashes, &self.block, site, [self.memory.last_learned, learned]);
        let seen = |(hash, known): &(u64, Known)| {
            let mut pages = Contexts::of(*hash, *known, &self.memory).site_pages;
            pages.add(&seen_on[hash]);
            match known.is_new() && seen_on[hash].is_empty() {
                true => Seen::Never,
                false if !known.is_learned() && pages.is_shared(&page.origin, with_this) => Seen::OnMany,
                false => Seen::OnFew,
            }
        };
        let seen: Vec<Seen> = known.iter().map(seen).collect();
        seen.contains(&Seen::OnMany).then_some(seen)
    }

    /// Returns where the older items of a list of articles begin: after its new passages, with the first passage of an
    /// earlier page of the site, if the list does not end as an earlier page did, and no passage from there on is new.
    /// (A text that only got a new beginning ends as before; a page of the same article, or with the same title, is a
    /// version.)
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

    /// Returns what is kept of a page, learned from or not.
    fn page(&self, number: u32) -> Page {
        let waiting = number.checked_sub(self.memory.last_learned + 1);
        waiting.map_or_else(|| self.memory.page(number), |place| self.block.pages[place as usize])
    }

    /// Keeps a new page, to be learned from.
    fn see(&mut self, page: &IncomingPage, known: &[(u64, Known)], marks: Marks, omitted: &[bool]) {
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
            // Boilerplate is recorded once a period.
            let is_recorded = known.is_learned() && known.page() >= self.memory.window.present_from;
            if !is_recorded {
                let letters = if omitted[at] { 0 } else { page.passages[at].letters };
                self.block.passages.push(Occurrence { hash, place, known, letters });
            }
        }
    }
}

// These turn hashes of passages into ids in the same table as the ids of pages: for the first passage of a page that is
// kept, and for the last one that is not boilerplate.
const OPENING: u64 = BASE;
const CLOSING: u64 = !BASE;

/// Returns the id of the first passage of a page with a title.
fn titled_opening(hash: u64, title: u64) -> u64 {
    mixed(hash ^ OPENING ^ title)
}

/// Returns the last of some passages that is not boilerplate, and what is known of it.
fn last_unlearned(known: &[(u64, Known)]) -> Option<(u64, Known)> {
    known.iter().rfind(|(_, known)| !known.is_learned()).copied()
}
