//! Pages, each with its origin and with the marks that distinguish contexts; and blocks of pages.

use bytemuck::{Pod, Zeroable};

use crate::characters::FIRST_WIDE;
use crate::hashing::{BASE, mixed, murmur128, word};

/// The number of marks of a page. Without the mark of a given passage, at least two marks are left.
pub const MARKS: usize = 3;
/// The marks of a page, which represent its three longest passages that are not boilerplate; 0 for none.
pub type Marks = [u32; MARKS];
/// Two marks of a page, without the mark of a given passage; 0 for none.
pub type OtherMarks = [u32; MARKS - 1];

const ARTICLE_BITS: u32 = 32;

/// Returns the mark of the passage that has the given hash. A mark is never 0, which means no mark.
#[inline]
pub fn mark_of(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}

/// Returns the first two marks of a page that are not the mark of a given passage.
#[inline]
pub fn marks_without(marks: &Marks, hash: u64) -> OtherMarks {
    let own = mark_of(hash);
    match marks {
        [first, second, third] if *first == own => [*second, *third],
        [first, second, third] if *second == own => [*first, *third],
        [first, second, _] => [*first, *second],
    }
}

/// Returns whether two pages have a mark in common.
#[inline]
pub fn share(one: &OtherMarks, other: &OtherMarks) -> bool {
    one.iter().any(|mark| *mark > 0 && other.contains(mark))
}

/// The site and article of a page.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Origin {
    /// The hash of the site's name; 0 if the site is unknown.
    pub site: u32,
    /// The hash of the article's id; if the article is unknown, a part of the content hash.
    pub article: u32,
    /// The number of the page among the pages of its site, from 1; 0 until its block has ended.
    pub number: u32,
}

impl Origin {
    /// Returns the local hash of a passage. It differs between sites, so that learning at one site has no effect at
    /// other sites. All pages of unknown sites share their local hashes.
    #[inline]
    pub fn local_hash(&self, hash: u64) -> u64 {
        if self.site == 0 { hash } else { mixed(hash ^ u64::from(self.site).wrapping_mul(BASE)) }
    }

    /// Returns the bit of the article in a set of articles, which has 32 bits.
    pub fn article_bit(&self) -> u32 {
        1 << (self.article % ARTICLE_BITS)
    }

    /// Returns whether both pages are versions of one article.
    pub fn is_same_article(&self, other: &Origin) -> bool {
        (self.site, self.article) == (other.site, other.article)
    }
}

/// A page that was seen.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Page {
    /// The marks of the page.
    pub marks: Marks,
    /// The origin of the page.
    pub origin: Origin,
}

// The minimum length of a title that distinguishes articles, in units; a shorter title may be the title of a regular
// column. A word has 2 units, an East Asian character 1.
const TITLE_UNITS: usize = 12;

/// Returns the hash of a title; 0 if it is too short to distinguish articles.
pub fn hash_of_title(title: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(title);
    let is_wide = |each: &char| u32::from(*each) >= FIRST_WIDE;
    let units = text.split_whitespace().map(|word| word.chars().filter(is_wide).count().max(2));
    if units.sum::<usize>() < TITLE_UNITS { 0 } else { word(&murmur128(title)[..8]).max(1) }
}

/// Returns the origin of a page, given the name of its site and the id of its article, if known. A page without
/// an article id is treated as a separate article.
pub fn origin_of(site: Option<&[u8]>, article: Option<&[u8]>, content_hash: u64) -> Origin {
    let site = site.map_or(0, short_hash);
    let article = article.map_or_else(|| (content_hash as u32).max(1), short_hash);
    Origin { site, article, number: 0 }
}

/// Returns the hash of a site's name or of an article's id. It is never 0, which means that it is unknown.
fn short_hash(name: &[u8]) -> u32 {
    mark_of(word(&murmur128(name)[..8]))
}

/// The highest bit of a [`Known`], set if the passage is boilerplate. The numbers of pages are lower.
pub const LEARNED: u32 = 1 << 31;

/// An entry of the table of passages: a page, and whether the passage is boilerplate; 0 for a new passage.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Known(pub u32);

impl Known {
    /// Creates a `Known` from the number of a page, and from whether the passage is boilerplate.
    pub fn of(page: u32, is_learned: bool) -> Known {
        Known(if is_learned { page | LEARNED } else { page })
    }

    /// Returns whether the passage was not seen before.
    pub fn is_new(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the passage is boilerplate.
    pub fn is_learned(self) -> bool {
        self.0 >= LEARNED
    }

    /// Returns the last page that was a new context of the passage. For boilerplate, returns some page of the
    /// period (see `Window`) in which the passage was last seen.
    pub fn page(self) -> u32 {
        self.0 & !LEARNED
    }
}

/// An occurrence of a passage on a page of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// The passage's local hash.
    pub hash: u64,
    /// The index of the page in the block.
    pub place: u32,
    /// The passage's entry in the table of passages.
    pub known: Known,
    /// The number of letters; 0 if the passage is omitted.
    pub letters: u32,
}

/// Pages in order, and their passages in order of pages.
#[derive(Clone, Default, Debug)]
pub struct Block {
    /// The pages.
    pub pages: Vec<Page>,
    /// The passages to learn from.
    pub passages: Vec<Occurrence>,
}

impl Block {
    /// Returns the number of passages of the page at `from` and of each later page.
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
    fn other_marks_do_not_include_the_mark_of_the_passage() {
        let marks = [7, 8, 9];
        assert_eq!(marks_without(&marks, 7 << 32), [8, 9]);
        assert_eq!(marks_without(&marks, 8 << 32), [7, 9]);
        assert_eq!(marks_without(&marks, 9 << 32), [7, 8]);
        assert_eq!(marks_without(&[1, 0, 0], 5), [0, 0]);
    }

    #[test]
    fn pages_without_marks_share_none() {
        assert!(!share(&[0, 0], &[0, 0]));
        assert!(share(&[3, 0], &[4, 3]));
    }

    #[test]
    fn page_without_article_id_is_a_separate_article() {
        assert_eq!(origin_of(None, None, 7 << 32), Origin { site: 0, article: 1, number: 0 });
        assert_eq!(origin_of(None, None, 7 << 32 | 9).article, 9);
    }
}
