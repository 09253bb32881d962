//! Learns from a block of pages: records passages that were seen in new contexts, or on more pages of their site.

use super::contexts::Contexts;
use super::memory::Memory;
use super::pages::{Block, Known, Occurrence, Page, mark_of, marks_without};
use super::site_pages::Sighting;

// A page counts as this many records, since it takes as much memory as four passages. If pages were not counted,
// pages without new passages would accumulate and never be forgotten.
const PAGE_RECORDS: u64 = 4;
// A page has its own text if the share of new text is at least LEAST_OWN, and at least LEAST_TOGETHER of the new text
// is contiguous; in an edited version, changes are scattered. If a page is mostly new, its new text may be scattered.
const LEAST_OWN: f64 = 0.1;
const LEAST_TOGETHER: f64 = 0.5;
/// The minimum share of new text on a page that is mostly new.
pub const MOSTLY_NEW: f64 = 0.6;
// The minimum share of new text in an edited version.
const LEAST_SCATTERED: f64 = 0.15;

// Text that pages share may be a notice, such as a paywall, if it has at most LONGEST_NOTICE letters, or at most
// MOST_SHARED times as many as the rest of the page. Versions of an article whose address is unknown share more text.
const LONGEST_NOTICE: f64 = 700.0;
const MOST_SHARED: f64 = 2.0;
// The maximum number of letters in adjacent repeated passages of menus, teasers and forms; longer stretches are
// running text.
const LONGEST_STRETCH: u64 = 1_500;

/// Learns from a block of new pages.
pub fn learn(memory: &mut Memory, block: &Block, least_article_bits: u32) {
    let pages = numbered_at_sites(memory, block);
    // Sort occurrences by passage, then by page. The stored entries have this order too.
    let mut order: Vec<(u64, u32)> =
        block.passages.iter().enumerate().map(|(at, taught)| (taught.hash, at as u32)).collect();
    order.sort_unstable();
    let taught: Vec<&Occurrence> = order.iter().map(|(_, at)| &block.passages[*at as usize]).collect();
    let new_text = new_text(block, &order);
    let (first_page, last_page) = (memory.last_learned + 1, memory.last_learned + pages.len() as u32);
    let (mut others, mut records) = (Vec::new(), PAGE_RECORDS * pages.len() as u64);
    let mut seen_on: Vec<Sighting> = Vec::new();
    for same in taught.chunk_by(|one, other| one.hash == other.hash) {
        let Occurrence { hash, known, place, .. } = *same[0];
        // Most passages are new and occur only once.
        if same.len() == 1 && known.is_new() {
            memory.passages.put(hash, [Known::of(first_page + place, false).0]);
            records += 1;
            continue;
        }
        let mut contexts = Contexts::of(hash, known, memory);
        let before = contexts.site_pages;
        if !contexts.is_learned {
            seen_on.clear();
            let earlier = if known.is_new() { pages[place as usize] } else { memory.page(known.page()) };
            let marks = marks_without(&earlier.marks, hash);
            // A page may contain a passage several times.
            for of_page in same.chunk_by(|one, other| one.place == other.place) {
                let place = of_page[0].place;
                let (page, new) = (&pages[place as usize], &new_text[place as usize]);
                let is_apart = new.is_mostly_new()
                    && marks[0] > 0
                    && !page.origin.is_same_article(&earlier.origin)
                    && !marks.iter().any(|mark| has_mark(&taught, place, *mark));
                let (number, has_own, is_version) = (first_page + place, new.is_own(), new.is_version());
                seen_on.push(Sighting { page: number, origin: page.origin, has_own, is_apart, is_version });
                if has_own {
                    contexts.add(number, page);
                } else if new.is_scattered() {
                    contexts.remove_latest();
                }
            }
            contexts.site_pages.add(&seen_on);
            let pages_of_site = memory.pages_of_site(contexts.site_pages.site());
            contexts.is_learned |=
                contexts.site_pages.is_boilerplate(&seen_on, pages_of_site, least_article_bits);
        }
        let has_grown = contexts.site_pages.has_grown(&before);
        // `has_changed` is also true for boilerplate of the previous period that was seen again.
        let has_changed = contexts.is_learned || known.is_new() || contexts.last_added > 0;
        records += u64::from(has_changed || has_grown);
        if has_changed {
            let page = match contexts.last_added {
                0 if contexts.is_learned => last_page,
                0 => contexts.site_pages.first,
                added => added,
            };
            others.push((hash, Known::of(page, contexts.is_learned)));
        }
        if let Some(row) = contexts.row(has_grown) {
            memory.contexts.put(hash, row);
        }
    }
    for (hash, known) in others {
        memory.passages.put(hash, [known.0]);
    }
    memory.advance(&pages, memory.window.after(records, last_page));
}

/// Returns the pages of a block, each numbered among the pages of its site.
fn numbered_at_sites(memory: &mut Memory, block: &Block) -> Vec<Page> {
    let mut pages = block.pages.clone();
    let last_page = memory.last_learned + pages.len() as u32;
    let mut order: Vec<(u32, usize)> =
        pages.iter().enumerate().map(|(place, page)| (page.origin.site, place)).collect();
    order.retain(|(site, _)| *site > 0);
    order.sort_unstable();
    for of_site in order.chunk_by(|(one, _), (other, _)| one == other) {
        let site = of_site[0].0;
        let mut count = memory.pages_of_site(site);
        for (_, place) in of_site {
            count = count.wrapping_add(1);
            pages[*place].origin.number = count;
        }
        memory.sites.put(site.into(), [last_page, count]);
    }
    pages
}

/// The numbers of letters in the passages of a page, without omitted passages.
#[derive(Clone, Copy, Default, Debug)]
struct Letters {
    all: u64,
    // The letters in new passages.
    new: u64,
    // The letters in new passages that directly follow another new passage.
    together: u64,
    // The letters in long stretches of adjacent passages that were seen before.
    running: u64,
}

impl Letters {
    fn is_mostly_new(&self) -> bool {
        self.new > 0 && self.new as f64 >= MOSTLY_NEW * self.all as f64
    }

    /// Returns whether a page without its own text is an edited version of an earlier page.
    fn is_scattered(&self) -> bool {
        self.new as f64 >= LEAST_SCATTERED * self.all as f64 && self.new > 0
    }

    /// Returns whether the page has its own new text, and is not a version of an earlier page.
    fn is_own(&self) -> bool {
        let new = self.new as f64;
        let is_together = self.together as f64 >= LEAST_TOGETHER * new;
        let is_part = self.new > 0 && is_together && new >= LEAST_OWN * self.all as f64;
        self.is_mostly_new() || is_part && self.running as f64 <= MOST_SHARED * new
    }

    /// Returns whether the page shares more text with earlier pages than a notice has.
    fn is_version(&self) -> bool {
        !may_be_notice((self.all - self.new) as f64, self.new as f64)
    }
}

/// Returns the [`Letters`] of each page of a block. `order` has the hash and index of each passage, sorted.
fn new_text(block: &Block, order: &[(u64, u32)]) -> Vec<Letters> {
    let mut are_new = vec![false; block.passages.len()];
    for same in order.chunk_by(|(one, _), (other, _)| one == other) {
        let first = same[0].1 as usize;
        are_new[first] = block.passages[first].known.is_new();
    }
    let mut letters = vec![Letters::default(); block.pages.len()];
    let (mut last_new, mut last, mut stretch) = (None, None, 0);
    for (passage, is_new) in block.passages.iter().zip(are_new) {
        let (of_page, own) = (&mut letters[passage.place as usize], u64::from(passage.letters));
        if own == 0 || is_new || last != Some(passage.place) {
            stretch = 0;
        }
        last = Some(passage.place);
        if own == 0 {
            continue;
        }
        of_page.all += own;
        if is_new {
            of_page.new += own;
            of_page.together += if last_new == last { own } else { 0 };
        } else {
            let counted = if stretch > LONGEST_STRETCH { stretch } else { 0 };
            stretch += own;
            of_page.running += if stretch > LONGEST_STRETCH { stretch - counted } else { 0 };
        }
        last_new = last.filter(|_| is_new);
    }
    letters
}

/// Returns whether the text that a page shares with other pages may be a notice, given the numbers of letters of that
/// text and of the page's own text.
pub fn may_be_notice(shared: f64, own: f64) -> bool {
    shared <= f64::max(LONGEST_NOTICE, MOST_SHARED * own)
}

/// Returns whether the block's page at `place` contains a passage with the given mark.
fn has_mark(taught: &[&Occurrence], place: u32, mark: u32) -> bool {
    let key = |passage: &&Occurrence| (mark_of(passage.hash), passage.place);
    taught.binary_search_by_key(&(mark, place), key).is_ok()
}
