//! Where the tokens of HTML begin and end (html.spec.whatwg.org, "Tokenization"), and which tags are cut out, and which
//! read as text: a comparison (`a<b and c>d`), a name, an address (`<me@example.com>`).
//!
//! Everything is found by ASCII signs, so places are those of bytes. The name of a tag is followed by nothing, by one
//! word, or by attributes, where the first or second has a value or a hyphen.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

/// A token of HTML.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    /// Where its `<` is.
    pub start: usize,
    // The end of its beginning: the name of a tag, or the signs before other content.
    head: usize,
    kind: Kind<'a>,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Comment,
    Opening(&'a str),
    Closing,
    // What browsers treat as a comment that ends at the first `>`.
    Other,
}

impl<'a> Token<'a> {
    /// Returns the first token of `text` from a place on.
    pub fn find(text: &'a str, from: usize) -> Option<Token<'a>> {
        memchr_iter(b'<', &text.as_bytes()[from..]).find_map(|at| Token::at(text, from + at))
    }

    fn at(text: &'a str, start: usize) -> Option<Token<'a>> {
        let bytes = text.as_bytes();
        let found = |head, kind| Some(Token { start, head, kind });
        let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        match bytes.get(start + 1)? {
            b'!' if bytes[start..].starts_with(b"<!--") => found(start + 4, Kind::Comment),
            b'!' | b'?' => found(start + 2, Kind::Other),
            b'/' if !is_letter(start + 2) => found(start + 2, Kind::Other),
            b'/' => found(end_of_name(bytes, start + 2), Kind::Closing),
            _ if is_letter(start + 1) => {
                let head = end_of_name(bytes, start + 1);
                found(head, Kind::Opening(&text[start + 1..head]))
            }
            _ => None,
        }
    }

    /// Whether it is a comment.
    pub fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::Comment)
    }

    /// The name of the element that it opens, in small letters; empty for everything else.
    pub fn opened(&self) -> String {
        if let Kind::Opening(name) = self.kind { name.to_ascii_lowercase() } else { String::new() }
    }

    /// Returns where it ends, if it does.
    pub fn end(&self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        match self.kind {
            Kind::Comment => end_of_comment(bytes, self.head),
            Kind::Opening(_) | Kind::Closing => end_of_tag(bytes, self.head),
            Kind::Other => memchr(b'>', &bytes[self.head..]).map(|at| self.head + at + 1),
        }
    }
}

/// Returns where the closing tag of an element begins, and where the name in it ends.
pub fn find_closing(text: &str, name: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    memchr_iter(b'<', &bytes[from..]).map(|at| from + at).find_map(|start| {
        let end = start + 2 + name.len();
        let is_closing = bytes.get(start + 1) == Some(&b'/')
            && bytes.get(start + 2..end).is_some_and(|each| each.eq_ignore_ascii_case(name.as_bytes()))
            && bytes.get(end).is_some_and(|&each| is_gap(each) || each == b'>');
        is_closing.then_some((start, end))
    })
}

/// Returns where a tag ends: after the first `>` outside quoted values. `at` is the end of its name.
pub fn end_of_tag(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = skip(bytes, at, is_gap);
        match bytes.get(at)? {
            b'>' => return Some(at + 1),
            // Here it begins a name.
            b'=' => at += 1,
            _ => {}
        }
        at = skip(bytes, at, |each| !is_gap(each) && !matches!(each, b'>' | b'='));
        at = end_of_value(bytes, at).unwrap_or(at);
    }
}

/// Returns where the value ends that may follow the name of an attribute.
fn end_of_value(bytes: &[u8], mut at: usize) -> Option<usize> {
    at = skip(bytes, at, is_space);
    if bytes.get(at) != Some(&b'=') {
        return None;
    }
    at += 1;
    at = skip(bytes, at, is_space);
    match bytes.get(at)? {
        &quote @ (b'"' | b'\'') => memchr(quote, &bytes[at + 1..]).map(|length| at + 1 + length + 1),
        _ => Some(skip(bytes, at, |each| !is_space(each) && each != b'>')),
    }
}

fn end_of_comment(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = &bytes[from..];
    if rest.starts_with(b">") {
        return Some(from + 1);
    }
    if rest.starts_with(b"->") {
        return Some(from + 2);
    }
    memchr_iter(b'>', rest)
        .find(|&at| rest[..at].ends_with(b"--") || rest[..at].ends_with(b"--!"))
        .map(|at| from + at + 1)
}

fn end_of_name(bytes: &[u8], from: usize) -> usize {
    skip(bytes, from, |each| !is_gap(each) && each != b'>')
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

const fn is_gap(byte: u8) -> bool {
    is_space(byte) || byte == b'/'
}

/// Returns the place after those bytes from a place on that are skipped.
fn skip(bytes: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|&&each| is_skipped(each)).count()
}

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
    let word = skip(text, name_end, is_white);
    let word_end = skip(text, word, is_word);
    let has_word = word > name_end && word_end > word;
    let end = tail(name_end).or_else(|| tail(word_end).filter(|_| has_word))?;
    let name = std::str::from_utf8(&text[start..name_end]).unwrap_or("");
    let is_block = BLOCKS.iter().any(|each| each.eq_ignore_ascii_case(name));
    Some((if is_block { "\n" } else { "" }, end))
}

/// Returns where a tag ends that has no attributes from here on.
fn end_without_values(text: &[u8], from: usize) -> Option<usize> {
    let mut at = skip(text, from, is_white);
    if text.get(at) == Some(&b'/') {
        at = skip(text, at + 1, is_white);
    }
    (text.get(at) == Some(&b'>')).then_some(at + 1)
}

/// Returns where the values of a tag begin whose next attribute has one, or a hyphen.
fn start_of_values(text: &[u8], from: usize) -> Option<usize> {
    let name = skip(text, from, is_white);
    let end = skip(text, name, |each| is_word(each) || matches!(each, b':' | b'.' | b'@'));
    if name == from || end == name {
        return None;
    }
    if text.get(end) == Some(&b'-') {
        return Some(end + 1);
    }
    let sign = skip(text, end, is_white);
    (text.get(sign) == Some(&b'=')).then_some(sign + 1)
}

// With the vertical tab, which is no white space of HTML.
const fn is_white(byte: u8) -> bool {
    is_space(byte) || byte == 0x0b
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
