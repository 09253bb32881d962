//! The changes made in one of a learner's [`steps`](super::steps), as columns for storage and for other learners.

use super::memory::{CONTEXT_COLUMNS, Puts, WIDTHS, Window};
use super::pages::{Block, Known, LEARNED, Occurrence, Page};
use super::site_pages::COLUMNS as SITE_COLUMNS;
use crate::columns::{Column, column, numbers};

/// The reason why changes are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal(pub &'static str);

const OTHER_LENGTHS: Refusal = Refusal("columns differ in length");
const CONTRADICTION: Refusal = Refusal("its page numbers or counts contradict each other");

/// The changes of a step.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The entries put into the tables of `Memory`.
    pub tables: [Puts; 4],
    /// The new pages of the step.
    pub pages: Vec<Page>,
    /// For each page whose block ended in the step, its number among the pages of its site.
    pub site_numbers: Vec<u32>,
    /// The local hashes of passages on the new pages whose block has not ended.
    pub hashes: Vec<u64>,
    /// The number of letters of each of these passages; 0 for an omitted passage.
    pub letters: Vec<u32>,
    /// The number of passages on each new page whose block has not ended.
    pub counts: Vec<u32>,
    /// After the step, the number of the last page of the last block that has ended.
    pub last_learned: u32,
    /// After the step, the number of the last page.
    pub last_page: u32,
    /// After the step, the current and the previous period.
    pub window: Window,
}

impl Changes {
    /// Returns the number of the first new page, or the number after the last page if there are no new pages.
    pub fn first_page(&self) -> u32 {
        self.last_page + 1 - self.pages.len() as u32
    }

    /// Returns the new pages as a block. The passages of pages whose own block has ended are left out; the `Known` of
    /// each passage is empty.
    pub fn block(&self) -> Block {
        let learned = self.pages.len() - self.counts.len();
        let places = self.counts.iter().enumerate();
        let places =
            places.flat_map(|(at, count)| std::iter::repeat_n((learned + at) as u32, *count as usize));
        let (passages, known) = (places.zip(self.hashes.iter().zip(&self.letters)), Known::default());
        let passages = passages.map(|(place, (&hash, &letters))| Occurrence { hash, place, known, letters });
        Block { pages: self.pages.clone(), passages: passages.collect() }
    }

    /// Returns the columns to store (see `boilerplate/changes.py`).
    pub fn columns(&self) -> Vec<Column> {
        let Window { capacity, count, present_from, former_from } = self.window;
        let last = [self.last_learned, self.last_page].map(i64::from);
        let window = [capacity as i64, count as i64, present_from.into(), former_from.into()];
        let others = [
            column(last.into_iter().chain(window)),
            column(self.pages.iter().map(|page| page.marks)),
            column(self.pages.iter().map(|page| page.origin)),
            column(self.site_numbers.iter().copied()),
            column(self.hashes.iter().copied()),
            column(self.letters.iter().copied()),
            column(self.counts.iter().copied()),
        ];
        let tables = self.tables.iter();
        let tables =
            tables.flat_map(|puts| [column(puts.keys.iter().copied()), column(puts.rows.iter().copied())]);
        others.into_iter().chain(tables).collect()
    }

    /// Reads stored columns; rejects columns that no step can produce.
    pub fn of_columns(columns: &[&[u8]]) -> Result<Changes, Refusal> {
        let [state, marks, origins, site_numbers, hashes, letters, counts, tables @ ..] = columns else {
            return Err(OTHER_LENGTHS);
        };
        let puts = |columns: &[&[u8]]| Puts { keys: numbers(columns[0]), rows: numbers(columns[1]) };
        let tables: Vec<Puts> = tables.chunks_exact(2).map(puts).collect();
        let (marks, origins): (Vec<_>, Vec<_>) = (numbers(marks), numbers(origins));
        let (Ok(state), Ok(tables)) = (<[i64; 6]>::try_from(numbers(state)), <[Puts; 4]>::try_from(tables))
        else {
            return Err(OTHER_LENGTHS);
        };
        let fits = |(puts, width): (&Puts, usize)| puts.keys.len() * width == puts.rows.len();
        if marks.len() != origins.len() || !tables.iter().zip(WIDTHS).all(fits) {
            return Err(OTHER_LENGTHS);
        }
        let [last_learned, last_page, capacity, count, present_from, former_from] = state;
        let are_possible = 0 <= count
            && count < capacity
            && 1 <= former_from
            && former_from <= present_from
            && 0 <= last_learned
            && present_from <= last_learned + 1
            && last_learned <= last_page
            && last_page < i64::from(LEARNED)
            && marks.len() as i64 <= last_page;
        if !are_possible {
            return Err(CONTRADICTION);
        }
        let (present_from, former_from) = (present_from as u32, former_from as u32);
        let changes = Changes {
            tables,
            pages: marks.into_iter().zip(origins).map(|(marks, origin)| Page { marks, origin }).collect(),
            site_numbers: numbers(site_numbers),
            hashes: numbers(hashes),
            letters: numbers(letters),
            counts: numbers(counts),
            last_learned: last_learned as u32,
            last_page: last_page as u32,
            window: Window { capacity: capacity as u64, count: count as u64, present_from, former_from },
        };
        if changes.are_columns_possible() { Ok(changes) } else { Err(CONTRADICTION) }
    }

    fn are_columns_possible(&self) -> bool {
        let waiting = (self.last_page - self.last_learned) as usize;
        let passages: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let [numbers, sites, passages_seen, contexts] = &self.tables;
        let contexts = contexts.rows.chunks_exact(CONTEXT_COLUMNS);
        let contexts = contexts.flat_map(|row| row[..1].iter().chain(&row[SITE_COLUMNS..]));
        let mut pages = sites.rows.iter().step_by(2).chain(&passages_seen.rows).chain(contexts);
        self.hashes.len() == self.letters.len()
            && passages == self.hashes.len() as u64
            && self.counts.len() == self.pages.len().min(waiting)
            && numbers
                .rows
                .chunk_by(|one, next| one == next)
                .map(|of_page| of_page[0])
                .eq(self.first_page()..=self.last_page)
            && pages.all(|page| Known(*page).page() <= self.last_learned)
    }

    /// Combines these changes with those of the next step.
    pub fn then(&self, later: &Changes) -> Changes {
        // If a block ended in the next step, all pages of this step are learned, and their passages are not needed.
        let kept = if later.last_learned > self.last_learned { 0 } else { usize::MAX };
        Changes {
            tables: std::array::from_fn(|at| {
                let (one, other) = (&self.tables[at], &later.tables[at]);
                Puts {
                    keys: [&one.keys[..], &other.keys].concat(),
                    rows: [&one.rows[..], &other.rows].concat(),
                }
            }),
            pages: [&self.pages[..], &later.pages].concat(),
            site_numbers: [&self.site_numbers[..], &later.site_numbers].concat(),
            hashes: [&self.hashes[..self.hashes.len().min(kept)], &later.hashes].concat(),
            letters: [&self.letters[..self.letters.len().min(kept)], &later.letters].concat(),
            counts: [&self.counts[..self.counts.len().min(kept)], &later.counts].concat(),
            ..*later
        }
    }
}
