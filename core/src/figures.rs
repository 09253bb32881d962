//! Divides the numbers of a text into figures, which are part of its content, and asides.
//!
//! Asides are numbers around an article that differ between its copies, such as counters (`17 views`), times of
//! updates, picture numbers and telephone numbers. A number is an aside if it is in a short line that is neither
//! prose nor in a table, unless a label with a colon precedes it; if it stands after the last sentence with only a word
//! or two; if it follows an ellipsis; if it is in square brackets; or if it is next to a known label. Times of day are
//! not figures either, because their notations vary.

use std::ops::Range;
use std::sync::LazyLock;

use crate::characters::{ALNUM, FULL_STOP, HARD_END, NUMBER, Point, SPACE, WORD};
use crate::normal_form::normalise;
use crate::passages::{Passage, digits, is_time, number};
use crate::tokens::{Token, units};

// The maximum lengths, in units, of a line of asides and of a row of a table.
const LABEL_UNITS: usize = 16;
const ROW_UNITS: usize = 32;
// The maximum length in units of the words next to an aside: `Photo 1 of 3`, `17 more words`.
const FEW_UNITS: usize = 4;
// Labels such as `12 shares` are recognised in the first FIRST_TOKENS tokens of a text and, if the text breaks off,
// where at most LAST_TOKENS tokens with at most LAST_UNITS units are left.
const FIRST_TOKENS: usize = 16;
const LAST_UNITS: usize = 8;
const LAST_TOKENS: usize = 24;
// The maximum number of tokens in a page number such as `2/9`, and of tokens before a number with an ambiguous label
// without a colon: `图片 1 / 3`.
const FEW_TOKENS: usize = 2;
// The minimum number of digits in an id; in prose, the digits of such a large number are grouped.
const ID_DIGITS: usize = 7;
// The maximum numbers of characters between a number and the bracket before it (BRACKET_SIGNS) or after it
// (BRACKET_CHARACTERS).
const BRACKET_SIGNS: usize = 4;
const BRACKET_CHARACTERS: usize = 24;
// Characters other than spaces that may be between a label and its number (BETWEEN: `阅读量：17`, `Ad no. 17`), or
// between a number and its label (COUNTED: `17次阅读`).
const BETWEEN: [char; 8] = [':', '(', '.', '-', '+', '#', '量', '数'];
const COUNTED: [char; 8] = ['次', '件', '条', '万', '回', '개', '건', '회'];

/// A label: its first character, its normal form, and whether it is unambiguous, that is, never used in prose.
type Label = (u32, Vec<Point>, bool);

/// The labels of asides, twice: reversed and sorted by their last character, then unchanged and sorted by their
/// first. The file `asides.txt` groups labels by meaning; `!` marks groups of unambiguous labels.
static BY_FIRST: LazyLock<[Vec<Label>; 2]> = LazyLock::new(|| {
    let lines = include_str!("../data/asides.txt").lines().filter_map(|line| line.split_once(": "));
    let labels = lines.flat_map(|(meaning, labels)| labels.split(", ").map(move |each| (each, meaning)));
    let label = |(label, meaning): (&str, &str)| {
        let mut points = Vec::new();
        normalise(label, usize::MAX, &mut points);
        points.pop();
        (points[0].code(), points, meaning.ends_with('!'))
    };
    let right: Vec<Label> = labels.map(label).collect();
    let reversed = |(_, points, is_sure): &Label| {
        let points: Vec<Point> = points.iter().rev().copied().collect();
        (points[0].code(), points, *is_sure)
    };
    let mut both = [right.iter().map(reversed).collect(), right];
    both.iter_mut().for_each(|labels| labels.sort_by_key(|each| each.0));
    both
});

/// Returns whether the label at the beginning of `side` is unambiguous; None if there is no label.
fn label<'a>(all: &[Label], side: impl Iterator<Item = &'a Point> + Clone, gaps: &[char]) -> Option<bool> {
    let is_gap = |each: &&Point| {
        each.has(SPACE) && !each.has(HARD_END) || each.role() != WORD && gaps.contains(&each.character())
    };
    let side = side.skip_while(is_gap);
    let first = side.clone().next()?.code();
    let own = all[all.partition_point(|each| each.0 < first)..].iter();
    let begins = |(_, label, _): &&Label| {
        let (mut points, is_word) = (side.clone(), label[label.len() - 1].role() == WORD);
        label.iter().all(|own| points.next() == Some(own))
            && !(is_word && points.next().is_some_and(|next| next.role() == WORD))
    };
    own.take_while(|each| each.0 == first).filter(begins).map(|each| each.2).max()
}

/// Returns whether the labels before and after a number are unambiguous; None for a missing label.
fn labels(points: &[Point], token: Token) -> [Option<bool>; 2] {
    let start = token.start as usize;
    let after = &points[start + digits(points, start).len()..];
    // `1.2k views`
    let is_lone = after[0].role() == WORD && after.get(1).is_some_and(|next| next.role() != WORD);
    let after = after[usize::from(is_lone)..].iter();
    [label(&BY_FIRST[0], points[..start].iter().rev(), &BETWEEN), label(&BY_FIRST[1], after, &COUNTED)]
}

/// Clears `is_number` of asides. `places` has the range of each passage's tokens.
pub fn unmark_asides(points: &[Point], tokens: &mut [Token], passages: &[Passage], places: &[Range<usize>]) {
    for (at, (passage, own)) in passages.iter().zip(places).enumerate() {
        let Some(others) = tokens[own.clone()].iter().position(|token| token.is_number) else { continue };
        let units_at = |at: usize| units(&tokens[places[at].clone()]);
        let is_row = |at: usize| {
            let has_row = |other: &Passage| !other.is_prose && other.has_figures && units_at(at) <= ROW_UNITS;
            passages.get(at).is_some_and(has_row)
        };
        let is_line = !(passage.is_prose || is_row(at + 1) || is_row(at.wrapping_sub(1)));
        let is_short = passages.len() > 1 && !passage.is_long_prose() && units_at(at) <= LABEL_UNITS;
        if is_short && is_aside_passage(points, &tokens[own.clone()], passage, is_line) {
            tokens[own.clone()].iter_mut().for_each(|each| each.is_number = false);
            continue;
        }
        // Thai has no full stop, so every text in Thai is treated as broken off.
        let breaks_off = is_line || points.iter().rev().nth(1).is_some_and(|last| last.has(ALNUM));
        let mut end = own.start + others;
        while let Some(others) = tokens[end..own.end].iter().position(|token| token.is_number) {
            let start = end + others;
            end = start + tokens[start..own.end].iter().take_while(|token| token.is_number).count();
            let is_last =
                breaks_off && tokens.len() - start <= LAST_TOKENS && units(&tokens[start..]) <= LAST_UNITS;
            let is_aside = |each: &Token| is_aside_number(points, *each, start, is_last);
            // A date next to an aside is an aside too: `2026-11-22 07:30`.
            let is_cleared = |each: &Token| {
                let number = number(points, each.start as usize, 0);
                number.is_date || number.is_short || is_aside(each)
            };
            if tokens[start..end].iter().any(is_aside) {
                tokens[start..end].iter_mut().for_each(|each| each.is_number = !is_cleared(each));
            }
        }
    }
}

/// Returns whether all numbers of a short passage are asides. `is_line` is true if the passage is not prose and not
/// next to a row of a table.
fn is_aside_passage(points: &[Point], tokens: &[Token], passage: &Passage, is_line: bool) -> bool {
    let words = || tokens.iter().filter(|each| !each.is_number);
    let has_few = units(words()) <= FEW_UNITS;
    if passage.is_prose && passage.has_figures && !has_few {
        return false;
    }
    let start = tokens[0].start as usize;
    let before = points[..start].iter().rev().take_while(|each| !each.has(ALNUM));
    let is_own = before.clone().count() == start || before.clone().any(|each| each.is('\n'));
    if !passage.has_figures {
        // `Updated 22 November 2026.`
        let has_dots = before.filter(|each| each.is('.')).count() > 1;
        return passage.is_prose || is_line && (is_own || has_few || has_dots);
    }
    let is_page = || {
        let mut line = points[start..].iter().take_while(|each| !each.has(HARD_END));
        is_own
            && words().count() == 0
            && tokens.len() <= FEW_TOKENS
            && line.all(|each| each.has(ALNUM | SPACE) || each.is('/'))
            && !before.clone().any(|each| each.is(':'))
    };
    let last = tokens.last().map_or(0, |last| last.start as usize);
    let is_id = || points[last..].iter().take_while(|each| each.role() == NUMBER).count() >= ID_DIGITS;
    let numbers = tokens.iter().filter(|each| each.is_number);
    let label = || numbers.filter_map(|each| labels(points, *each).into_iter().max()?).max();
    is_line && (is_page() || is_id()) || label().is_some_and(|is_sure| is_sure || is_line && has_few)
}

/// Returns whether the characters around a number show that it is an aside. `place` is the index of the first
/// number in a series of adjacent numbers; `is_last` is true if the series is near the end of a text that breaks off.
fn is_aside_number(points: &[Point], token: Token, place: usize, is_last: bool) -> bool {
    let start = token.start as usize;
    let own = digits(points, start);
    let (before, after) = (&points[..start], &points[start + own.len()..]);
    let is_bracket = |each: &&Point| each.is('[') || each.is(']');
    let opening = || before.iter().rev().take(BRACKET_SIGNS).find(is_bracket);
    let closing = || after.iter().take(BRACKET_CHARACTERS).find(is_bracket);
    // `cemetery.078844`
    let is_glued = || points[start - 1].has(FULL_STOP) && points[start - 2].has(ALNUM) && after.len() == 1;
    let is_labelled = || {
        let [label, next] = if place == 0 || is_last {
            labels(points, token)
        } else {
            [label(&BY_FIRST[0], before.iter().rev(), &BETWEEN), None]
        };
        let has_colon = || before.iter().rev().find(|each| !each.has(SPACE)).is_some_and(|each| each.is(':'));
        label == Some(true)
            || label.is_some() && (place <= FEW_TOKENS || has_colon())
            || next == Some(true) && place == 0
            || is_last && label.max(next).is_some()
    };
    is_time(own, after)
        || (place < FIRST_TOKENS || is_last) && is_labelled()
        || is_last && start > 1 && is_glued()
        || opening().is_some_and(|each| each.is('[')) && closing().is_some_and(|each| each.is(']'))
}

#[cfg(test)]
mod tests {
    use crate::parsed::{ParseRules, ParsedText};
    use crate::tokens::USUAL_HASH;

    #[test]
    fn numbers_around_an_article_are_not_figures() {
        let rules =
            ParseRules { max_length: usize::MAX, are_visible: true, keep_points: false, hash: *USUAL_HASH };
        let stated =
            |text: &str| ParsedText::of(text, &rules).tokens.iter().filter(|each| each.is_number).count();
        let lead =
            "the harbour council voted by 5 to 2 on tuesday night to close the old grain quay for the winter";
        for text in [
            format!("{lead}.\nphoto 1 of 3"),
            format!("updated 2026-11-22 07:30 {lead}."),
            format!("阅读 1523\n{lead}."),
            format!("{lead} … [+2043 chars]"),
            format!("{lead} 12 shares"),
            format!("{lead}.078844"),
            format!("{lead}. tel +41 58 462"),
            format!("{lead} at 3.00 p.m. on friday. posted 22 november 2026."),
            format!("© 2026 harbour news. {lead} at 15 uhr."),
            format!("17 views {lead}."),
            format!("阅读量:17 {lead} ... 2043 more"),
            format!("{lead}.\nviews: 17"),
            format!("{lead}. просмотров: 1523"),
            format!("{lead}.\n1.2k views\n12 partages"),
            format!("{lead}.\nmis à jour à 8h15"),
            format!("{lead}.\narticle-id: 8837261"),
            format!("{lead}.\nlast update: 22 november 2026, 7:30"),
            format!("reading time: 23 minutes\n{lead}."),
            format!("{lead}.\n浏览次数:23次"),
        ] {
            assert_eq!(stated(&text), 2, "{text}");
        }
        for (text, count) in [
            (format!("{lead}.\nnet 26.0 mln vs 24.1\nrevs 110 mln"), 5),
            (format!("{lead} at 3 pms or 12.50 (of 14)."), 5),
            (format!("{lead}.\ndead: 17"), 3),
            (format!("{lead}. 17 dead"), 3),
            (format!("{lead}.\n死亡17人"), 3),
            (format!("{lead}.\nfinal score 2:1"), 3),
            (format!("120000 shares were sold when {lead}."), 3),
            (format!("{lead}. coupon: 2.50 %"), 3),
            (format!("{lead}. 死亡人数:17"), 3),
            (format!("{lead}, and the new rate is 5.25 percent"), 3),
            (format!("{lead}. shares 4.5 pct up, the index closed at 17"), 4),
            ("net income of the harbour works rises 26 pct".to_owned(), 1),
        ] {
            assert_eq!(stated(&text), count, "{text}");
        }
    }
}
