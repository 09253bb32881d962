//! How long what was seen counts: for the present period and the one before it.

/// Two periods of pages. A period ends with the block that brings the number of records to its capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// At least 1.
    pub capacity: u64,
    /// The records of the present period.
    pub count: u64,
    /// The number of the first page of the present period.
    pub present_from: u32,
    /// The number of the first page of the period before it.
    pub former_from: u32,
}

impl Window {
    /// Returns the first window.
    pub fn new(capacity: u64) -> Window {
        Window { capacity, count: 0, present_from: 1, former_from: 1 }
    }

    /// Returns the window after so many records, the last of which are of this page.
    pub fn after(&self, records: u64, last_page: u32) -> Window {
        let count = self.count + records;
        if count < self.capacity {
            return Window { count, ..*self };
        }
        Window { count: 0, present_from: last_page + 1, former_from: self.present_from, ..*self }
    }

    /// Returns whether a page is of one of the two periods; 0 is none.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        page >= self.former_from
    }
}
