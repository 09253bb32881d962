//! Character references of HTML, such as `&amp;` and `&#20013;`.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr;

use crate::characters::is_override;

const DATA: &str = include_str!("../data/references.txt");
const LONGEST_NAME: usize = 32;
// The length of the longest name that needs no semicolon; text may follow such a name directly.
const LONGEST_OPEN_NAME: usize = 6;
const REPLACEMENT: char = '\u{fffd}';
// The characters for the numbers 0x80 to 0x9f, which browsers read as Windows-1252.
const WINDOWS: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}',
    '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}',
    '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}',
    '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

/// Replaces the character references of a text, and drops references to characters that override its direction.
pub fn unescaped(mut text: &str) -> Cow<'_, str> {
    let mut decoded = String::new();
    while let Some(length) = memchr(b'&', text.as_bytes()) {
        decoded.push_str(&text[..length]);
        text = &text[length + unescape(&text[length..], &mut decoded)..];
    }
    if decoded.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(decoded + text) }
}

/// Appends the characters of the reference at the beginning of `text`, or `&` if it is not a reference; returns the
/// number of bytes read.
fn unescape(text: &str, shown: &mut String) -> usize {
    let rest = &text[1..];
    let read = match rest.strip_prefix('#') {
        Some(number) => unescape_number(number, shown).map(|read| 1 + read),
        None => unescape_name(rest, shown),
    };
    if read.is_none() {
        shown.push('&');
    }
    1 + read.unwrap_or(0)
}

fn unescape_number(text: &str, shown: &mut String) -> Option<usize> {
    let (prefix, radix) = if text.starts_with(['x', 'X']) { (1, 16) } else { (0, 10) };
    let digits = text[prefix..].bytes().take_while(|each| (*each as char).is_digit(radix)).count();
    let end = prefix + digits;
    // A number with too many digits is treated as the largest number.
    let number = u32::from_str_radix(&text[prefix..end], radix).unwrap_or(u32::MAX);
    if digits == 0 {
        return None;
    }
    let character = match number {
        0 => REPLACEMENT,
        // A carriage return followed by a line feed would become a single line break.
        13 => '\n',
        0x80..=0x9f => WINDOWS[number as usize - 0x80],
        _ => char::from_u32(number).unwrap_or(REPLACEMENT),
    };
    shown.extend(Some(character).filter(|&each| !is_override(each)));
    Some(end + usize::from(text[end..].starts_with(';')))
}

fn unescape_name(text: &str, shown: &mut String) -> Option<usize> {
    let is_part =
        |each: &(usize, char)| !matches!(each.1, '\t' | '\n' | '\x0c' | ' ' | '<' | '&' | '#' | ';');
    let (at, last) = text.char_indices().take(LONGEST_NAME).take_while(is_part).last()?;
    let length = at + last.len_utf8();
    let end = length + usize::from(text[length..].starts_with(';'));
    if let Some(value) = named(&text[..end]) {
        shown.push_str(value);
        return Some(end);
    }
    // `&ampx` begins with a name that needs no semicolon; such names are ASCII.
    let most = LONGEST_OPEN_NAME.min(end - 1);
    for read in (2..=most).rev().filter(|&read| text.is_char_boundary(read)) {
        if let Some(value) = named(&text[..read]) {
            shown.push_str(value);
            return Some(read);
        }
    }
    None
}

fn named(name: &str) -> Option<&'static str> {
    static NAMES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| DATA.lines().map(entry).collect());
    let at = NAMES.binary_search_by_key(&name, |each| each.0).ok()?;
    Some(&NAMES[at].1)
}

fn entry(line: &'static str) -> (&'static str, String) {
    let (name, codes) = line.split_once(' ').unwrap_or((line, ""));
    let characters = codes.split(' ').filter_map(|each| char::from_u32(u32::from_str_radix(each, 16).ok()?));
    (name, characters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_decoded_as_in_browsers() {
        for (text, expected) in [
            ("&amp;x", "&"),
            ("&ampx", "&"),
            ("&notin;", "∉"),
            ("&notit;", "¬"),
            ("&#20013;", "中"),
            ("&#x4E2d x", "中"),
            ("&#150;", "–"),
            ("&#xd800;", "\u{fffd}"),
            ("&#xfffffffffffffffff;", "\u{fffd}"),
            ("&#123456789;", "\u{fffd}"),
            ("&#1;", "\u{1}"),
            ("&x", "&"),
            ("&#;", "&"),
            ("&", "&"),
            ("&NotEqualTilde;", "≂\u{338}"),
        ] {
            let mut shown = String::new();
            unescape(text, &mut shown);
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn names_are_sorted_and_names_without_semicolon_are_short() {
        let names: Vec<&str> = DATA.lines().map(|line| entry(line).0).collect();
        assert!(names.is_sorted());
        assert!(names.iter().all(|each| each.ends_with(';') || each.len() <= LONGEST_OPEN_NAME));
    }
}
