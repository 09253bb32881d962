//! Steps: groups of changes to a learner, such as the changes of a batch. A step can be undone, and its changes can
//! be stored. Steps may be nested.

use std::ops::Range;

use super::changes::{Changes, Refusal};
use super::learner::{Learner, StepStart};
use super::memory::{Puts, Window};
use super::pages::{Block, Occurrence, Page};

// The largest number of pages that a block has had in any version.
const MOST_BLOCK_PAGES: usize = 64;

impl Learner {
    /// Returns the number of open steps.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Opens a step.
    pub fn begin(&mut self) {
        self.steps.push(StepStart {
            moment: self.memory.moment(),
            pages: self.block.pages.len(),
            passages: self.block.passages.len(),
            ended: self.ended.len(),
        });
    }

    /// Ends the innermost open step, if any, and keeps its changes.
    pub fn keep(&mut self) {
        self.steps.pop();
        self.forget_undoable();
    }

    /// Ends the innermost open step, if any, and undoes its changes.
    pub fn undo(&mut self) {
        let Some(step) = self.steps.pop() else { return };
        self.memory.undo_to(&step.moment);
        if let Some(block) = self.ended.drain(step.ended..).next() {
            self.block = block;
        }
        self.block.pages.truncate(step.pages);
        self.block.passages.truncate(step.passages);
        self.forget_undoable();
    }

    /// Returns the changes of the innermost open step; None if no step is open.
    pub fn changes(&self) -> Option<Changes> {
        let StepStart { moment, pages: earlier, .. } = self.steps.last()?;
        // The step began with `earlier` pages in the current block. Either all of them have been learned, or none.
        let has_ended = self.memory.last_learned > moment.last_learned;
        let (skipped, waiting) = if has_ended { (*earlier, 0) } else { (0, *earlier) };
        let tables = self.memory.puts_since(moment);
        Some(self.new_changes(tables, moment.last_learned + 1, skipped, waiting))
    }

    /// Returns the whole memory as the changes of one step, for comparisons.
    pub fn everything(&self) -> Changes {
        self.new_changes(self.memory.all(), self.memory.window.former_from, 0, 0)
    }

    /// Returns changes with the pages from `first` on, without the first `skipped` pages of the memory and the first
    /// `waiting` pages of the current block.
    fn new_changes(&self, tables: [Puts; 4], first: u32, skipped: usize, waiting: usize) -> Changes {
        let memory = &self.memory;
        let learned: Vec<Page> = (first..=memory.last_learned).map(|number| memory.page(number)).collect();
        let taught = self.block.passages_from(waiting);
        Changes {
            tables,
            site_numbers: learned.iter().map(|page| page.origin.number).collect(),
            pages: [&learned[skipped..], &self.block.pages[waiting..]].concat(),
            hashes: taught.iter().map(|passage| passage.hash).collect(),
            letters: taught.iter().map(|passage| passage.letters).collect(),
            counts: self.block.counts(waiting),
            last_learned: memory.last_learned,
            last_page: self.last_page(),
            window: memory.window,
        }
    }

    /// Applies the changes of the next step. A new learner accepts the changes of any step, since earlier changes
    /// may be outdated.
    pub fn apply(&mut self, changes: &Changes) -> Result<(), Refusal> {
        let most = self.pace.block_pages.max(MOST_BLOCK_PAGES);
        if (changes.last_page - changes.last_learned) as usize >= most {
            return Err(Refusal("its block has too many pages"));
        }
        let is_first = self.last_page() == 0;
        let (last_page, last_learned, window) = if is_first {
            let last_page = changes.first_page() - 1;
            (last_page, last_page.min(changes.last_learned), changes.window)
        } else {
            (self.last_page(), self.memory.last_learned, self.memory.window)
        };
        if !is_next(changes, last_page, last_learned, &window) {
            return Err(Refusal("it does not follow the last step"));
        }
        if is_first {
            (self.memory.last_learned, self.memory.window) = (last_learned, window);
            // The earlier pages of the block are unknown, and are not needed.
            self.block.pages = vec![Page::default(); (last_page - last_learned) as usize];
        }
        self.add_pages(changes);
        self.memory.put_all(&changes.tables, !self.steps.is_empty());
        self.forget_undoable();
        for passage in &mut self.block.passages {
            passage.known = self.memory.known(passage.hash);
        }
        Ok(())
    }

    /// Adds the pages of changes to the memory, if their block has ended, or to the current block.
    fn add_pages(&mut self, changes: &Changes) {
        let later = changes.block();
        let before = self.block.pages.len();
        let learned = (changes.last_learned - self.memory.last_learned) as usize;
        if learned == 0 {
            self.extend_block(later, 0..changes.pages.len());
            return;
        }
        let block = std::mem::take(&mut self.block);
        let mut pages = [&block.pages[..], &later.pages[..learned - before]].concat();
        let numbers = &changes.site_numbers[changes.site_numbers.len() - learned..];
        for (page, number) in pages.iter_mut().zip(numbers) {
            page.origin.number = *number;
        }
        self.memory.advance(&pages, changes.window);
        self.end_block(block);
        self.extend_block(later, learned - before..changes.pages.len());
    }

    fn extend_block(&mut self, later: Block, places: Range<usize>) {
        let (before, skipped) = (self.block.pages.len() as u32, places.start as u32);
        self.block.pages.extend(&later.pages[places]);
        let moved = |passage: Occurrence| Occurrence { place: passage.place - skipped + before, ..passage };
        self.block.passages.extend(later.passages.into_iter().map(moved));
    }
}

/// Returns whether a step that began in the given state can have these changes.
fn is_next(changes: &Changes, last_page: u32, last_learned: u32, window: &Window) -> bool {
    let count = i64::from(changes.last_learned) - i64::from(last_learned);
    let waiting = i64::from(last_page - last_learned);
    // If a block ended, all pages that waited to be learned have been learned.
    let is_possible = if count == 0 { changes.window == *window } else { count >= waiting };
    is_possible
        && changes.first_page() == last_page + 1
        && changes.site_numbers.len() as i64 >= count
        && changes.window.former_from >= window.former_from
        && changes.window.present_from >= window.present_from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boilerplate::judge::OverrideTable;
    use crate::boilerplate::judge::PagePassage;
    use crate::boilerplate::learner::{IncomingPage, Pace};
    use crate::boilerplate::memory::WIDTHS;
    use crate::boilerplate::pages::Origin;
    use crate::hashing::mixed;

    fn learner() -> Learner {
        Learner::new(Pace { block_pages: 3, end_passages: 4, period_records: 60, least_article_bits: 2 })
    }

    /// Filters pages that share passages with each other.
    fn filter(learner: &mut Learner, numbers: Range<u64>) -> Vec<bool> {
        let mut all = Vec::new();
        for number in numbers {
            let hash =
                |place: u64| if place < 4 { mixed(mixed(number + place) % 9) } else { mixed(number * place) };
            let passages: Vec<PagePassage> = (0..6)
                .map(|place| PagePassage {
                    hash: hash(place),
                    letters: 20 * place as u32,
                    is_prose: place % 3 > 0,
                    has_figures: false,
                    is_learned: false,
                })
                .collect();
            let origin = Origin { site: (number % 3) as u32, article: number as u32, number: 0 };
            let overrides = OverrideTable::default();
            let page = IncomingPage {
                id: number % 40 + 1,
                origin,
                title: 0,
                scope: 0,
                overrides: &overrides,
                passages: &passages,
            };
            let mut omitted = vec![false; passages.len()];
            learner.filter(&page, &mut omitted);
            all.extend(omitted);
        }
        all
    }

    /// Returns the contents of the memory, with sorted keys.
    fn known(learner: &Learner) -> String {
        let mut known = learner.everything();
        for (puts, width) in known.tables.iter_mut().zip(WIDTHS) {
            let mut rows: Vec<_> = puts.keys.iter().zip(puts.rows.chunks_exact(width)).collect();
            rows.sort_unstable();
            *puts = Puts {
                keys: rows.iter().map(|(key, _)| **key).collect(),
                rows: rows.iter().flat_map(|(_, row)| row.to_vec()).collect(),
            };
        }
        format!("{known:?}")
    }

    #[test]
    fn nested_steps_and_steps_with_many_blocks_are_undone() {
        let mut learner = learner();
        for start in (0..300).step_by(10) {
            let before = known(&learner);
            learner.begin();
            let expected = filter(&mut learner, start..start + 10);
            learner.begin();
            filter(&mut learner, start + 100..start + 120);
            learner.keep();
            learner.undo();
            assert_eq!(known(&learner), before);
            learner.begin();
            assert_eq!(filter(&mut learner, start..start + 10), expected);
            let within = known(&learner);
            learner.begin();
            filter(&mut learner, start + 50..start + 60);
            learner.undo();
            assert_eq!(known(&learner), within);
            learner.keep();
            assert_eq!(known(&learner), within);
        }
        assert!(learner.memory.window.former_from > 1);
        assert!(!learner.learned().is_empty());
    }

    #[test]
    fn applying_all_changes_gives_an_equal_learner() {
        let (mut one, mut other) = (learner(), learner());
        for start in (0..300).step_by(7) {
            one.begin();
            filter(&mut one, start..start + 7);
            let changes = one.changes().expect("a step has begun");
            one.keep();
            assert_eq!(other.apply(&changes), Ok(()));
            assert!(other.apply(&changes).is_err() || changes.pages.is_empty());
        }
        assert_eq!(filter(&mut one, 400..500), filter(&mut other, 400..500));
    }
}
