//! The pages of one site on which a passage was seen, however alike they are.
//!
//! The longest passages of a site's own boilerplate may be longer than those of its articles. Then all of its pages
//! share their marks, and no page is another context. But a passage belongs to its site if it is on a fair share of the
//! site's pages, around different articles. If it is on half of the pages, three articles suffice, or two that have
//! hardly anything else in common. A story that a platform publishes many times does not belong to the site: the pages
//! with it have little other new text. For such pages, many more articles are needed, on half of the pages: a notice
//! that replaces articles is on most pages of its site, a story on few.
//!
//! Articles are counted in a set of 32 bits, in which each sets one: about 8 articles set 7 bits, about 34 set 21.

use std::collections::HashMap;

use super::pages::{Block, Origin};

/// The numbers that are kept of a passage.
pub const COLUMNS: usize = 4;

// How many times as many articles are needed if their pages have little other text.
const MANY_TIMES: u32 = 3;
/// How many articles suffice if half of the pages have the passage.
pub const FEW: u32 = 3;
// A passage is on at least one in this many pages of its site, from the first one with it on.
const FAIR_SHARE: i64 = 10;
const MOST: i64 = 2;

/// A page that has the passage.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// Its number.
    pub page: u32,
    /// Where it comes from, with its number among the pages of its site.
    pub origin: Origin,
    /// Whether it has new text of its own.
    pub has_own: bool,
    /// Whether it is mostly new, and apart from an earlier page with the passage.
    pub is_apart: bool,
    /// Whether it shares more text with earlier pages than a notice has.
    pub is_version: bool,
}

/// Returns the pages of a site in a block that have each of some passages; `before` are the numbers of the last page
/// before the block: among all pages, and among those of the site.
pub fn sightings(
    hashes: impl Iterator<Item = u64>,
    block: &Block,
    site: u32,
    before: [u32; 2],
) -> HashMap<u64, Vec<Sighting>> {
    let mut found: HashMap<u64, Vec<Sighting>> = hashes.map(|hash| (hash, Vec::new())).collect();
    let [last_page, mut number] = before;
    for (place, page) in block.pages.iter().enumerate().filter(|(_, page)| page.origin.site == site) {
        number += 1;
        let (page, origin) = (last_page + 1 + place as u32, Origin { number, ..page.origin });
        let of_page = block.passages_from(place).iter();
        for passage in of_page.take_while(|each| each.place as usize == place) {
            // A page may have a passage several times.
            let is_first = |seen_on: &&mut Vec<Sighting>| seen_on.last().is_none_or(|last| last.page != page);
            if let Some(seen_on) = found.get_mut(&passage.hash).filter(is_first) {
                seen_on.push(Sighting { page, origin, has_own: false, is_apart: false, is_version: false });
            }
        }
    }
    found
}

/// The pages of a site that have a passage.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SitePages {
    /// The first page with it that is observed; 0 if the passage was not seen.
    pub first: u32,
    // The sets of the articles that have it amid text of their own, and of all articles that have it.
    amid_own: u32,
    articles: u32,
    pages: u64,
    // The origin of the first page.
    origin: Origin,
}

impl SitePages {
    /// Returns the pages of a passage that was seen on this page alone.
    pub fn begun(page: u32, origin: Origin) -> SitePages {
        let bit = origin.article_bit();
        SitePages { first: page, amid_own: bit, articles: bit, pages: 1, origin }
    }

    /// Reads a row of a table; `origin` is that of the first page.
    pub fn of_row(row: [u32; COLUMNS], origin: Origin) -> SitePages {
        let [first, amid_own, articles, pages] = row;
        SitePages { first, amid_own, articles, pages: pages.into(), origin }
    }

    /// Returns the row of a table that keeps them.
    pub fn row(&self) -> [u32; COLUMNS] {
        [self.first, self.amid_own, self.articles, self.pages as u32]
    }

    /// Returns the site, as in [`Origin`].
    pub fn site(&self) -> u32 {
        self.origin.site
    }

    /// Adds those pages of a block that have the passage.
    pub fn add(&mut self, seen_on: &[Sighting]) {
        let mut rest = seen_on;
        if self.pages == 0 {
            let [first, others @ ..] = seen_on else { return };
            *self = SitePages::begun(first.page, first.origin);
            rest = others;
        }
        for seen in rest {
            let bit = seen.origin.article_bit();
            self.amid_own |= if seen.has_own { bit } else { 0 };
            self.articles |= if seen.is_version { 0 } else { bit };
            self.pages += 1;
        }
    }

    /// Returns whether pages have been added since `before`.
    pub fn has_grown(&self, before: &SitePages) -> bool {
        self.row() != before.row() && (before.pages > 0 || self.pages > 1)
    }

    /// Returns whether, with one more page, a few articles of the site have the passage, and half of its pages have it.
    pub fn is_shared(&self, origin: &Origin, pages_of_site: u32) -> bool {
        let span = i64::from(pages_of_site) - i64::from(self.origin.number) + 1;
        let articles = self.articles | origin.article_bit();
        articles.count_ones() >= FEW && (self.pages as i64 + 1) * MOST >= span
    }

    /// Returns whether the passage is boilerplate of its site; `seen_on` are its latest pages.
    pub fn is_boilerplate(&self, seen_on: &[Sighting], pages_of_site: u32, least_bits: u32) -> bool {
        if self.site() == 0 {
            return false;
        }
        let (seen, span) = (self.pages as i64, i64::from(pages_of_site) - i64::from(self.origin.number) + 1);
        let own = self.amid_own.count_ones();
        let is_apart = seen_on.iter().any(|page| page.is_apart);
        ((own >= FEW || is_apart) && seen * MOST >= span)
            || (own >= least_bits && seen * FAIR_SHARE >= span)
            || (self.articles.count_ones() >= MANY_TIMES * least_bits && seen * MOST >= span)
    }
}
