//! Where the tokens of HTML begin and end (html.spec.whatwg.org, "Tokenization").
//!
//! Everything is found by ASCII signs, so places are those of bytes.

use memchr::{memchr, memchr_iter};

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
        at += count(&bytes[at..], is_gap);
        match bytes.get(at)? {
            b'>' => return Some(at + 1),
            // Here it begins a name.
            b'=' => at += 1,
            _ => {}
        }
        at += count(&bytes[at..], |each| !is_gap(each) && !matches!(each, b'>' | b'='));
        at = end_of_value(bytes, at).unwrap_or(at);
    }
}

/// Returns where the value ends that may follow the name of an attribute.
fn end_of_value(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += count(&bytes[at..], is_space);
    if bytes.get(at) != Some(&b'=') {
        return None;
    }
    at += 1;
    at += count(&bytes[at..], is_space);
    match bytes.get(at)? {
        &quote @ (b'"' | b'\'') => memchr(quote, &bytes[at + 1..]).map(|length| at + 1 + length + 1),
        _ => Some(at + count(&bytes[at..], |each| !is_space(each) && each != b'>')),
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
    from + count(&bytes[from..], |each| !is_gap(each) && each != b'>')
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

const fn is_gap(byte: u8) -> bool {
    is_space(byte) || byte == b'/'
}

fn count(bytes: &[u8], is_counted: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&each| is_counted(each)).count()
}
