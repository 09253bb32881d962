//! Which tags are cut out, and which read as text: a comparison (`a<b and c>d`), a name, an address
//! (`<me@example.com>`).
//!
//! The name of a tag is followed by nothing, by one word, or by attributes, where the first or second has a value or a
//! hyphen.

use std::borrow::Cow;

use memchr::{memchr_iter, memchr2};

const BLOCKS: [&str; 20] = [
    "p",
    "div",
    "br",
    "hr",
    "li",
    "ul",
    "ol",
    "dd",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "tr",
    "table",
    "blockquote",
    "section",
    "article",
];

// What stands for a tag, and the number of bytes that it has.
type Tag = (&'static str, usize);

/// Returns what stands for a token: nothing, a line break, or the token itself if it reads as text.
pub fn shown_of_tag(token: &str) -> Cow<'_, str> {
    match match_tag(token.as_bytes(), &|_| Some(token.len())) {
        Some((shown, length)) if length == token.len() => Cow::Borrowed(shown),
        _ => without_simple_tags(token),
    }
}

/// Returns a text without the tags whose attributes have no `<` nor `>`.
pub fn without_simple_tags(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let end_of_values = |from: usize| {
        let at = from + memchr2(b'<', b'>', &bytes[from..])?;
        (bytes[at] == b'>').then_some(at + 1)
    };
    let mut shown = String::new();
    let mut done = 0;
    for start in memchr_iter(b'<', bytes) {
        // A tag has no `<` but its first character.
        let end_of_values = |from: usize| end_of_values(start + from).map(|end| end - start);
        if let Some((replacement, length)) = match_tag(&bytes[start..], &end_of_values) {
            shown.push_str(&text[done..start]);
            shown.push_str(replacement);
            done = start + length;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[done..]);
    Cow::Owned(shown)
}

/// Matches a tag at the beginning of `text`. `end_of_values` returns where it ends, given where its values begin.
fn match_tag(text: &[u8], end_of_values: &dyn Fn(usize) -> Option<usize>) -> Option<Tag> {
    let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphabetic);
    match text.get(1)? {
        b'?' => return Some(("", end_of_values(2)?)),
        b'!' if is_letter(2) => return Some(("", end_of_values(3)?)),
        _ => {}
    }
    let start = if text[1] == b'/' { 2 } else { 1 };
    if !is_letter(start) {
        return None;
    }
    let name_end = skip(text, start, |each| is_word(each) || matches!(each, b':' | b'.' | b'-'));
    let tail =
        |from: usize| end_without_values(text, from).or_else(|| end_of_values(start_of_values(text, from)?));
    // One word may stand between the name and the rest.
    let word = skip(text, name_end, is_space);
    let word_end = skip(text, word, is_word);
    let has_word = word > name_end && word_end > word;
    let end = tail(name_end).or_else(|| tail(word_end).filter(|_| has_word))?;
    let name = std::str::from_utf8(&text[start..name_end]).unwrap_or("");
    let is_block = BLOCKS.iter().any(|each| each.eq_ignore_ascii_case(name));
    Some((if is_block { "\n" } else { "" }, end))
}

/// Returns where a tag ends that has no attributes from here on.
fn end_without_values(text: &[u8], from: usize) -> Option<usize> {
    let mut at = skip(text, from, is_space);
    if text.get(at) == Some(&b'/') {
        at = skip(text, at + 1, is_space);
    }
    (text.get(at) == Some(&b'>')).then_some(at + 1)
}

/// Returns where the values of a tag begin whose next attribute has one, or a hyphen.
fn start_of_values(text: &[u8], from: usize) -> Option<usize> {
    let name = skip(text, from, is_space);
    let end = skip(text, name, |each| is_word(each) || matches!(each, b':' | b'.' | b'@'));
    if name == from || end == name {
        return None;
    }
    if text.get(end) == Some(&b'-') {
        return Some(end + 1);
    }
    let sign = skip(text, end, is_space);
    (text.get(sign) == Some(&b'=')).then_some(sign + 1)
}

fn skip(text: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    from + text[from..].iter().take_while(|&&each| is_skipped(each)).count()
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
