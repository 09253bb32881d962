//! Figures: the numbers that a text states.
//!
//! What stands beside a text differs in each copy: counters, times of update, numbers of pictures and telephones. It shows
//! by its place: in a short line that is neither prose nor in a table, unless a label and a colon say what it is; after the
//! last sentence, with a word or two; after an ellipsis; in square brackets. A few words tell others. Times of day are
//! written in many ways, and no figures either.

use std::ops::Range;
use std::sync::LazyLock;

use crate::characters::{ALNUM, FULL_STOP, HARD_END, NUMBER, Point, SPACE, WORD};
use crate::normal_form::normalise;
use crate::passages::{Passage, digits, is_time, number};
use crate::tokens::{Token, units};

// What stands beside a text in a line of its own has so many units at most, and a row of a table so many.
const LABEL_UNITS: usize = 16;
const ROW_UNITS: usize = 32;
// `Photo 1 of 3`, `17 more words`: so many units that are no numbers may stand beside the number.
const FEW_UNITS: usize = 4;
// Where a text begins, and where it breaks off: `12 shares`, `17次阅读`.
const FIRST_TOKENS: usize = 16;
const LAST_UNITS: usize = 8;
const LAST_TOKENS: usize = 24;
// `图片 1 / 3: …`; `2/9`, without a word.
const FEW_TOKENS: usize = 2;
// News parts the digits of such a number.
const ID_DIGITS: usize = 7;
// So far from a number, its brackets are looked for.
const BRACKET_SIGNS: usize = 4;
const BRACKET_CHARACTERS: usize = 24;
// Between a label and its number, beside blanks: `阅读量：17`, `Ad no. 17`; and between a number and its label: `17次阅读`.
const BETWEEN: [char; 8] = [':', '(', '.', '-', '+', '#', '量', '数'];
const COUNTED: [char; 8] = ['次', '件', '条', '万', '回', '개', '건', '회'];

/// The first character of a label, the label in its normal form, and whether it is no word of the news.
type Label = (u32, Vec<Point>, bool);

/// Labels of numbers beside a text, by their first character; and from right to left, by their last one. The file has them
/// by what they mean, with `!` if they are no words of the news.
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

/// Whether a label begins some characters; if so, whether it is no word of the news.
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

/// Whether the labels before and after a number, if there are some, are no words of the news.
fn labels(points: &[Point], token: Token) -> [Option<bool>; 2] {
    let start = token.start as usize;
    let after = &points[start + digits(points, start).len()..];
    // `1.2k views`
    let is_lone = after[0].role() == WORD && after.get(1).is_some_and(|next| next.role() != WORD);
    let after = after[usize::from(is_lone)..].iter();
    [label(&BY_FIRST[0], points[..start].iter().rev(), &BETWEEN), label(&BY_FIRST[1], after, &COUNTED)]
}

/// Takes the mark from numbers that no sentence states, given each passage and the places of its tokens.
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
        if is_short && is_aside(points, &tokens[own.clone()], passage, is_line) {
            tokens[own.clone()].iter_mut().for_each(|each| each.is_number = false);
            continue;
        }
        // Thai has no full stop.
        let breaks_off = is_line || points.iter().rev().nth(1).is_some_and(|last| last.has(ALNUM));
        let mut end = own.start + others;
        while let Some(others) = tokens[end..own.end].iter().position(|token| token.is_number) {
            let start = end + others;
            end = start + tokens[start..own.end].iter().take_while(|token| token.is_number).count();
            let is_last =
                breaks_off && tokens.len() - start <= LAST_TOKENS && units(&tokens[start..]) <= LAST_UNITS;
            let is_beside = |each: &Token| is_beside(points, *each, start, is_last);
            // A date beside a time, too: `2026-11-22 07:30`.
            let is_aside = |each: &Token| {
                let number = number(points, each.start as usize, 0);
                number.is_date || number.is_short || is_beside(each)
            };
            if tokens[start..end].iter().any(is_beside) {
                tokens[start..end].iter_mut().for_each(|each| each.is_number = !is_aside(each));
            }
        }
    }
}

/// Whether a short passage, given whether it is a line beside no table, is beside the text.
fn is_aside(points: &[Point], tokens: &[Token], passage: &Passage, is_line: bool) -> bool {
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

/// Whether a number is beside the text by what stands around it, given its place, and whether it is one of the last tokens
/// where this breaks off.
fn is_beside(points: &[Point], token: Token, place: usize, is_last: bool) -> bool {
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
    use crate::parsed::{ParseRules, Parser};
    use crate::tokens::USUAL_HASH;

    #[test]
    fn numbers_beside_a_text_are_no_figures() {
        let rules =
            ParseRules { max_length: usize::MAX, are_visible: true, keep_points: false, hash: *USUAL_HASH };
        let stated =
            |text: &str| Parser::new(rules).parse(text).tokens.iter().filter(|each| each.is_number).count();
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
