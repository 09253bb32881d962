//! Decides which passages of a page to omit, given learned boilerplate and a person's overrides, which take
//! precedence.
//!
//! A list is a series of passages that do not end like sentences, such as a menu, headlines or teasers that break
//! off. If enough other text remains, a list is omitted even before its passages are known to be boilerplate.
//! Otherwise only its passages that were seen in another context are omitted. A page that consists mostly of rows of
//! figures keeps its rows.

use std::collections::HashMap;

use super::pages::{MARKS, Marks, mark_of};
use crate::passages::Passage;

// Lists are omitted only if at least ENOUGH_LETTERS letters remain outside lists. If at least AMPLE_LETTERS letters
// of prose remain, single passages that are not prose are omitted too, except the page's last passage. Both numbers
// were chosen on the labelled articles: see benchmarks/tried.md.
const ENOUGH_LETTERS: u64 = 100;
const AMPLE_LETTERS: u64 = 200;
// The remaining letters must be at least this share of the letters that are not boilerplate. Otherwise the list is
// the article, and the other text only introduces it.
const LEAST_SHARE: f64 = 0.4;
// A page is a table if at least LEAST_ROWS rows have figures and contain at least TABLE_SHARE of the page's letters.
const LEAST_ROWS: usize = 2;
const TABLE_SHARE: f64 = 0.5;

/// A passage of a page to be judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagePassage {
    /// A hash of the words and figures.
    pub hash: u64,
    /// The number of letters and digits.
    pub letters: u32,
    /// Whether the passage ends like a sentence of running text.
    pub is_prose: bool,
    /// Whether the passage has a number that is not part of a date or time.
    pub has_figures: bool,
    /// Whether the passage is learned boilerplate.
    pub is_learned: bool,
}

impl From<&Passage> for PagePassage {
    fn from(&Passage { hash, letters, is_prose, has_figures }: &Passage) -> PagePassage {
        PagePassage { hash, letters: letters as u32, is_prose, has_figures, is_learned: false }
    }
}

/// The judgement on a page, before the contexts of doubtful passages are looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The fate of each passage.
    pub fates: Vec<Fate>,
    /// The marks of the page.
    pub marks: Marks,
}

/// Whether a passage is omitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The passage is kept.
    Kept,
    /// The passage is omitted.
    Omitted,
    /// The passage is in a list on a page with little other text. It is omitted if it was seen in another context.
    Doubtful,
}

/// Judges a page.
pub fn judge(passages: &[PagePassage]) -> Judgement {
    let in_list = are_in_lists(passages);
    let letters_of = |is_chosen: &dyn Fn(usize, &PagePassage) -> bool| -> u64 {
        let chosen = passages.iter().enumerate().filter(|(at, passage)| is_chosen(*at, passage));
        chosen.map(|(_, passage)| u64::from(passage.letters)).sum()
    };
    let rest = letters_of(&|_, passage| !passage.is_learned);
    let prose = letters_of(&|_, passage| !passage.is_learned && passage.is_prose);
    let others = letters_of(&|at, passage| !passage.is_learned && !in_list[at]);
    let is_fair = |letters: u64| letters as f64 >= LEAST_SHARE * rest as f64;
    let has_ample = prose >= AMPLE_LETTERS && is_fair(prose);
    let has_enough = others >= ENOUGH_LETTERS && is_fair(others);
    // The figures of a table are its content, even if many other pages contain the same figures.
    let is_table = !has_ample && !has_enough && is_mostly_figures(passages);
    let is_boilerplate = |passage: &PagePassage| passage.is_learned && !(is_table && passage.has_figures);
    let fate = |(at, (passage, in_list)): (usize, (&PagePassage, &bool))| {
        // If the text was truncated, its last sentence does not end like prose.
        let is_last = at + 1 == passages.len();
        let is_omissible =
            if has_ample { !passage.is_prose && (*in_list || !is_last) } else { *in_list && has_enough };
        if is_boilerplate(passage) || is_omissible {
            Fate::Omitted
        } else if *in_list && !(has_ample || has_enough || is_table && passage.has_figures) {
            Fate::Doubtful
        } else {
            Fate::Kept
        }
    };
    Judgement {
        fates: passages.iter().zip(&in_list).enumerate().map(fate).collect(),
        marks: marks(passages, &in_list, is_boilerplate),
    }
}

/// Returns whether each passage is in a list: it is not prose, and a passage next to it is not prose either.
fn are_in_lists(passages: &[PagePassage]) -> Vec<bool> {
    let is_other = |at: usize| passages.get(at).is_some_and(|passage| !passage.is_prose);
    (0..passages.len()).map(|at| is_other(at) && (is_other(at + 1) || at > 0 && is_other(at - 1))).collect()
}

fn is_mostly_figures(passages: &[PagePassage]) -> bool {
    let letters = |some: &mut dyn Iterator<Item = &PagePassage>| -> f64 {
        some.map(|passage| u64::from(passage.letters)).sum::<u64>() as f64
    };
    let rows = || passages.iter().filter(|passage| passage.has_figures);
    rows().count() >= LEAST_ROWS && letters(&mut rows()) >= TABLE_SHARE * letters(&mut passages.iter())
}

/// Returns the marks of a page. Passages outside lists are preferred, then longer, then earlier passages.
fn marks(passages: &[PagePassage], in_list: &[bool], is_boilerplate: impl Fn(&PagePassage) -> bool) -> Marks {
    let mut marks = [0; MARKS];
    for place in 0..MARKS {
        let mut best = None;
        for (passage, in_list) in passages.iter().zip(in_list) {
            let (rank, mark) = ((!in_list, passage.letters), mark_of(passage.hash));
            // A repeated passage gets only one mark.
            let is_better = best.is_none_or(|(highest, _)| rank > highest);
            if is_better && !is_boilerplate(passage) && !marks[..place].contains(&mark) {
                best = Some((rank, mark));
            }
        }
        marks[place] = best.map_or(0, |(_, mark)| mark);
    }
    marks
}

// The scope of declarations for all sites.
const EVERYWHERE: u32 = 0;

/// A person's declarations about passages, for all sites or for one site.
#[derive(Clone, Default, Debug)]
pub struct OverrideTable {
    // For each passage, the scopes with declarations, and whether the passage is boilerplate there.
    declared: HashMap<u64, Vec<(u32, bool)>>,
    // The scopes of sites, by name.
    scopes: HashMap<Vec<u8>, u32>,
}

impl OverrideTable {
    /// Declares a passage to be boilerplate or text, for one site or for all sites.
    pub fn declare(&mut self, hash: u64, site: Option<&[u8]>, is_boilerplate: bool) {
        let next = self.scopes.len() as u32 + 1;
        let scope = site.map_or(EVERYWHERE, |site| *self.scopes.entry(site.to_vec()).or_insert(next));
        self.declared.entry(hash).or_default().push((scope, is_boilerplate));
    }

    /// Returns the scope of a site's pages.
    pub fn scope_of(&self, site: Option<&[u8]>) -> u32 {
        site.and_then(|site| self.scopes.get(site)).copied().unwrap_or(EVERYWHERE)
    }

    /// Applies the declaration about a passage. A declaration for the scope overrides a declaration for all sites.
    ///
    /// A passage declared to be text is treated as prose, even in a list. Figures in declared boilerplate are
    /// ignored.
    pub fn apply(&self, passage: &mut PagePassage, scope: u32) {
        let Some(declared) = self.declared.get(&passage.hash) else { return };
        let of_scope = |scope: u32| declared.iter().find(|(own, _)| *own == scope);
        if let Some((_, is_boilerplate)) = of_scope(scope).or_else(|| of_scope(EVERYWHERE)) {
            passage.is_learned = *is_boilerplate;
            passage.is_prose |= !is_boilerplate;
            passage.has_figures &= !is_boilerplate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(number: u64, letters: u32, is_prose: bool) -> PagePassage {
        PagePassage { hash: number << 32, letters, is_prose, has_figures: false, is_learned: false }
    }

    #[test]
    fn lists_are_omitted_if_enough_text_remains() {
        let page = [passage(1, 150, true), passage(2, 9, false), passage(3, 9, false)];
        assert_eq!(judge(&page).fates, [Fate::Kept, Fate::Omitted, Fate::Omitted]);
        let page = [passage(1, 15, true), passage(2, 9, false), passage(3, 9, false)];
        assert_eq!(judge(&page).fates, [Fate::Kept, Fate::Doubtful, Fate::Doubtful]);
    }

    #[test]
    fn last_passage_of_a_truncated_text_is_kept() {
        let single = [passage(1, 9, false), passage(2, 250, true), passage(3, 9, false)];
        assert_eq!(judge(&single).fates, [Fate::Omitted, Fate::Kept, Fate::Kept]);
        let list = [passage(2, 250, true), passage(1, 9, false), passage(3, 9, false)];
        assert_eq!(judge(&list).fates, [Fate::Kept, Fate::Omitted, Fate::Omitted]);
    }

    #[test]
    fn marks_prefer_long_passages_outside_lists() {
        let page = [passage(1, 50, true), passage(2, 90, false), passage(3, 99, false), passage(1, 50, true)];
        assert_eq!(judge(&page).marks, [1, 3, 2]);
        assert_eq!(judge(&[]).marks, [0, 0, 0]);
    }
}
