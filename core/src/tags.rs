//! Finds tags and comments of HTML (html.spec.whatwg.org, "Tokenization"), and distinguishes them from text that
//! looks like markup, such as a comparison (`a<b and c>d`) or an address (`<me@example.com>`). Positions are in
//! bytes.

use memchr::{memchr, memchr_iter, memchr2_iter};

use crate::elements::{Element, Tag};
use crate::references::unescaped;

/// A token that begins with `<`.
pub enum Token {
    /// A tag that opens an element.
    Opening(Tag),
    /// A tag that closes an element.
    Closing(Tag),
    /// A comment, or text that browsers treat as a comment.
    Comment,
    /// A `<` that is plain text.
    Text,
}

impl Token {
    /// Returns the token at the start of `text`, and its length; None if the token does not end.
    pub fn of(text: &str) -> Option<(Token, usize)> {
        let bytes = text.as_bytes();
        match bytes[1..] {
            [b'!', b'-', b'-', ..] => Some((Token::Comment, end_of_comment(bytes)?)),
            [letter, ..] if letter.is_ascii_alphabetic() => {
                tag(text, 1).map(|(tag, end)| (Token::Opening(tag), end))
            }
            [b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                tag(text, 2).map(|(tag, end)| (Token::Closing(tag), end))
            }
            [b'!' | b'?' | b'/', ..] => Some((Token::Comment, 2 + memchr(b'>', &bytes[2..])? + 1)),
            _ => Some((Token::Text, 1)),
        }
    }
}

fn tag(text: &str, start: usize) -> Option<(Tag, usize)> {
    let (mut hides, mut is_open, mut style) = (false, false, None);
    let name_end = end_of_name(text.as_bytes(), start);
    let end = end_of_tag(text, name_end, |name, value| match name.len() {
        4 => is_open |= name.eq_ignore_ascii_case("open"),
        5 if name.eq_ignore_ascii_case("style") => style = style.or_else(|| Some(hiding(value))),
        6 | 7 => hides |= name.eq_ignore_ascii_case("hidden") || name.eq_ignore_ascii_case("popover"),
        _ => {}
    })?;
    let element = Element::of(&text[start..name_end]);
    let (display_hides, is_invisible) = style.unwrap_or_default();
    let hides = is_invisible || display_hides.unwrap_or(hides || (element.name == "dialog" && !is_open));
    Some((Tag { element, hides, is_closed: text[..end].ends_with("/>") }, end))
}

/// Returns whether the last `display` of a style hides the element, or None if there is no `display`; and whether
/// `visibility` hides the element.
fn hiding(style: &str) -> (Option<bool>, bool) {
    let style = format!("*/{}", unescaped(style)).to_ascii_lowercase();
    let without_comments = style.split("/*").filter_map(|each| each.split_once("*/"));
    let mut style: String = without_comments.map(|each| each.1).collect();
    style.retain(|each| !each.is_ascii_whitespace());
    let last = |property| style.rsplit(';').find_map(|each| each.strip_prefix(property));
    let value = |property| last(property).map(|each| each.trim_end_matches("!important"));
    let is_invisible = matches!(value("visibility:"), Some("hidden" | "collapse"));
    (value("display:").map(|each| each == "none"), is_invisible)
}

/// Returns the start and end of the tag that closes an element whose content is not markup, such as a script.
pub fn end_of_content(text: &str, name: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_name = |rest: &[u8]| {
        rest.len() > name.len()
            && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
            && (is_gap(rest[name.len()]) || rest[name.len()] == b'>')
    };
    // Inside a comment in a script, another script may be nested.
    let (mut in_comment, mut is_nested) = (false, false);
    for at in memchr2_iter(b'<', b'>', bytes) {
        let rest = &bytes[at + 1..];
        if bytes[at] == b'>' {
            let still = !bytes[..at].ends_with(b"--");
            (in_comment, is_nested) = (in_comment && still, is_nested && still);
        } else if rest.first() == Some(&b'/') && is_name(&rest[1..]) {
            if !is_nested {
                return Some((at, end_of_tag(text, at + 2 + name.len(), |_, _| ())?));
            }
            is_nested = false;
        } else if name == "script" {
            in_comment |= rest.starts_with(b"!--");
            is_nested |= in_comment && is_name(rest);
        }
    }
    None
}

/// Returns the end of a tag, which is after the first `>` outside quoted values. `at` is the end of the tag's name;
/// `attribute` is called with the name and value of each attribute.
fn end_of_tag(text: &str, mut at: usize, mut attribute: impl FnMut(&str, &str)) -> Option<usize> {
    let bytes = text.as_bytes();
    loop {
        let start = skip(bytes, at, is_gap);
        match bytes.get(start)? {
            b'>' => return Some(start + 1),
            // At the start of an attribute's name, `=` belongs to the name.
            b'=' => at = start + 1,
            _ => at = start,
        }
        at = skip(bytes, at, |each| !is_gap(each) && !matches!(each, b'>' | b'='));
        let (value, end) = value(bytes, at).unwrap_or((at..at, at));
        attribute(&text[start..at], &text[value]);
        at = end;
    }
}

/// Returns the range of the value after an attribute's name, and the attribute's end; None if there is no value.
fn value(bytes: &[u8], at: usize) -> Option<(std::ops::Range<usize>, usize)> {
    let sign = skip(bytes, at, is_space);
    if bytes.get(sign) != Some(&b'=') {
        return None;
    }
    let start = skip(bytes, sign + 1, is_space);
    if let &quote @ (b'"' | b'\'') = bytes.get(start)? {
        let end = start + 1 + memchr(quote, &bytes[start + 1..])?;
        return Some((start + 1..end, end + 1));
    }
    let end = skip(bytes, start, |each| !is_space(each) && each != b'>');
    Some((start..end, end))
}

fn end_of_comment(bytes: &[u8]) -> Option<usize> {
    let is_end = |at| matches!(bytes[4..at], [] | [b'-'] | [.., b'-', b'-'] | [.., b'-', b'-', b'!']);
    let mut ends = memchr_iter(b'>', &bytes[4..]).map(|at| at + 4);
    Some(ends.find(|&at| is_end(at))? + 1)
}

/// Returns whether a token is certainly markup. A tag is certainly markup if its name is followed by nothing or
/// by an attribute with a value.
pub fn is_plainly_markup(token: &str) -> bool {
    let bytes = token.as_bytes();
    let start = 1 + usize::from(bytes[1] == b'/');
    let name_end = skip(bytes, start, |each| each.is_ascii_alphanumeric() || b"_:.-".contains(&each));
    let attribute = skip(bytes, name_end, is_space);
    let end = skip(bytes, attribute, |each| each.is_ascii_alphanumeric() || b"_:.@-".contains(&each));
    match bytes[1] {
        b'?' => true,
        b'!' => bytes[2].is_ascii_alphabetic() || matches!(bytes[2], b'-' | b'['),
        _ if bytes[attribute] == b'/' => bytes[skip(bytes, attribute + 1, is_space)] == b'>',
        _ if bytes[attribute] == b'>' => name_end > start,
        _ if name_end == start || attribute == name_end || end == attribute => false,
        _ => bytes[skip(bytes, end, is_space)] == b'=',
    }
}

/// Returns the end of the name that begins at `from`.
pub fn end_of_name(bytes: &[u8], from: usize) -> usize {
    skip(bytes, from, |each| !is_gap(each) && each != b'>')
}

/// Returns whether a byte is white space in HTML.
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

const fn is_gap(byte: u8) -> bool {
    is_space(byte) || byte == b'/'
}

/// Returns the position of the first byte, from `from` on, that is not skipped.
fn skip(bytes: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|&&each| is_skipped(each)).count()
}
