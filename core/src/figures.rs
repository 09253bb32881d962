//! Figures: the numbers that a text states.
//!
//! What stands beside a text differs in each copy: counters, times of update, numbers of pictures and telephones. It shows
//! by its place: in a short line that is neither prose nor in a table; at the very end of a text that breaks off; in square
//! brackets; after one of a few words. Times of day are written in many ways, and no figures either.

use std::ops::Range;

use crate::characters::{Point, SPACE};
use crate::passages::{Passage, digits, is_time, number};
use crate::tokens::{Token, units};

// What stands beside a text in a line of its own has so many units at most, and a row of a table so many.
const LABEL_UNITS: usize = 16;
const ROW_UNITS: usize = 32;
// `12 shares`, `Photo 1 of 3`: so many tokens at the end of a text that breaks off.
const LAST_TOKENS: usize = 3;
// So far from a number, its brackets are looked for.
const BRACKET_SIGNS: usize = 4;
const BRACKET_CHARACTERS: usize = 24;
// Words that numbers beside a text follow, wherever they are. Their place tells most numbers.
const BESIDE: [&str; 11] =
    ["©", "updated", "photo", "page", "views", "comments", "时间", "阅读", "浏览", "点击", "评论"];
// Their last letters: most numbers follow none of them.
const BESIDE_ENDS: [char; 10] = ['©', 'd', 'o', 'e', 's', '间', '读', '览', '击', '论'];

/// Takes the mark from numbers that no sentence states, given each passage and the places of its tokens.
pub fn unmark_asides(points: &[Point], tokens: &mut [Token], passages: &[Passage], places: &[Range<usize>]) {
    for (at, (passage, own)) in passages.iter().zip(places).enumerate() {
        let units = |at: usize| units(&tokens[places[at].clone()]);
        let is_row = |at: usize| {
            passages
                .get(at)
                .is_some_and(|other| !other.is_prose && other.has_figures && units(at) <= ROW_UNITS)
        };
        let is_line = !(passage.is_prose || is_row(at + 1) || is_row(at.wrapping_sub(1)));
        // `Updated 22 November 2026.`
        let is_date = passage.is_prose && !passage.is_long_prose() && !passage.has_figures;
        let is_only = passages.len() == 1;
        let first = if (is_date || is_line && !is_only) && units(at) <= LABEL_UNITS {
            own.start
        } else if is_line && at + 1 == passages.len() && (!is_only || units(at) > ROW_UNITS) {
            own.end.saturating_sub(LAST_TOKENS)
        } else {
            own.end
        };
        let mut end = own.start;
        while let Some(others) = tokens[end..own.end].iter().position(|token| token.is_number) {
            let start = end + others;
            end = start + tokens[start..own.end].iter().take_while(|token| token.is_number).count();
            let are_beside = tokens[start..end].iter().any(|each| is_beside(points, *each));
            // A date beside a time, too: `2026-11-22 07:30`.
            let is_aside = |each: &Token| {
                let number = number(points, each.start as usize, 0);
                number.is_date || number.is_short || is_beside(points, *each)
            };
            for each in &mut tokens[start..end] {
                each.is_number = end <= first && !(are_beside && is_aside(each));
            }
        }
    }
}

/// Whether a number is beside the text by what stands around it.
fn is_beside(points: &[Point], token: Token) -> bool {
    let start = token.start as usize;
    let own = digits(points, start);
    let (before, after) = (&points[..start], &points[start + own.len()..]);
    let signs = before.iter().rev().filter(|each| !(each.has(SPACE) || each.is(':') || each.is('(')));
    let mut signs = signs.map(|each| each.character());
    let last = signs.next().unwrap_or_default();
    let follows = |word: &&str| {
        let rest = word.strip_suffix(last);
        rest.is_some_and(|rest| rest.chars().rev().eq(signs.clone().take(rest.chars().count())))
    };
    let is_bracket = |each: &&Point| each.is('[') || each.is(']');
    let opening = || before.iter().rev().take(BRACKET_SIGNS).find(is_bracket);
    let closing = || after.iter().take(BRACKET_CHARACTERS).find(is_bracket);
    is_time(own, after)
        || BESIDE_ENDS.contains(&last) && BESIDE.iter().any(follows)
        || opening().is_some_and(|each| each.is('[')) && closing().is_some_and(|each| each.is(']'))
}

#[cfg(test)]
mod tests {
    use crate::parsed::{ParseRules, Parser};
    use crate::tokens::CharacterHash;

    #[test]
    fn numbers_beside_a_text_are_no_figures() {
        let rules = ParseRules {
            max_length: usize::MAX,
            are_visible: true,
            keep_points: false,
            hash: CharacterHash::default(),
        };
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
        ] {
            assert_eq!(stated(&text), 2, "{text}");
        }
        for (text, count) in [
            (format!("{lead}.\nnet 26.0 mln vs 24.1\nrevs 110 mln"), 5),
            (format!("{lead} at 3 pms or 12.50 (of 14)."), 5),
            ("net income of the harbour works rises 26 pct".to_owned(), 1),
        ] {
            assert_eq!(stated(&text), count, "{text}");
        }
    }
}
