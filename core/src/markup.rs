//! Removes markup and hidden text from a raw text, and returns the text that readers see.
//!
//! No text that a browser would show may be lost: otherwise an advertisement around a copied article could be
//! taken for that article. So tags end where they end in a browser. Hidden text is removed, unless it is most of the
//! prose. A text without block-level tags is treated as plain text: line breaks, and text that only looks like a tag,
//! are kept.

use std::borrow::Cow;

use memchr::{memchr, memchr3};

use crate::characters::is_override;
use crate::elements::{BLOCK, CELL, Element, Elements, HIDDEN, RAW, Tag};
use crate::references::unescaped;
use crate::tags::{Token, end_of_content, end_of_name, is_plainly_markup, is_space};

const COMMENT: &str = "<!--";
const CDATA: &str = "<![CDATA[";
// A shorter piece of text between two tags is treated as a menu item, not as prose.
const PROSE_BYTES: usize = 64;
const MOST_BYTES_PER_CHARACTER: usize = 4;

/// Returns at most `max_length + 1` characters of the visible text of a raw text. The rest of a long text is read
/// only if the beginning contains hidden text.
///
/// Call this only once per text: `&lt;p&gt;` becomes the text `<p>`, which a second call would treat as a tag.
pub fn visible_beginning(raw: &str, max_length: usize) -> Cow<'_, str> {
    let most = max_length.saturating_add(1);
    if !may_have_markup(raw) && !raw.contains(is_override) {
        return Cow::Borrowed(beginning(raw, most));
    }
    let mut reader = Reader::of(raw, most, true);
    reader.read();
    if reader.hidden_prose > reader.prose {
        reader = Reader::of(raw, most, false);
        reader.read();
    }
    reader.shown.truncate(beginning(&reader.shown, most).len());
    Cow::Owned(reader.shown)
}

/// Returns whether a text may have tags, character references or carriage returns. Most texts have none.
pub fn may_have_markup(raw: &str) -> bool {
    memchr3(b'<', b'&', b'\r', raw.as_bytes()).is_some()
}

/// Returns at most the first `most` characters of a text.
fn beginning(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

#[derive(Default)]
struct Reader<'a> {
    raw: &'a str,
    // Reading stops at this many bytes of `shown`.
    enough: usize,
    may_hide: bool,
    // Whether white space is collapsed as in HTML.
    is_html: bool,
    has_overrides: bool,
    shown: String,
    elements: Elements,
    // The number of bytes of prose that are shown.
    prose: usize,
    // The number of bytes of prose that are hidden.
    hidden_prose: usize,
    has_hidden: bool,
    // The names of raw elements that have no end in the rest of the text, and `COMMENT` if a comment has no end.
    endless: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    fn of(raw: &'a str, most: usize, may_hide: bool) -> Reader<'a> {
        let begins_block = |rest: &str| {
            let name = rest.strip_prefix('/').unwrap_or(rest);
            Element::of(&name[..end_of_name(name.as_bytes(), 0)]).has(BLOCK)
        };
        Reader {
            raw,
            enough: most.saturating_add(1).saturating_mul(MOST_BYTES_PER_CHARACTER),
            may_hide,
            is_html: raw.split('<').skip(1).any(begins_block),
            has_overrides: ["\u{202d}", "\u{202e}"].iter().any(|each| raw.contains(each)),
            ..Reader::default()
        }
    }

    /// Reads until `shown` is long enough. If any text is hidden, reads the whole raw text, since most of the
    /// prose may be hidden.
    fn read(&mut self) {
        let mut at = 0;
        while at < self.raw.len() && (self.shown.len() < self.enough || self.has_hidden) {
            let rest = &self.raw[at..];
            let length = memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
            self.text(&rest[..length]);
            at += length;
            if length < rest.len() {
                at = self.token(at);
            }
        }
    }

    /// Reads the token that begins at `start`, and returns the position after it.
    fn token(&mut self, start: usize) -> usize {
        let rest = &self.raw[start..];
        if let Some(content) = rest.strip_prefix(CDATA).filter(|_| self.elements.are_foreign()) {
            let length = content.find("]]>").unwrap_or(content.len());
            self.text(&content[..length]);
            return self.raw.len().min(start + CDATA.len() + length + "]]>".len());
        }
        let is_endless = rest.starts_with(COMMENT) && self.endless.contains(&COMMENT);
        let (token, length) = match if is_endless { None } else { Token::of(rest) } {
            Some((_, length)) if length > 1 && !self.is_html && !is_plainly_markup(&rest[..length]) => {
                (Token::Text, length)
            }
            Some(found) => found,
            None if self.is_html && self.may_hide => {
                self.hidden_prose += rest.len();
                return self.raw.len();
            }
            None if rest.starts_with(COMMENT) => {
                self.endless.push(COMMENT);
                (Token::Text, 1)
            }
            None => (Token::Text, rest.len()),
        };
        match token {
            Token::Opening(tag) => return self.open(&tag, start + length),
            Token::Closing(tag) => {
                let was_hidden = self.elements.are_hidden();
                self.elements.close(tag.element);
                if tag.element.has(BLOCK) && !(was_hidden && self.elements.are_hidden()) {
                    self.line_break();
                }
            }
            Token::Comment => {}
            Token::Text => self.text(&rest[..length]),
        }
        start + length
    }

    fn open(&mut self, tag: &Tag, end: usize) -> usize {
        let was_hidden = self.elements.are_hidden();
        let element = self.elements.open(tag, self.may_hide);
        let is_hidden = was_hidden && self.elements.are_hidden();
        if element.has(BLOCK) && !is_hidden {
            self.line_break();
        } else if element.has(CELL) && !is_hidden {
            self.trim_line();
            self.shown.push_str(if self.ends_with_space() { "" } else { "\t" });
        }
        if !element.has(RAW) || self.endless.contains(&element.name) {
            return end;
        }
        let rest = &self.raw[end..];
        let found = end_of_content(rest, element.name).filter(|_| element.name != "plaintext");
        if found.is_none() && !self.is_html && element.has(HIDDEN) {
            self.endless.push(element.name);
            return end;
        }
        let (length, closing_end) = found.unwrap_or((rest.len(), rest.len()));
        if element.name == "noscript" {
            let mut hidden = Reader::of(&rest[..length], usize::MAX, false);
            hidden.read();
            self.hidden_prose += hidden.prose;
            self.has_hidden |= !hidden.shown.is_empty();
        }
        if !element.has(HIDDEN) && !is_hidden {
            self.characters(&rest[..length], true);
            self.line_break();
        }
        end + closing_end
    }

    /// Appends text to `shown`, unless it is hidden.
    fn text(&mut self, text: &str) {
        let prose = if text.len() < PROSE_BYTES { 0 } else { text.len() };
        if self.elements.are_hidden() {
            self.has_hidden = true;
            self.hidden_prose += prose;
            return;
        }
        self.prose += prose;
        self.characters(&unescaped(text), self.elements.are_preformatted());
    }

    /// Appends characters to `shown`. In HTML that is not preformatted, adjacent spaces become one space.
    fn characters(&mut self, text: &str, is_preformatted: bool) {
        if !self.is_html || is_preformatted {
            let text =
                if text.contains('\r') { &text.replace("\r\n", "\n").replace('\r', "\n") } else { text };
            return self.push(text);
        }
        let mut start = 0;
        let mut after_space = self.ends_with_space();
        for (at, byte) in text.bytes().enumerate() {
            if !is_space(byte) {
                after_space = false;
                continue;
            }
            if after_space || byte != b' ' {
                self.push(&text[start..at]);
                self.push(if after_space { "" } else { " " });
                start = at + 1;
            }
            after_space = true;
        }
        self.push(&text[start..]);
    }

    fn push(&mut self, text: &str) {
        if self.has_overrides {
            self.shown.extend(text.chars().filter(|&each| !is_override(each)));
        } else {
            self.shown.push_str(text);
        }
    }

    fn ends_with_space(&self) -> bool {
        self.shown.as_bytes().last().is_none_or(|&each| is_space(each))
    }

    /// Removes a space at the end of the text, or the tab of an empty cell.
    fn trim_line(&mut self) {
        if self.shown.ends_with([' ', '\t']) {
            self.shown.pop();
        }
    }

    fn line_break(&mut self) {
        self.trim_line();
        if !self.shown.ends_with("\n\n") {
            self.shown.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_hidden_elements_end_where_they_do_in_browsers() {
        for (raw, shown) in [
            ("a<!-->b<!-- -->", "ab"),
            ("a<!-- x -- > - -> <!-- y -->b-->", "ab-->"),
            ("<p title=\"<script>\">a<p title='</script>'>b", "\na\nb"),
            ("a<b title=x'>b<b title='c>d'>e", "abe"),
            ("<textarea><!--</textarea>a<b alt='-->'>b", "ab"),
            ("a<script></script x='>'>b<script></scripty></script\n>c", "abc"),
            ("<svg><style><p>a</style>b", "\nab"),
            ("a<noscript><b>b</b></noscript>c<noscript><!--</noscript>d-->", "acd-->"),
            ("3 < 5 and 7 > 6 &lt;3\r\n\u{202e}x", "3 < 5 and 7 > 6 <3\nx"),
            ("a<SCRIPT>never closed", "anever closed"),
        ] {
            assert_eq!(visible_beginning(raw, usize::MAX), shown, "{raw}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_long_text_is_read() {
        assert_eq!(visible_beginning("中文中文", 2), "中文中");
        assert_eq!(visible_beginning(&"<p>&amp;".repeat(1_000), 3), "\n&\n&");
    }
}
