//! Changes of a learner are made in steps, such as batches: a step can be undone, and its changes stored. A step may
//! contain others.

use super::changes::Changes;
use super::learner::Learner;
use super::memory::{Moment, Puts};
use super::pages::{Block, Page};

/// A step that has begun.
#[derive(Debug)]
pub struct Step {
    moment: Moment,
    // How much of the block there was.
    pages: usize,
    passages: usize,
    // How many blocks had ended.
    ended: usize,
}

impl Learner {
    /// Returns how many steps have begun that were neither kept nor undone.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Begins a step.
    pub fn begin(&mut self) {
        self.steps.push(Step {
            moment: self.memory.moment(),
            pages: self.block.pages.len(),
            passages: self.block.passages.len(),
            ended: self.ended.len(),
        });
    }

    /// Ends the last step that has begun, if there is one, and keeps its changes.
    pub fn keep(&mut self) {
        self.steps.pop();
        self.forget_undoable();
    }

    /// Ends the last step that has begun, if there is one, and undoes its changes.
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

    /// Returns the changes of the last step that has begun; none if none has.
    pub fn changes(&self) -> Option<Changes> {
        let Step { moment, pages: waited, .. } = self.steps.last()?;
        // Of the pages that had waited when the step began, all have been learned from, or none.
        let has_ended = self.memory.last_learned > moment.last_learned;
        let (skipped, waiting) = if has_ended { (*waited, 0) } else { (0, *waited) };
        let tables = self.memory.puts_since(moment);
        Some(self.new_changes(tables, moment.last_learned + 1, skipped, waiting))
    }

    /// Returns all that is known, as if one step had taught it: for comparisons.
    pub fn everything(&self) -> Changes {
        self.new_changes(self.memory.all(), self.memory.window.former_from, 0, 0)
    }

    /// Returns the pages from `first` on, without so many of those that were learned from and of those that wait.
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

    /// Takes the pages that have not been learned from.
    pub(super) fn take_block(&mut self) -> Block {
        std::mem::take(&mut self.block)
    }

    /// Keeps a block that has ended, if its step needs it to be undone.
    pub(super) fn end_block(&mut self, block: Block) {
        if self.steps.last().is_some_and(|step| step.ended == self.ended.len()) {
            self.ended.push(block);
        }
        self.forget_undoable();
    }

    /// Forgets what undoes changes, once no step is left.
    pub(super) fn forget_undoable(&mut self) {
        if self.steps.is_empty() {
            self.memory.keep();
            self.ended.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::boilerplate::judge::OverrideTable;
    use crate::boilerplate::judge::Passage;
    use crate::boilerplate::learner::{Arrival, Pace};
    use crate::boilerplate::memory::WIDTHS;
    use crate::boilerplate::pages::Origin;
    use crate::hashing::mixed;

    fn learner() -> Learner {
        Learner::new(Pace { block_pages: 3, end_passages: 4, period_records: 60, least_article_bits: 2 })
    }

    /// Lets a learner see some pages, which share passages with each other.
    fn see(learner: &mut Learner, numbers: Range<u64>) -> Vec<bool> {
        let mut all = Vec::new();
        for number in numbers {
            let hash =
                |place: u64| if place < 4 { mixed(mixed(number + place) % 9) } else { mixed(number * place) };
            let passages: Vec<Passage> = (0..6)
                .map(|place| Passage {
                    hash: hash(place),
                    letters: 20 * place as u32,
                    is_prose: place % 3 > 0,
                    has_figures: false,
                    is_learned: false,
                })
                .collect();
            let origin = Origin { site: (number % 3) as u32, article: number as u32, number: 0 };
            let page = Arrival { id: number % 40 + 1, origin, scope: 0, passages: &passages };
            let mut omitted = vec![false; passages.len()];
            learner.filter(&page, &OverrideTable::default(), &mut omitted);
            all.extend(omitted);
        }
        all
    }

    /// Returns all that is known, but for the order of keys.
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
    fn steps_are_undone_whatever_they_contain() {
        let mut learner = learner();
        for start in (0..300).step_by(10) {
            let before = known(&learner);
            learner.begin();
            let expected = see(&mut learner, start..start + 10);
            learner.begin();
            see(&mut learner, start + 100..start + 120);
            learner.keep();
            learner.undo();
            assert_eq!(known(&learner), before);
            learner.begin();
            assert_eq!(see(&mut learner, start..start + 10), expected);
            let within = known(&learner);
            learner.begin();
            see(&mut learner, start + 50..start + 60);
            learner.undo();
            assert_eq!(known(&learner), within);
            learner.keep();
            assert_eq!(known(&learner), within);
        }
        assert!(learner.memory().window.former_from > 1);
        assert!(!learner.learned().is_empty());
    }

    #[test]
    fn what_was_stored_teaches_the_same() {
        let (mut one, mut other) = (learner(), learner());
        for start in (0..300).step_by(7) {
            one.begin();
            see(&mut one, start..start + 7);
            let changes = one.changes().expect("a step has begun");
            one.keep();
            assert_eq!(other.apply(&changes), Ok(()));
            assert!(other.apply(&changes).is_err() || changes.pages.is_empty());
        }
        assert_eq!(see(&mut one, 400..500), see(&mut other, 400..500));
    }
}
