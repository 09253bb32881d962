//! Figures: the numbers that a text states.
//!
//! What stands beside a text differs in each copy: counters, times of update, numbers of pictures and telephones. It shows
//! by its place: in a short line that is neither prose nor in a table, unless a label and a colon say what it is; after the
//! last sentence, with a word or two; after an ellipsis; in square brackets. A few words tell others. Times of day are
//! written in many ways, and no figures either.

use std::ops::Range;

use crate::characters::{ALNUM, FULL_STOP, NUMBER, Point, SPACE, WORD};
use crate::passages::{Passage, digits, is_time, number};
use crate::tokens::{Token, units};

// What stands beside a text in a line of its own has so many units at most, and a row of a table so many.
const LABEL_UNITS: usize = 16;
const ROW_UNITS: usize = 32;
// `Tel. 4471902`, `17 more words`: so many units that are no numbers may stand with them after the last sentence.
const LAST_UNITS: usize = 4;
// What breaks off ends with so many tokens: `cemetery.078844`, `12 shares`, `17次阅读`.
const LAST_TOKENS: usize = 4;
// So far from a number, its brackets are looked for.
const BRACKET_SIGNS: usize = 4;
const BRACKET_CHARACTERS: usize = 24;
// Words of numbers beside a text. Their place tells most numbers.
const BESIDE: [&str; 16] = [
    "shares", "likes", "©", "updated", "photo", "page", "views", "comments", "时间", "阅读", "浏览", "点击",
    "评论", "点赞", "转发", "播放",
];
// The first ones are words of the news, too: a number follows them with a colon.
const NEWS_WORDS: usize = 2;
// Their last characters: most numbers follow another.
const LAST_SIGNS: [char; 13] = ['s', '©', 'd', 'o', 'e', '间', '读', '览', '击', '论', '赞', '发', '放'];
// Signs between such a word and its number: `阅读量：17`, `17次阅读`.
const BETWEEN: [char; 5] = [':', '(', '量', '数', '次'];

/// Takes the mark from numbers that no sentence states, given each passage and the places of its tokens.
pub fn unmark_asides(points: &[Point], tokens: &mut [Token], passages: &[Passage], places: &[Range<usize>]) {
    for (at, (passage, own)) in passages.iter().zip(places).enumerate() {
        let Some(others) = tokens[own.clone()].iter().position(|token| token.is_number) else { continue };
        let units = |at: usize| units(&tokens[places[at].clone()]);
        let is_row = |at: usize| {
            let has_row = |other: &Passage| !other.is_prose && other.has_figures && units(at) <= ROW_UNITS;
            passages.get(at).is_some_and(has_row)
        };
        let is_line = !(passage.is_prose || is_row(at + 1) || is_row(at.wrapping_sub(1)));
        // `Updated 22 November 2026.`
        let is_date = passage.is_prose && !passage.is_long_prose() && !passage.has_figures;
        let begin = tokens[own.start].start as usize;
        let is_short = || {
            let before = points[..begin].iter().rev().take_while(|each| !each.has(ALNUM));
            let words = tokens[own.clone()].iter().filter(|each| !each.is_number);
            at == 0
                || before.clone().any(|each| each.is('\n'))
                || before.filter(|each| each.is('.')).count() > 1
                || words.map(|each| usize::from(each.units)).sum::<usize>() <= LAST_UNITS
        };
        // `Dead: 17`
        let is_label = |pair: &[Point]| pair[0].role() != NUMBER && pair[1].is(':');
        let last = || tokens[own.clone()].iter().rfind(|each| each.is_number && passage.has_figures);
        let has_label =
            || last().is_some_and(|last| points[begin..last.start as usize].windows(2).any(is_label));
        if (is_date || is_line && passages.len() > 1 && is_short())
            && units(at) <= LABEL_UNITS
            && !has_label()
        {
            tokens[own.clone()].iter_mut().for_each(|each| each.is_number = false);
            continue;
        }
        let mut end = own.start + others;
        while let Some(others) = tokens[end..own.end].iter().position(|token| token.is_number) {
            let start = end + others;
            end = start + tokens[start..own.end].iter().take_while(|token| token.is_number).count();
            let is_last = is_line && tokens.len() - start <= LAST_TOKENS;
            let is_beside = |each: &Token| is_beside(points, *each, start == 0, is_last);
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

/// Whether a number is beside the text by what stands around it, given whether it is the first token of the text, or one
/// of the last where this breaks off.
fn is_beside(points: &[Point], token: Token, is_first: bool, is_last: bool) -> bool {
    let start = token.start as usize;
    let own = digits(points, start);
    let (before, after) = (&points[..start], &points[start + own.len()..]);
    let is_between = |each: &&Point| each.has(SPACE) || BETWEEN.contains(&each.character());
    let mut signs = before.iter().rev().filter(|each| !is_between(each)).map(|each| each.character());
    let last = signs.next();
    let may_follow = last.is_some_and(|last| LAST_SIGNS.contains(&last));
    let is_labelled = || before.iter().rev().find(|each| !each.has(SPACE)).is_some_and(|each| each.is(':'));
    let follows = |(at, word): (usize, &&str)| {
        let (mut own, mut rest) = (word.chars().rev(), signs.clone());
        own.next() == last && own.all(|each| rest.next() == Some(each)) && (at >= NEWS_WORDS || is_labelled())
    };
    let precedes = |word: &&str| {
        let mut rest = after.iter().skip_while(is_between);
        word.chars().all(|own| rest.next().is_some_and(|each| each.is(own)))
            && rest.next().is_some_and(|each| each.role() != WORD)
            && (is_first || !rest.any(|each| each.has(ALNUM)))
    };
    let is_bracket = |each: &&Point| each.is('[') || each.is(']');
    let opening = || before.iter().rev().take(BRACKET_SIGNS).find(is_bracket);
    let closing = || after.iter().take(BRACKET_CHARACTERS).find(is_bracket);
    // `cemetery.078844`
    let is_glued = || start > 1 && points[start - 1].has(FULL_STOP) && points[start - 2].has(ALNUM);
    is_time(own, after)
        || may_follow && BESIDE.iter().enumerate().any(follows)
        || (is_first || is_last) && BESIDE.iter().any(precedes)
        || is_last && is_glued()
        || opening().is_some_and(|each| each.is('[')) && closing().is_some_and(|each| each.is(']'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed::{ParseRules, Parser};
    use crate::tokens::CharacterHash;

    #[test]
    fn the_last_characters_are_those_of_the_words() {
        assert!(BESIDE.iter().all(|word| word.ends_with(LAST_SIGNS)));
    }

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
            format!("17 views {lead}."),
            format!("阅读量:17 {lead} ... 2043 more"),
            format!("{lead}.\nviews: 17"),
            format!("{lead}.\nlast update: 22 november 2026, 7:30"),
        ] {
            assert_eq!(stated(&text), 2, "{text}");
        }
        for (text, count) in [
            (format!("{lead}.\nnet 26.0 mln vs 24.1\nrevs 110 mln"), 5),
            (format!("{lead} at 3 pms or 12.50 (of 14)."), 5),
            (format!("{lead}.\ndead: 17"), 3),
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
