//! The passages of a text: its sentences, in a form that can be compared with passages of other texts.
//!
//! Sites put the same passages around every article. Passages are compared only by their words, and by their figures
//! if they have any. Dates, times and counters (`Posted 2026-11-22 07:30`, `Comments (23)`) are treated as equal,
//! since they change from page to page, except in long sentences. All other numbers are figures: `Net 26.0 mln vs
//! 24.1 mln`.
//!
//! Adjacent rows, each with a label and a value, are treated as prose, unless they are counters, times of updates or
//! headlines. Rows that consist mostly of numbers are rarely headlines.

use crate::characters::{ALNUM, FULL_STOP, HARD_END, JOINER, NUMBER, Point, SPACE, WIDE, tables};
use crate::endings::Ending;
use crate::hashing::mixed;
use crate::runs::LONG_POWERS;
use crate::sentences::Sentence;
use crate::tokens::{Token, end_of_thousands};

// Thai and Lao, which have no full stop. A line in them is prose if it has at least LONG_LINE_LETTERS letters.
const UNSTOPPED: std::ops::Range<u32> = 0x0e00..0x0f00;
const LONG_LINE_LETTERS: usize = 40;
// A long sentence has at least this many letters, more than "Posted 2026-11-22 07:30.".
const LONG_SENTENCE_LETTERS: usize = 30;

/// A passage, which describes one sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// A hash of the words and figures.
    pub hash: u64,
    /// The number of letters and digits.
    pub letters: usize,
    /// Whether the passage ends like a sentence of running text, and not like a headline, a menu item or a teaser; or
    /// is one of several rows that are treated as prose.
    pub is_prose: bool,
    /// Whether the passage has a number that is not part of a date or time, or is a row that is treated as prose
    /// and has any number; false for long sentences of prose.
    pub has_figures: bool,
}

impl Passage {
    /// Returns a passage for each sentence.
    ///
    /// The tokens of a sentence extend to the start of the next sentence, since combining marks between sentences are
    /// tokens too.
    pub fn of_all(points: &[Point], sentences: &[(&Sentence, &[Token])]) -> Vec<Passage> {
        let each = sentences.iter();
        let mut passages: Vec<Passage> = each.map(|(own, tokens)| Passage::of(points, own, tokens)).collect();
        let as_row = |(passage, (_, tokens)): (&Passage, &(&Sentence, &[Token]))| {
            if passage.is_long_prose() { None } else { row(points, tokens) }
        };
        // The value of a label may be on the next line.
        let mut rows: Vec<Option<Row>> = passages.iter().zip(sentences).map(as_row).collect();
        for at in 1..rows.len() {
            let [(own, label), (_, value)] = sentences[at - 1..=at] else { break };
            // A value may also continue after a full stop: `7. Dezember`.
            if rows[at - 1].is_some()
                && rows[at].is_none()
                && points[own.end].has(FULL_STOP)
                && are_few(points, value)
            {
                rows[at] = Some((hash(value, false), Content::Passing));
            }
            let is_line =
                rows[at - 1].is_none() && label.len() <= MOST_LABEL_TOKENS && points[own.end].is('\n');
            let is_label =
                || Ending::of(points, own.start, own.end).sign.is(':') || are_pairs(points, sentences, at);
            if is_line && rows[at].is_none() && !passages[at].is_prose && is_label() {
                rows[at - 1] = Some((hash(label, false), content(points, label, value)));
                rows[at] = Some((hash(value, false), Content::Passing));
            }
        }
        let mut start = 0;
        for run in rows.chunk_by(|one, next| one.is_some() == next.is_some()) {
            let stop = start + run.len();
            let is_long = |at: &usize| {
                passages.get(*at).is_some_and(|it| it.is_prose) && !are_few(points, sentences[*at].1)
            };
            let adjacent = || [start.wrapping_sub(1), stop].iter().filter(|at| is_long(at)).count();
            if run[0].is_some() && are_statements(run, adjacent()) {
                for (passage, (_, tokens)) in passages[start..stop].iter_mut().zip(&sentences[start..stop]) {
                    passage.is_prose = true;
                    passage.has_figures = tokens.iter().any(|token| token.is_number);
                    passage.hash = hash(tokens, false);
                }
            }
            start = stop;
        }
        passages
    }

    fn of(points: &[Point], sentence: &Sentence, tokens: &[Token]) -> Passage {
        let ending = Ending::of(points, sentence.start, sentence.end);
        let letters = sentence.letters;
        let is_prose =
            ending.is_prose || (UNSTOPPED.contains(&ending.sign.code()) && letters >= LONG_LINE_LETTERS);
        let mut passage = Passage { hash: 0, letters, is_prose, has_figures: false };
        // A long sentence may be about a date, so its numbers are hashed.
        let is_long = passage.is_long_prose();
        passage.has_figures = !is_long && numbers(points, tokens).iter().any(|each| !each.is_date);
        passage.hash = hash(tokens, !is_long && !passage.has_figures);
        passage
    }

    /// Returns whether the passage is a long sentence of running text, whose dates are part of its content.
    pub fn is_long_prose(&self) -> bool {
        self.is_prose && self.letters >= LONG_SENTENCE_LETTERS
    }
}

const MOST_LABEL_TOKENS: usize = 16;
// The maximum number of tokens per number in a value that consists mostly of numbers.
const NUMBER_SHARE: usize = 3;
// The minimum number of numbers in a line that must be a row of a table.
const MANY_NUMBERS: usize = 4;
// The minimum number of rows that are treated as prose.
const LEAST_ROWS: usize = 2;
// The maximum number of words in a term.
const MOST_WORDS: usize = 4;
const WIDE_PER_WORD: usize = 3; // characters per word in scripts without spaces
const DASHES: [char; 4] = ['-', '–', '—', '−'];

/// A line with a label and a value, such as `Interest rate: 0.25 %`; a tab, `|`, `=` or `....` may replace the
/// colon. A row is the hash of the label and the content of the value.
type Row = (u64, Content);

/// The kind of content of a label or value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    /// A counter, or a time such as the time of an update.
    Passing,
    Words,
    /// Few words, after a label of few words.
    Term,
    /// Mostly dates.
    Days,
    /// Mostly figures.
    Figures,
    /// So many figures that the line must be a row of a table, or several rows.
    Many,
}

/// Returns a sentence as a row; None if it is not a row. Headlines may contain a dash and menus a `|`; with these
/// separators, the label or the value must consist mostly of numbers.
fn row(points: &[Point], tokens: &[Token]) -> Option<Row> {
    let is_space = |at: usize| points[at].has(SPACE);
    let is_sign = |at: usize| match points[at].character() {
        ':' => {
            let (before, after) = (points[at - 1].role(), points[at + 1].role());
            is_space(at + 1) || after > JOINER && (before, after) != (NUMBER, NUMBER)
        }
        '\t' => true,
        '|' | '=' => is_space(at - 1) && is_space(at + 1),
        '.' => is_space(at - 1) && points[at + 1].is('.'),
        _ => false,
    };
    let is_dash =
        |at: usize| DASHES.contains(&points[at].character()) && is_space(at - 1) && is_space(at + 1);
    let last = tokens.get(MOST_LABEL_TOKENS).or(tokens.last())?.start as usize;
    let is_any = |&at: &usize| !points[at].has(ALNUM) && (is_sign(at) || is_dash(at));
    let at = (tokens[0].start as usize + 1..last).find(is_any)?;
    let (label, value) = tokens.split_at(tokens.partition_point(|token| (token.start as usize) < at));
    let found = content(points, label, value);
    let has_number = found.max(content(points, &[], label)) >= Content::Days;
    let found = if is_sign(at) { found } else { Content::Words };
    (is_sign(at) && !points[at].is('|') || has_number).then(|| (hash(label, false), found))
}

fn content(points: &[Point], label: &[Token], tokens: &[Token]) -> Content {
    let numbers = numbers(points, tokens);
    let has_figures = numbers.iter().any(|each| !each.is_date);
    let passes = |each: &Number| (each.is_bare && tokens.len() == 1) || (each.is_time && !has_figures);
    match numbers.len() * NUMBER_SHARE >= tokens.len() {
        _ if numbers.iter().any(passes) => Content::Passing,
        true if has_figures && numbers.len() >= MANY_NUMBERS => Content::Many,
        true if has_figures => Content::Figures,
        true => Content::Days,
        false if are_few(points, label) && are_few(points, tokens) => Content::Term,
        false => Content::Words,
    }
}

/// Returns whether the previous sentence is a label without a colon, and the sentence at `at` is its value. The next
/// two sentences, or the two before this pair, must be such a pair too.
fn are_pairs(points: &[Point], sentences: &[(&Sentence, &[Token])], at: usize) -> bool {
    let is_pair = |at: usize| {
        let [Some((own, label)), Some((_, value))] = [at.wrapping_sub(1), at].map(|at| sentences.get(at))
        else {
            return false;
        };
        are_few(points, label)
            && points[own.end].is('\n')
            && numbers(points, label).is_empty()
            && content(points, label, value) >= Content::Days
    };
    is_pair(at) && (is_pair(at + 2) || is_pair(at.wrapping_sub(2)))
}

/// Returns whether tokens are only a few words.
fn are_few(points: &[Point], tokens: &[Token]) -> bool {
    let is_wide = |token: &&Token| points[token.start as usize].role() == WIDE;
    let wide = tokens.iter().filter(is_wide).count();
    wide + (tokens.len() - wide) * WIDE_PER_WORD <= MOST_WORDS * WIDE_PER_WORD
}

/// Returns whether adjacent rows are treated as prose: because of their numbers; because they are between two
/// sentences of prose; or because at least three rows, some with terms or numbers, are next to such a sentence.
fn are_statements(rows: &[Option<Row>], adjacent_prose: usize) -> bool {
    let rows = || rows.iter().flatten();
    let count = |least: Content| rows().filter(|(_, content)| *content >= least).count();
    let are_labelled = || rows().zip(rows().skip(1)).all(|((label, _), (next, _))| label != next);
    let are_several = count(Content::Days) >= LEAST_ROWS || count(Content::Many) > 0;
    (are_several && count(Content::Figures) > 0)
        || (adjacent_prose == 2 && count(Content::Words) >= LEAST_ROWS && are_labelled())
        || (adjacent_prose == 1
            && rows().count() > LEAST_ROWS
            && count(Content::Term) >= LEAST_ROWS
            && rows().all(|(_, content)| *content != Content::Words)
            && are_labelled())
}

/// Returns a hash of tokens in order. If `are_numbers_equal`, all numbers have the same hash.
///
/// Anyone can construct other tokens with the same hash, so a collision must be harmless.
fn hash(tokens: &[Token], are_numbers_equal: bool) -> u64 {
    // A polynomial in `BASE`, with the first token as its constant term; several tokens are added at once.
    let own = |token: &Token| if are_numbers_equal && token.is_number { 1 } else { token.hash };
    let sum = tokens.rchunks(LONG_POWERS.len() - 1).fold(0u64, |sum, some| {
        let products = some.iter().zip(LONG_POWERS).map(|(token, power)| own(token).wrapping_mul(power));
        products.fold(sum.wrapping_mul(LONG_POWERS[some.len()]), u64::wrapping_add)
    });
    mixed(sum)
}

// The maximum number of characters of a number that are read; `22.11.2026` has ten.
const MOST_CHARACTERS: usize = 12;
const YEAR_DIGITS: usize = 4;
// The number of full stops in a date that is one number.
const DATE_POINTS: usize = 2;
// The length of a colon and two digits; a time has one or two such parts: `07:30:59`.
const TIME_LENGTH: usize = 3;
const MOST_TIME_PARTS: usize = 2;
const HOURS: [&str; 3] = ["am", "pm", "uhr"]; // words after an hour
const HOUR_LENGTH: usize = 5; // the longest form of an hour is `03.00`
const LAST_HOUR_TENS: u32 = 2;
const LAST_MINUTE_TENS: u32 = 5;
// Year, month, day, hour, minute and second, first in Chinese and Japanese, then in Korean.
const UNITS_OF_TIME: [char; 12] = ['年', '月', '日', '时', '分', '秒', '년', '월', '일', '시', '분', '초'];
const MOST_DAY_DIGITS: usize = 2; // in a day or month
// The maximum number of tokens from one part of a date to the next: at most a name or unit is between them.
const NEAR_TOKENS: usize = 2;
// The maximum number of parts in addition to the year or the time: `22 November 2026`, `11-22 07:30`.
const MOST_DAY_PARTS: usize = 2;

/// A number among the tokens of a passage.
pub struct Number {
    // The index among the tokens.
    place: usize,
    /// Whether the number is a date, a time or a counter.
    pub is_date: bool,
    is_time: bool,
    /// Whether the number may be a day or a month.
    pub is_short: bool,
    // Whether the number is an integer without a sign next to it, such as a currency sign.
    is_bare: bool,
}

/// Returns the numbers among the tokens of a passage.
fn numbers(points: &[Point], tokens: &[Token]) -> Vec<Number> {
    let numbers = tokens.iter().enumerate().filter(|(_, token)| token.is_number);
    let mut numbers: Vec<Number> =
        numbers.map(|(place, token)| number(points, token.start as usize, place)).collect();
    for _ in 0..MOST_DAY_PARTS {
        for at in 1..numbers.len() {
            if are_near(&numbers[at - 1], &numbers[at]) && numbers[at - 1].is_short && numbers[at].is_date {
                numbers[at - 1].is_date = true;
            }
        }
        // Go backwards, so that the loop extends a date by only one neighbour.
        for at in (1..numbers.len()).rev() {
            if are_near(&numbers[at - 1], &numbers[at]) && numbers[at].is_short && numbers[at - 1].is_date {
                numbers[at].is_date = true;
            }
        }
    }
    numbers
}

fn are_near(one: &Number, next: &Number) -> bool {
    next.place - one.place <= NEAR_TOKENS
}

/// Returns the number that begins at `start`.
pub fn number(points: &[Point], start: usize, place: usize) -> Number {
    let own = digits(points, start);
    let before = start.checked_sub(1).map(|at| points[at]);
    let after = &points[start + own.len()..];
    let is_plain = own.iter().all(|each| each.role() == NUMBER);
    let is_counter = is_plain && before.is_some_and(|each| each.is('(')) && after[0].is(')');
    let is_time = is_time(own, after);
    let is_date = is_counter
        || (is_plain && is_year(own))
        || is_time
        || own.iter().filter(|each| each.is('.')).count() == DATE_POINTS
        || UNITS_OF_TIME.contains(&after[0].character());
    let is_bare = is_plain
        && before.is_none_or(|each| each.has(SPACE | HARD_END) || each.is(':'))
        && after[0].has(SPACE | HARD_END);
    Number { place, is_date, is_time, is_short: is_plain && own.len() <= MOST_DAY_DIGITS, is_bare }
}

/// Returns the characters of a number, with the signs in it, up to `MOST_CHARACTERS`.
pub fn digits(points: &[Point], start: usize) -> &[Point] {
    let (signs, thousands) = (&points[start..], end_of_thousands(points, start));
    let is_part = |at: usize| match signs[at].role() {
        NUMBER => true,
        // A sign belongs to a number only between two digits.
        JOINER => signs[at + 1].role() == NUMBER,
        _ => start + at < thousands,
    };
    &signs[..(0..MOST_CHARACTERS).take_while(|&at| is_part(at)).count()]
}

fn is_year(digits: &[Point]) -> bool {
    digits.len() == YEAR_DIGITS && matches!(digit(digits[0]) * 10 + digit(digits[1]), 19 | 20)
}

/// Returns whether a number is a time of day, or an hour according to the next word: `3 pm`, `3.00 p.m.`, `15.30
/// Uhr`, `15时`.
pub fn is_time(number: &[Point], after: &[Point]) -> bool {
    let Some(colon) = number.iter().position(|each| each.is(':')) else {
        let is_blank = |each: &&Point| each.has(SPACE) && !each.has(HARD_END);
        let next = after.iter().skip_while(is_blank).filter(|each| !each.is('.'));
        let mut next = next.map(|each| each.character()).peekable();
        return number.len() <= HOUR_LENGTH
            && match next.peek() {
                Some('时' | '시') => true,
                // `8h15`
                Some('h') => after[0].is('h') && after[1].role() == NUMBER,
                Some('a' | 'p' | 'u') => {
                    let name = next.take_while(|each| each.is_alphanumeric());
                    HOURS.iter().any(|hour| name.clone().eq(hour.chars()))
                }
                _ => false,
            };
    };
    let rest = &number[colon..];
    let colons = rest.iter().filter(|each| each.is(':')).count();
    // `2:05:41` is a duration.
    (colon == 1 && colons == 1 || colon == 2 && digit(number[0]) <= LAST_HOUR_TENS)
        && colons <= MOST_TIME_PARTS
        && rest.len() == colons * TIME_LENGTH
        && digit(rest[1]) <= LAST_MINUTE_TENS
}

/// Returns the value of a digit; 0 for other characters.
fn digit(point: Point) -> u32 {
    tables().digit(point.code()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_form::normalise;
    use crate::tokens::{Tokenised, USUAL_HASH, tokenise};

    fn has_figures(text: &str) -> bool {
        let (mut points, mut tokenised) = (Vec::new(), Tokenised::default());
        normalise(text, usize::MAX, &mut points);
        tokenise(&points, &USUAL_HASH, &mut tokenised);
        numbers(&points, &tokenised.tokens).iter().any(|each| !each.is_date)
    }

    #[test]
    fn dates_times_and_counters_are_not_figures() {
        for text in [
            "posted 2026-11-22 07:30",
            "22 november 2026",
            "22.11.2026",
            "comments (23)",
            "2026年11月22日",
            "no number",
            "at 07:30:59",
        ] {
            assert!(!has_figures(text), "{text}");
        }
        for text in [
            "net 26.0 mln vs 24.1",
            "1,234 of 2026",
            "at 7:95",
            "won in 2:05:41",
            "(23",
            "3026",
            "1 2 3 2026",
        ] {
            assert!(has_figures(text), "{text}");
        }
    }
}
