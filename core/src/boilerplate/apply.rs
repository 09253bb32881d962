//! What was stored teaches a learner the same again.

use std::ops::Range;

use super::block::{Block, Taught};
use super::changes::{Changes, Refused};
use super::learner::Learner;
use super::marks::Page;
use super::window::Window;

impl Learner {
    /// Makes the changes of a step that began after what is known; the first changes may come after others that are
    /// outdated by now.
    pub fn apply(&mut self, changes: &Changes) -> Result<(), Refused> {
        if (changes.last_page - changes.last_learned) as usize >= self.pace.block_pages {
            return Err(Refused("its block has too many pages"));
        }
        let is_first = self.last_page() == 0;
        let (last_page, last_learned, window) = if is_first {
            let last_page = changes.first_page() - 1;
            (last_page, last_page.min(changes.last_learned), changes.window)
        } else {
            (self.last_page(), self.memory.last_learned, self.memory.window)
        };
        if !is_next(changes, last_page, last_learned, &window) {
            return Err(Refused("it does not follow what was learned before it"));
        }
        if is_first {
            self.memory.pages.begin_with(last_learned + 1);
            self.memory.last_learned = last_learned;
            self.memory.window = window;
            // Nothing is known of them, and nothing will be asked.
            self.block.pages = vec![Page::default(); (last_page - last_learned) as usize];
        }
        self.add_pages(changes);
        let memory = &mut self.memory;
        changes.numbers.iter().for_each(|(key, row)| memory.numbers.put(key, row, memory.is_recorded));
        changes.sites.iter().for_each(|(key, row)| memory.sites.put(key, row, memory.is_recorded));
        changes.passages.iter().for_each(|(key, row)| memory.passages.put(key, row, memory.is_recorded));
        changes.contexts.iter().for_each(|(key, row)| memory.contexts.put(key, row, memory.is_recorded));
        for passage in &mut self.block.passages {
            passage.value = self.memory.known(passage.hash);
        }
        Ok(())
    }

    /// Adds the pages of changes: those that were learned from, and those that wait.
    fn add_pages(&mut self, changes: &Changes) {
        let later = changes.block();
        let before = self.block.pages.len();
        let learned = (changes.last_learned - self.memory.last_learned) as usize;
        if learned == 0 {
            self.extend_block(later, 0..changes.pages.len());
            return;
        }
        let block = self.take_block();
        let mut pages = [&block.pages[..], &later.pages[..learned - before]].concat();
        let numbers = &changes.site_numbers[changes.site_numbers.len() - learned..];
        for (page, number) in pages.iter_mut().zip(numbers) {
            page.origin.number = *number;
        }
        self.memory.go_on(&pages, changes.window);
        self.end_block(block);
        self.extend_block(later, learned - before..changes.pages.len());
    }

    fn extend_block(&mut self, later: Block, places: Range<usize>) {
        let before = self.block.pages.len() as u32;
        let skipped = places.start as u32;
        self.block.pages.extend(&later.pages[places]);
        let moved = later
            .passages
            .into_iter()
            .map(|passage| Taught { place: passage.place - skipped + before, ..passage });
        self.block.passages.extend(moved);
    }
}

/// Returns whether a step that began in a state can have made these changes.
fn is_next(changes: &Changes, last_page: u32, last_learned: u32, window: &Window) -> bool {
    let count = i64::from(changes.last_learned) - i64::from(last_learned);
    let waiting = i64::from(last_page - last_learned);
    // A block that ends takes all pages before it.
    let is_possible = if count == 0 { changes.window == *window } else { count >= waiting };
    is_possible
        && changes.first_page() == last_page + 1
        && changes.site_numbers.len() as i64 >= count
        && changes.window.former_from >= window.former_from
        && changes.window.present_from >= window.present_from
}
