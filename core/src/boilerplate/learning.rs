//! What a block of pages teaches: passages that were seen in new contexts, or on more pages of their site.

use super::contexts::Contexts;
use super::memory::Memory;
use super::pages::{Block, Known, Occurrence, Page, beside, mark_of};
use super::site_pages::Sighting;

// A page takes as much memory as four passages. If pages did not count, those that bring no new passage would be kept
// for ever.
const PAGE_RECORDS: u64 = 4;
// A page has text of its own if at least this share of it is new, and most of the new text is contiguous:
// the changes of a version are scattered. If the page is mostly new, its new text need not be contiguous.
const LEAST_OWN: f64 = 0.1;
const LEAST_TOGETHER: f64 = 0.5;
/// A page is mostly new if at least this share of it is.
pub const MOSTLY_NEW: f64 = 0.6;
// An edited version has at least this share of new text.
const LEAST_SCATTERED: f64 = 0.15;

// Text that pages share may be a notice if it has at most this many letters, or at most this many times the letters of
// the rest: versions of an article, whose addresses are not known, share more.
const LONGEST_NOTICE: f64 = 700.0;
const MOST_SHARED: f64 = 2.0;
// A longer stretch of running text is not a notice: its pieces are longer than those of menus, teasers and forms.
const LONGEST_STRETCH: u64 = 1_500;

/// Learns from a block of pages, none of which has been learned from yet.
pub fn learn(memory: &mut Memory, block: &Block, least_article_bits: u32) {
    let pages = numbered_at_sites(memory, block);
    // Occurrences by passage, then by page. What is stored is in this order as well.
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
        // Most passages are seen for the first time, and once.
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
            let marks = beside(&earlier.marks, hash);
            // A page may have a passage several times.
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
                    contexts.take_back();
                }
            }
            contexts.site_pages.add(&seen_on);
            let pages_of_site = memory.pages_of_site(contexts.site_pages.site());
            contexts.is_learned |=
                contexts.site_pages.is_boilerplate(&seen_on, pages_of_site, least_article_bits);
        }
        let has_grown = contexts.site_pages.has_grown(&before);
        // Includes boilerplate of the former period that was seen again.
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
    memory.go_on(&pages, memory.window.after(records, last_page));
}

/// Numbers the pages of a block among those of their sites.
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

/// The letters of a page, without those that are left out.
#[derive(Clone, Copy, Default, Debug)]
struct Letters {
    all: u64,
    // The letters of new passages, and of those new passages that follow another one.
    new: u64,
    together: u64,
    // The letters of long stretches of passages that were all seen before and are all kept.
    running: u64,
}

impl Letters {
    fn is_mostly_new(&self) -> bool {
        self.new > 0 && self.new as f64 >= MOSTLY_NEW * self.all as f64
    }

    /// Returns whether the page, if it has no text of its own, is an edited version of an earlier one.
    fn is_scattered(&self) -> bool {
        self.new as f64 >= LEAST_SCATTERED * self.all as f64 && self.new > 0
    }

    /// Returns whether the page has new text of its own, and is not a version of an earlier one.
    fn is_own(&self) -> bool {
        let new = self.new as f64;
        let is_together = self.together as f64 >= LEAST_TOGETHER * new;
        let is_part = self.new > 0 && is_together && new >= LEAST_OWN * self.all as f64;
        self.is_mostly_new() || is_part && self.running as f64 <= MOST_SHARED * new
    }

    /// Returns whether the page shares more with earlier ones than a notice has.
    fn is_version(&self) -> bool {
        !may_be_notice((self.all - self.new) as f64, self.new as f64)
    }
}

/// Returns the letters of each page of a block, given its passages in the order of their hashes.
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

/// Returns whether text that a page shares with others may be a notice, given the letters of both it
/// and the page's own text.
pub fn may_be_notice(shared: f64, own: f64) -> bool {
    shared <= f64::max(LONGEST_NOTICE, MOST_SHARED * own)
}

/// Returns whether a page of a block has the passage of a mark.
fn has_mark(taught: &[&Occurrence], place: u32, mark: u32) -> bool {
    let key = |passage: &&Occurrence| (mark_of(passage.hash), passage.place);
    taught.binary_search_by_key(&(mark, place), key).is_ok()
}
