//! The passages of a text: its sentences, as they are compared with those of other texts.
//!
//! Sites put the same passages around every article. To be found again, a passage is compared by its words alone.
//! Dates, times and counters (`Posted 2026-11-22 07:30`, `Comments (23)`) count as equal, since they change from page
//! to page, except in long sentences. All other numbers are figures: `Net 26.0 mln vs 24.1 mln`.
//!
//! Several rows of a label and a value state something, and count as prose; but not counters, times of updates, or
//! headlines, few of which consist mostly of numbers.

use crate::characters::{ALNUM, FULL_STOP, HARD_END, JOINER, NUMBER, Point, SPACE, WIDE, tables};
use crate::endings::Ending;
use crate::hashing::mixed;
use crate::runs::LONG_POWERS;
use crate::sentences::Sentence;
use crate::tokens::{Token, end_of_thousands};

// Thai and Lao have no full stop: a line of theirs is prose from this many letters on.
const UNSTOPPED: std::ops::Range<u32> = 0x0e00..0x0f00;
const LONG_LINE_LETTERS: usize = 40;
// "Posted 2026-11-22 07:30." has fewer.
const LONG_SENTENCE_LETTERS: usize = 30;

/// A sentence as a passage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Equal for passages with the same words and figures.
    pub hash: u64,
    /// The number of letters and digits.
    pub letters: usize,
    /// Whether it ends as sentences of running text do, and not as a headline, a menu item, or a teaser; or is one of
    /// several rows that state something.
    pub is_prose: bool,
    /// Whether it has a number other than in a date or time, or is a row with any; false for long sentences of prose.
    pub has_figures: bool,
}

impl Passage {
    /// Makes passages of sentences.
    ///
    /// The tokens are those from the beginning of a sentence on up to the next one: combining marks alone are tokens,
    /// but no sentence.
    pub fn of_all(points: &[Point], sentences: &[(&Sentence, &[Token])]) -> Vec<Passage> {
        let each = sentences.iter();
        let mut passages: Vec<Passage> = each.map(|(own, tokens)| Passage::of(points, own, tokens)).collect();
        let as_row = |(passage, (_, tokens)): (&Passage, &(&Sentence, &[Token]))| {
            if passage.is_long_prose() { None } else { row(points, tokens) }
        };
        // The value of a label may be the next line.
        let mut rows: Vec<Option<Row>> = passages.iter().zip(sentences).map(as_row).collect();
        for at in 1..rows.len() {
            let [(own, label), (_, value)] = sentences[at - 1..=at] else { break };
            // Or a value continues after a full stop: `7. Dezember`.
            if rows[at - 1].is_some()
                && rows[at].is_none()
                && points[own.end].has(FULL_STOP)
                && are_few(points, value)
            {
                rows[at] = Some((hash(value, false), Says::Passing));
            }
            let is_line =
                rows[at - 1].is_none() && label.len() <= MOST_LABEL_TOKENS && points[own.end].is('\n');
            let is_label =
                || Ending::of(points, own.start, own.end).sign.is(':') || are_pairs(points, sentences, at);
            if is_line && rows[at].is_none() && !passages[at].is_prose && is_label() {
                rows[at - 1] = Some((hash(label, false), says(points, label, value)));
                rows[at] = Some((hash(value, false), Says::Passing));
            }
        }
        let mut start = 0;
        for run in rows.chunk_by(|one, next| one.is_some() == next.is_some()) {
            let stop = start + run.len();
            let is_long = |at: &usize| {
                passages.get(*at).is_some_and(|it| it.is_prose) && !are_few(points, sentences[*at].1)
            };
            let beside = || [start.wrapping_sub(1), stop].iter().filter(|at| is_long(at)).count();
            if run[0].is_some() && are_statements(run, beside()) {
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
        // A date may be what a long sentence is about.
        let is_long = passage.is_long_prose();
        passage.has_figures = !is_long && numbers(points, tokens).iter().any(|each| !each.is_date);
        passage.hash = hash(tokens, !is_long && !passage.has_figures);
        passage
    }

    /// Whether it is a sentence of running text that may say a date.
    pub fn is_long_prose(&self) -> bool {
        self.is_prose && self.letters >= LONG_SENTENCE_LETTERS
    }
}

// The most tokens of a label; and the most tokens for each number in a label or value that mostly has figures.
const MOST_LABEL_TOKENS: usize = 16;
const NUMBER_SHARE: usize = 3;
const MANY_NUMBERS: usize = 4;
const LEAST_ROWS: usize = 2;
// The most words of a term, and how many characters of scripts without spaces count as a word.
const MOST_WORDS: usize = 4;
const WIDE_A_WORD: usize = 3;
const DASHES: [char; 4] = ['-', '–', '—', '−'];

/// A line of a label and a value, such as `Interest rate: 0.25 %`, with a tab, `|`, `=` or `....` as good as the colon:
/// the hash of the label, and what the value says.
type Row = (u64, Says);

/// What a label or a value says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    /// A counter, or a time such as the time of an update.
    Passing,
    Words,
    /// Few words, after a label of few.
    Term,
    /// Days, mostly.
    Days,
    /// Figures, mostly.
    Figures,
    /// As many figures as only a row of a table has, or several rows in a line.
    Many,
}

/// Returns the row that a sentence is, if it is one. Headlines may have a dash and menus `|`, so where these
/// separate them, the label or the value must consist mostly of numbers.
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
    let said = says(points, label, value);
    let has_number = said.max(says(points, &[], label)) >= Says::Days;
    let said = if is_sign(at) { said } else { Says::Words };
    (is_sign(at) && !points[at].is('|') || has_number).then(|| (hash(label, false), said))
}

fn says(points: &[Point], label: &[Token], tokens: &[Token]) -> Says {
    let numbers = numbers(points, tokens);
    let has_figures = numbers.iter().any(|each| !each.is_date);
    let passes = |each: &Number| (each.is_bare && tokens.len() == 1) || (each.is_time && !has_figures);
    match numbers.len() * NUMBER_SHARE >= tokens.len() {
        _ if numbers.iter().any(passes) => Says::Passing,
        true if has_figures && numbers.len() >= MANY_NUMBERS => Says::Many,
        true if has_figures => Says::Figures,
        true => Says::Days,
        false if are_few(points, label) && are_few(points, tokens) => Says::Term,
        false => Says::Words,
    }
}

/// Whether a sentence is the value of the one before, a label without a colon. The next two sentences, or the two
/// before these, must be such a pair too.
fn are_pairs(points: &[Point], sentences: &[(&Sentence, &[Token])], at: usize) -> bool {
    let is_pair = |at: usize| {
        let [Some((own, label)), Some((_, value))] = [at.wrapping_sub(1), at].map(|at| sentences.get(at))
        else {
            return false;
        };
        are_few(points, label)
            && points[own.end].is('\n')
            && numbers(points, label).is_empty()
            && says(points, label, value) >= Says::Days
    };
    is_pair(at) && (is_pair(at + 2) || is_pair(at.wrapping_sub(2)))
}

/// Whether tokens are a few words.
fn are_few(points: &[Point], tokens: &[Token]) -> bool {
    let is_wide = |token: &&Token| points[token.start as usize].role() == WIDE;
    let wide = tokens.iter().filter(is_wide).count();
    wide + (tokens.len() - wide) * WIDE_A_WORD <= MOST_WORDS * WIDE_A_WORD
}

/// Whether adjacent rows state something: by numbers; or between two sentences of prose; or beside one sentence, if
/// there are three and some have terms.
fn are_statements(rows: &[Option<Row>], prose_beside: usize) -> bool {
    let rows = || rows.iter().flatten();
    let count = |least: Says| rows().filter(|(_, says)| *says >= least).count();
    let are_labelled = || rows().zip(rows().skip(1)).all(|((label, _), (next, _))| label != next);
    let are_several = count(Says::Days) >= LEAST_ROWS || count(Says::Many) > 0;
    (are_several && count(Says::Figures) > 0)
        || (prose_beside == 2 && count(Says::Words) >= LEAST_ROWS && are_labelled())
        || (prose_beside == 1
            && rows().count() > LEAST_ROWS
            && count(Says::Term) >= LEAST_ROWS
            && rows().all(|(_, says)| *says != Says::Words)
            && are_labelled())
}

/// Returns a hash of some tokens in their order.
///
/// Tokens that have a given hash can be calculated, so it must not matter who finds some.
fn hash(tokens: &[Token], numbers_alike: bool) -> u64 {
    // By Horner's rule from the last, some at once: the first token counts once, the second times the base, and so on.
    let own = |token: &Token| if numbers_alike && token.is_number { 1 } else { token.hash };
    let sum = tokens.rchunks(LONG_POWERS.len() - 1).fold(0u64, |sum, some| {
        let products = some.iter().zip(LONG_POWERS).map(|(token, power)| own(token).wrapping_mul(power));
        products.fold(sum.wrapping_mul(LONG_POWERS[some.len()]), u64::wrapping_add)
    });
    mixed(sum)
}

// `22.11.2026` has ten; of a longer number only the beginning is read.
const MOST_CHARACTERS: usize = 12;
const YEAR_DIGITS: usize = 4;
// A date in one number has this many points.
const DATE_POINTS: usize = 2;
// The characters of a colon and its two digits, and the most of these: `07:30:59`.
const TIME_LENGTH: usize = 3;
const MOST_TIME_PARTS: usize = 2;
// What follows the number of an hour, which is `03.00` or shorter.
const HOURS: [&str; 3] = ["am", "pm", "uhr"];
const HOUR_LENGTH: usize = 5;
const LAST_HOUR_TENS: u32 = 2;
const LAST_MINUTE_TENS: u32 = 5;
// Year, month, day, hour, minute and second: in Chinese and Japanese, and in Korean.
const UNITS_OF_TIME: [char; 12] = ['年', '月', '日', '时', '分', '秒', '년', '월', '일', '시', '분', '초'];
// The most digits of a day or month; the most tokens from one part of a date to the next, which a name or a unit may
// part; and the most parts beside the year or the time: `22 November 2026`, `11-22 07:30`.
const MOST_DAY_DIGITS: usize = 2;
const NEAR_TOKENS: usize = 2;
const MOST_DAY_PARTS: usize = 2;

/// A number among the tokens of a passage.
pub struct Number {
    // Its place among the tokens.
    place: usize,
    /// Whether it is a date, a time or a counter.
    pub is_date: bool,
    is_time: bool,
    /// Whether it may be a day or a month.
    pub is_short: bool,
    // Whether it is whole and has no sign, such as a currency sign.
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
        // From the last, so that a date extends by one neighbour a pass.
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

/// Describes the number that begins at `start`.
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

/// Returns a number with the signs in it, as far as it is read.
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

/// Whether a number is a time of day, or an hour by what follows it: `3 pm`, `3.00 p.m.`, `15.30 Uhr`, `15时`.
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
    // `2:05:41` is how long something took.
    (colon == 1 && colons == 1 || colon == 2 && digit(number[0]) <= LAST_HOUR_TENS)
        && colons <= MOST_TIME_PARTS
        && rest.len() == colons * TIME_LENGTH
        && digit(rest[1]) <= LAST_MINUTE_TENS
}

/// Returns the value of a digit, 0 for other characters.
fn digit(point: Point) -> u32 {
    tables().digit(point.code()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_form::normalise;
    use crate::tokens::{Cut, USUAL_HASH, tokenise};

    fn has_figures(text: &str) -> bool {
        let (mut points, mut cut) = (Vec::new(), Cut::default());
        normalise(text, usize::MAX, &mut points);
        tokenise(&points, &USUAL_HASH, &mut cut);
        numbers(&points, &cut.tokens).iter().any(|each| !each.is_date)
    }

    #[test]
    fn dates_times_and_counters_are_no_figures() {
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
