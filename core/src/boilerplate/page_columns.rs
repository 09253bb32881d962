//! What is kept of pages by their numbers, so that passages can be compared by their pages.

use super::marks::Page;

/// Pages with consecutive numbers.
#[derive(Clone, Debug)]
struct Span {
    first: u32,
    pages: Vec<Page>,
}

impl Span {
    fn get(&self, number: u32) -> Option<&Page> {
        self.pages.get(number.checked_sub(self.first)? as usize)
    }
}

/// The pages of the present period and of the one before.
#[derive(Clone, Debug)]
pub struct PageColumns {
    present: Span,
    former: Span,
    // While changes are recorded: those that were forgotten.
    forgotten: Vec<Span>,
}

/// A moment, to which changes can be undone.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    first: u32,
    count: usize,
    forgotten: usize,
}

impl Default for PageColumns {
    fn default() -> Self {
        let none = Span { first: 1, pages: Vec::new() };
        PageColumns { present: none.clone(), former: none, forgotten: Vec::new() }
    }
}

impl PageColumns {
    /// Returns the memory that they take.
    pub fn size_bytes(&self) -> usize {
        (self.present.pages.capacity() + self.former.pages.capacity()) * size_of::<Page>()
    }

    /// Returns what is kept of a page; zeros if nothing is.
    #[inline]
    pub fn get(&self, number: u32) -> Page {
        let span = if number < self.present.first { &self.former } else { &self.present };
        span.get(number).copied().unwrap_or_default()
    }

    /// Begins with a page that is not the first one.
    pub fn begin_with(&mut self, first: u32) {
        self.present.first = first;
    }

    /// Forgets the former period; a page begins a new one.
    pub fn begin_period(&mut self, first: u32, is_recorded: bool) {
        let present = std::mem::replace(&mut self.present, Span { first, pages: Vec::new() });
        let forgotten = std::mem::replace(&mut self.former, present);
        if is_recorded {
            self.forgotten.push(forgotten);
        }
    }

    /// Adds the next pages.
    pub fn extend(&mut self, pages: &[Page]) {
        self.present.pages.extend_from_slice(pages);
    }

    /// Returns this moment.
    pub fn moment(&self) -> Moment {
        Moment { first: self.present.first, count: self.present.pages.len(), forgotten: self.forgotten.len() }
    }

    /// Undoes all changes since a moment.
    pub fn undo_to(&mut self, moment: Moment) {
        while self.forgotten.len() > moment.forgotten {
            if let Some(former) = self.forgotten.pop() {
                self.present = std::mem::replace(&mut self.former, former);
            }
        }
        self.present.first = moment.first;
        self.present.pages.truncate(moment.count);
    }

    /// Forgets what was recorded: it can no longer be undone.
    pub fn keep(&mut self) {
        self.forgotten = Vec::new();
    }
}
