//! Learning from a block of pages.

use super::block::{Block, Taught};
use super::marks::Page;
use super::memory::{LEARNED, Memory};
use super::site_pages::SeenOn;

// A page takes as much memory as two passages. If pages did not count, those that bring no new passage would be kept
// for ever.
const PAGE_RECORDS: u64 = 2;
// The share of a page, one in so many of its letters, that is new if it brings an article of its own.
const OWN_SHARE: u64 = 4;

/// What decides whether a passage is boilerplate of its site.
#[derive(Clone, Copy, Debug)]
pub struct SiteRule {
    /// A passage of so many articles of one site, in bits, may be boilerplate.
    pub least_article_bits: u32,
    /// After so many pages of other sites, another site is observed.
    pub most_foreign_pages: u64,
}

/// Learns from a block of pages, of which none have been learned from.
pub fn learn(memory: &mut Memory, block: &Block, rule: SiteRule) {
    let pages = numbered_at_sites(memory, block);
    // Passages together, each with its pages in their order. What is stored is in this order as well.
    let mut order: Vec<(u64, u32)> =
        block.passages.iter().enumerate().map(|(at, taught)| (taught.hash, at as u32)).collect();
    order.sort_unstable();
    let taught: Vec<&Taught> = order.iter().map(|(_, at)| &block.passages[*at as usize]).collect();
    let have_own = have_own_text(&taught, pages.len());
    let (first_page, last_page) = (memory.last_learned + 1, memory.last_learned + pages.len() as u32);
    let (mut values, mut rows, mut records) = (Vec::new(), Vec::new(), PAGE_RECORDS * pages.len() as u64);
    let mut seen_on: Vec<SeenOn> = Vec::new();
    for same in taught.chunk_by(|one, other| one.hash == other.hash) {
        let Taught { hash, value, place, .. } = *same[0];
        // Most passages are seen for the first time, and once.
        if same.len() == 1 && value == 0 {
            memory.passages.put(hash, [first_page + place], memory.is_recorded);
            records += 1;
            continue;
        }
        let mut contexts = memory.contexts_of(hash, value);
        let before = contexts.site_pages;
        if !contexts.is_learned {
            seen_on.clear();
            // A page may have a passage several times.
            for of_page in same.chunk_by(|one, other| one.place == other.place) {
                let place = of_page[0].place as usize;
                let page = first_page + of_page[0].place;
                seen_on.push(SeenOn { page, origin: pages[place].origin, has_own: have_own[place] });
                contexts.add(page, &pages[place]);
            }
            contexts.site_pages.add(&seen_on, rule.most_foreign_pages);
            let site_pages = &contexts.site_pages;
            contexts.is_learned |=
                site_pages.is_boilerplate(memory.pages_of_site(site_pages.site()), rule.least_article_bits);
        }
        let has_grown = contexts.site_pages.has_grown(&before);
        // With boilerplate of the period before, which was seen again.
        let has_changed = contexts.is_learned || value == 0 || contexts.last_added > 0;
        records += u64::from(has_changed || has_grown);
        if has_changed {
            values.push((
                hash,
                match (contexts.last_added, contexts.is_learned) {
                    (0, true) => last_page | LEARNED,
                    (0, false) => contexts.site_pages.first,
                    (added, true) => added | LEARNED,
                    (added, false) => added,
                },
            ));
        }
        rows.extend(contexts.row(has_grown).map(|row| (hash, row)));
    }
    for (hash, value) in values {
        memory.passages.put(hash, [value], memory.is_recorded);
    }
    for (hash, row) in rows {
        memory.contexts.put(hash, row, memory.is_recorded);
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
        memory.sites.put(site.into(), [last_page, count], memory.is_recorded);
    }
    pages
}

/// Returns which pages have new text of their own, beside what was seen before.
fn have_own_text(taught: &[&Taught], page_count: usize) -> Vec<bool> {
    let mut letters = vec![(0u64, 0u64); page_count];
    for same in taught.chunk_by(|one, other| one.hash == other.hash) {
        if same[0].value == 0 {
            letters[same[0].place as usize].0 += u64::from(same[0].letters);
        }
        for passage in same {
            letters[passage.place as usize].1 += u64::from(passage.letters);
        }
    }
    letters.iter().map(|(new, all)| *new > 0 && new * OWN_SHARE >= *all).collect()
}
