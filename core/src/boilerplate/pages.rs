//! Pages: their marks, by which contexts are told apart; where they come from; and blocks of them, which are learned
//! from together.

use bytemuck::{Pod, Zeroable};

use crate::characters::FIRST_WIDE;
use crate::hashing::{BASE, mixed, murmur128, word};

/// The number of marks of a page: two are left without the mark of the passage in question.
pub const MARKS: usize = 3;
/// The marks of a page: its three longest passages that are not boilerplate; 0 for none.
pub type Marks = [u32; MARKS];
/// The marks of a page beside one of its passages; 0 for none.
pub type Beside = [u32; MARKS - 1];

const ARTICLE_BITS: u32 = 32;

/// Returns the mark of a passage with this hash: never 0, which stands for none.
#[inline]
pub fn mark_of(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}

/// Returns the first two marks of a page, leaving out the one of a passage.
#[inline]
pub fn beside(marks: &Marks, hash: u64) -> Beside {
    let own = mark_of(hash);
    match marks {
        [first, second, third] if *first == own => [*second, *third],
        [first, second, third] if *second == own => [*first, *third],
        [first, second, _] => [*first, *second],
    }
}

/// Returns whether two pages have a mark in common.
#[inline]
pub fn share(one: &Beside, other: &Beside) -> bool {
    one.iter().any(|mark| *mark > 0 && other.contains(mark))
}

/// Where a page comes from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Origin {
    /// The hash of its site's name; 0 if the site is not known.
    pub site: u32,
    /// The hash of its article's id; that of the page if the article is not known.
    pub article: u32,
    /// Its number among the pages of its site, from 1; 0 until the page has been learned from.
    pub number: u32,
}

impl Origin {
    /// Returns the hash by which its site knows a passage: what one site teaches says nothing about the pages of
    /// another. All pages of unknown sites count as pages of one site.
    #[inline]
    pub fn local_hash(&self, hash: u64) -> u64 {
        if self.site == 0 { hash } else { mixed(hash ^ u64::from(self.site).wrapping_mul(BASE)) }
    }

    /// Returns the bit that its article sets in a set of articles, which has 32 bits.
    pub fn article_bit(&self) -> u32 {
        1 << (self.article % ARTICLE_BITS)
    }

    /// Returns whether both pages are versions of one article.
    pub fn is_same_article(&self, other: &Origin) -> bool {
        (self.site, self.article) == (other.site, other.article)
    }
}

/// What is kept of a page.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Page {
    /// Its marks.
    pub marks: Marks,
    /// Where it comes from.
    pub origin: Origin,
}

// The fewest units of a title: a shorter one may be that of a column. A word is 2, an East Asian character 1.
const TITLE_UNITS: usize = 12;

/// Returns the hash of a title; 0 if it is too short to distinguish articles.
pub fn hash_of_title(title: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(title);
    let is_wide = |each: &char| u32::from(*each) >= FIRST_WIDE;
    let units = text.split_whitespace().map(|word| word.chars().filter(is_wide).count().max(2));
    if units.sum::<usize>() < TITLE_UNITS { 0 } else { word(&murmur128(title)[..8]).max(1) }
}

/// Returns where a page comes from, by the names of its site and its article as far as they are known; without a name,
/// the page is an article by itself.
pub fn origin_of(site: Option<&[u8]>, article: Option<&[u8]>, page_id: u64) -> Origin {
    let site = site.map_or(0, short_hash);
    let article = article.map_or_else(|| (page_id as u32).max(1), short_hash);
    Origin { site, article, number: 0 }
}

/// Returns the hash of a name: never 0, which stands for none.
fn short_hash(name: &[u8]) -> u32 {
    mark_of(word(&murmur128(name)[..8]))
}

/// The highest bit of a [`Known`], set if the passage is boilerplate; numbers of pages are lower.
pub const LEARNED: u32 = 1 << 31;

/// What is known of a passage, as the table of passages keeps it: nothing, or a page and whether it is boilerplate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Known(pub u32);

impl Known {
    /// Makes a `Known` from the number of a page, and whether the passage is boilerplate.
    pub fn of(page: u32, is_learned: bool) -> Known {
        Known(if is_learned { page | LEARNED } else { page })
    }

    /// Returns whether nothing is known.
    pub fn is_new(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the passage is boilerplate.
    pub fn is_learned(self) -> bool {
        self.0 >= LEARNED
    }

    /// Returns the last page that was a new context; for boilerplate, a page of the period in which it was last seen.
    pub fn page(self) -> u32 {
        self.0 & !LEARNED
    }
}

/// A passage from which something is to be learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// Its local hash.
    pub hash: u64,
    /// Its page, as a place in the block.
    pub place: u32,
    /// What is known of it.
    pub known: Known,
    /// Its letters; 0 if it is left out of its page.
    pub letters: u32,
}

/// Pages in their order, and their passages page by page.
#[derive(Clone, Default, Debug)]
pub struct Block {
    /// The pages.
    pub pages: Vec<Page>,
    /// Those of their passages that teach something.
    pub passages: Vec<Occurrence>,
}

impl Block {
    /// Returns how many passages each page has: the page at `from`, and all later pages.
    pub fn counts(&self, from: usize) -> Vec<u32> {
        let mut counts = vec![0; self.pages.len() - from];
        for passage in self.passages_from(from) {
            counts[passage.place as usize - from] += 1;
        }
        counts
    }

    /// Returns the passages of the page at `from` and of all later pages.
    pub fn passages_from(&self, from: usize) -> &[Occurrence] {
        &self.passages[self.passages.partition_point(|passage| (passage.place as usize) < from)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_passage_is_not_among_those_beside_it() {
        let marks = [7, 8, 9];
        assert_eq!(beside(&marks, 7 << 32), [8, 9]);
        assert_eq!(beside(&marks, 8 << 32), [7, 9]);
        assert_eq!(beside(&marks, 9 << 32), [7, 8]);
        assert_eq!(beside(&[1, 0, 0], 5), [0, 0]);
    }

    #[test]
    fn no_mark_is_shared_by_pages_that_have_none() {
        assert!(!share(&[0, 0], &[0, 0]));
        assert!(share(&[3, 0], &[4, 3]));
    }

    #[test]
    fn a_page_without_a_name_is_an_article_by_itself() {
        assert_eq!(origin_of(None, None, 7 << 32), Origin { site: 0, article: 1, number: 0 });
        assert_eq!(origin_of(None, None, 7 << 32 | 9).article, 9);
    }
}
