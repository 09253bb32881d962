//! What a step has taught, as columns that can be stored.

use super::block::{Block, Taught};
use super::contexts::COLUMNS as CONTEXT_COLUMNS;
use super::marks::{Origin, Page};
use super::memory::LEARNED;
use super::periods::Puts;
use super::site_pages::COLUMNS as SITE_COLUMNS;
use super::window::Window;

/// Why changes cannot be those of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused(pub &'static str);

const CONTRADICTION: Refused = Refused("its numbers contradict each other");

/// What is known anew after a step.
#[derive(Clone, Debug)]
pub struct Changes {
    /// What was put into the tables of `Memory`.
    pub numbers: Puts<1>,
    /// Likewise.
    pub sites: Puts<2>,
    /// Likewise.
    pub passages: Puts<1>,
    /// Likewise.
    pub contexts: Puts<CONTEXT_COLUMNS>,
    /// The new pages of the step.
    pub pages: Vec<Page>,
    /// Of the pages that were learned from, the numbers among those of their sites.
    pub site_numbers: Vec<u32>,
    /// Of the new pages that were not learned from yet: the hashes of their passages.
    pub hashes: Vec<u64>,
    /// The letters of these passages; 0 for those that are left out.
    pub letters: Vec<u32>,
    /// How many passages each of these pages has.
    pub counts: Vec<u32>,
    /// After the step: the last page that was learned from.
    pub last_learned: u32,
    /// After the step: the last page of all.
    pub last_page: u32,
    /// After the step.
    pub window: Window,
}

impl Changes {
    /// Returns the number of the first new page; that after the last if there is none.
    pub fn first_page(&self) -> u32 {
        self.last_page + 1 - self.pages.len() as u32
    }

    /// Returns the new pages as a block. Those that were learned from have no passages in it, and nothing is known of
    /// the passages of the others.
    pub fn block(&self) -> Block {
        let learned = self.pages.len() - self.counts.len();
        let places = self.counts.iter().enumerate();
        let places =
            places.flat_map(|(at, count)| std::iter::repeat_n((learned + at) as u32, *count as usize));
        let passages = places.zip(self.hashes.iter().zip(&self.letters));
        let passages = passages.map(|(place, (hash, letters))| Taught {
            hash: *hash,
            place,
            value: 0,
            letters: *letters,
        });
        Block { pages: self.pages.clone(), passages: passages.collect() }
    }

    /// Makes sure that what depends on each other agrees, so that the columns can be of a step.
    ///
    /// `numbers` are those that the fields after `counts` have; they are taken over.
    pub fn checked(mut self, numbers: [i64; 6]) -> Result<Changes, Refused> {
        let [last_learned, last_page, capacity, count, present_from, former_from] = numbers;
        let are_possible = 0 <= count
            && count < capacity
            && 1 <= former_from
            && former_from <= present_from
            && 0 <= last_learned
            && present_from <= last_learned + 1
            && last_learned <= last_page
            && last_page < i64::from(LEARNED)
            && self.pages.len() as i64 <= last_page;
        if !are_possible {
            return Err(CONTRADICTION);
        }
        self.last_learned = last_learned as u32;
        self.last_page = last_page as u32;
        self.window = Window {
            capacity: capacity as u64,
            count: count as u64,
            present_from: present_from as u32,
            former_from: former_from as u32,
        };
        if self.are_columns_possible() { Ok(self) } else { Err(CONTRADICTION) }
    }

    fn are_columns_possible(&self) -> bool {
        let waiting = (self.last_page - self.last_learned) as usize;
        let passages: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let is_past = |page: u32| page & !LEARNED <= self.last_learned;
        let numbered = self.first_page()..=self.last_page;
        self.hashes.len() == self.letters.len()
            && passages == self.hashes.len() as u64
            && self.counts.len() == self.pages.len().min(waiting)
            && self.numbers.numbers.iter().map(|[page]| *page).eq(numbered)
            && self.sites.numbers.iter().all(|[page, _]| is_past(*page))
            && self.passages.numbers.iter().all(|[page]| is_past(*page))
            && self
                .contexts
                .numbers
                .iter()
                .all(|row| is_past(row[0]) && row[SITE_COLUMNS..].iter().all(|page| is_past(*page)))
    }

    /// Returns these changes and later ones as one.
    pub fn then(&self, later: &Changes) -> Changes {
        // A block that ended later took all pages before it.
        let waiting = if later.last_learned > self.last_learned { None } else { Some(self) };
        Changes {
            numbers: self.numbers.then(&later.numbers),
            sites: self.sites.then(&later.sites),
            passages: self.passages.then(&later.passages),
            contexts: self.contexts.then(&later.contexts),
            pages: joined(&self.pages, &later.pages),
            site_numbers: joined(&self.site_numbers, &later.site_numbers),
            hashes: joined(waiting.map_or(&[][..], |each| &each.hashes), &later.hashes),
            letters: joined(waiting.map_or(&[][..], |each| &each.letters), &later.letters),
            counts: joined(waiting.map_or(&[][..], |each| &each.counts), &later.counts),
            ..*later
        }
    }
}

impl<const C: usize> Puts<C> {
    /// Returns these and later ones.
    pub fn then(&self, later: &Puts<C>) -> Puts<C> {
        Puts { keys: joined(&self.keys, &later.keys), numbers: joined(&self.numbers, &later.numbers) }
    }
}

fn joined<T: Copy>(one: &[T], other: &[T]) -> Vec<T> {
    [one, other].concat()
}

/// Returns pages by what is stored of them; as many as both columns have.
pub fn pages_of(marks: &[[u32; 3]], origins: &[[u32; 3]]) -> Vec<Page> {
    let pages = marks.iter().zip(origins);
    pages
        .map(|(marks, &[site, article, number])| Page {
            marks: *marks,
            origin: Origin { site, article, number },
        })
        .collect()
}
