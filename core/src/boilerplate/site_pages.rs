//! Counts the pages of a site that contain a passage.
//!
//! The longest boilerplate of a site may be longer than the passages of its articles. Then all pages of the site have
//! the same [marks](super::pages::Marks), and no page is a new [context](super::contexts). But a passage is also
//! boilerplate if it is on a fair share of the site's pages, next to the text of different articles. If it is on half
//! of the pages, three articles are enough, or two that share little other text. A story that a platform publishes
//! many times is not boilerplate; the pages with it have little other new text. If the pages with a passage have
//! little other new text, the passage must be on half of the site's pages, with many more articles: a notice that
//! replaces articles is on most pages of its site, a story on few.
//!
//! Articles are counted in a set of 32 bits, in which each article sets one bit: about 8 articles set 7 bits, about
//! 34 articles set 21.

use std::collections::HashMap;

use super::pages::{Block, Origin};

/// The number of columns stored for a passage.
pub const COLUMNS: usize = 4;

// The factor by which the number of needed article bits increases if the pages have little other text.
const MANY_TIMES: u32 = 3;
/// The number of article bits that is enough if half of the pages contain the passage.
pub const FEW: u32 = 3;
// The reciprocals of two shares of the site's pages: a fair share is a tenth, MOST is half. Pages are counted from
// the first page with the passage.
const FAIR_SHARE: i64 = 10;
const MOST: i64 = 2;

/// A page that contains the passage.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// The number of the page.
    pub page: u32,
    /// The origin of the page, with its number among the pages of the site.
    pub origin: Origin,
    /// Whether the page has its own new text.
    pub has_own: bool,
    /// Whether the page is mostly new, and has little in common with an earlier page that contains the passage.
    pub is_apart: bool,
    /// Whether the page shares more text with earlier pages than a notice has.
    pub is_version: bool,
}

/// For each passage hash, returns those pages of a block that are of the site and have the passage. `before` has two
/// numbers of the last page before the block: its number among all pages, and among the pages of the site.
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
            // A page may contain a passage several times.
            let is_first = |seen_on: &&mut Vec<Sighting>| seen_on.last().is_none_or(|last| last.page != page);
            if let Some(seen_on) = found.get_mut(&passage.hash).filter(is_first) {
                seen_on.push(Sighting { page, origin, has_own: false, is_apart: false, is_version: false });
            }
        }
    }
    found
}

/// The pages of a site that contain a passage.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SitePages {
    /// The first counted page with the passage; 0 if there is none.
    pub first: u32,
    // The set of articles whose pages have their own text around the passage.
    amid_own: u32,
    // The set of articles with the passage, except on pages that share more text than a notice has.
    articles: u32,
    pages: u64,
    // The origin of the first page.
    origin: Origin,
}

impl SitePages {
    /// Begins with the first page that contains the passage.
    pub fn of_first_page(page: u32, origin: Origin) -> SitePages {
        let bit = origin.article_bit();
        SitePages { first: page, amid_own: bit, articles: bit, pages: 1, origin }
    }

    /// Reads a row of a table; `origin` is the origin of the first page.
    pub fn of_row(row: [u32; COLUMNS], origin: Origin) -> SitePages {
        let [first, amid_own, articles, pages] = row;
        SitePages { first, amid_own, articles, pages: pages.into(), origin }
    }

    /// Returns the row to store in a table.
    pub fn row(&self) -> [u32; COLUMNS] {
        [self.first, self.amid_own, self.articles, self.pages as u32]
    }

    /// Returns the site, as in [`Origin`].
    pub fn site(&self) -> u32 {
        self.origin.site
    }

    /// Adds the pages of a block that contain the passage.
    pub fn add(&mut self, seen_on: &[Sighting]) {
        let mut rest = seen_on;
        if self.pages == 0 {
            let [first, others @ ..] = seen_on else { return };
            *self = SitePages::of_first_page(first.page, first.origin);
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

    /// Returns whether, counting one more page, at least `FEW` articles and half of the site's pages have the passage.
    pub fn is_shared(&self, origin: &Origin, pages_of_site: u32) -> bool {
        let span = i64::from(pages_of_site) - i64::from(self.origin.number) + 1;
        let articles = self.articles | origin.article_bit();
        articles.count_ones() >= FEW && (self.pages as i64 + 1) * MOST >= span
    }

    /// Returns whether the passage is boilerplate of its site. `seen_on` has the pages added last.
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
