//! The contexts of a passage: pages that contain it, with different text around it on each.

use super::memory::{CONTEXT_COLUMNS, MOST_CONTEXTS, Memory};
use super::pages::{Known, Marks, Origin, OtherMarks, Page, marks_without, share};
use super::site_pages::{COLUMNS as SITE_COLUMNS, SitePages};

/// A page that contains the passage.
#[derive(Clone, Copy, Default, Debug)]
struct Context {
    // The number of the page; 0 for an unused entry.
    page: u32,
    marks: OtherMarks,
    origin: Origin,
}

/// The contexts of a passage.
#[derive(Clone, Default, Debug)]
pub struct Contexts {
    hash: u64,
    contexts: [Context; MOST_CONTEXTS],
    /// The number of the last page that was added; 0 if no page was added.
    pub last_added: u32,
    /// Whether the passage is boilerplate.
    pub is_learned: bool,
    /// All pages of the site that contain the passage.
    pub site_pages: SitePages,
}

impl Contexts {
    /// Returns the contexts of a passage, given its hash and its `Known`.
    pub fn of(hash: u64, known: Known, memory: &Memory) -> Contexts {
        let mut found = Contexts { hash, is_learned: known.is_learned(), ..Contexts::default() };
        if known.is_new() || found.is_learned {
            return found;
        }
        let row = memory.contexts.get(hash).unwrap_or_default();
        for (context, page) in found.contexts.iter_mut().zip(&row[SITE_COLUMNS..]) {
            context.page = if memory.window.has(*page) { *page } else { 0 };
        }
        // Most passages were seen on only one page, and have no row in the table of contexts.
        if found.contexts.iter().all(|context| context.page == 0) {
            found.contexts[0].page = known.page();
        }
        for context in found.contexts.iter_mut().filter(|context| context.page > 0) {
            let Page { marks, origin } = memory.page(context.page);
            *context = Context { page: context.page, marks: marks_without(&marks, hash), origin };
            // A page without other passages is not a context.
            if context.marks[0] == 0 {
                *context = Context::default();
            }
        }
        let of_site: [u32; SITE_COLUMNS] = std::array::from_fn(|column| row[column]);
        found.site_pages = if memory.window.has(of_site[0]) {
            SitePages::of_row(of_site, memory.page(of_site[0]).origin)
        } else {
            SitePages::of_first_page(known.page(), memory.page(known.page()).origin)
        };
        found
    }

    /// Returns whether the passage has a context that differs from a page with the given marks.
    pub fn has_other(&self, marks: &Marks) -> bool {
        let own = marks_without(marks, self.hash);
        own[0] > 0 && self.contexts.iter().any(|context| context.page > 0 && !share(&own, &context.marks))
    }

    /// Adds a page if it is a new context; the passage may then become boilerplate.
    ///
    /// Another version of an article that already has a context is not a new context.
    pub fn add(&mut self, number: u32, page: &Page) {
        let own = Context { page: number, marks: marks_without(&page.marks, self.hash), origin: page.origin };
        let is_same = |context: &Context| {
            context.page > 0
                && (share(&own.marks, &context.marks) || context.origin.is_same_article(&own.origin))
        };
        if own.marks[0] == 0 || self.is_learned || self.contexts.iter().any(is_same) {
            return;
        }
        self.last_added = number;
        match self.contexts.iter_mut().find(|context| context.page == 0) {
            Some(free) => *free = own,
            None => self.is_learned = true,
        }
    }

    /// Removes the latest context, because an edited version of a page contains the passage: the passage probably
    /// belongs to an article, and the context may be a version that was mistaken for a page with other text.
    pub fn remove_latest(&mut self) {
        let latest = self.contexts.iter_mut().max_by_key(|context| context.page);
        if let Some(latest) = latest.filter(|_| !self.is_learned) {
            *latest = Context::default();
        }
    }

    /// Returns the row to store; None if it has not changed. `has_grown` tells whether `site_pages` has grown.
    pub fn row(&self, has_grown: bool) -> Option<[u32; CONTEXT_COLUMNS]> {
        let count = self.contexts.iter().filter(|context| context.page > 0).count();
        let has_several = self.last_added > 0 && count > 1;
        if self.is_learned || !(has_several || has_grown) {
            return None;
        }
        let mut row = [0; CONTEXT_COLUMNS];
        row[..SITE_COLUMNS].copy_from_slice(&self.site_pages.row());
        for (column, context) in row[SITE_COLUMNS..].iter_mut().zip(&self.contexts) {
            *column = context.page;
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boilerplate::memory::Window;

    fn page(mark: u32, site: u32) -> Page {
        Page { marks: [mark, mark + 1, 0], origin: Origin { site, article: mark, number: 1 } }
    }

    fn unseen() -> Contexts {
        Contexts::of(1 << 32, Known::default(), &Memory::new(Window::new(9)))
    }

    #[test]
    fn passage_becomes_boilerplate_with_its_fifth_context() {
        let mut contexts = unseen();
        for number in 1..=5 {
            assert!(!contexts.is_learned);
            contexts.add(number, &page(10 * number, 7));
            // A page with the same marks is not a new context.
            contexts.add(number + 50, &page(10 * number, 8));
        }
        assert!(contexts.is_learned);
        assert_eq!(contexts.last_added, 5);
    }
}
