//! What readers see of a raw text: the text without its markup.
//!
//! What a browser would show must not be lost here: an advertisement that only readers see would pass for the article
//! around it. So tokens of HTML are cut out where a browser cuts them, and what remains in doubt is kept.

use std::borrow::Cow;

use memchr::{memchr, memchr3, memmem};

use crate::normal_form::is_override;
use crate::references;
use crate::tags::{Token, end_of_tag, find_closing, shown_of_tag, without_simple_tags};

// The content of these is no markup; it is shown, or it is not.
const SHOWN: [&str; 3] = ["textarea", "title", "xmp"];
const HIDDEN: [&str; 5] = ["script", "style", "iframe", "noembed", "noframes"];
// In these, and perhaps after them, the elements above have markup, are shown, or end at `/>`.
const DOUBTFUL: [&str; 4] = ["svg", "math", "select", "frameset"];

/// Returns what is visible of a raw text, or its beginning: if that is longer than `max_length` characters, so is
/// the result. So nobody has to wait for the rest of a text of which only the beginning is wanted.
///
/// Apply it once: in the result, `&lt;p&gt;` has become `<p>`, which is text.
pub fn visible_beginning(raw: &str, max_length: usize) -> Cow<'_, str> {
    let mut most = max_length.saturating_add(1);
    if !may_have_markup(raw) && !raw.contains(is_override) {
        return Cow::Borrowed(beginning(raw, most).0);
    }
    loop {
        let (text, is_whole) = without_markup(raw, most);
        let shown = unescaped(if is_whole { &text } else { references::without_unfinished(&text) });
        if is_whole || shown.chars().count() > max_length {
            return Cow::Owned(shown);
        }
        // Much of it was character references.
        most = most.saturating_mul(2);
    }
}

/// Whether a text may have tags, references, or line breaks to unify: most texts have none.
pub fn may_have_markup(raw: &str) -> bool {
    memchr3(b'<', b'&', b'\r', raw.as_bytes()).is_some()
}

fn unescaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = memchr(b'&', &text.as_bytes()[at..]) {
        shown.push_str(&text[at..at + found]);
        at += found;
        at += references::unescape(&text[at..], &mut shown);
    }
    shown.push_str(&text[at..]);
    if memchr(b'\r', shown.as_bytes()).is_some() || shown.contains(is_override) {
        shown.retain(|each| !is_override(each));
        shown = shown.replace("\r\n", "\n").replace('\r', "\n");
    }
    shown
}

/// Returns a text without tags, comments, and elements that are not shown, and whether it is the whole one.
///
/// If not, it is its beginning, of at least `most` characters. Where it depends on the browser, or on the elements
/// around, what is markup, the rest of the text stays as it is. Takes time in proportion to the length of the text.
fn without_markup(text: &str, most: usize) -> (String, bool) {
    let mut kept = String::with_capacity(text.len());
    let (mut at, mut length) = (0, 0);
    // Which elements have been opened that make others doubtful.
    let mut doubtful: Vec<&'static str> = Vec::new();
    // Where the last <noscript> ends for browsers with scripts; for others, its content is markup.
    let mut noscript_end = 0;
    while length < most {
        let Some(token) = Token::find(text, at) else { break };
        let Some((shown, end)) = read(text, &token, &doubtful) else { break };
        if token.start < noscript_end && noscript_end < end {
            break;
        }
        for part in [&text[at..token.start], &shown] {
            kept.push_str(part);
            length += part.chars().count();
        }
        at = end;
        let name = token.opened();
        if let Some(known) = DOUBTFUL.iter().find(|&&each| each == name && !doubtful.contains(&each)) {
            doubtful.push(known);
        }
        if name == "noscript" && end > noscript_end {
            noscript_end = find_closing(text, &name, end).map_or(text.len(), |closing| closing.0);
        }
    }
    let (rest, is_whole) = beginning(&text[at..], most.saturating_sub(length));
    kept.push_str(rest);
    (kept, is_whole)
}

/// Returns what is shown of the token or element that begins here, and its end; None if that is in doubt.
///
/// Browsers show nothing from a token on that never ends. Such a text may not be meant as HTML, so only the simple tags
/// in it are removed.
fn read<'a>(text: &'a str, token: &Token, doubtful: &[&str]) -> Option<(Cow<'a, str>, usize)> {
    let without_end = || (without_simple_tags(&text[token.start..]), text.len());
    let Some(end) = token.end(text) else { return Some(without_end()) };
    if token.is_comment() {
        return Some((Cow::Borrowed(""), end));
    }
    let name = token.opened();
    if name == "plaintext" || (!doubtful.is_empty() && text[token.start..].starts_with("<![")) {
        return None;
    }
    let is_shown = SHOWN.contains(&name.as_str());
    let is_hidden = HIDDEN.contains(&name.as_str());
    if !is_shown && !is_hidden {
        return Some((shown_of_tag(&text[token.start..end]), end));
    }
    let closing = find_closing(text, &name, end);
    let after = closing.and_then(|(_, name_end)| end_of_tag(text.as_bytes(), name_end));
    let (Some((content_end, _)), Some(after)) = (closing, after) else {
        return if is_shown { None } else { Some(without_end()) };
    };
    let content = &text[end..content_end];
    let may_be_markup = !doubtful.is_empty()
        && (text[..end].ends_with("/>")
            || Token::find(content, 0).is_some()
            || (is_hidden && doubtful != ["svg"]));
    if may_be_markup || (name == "script" && has_script_in_comment(content)) {
        return None;
    }
    Some((Cow::Borrowed(if is_shown { content } else { "" }), after))
}

/// Whether `</script>` may end another script: one in a comment of the script.
fn has_script_in_comment(content: &str) -> bool {
    let opening = b"<script";
    let last =
        || content.as_bytes().windows(opening.len()).rposition(|each| each.eq_ignore_ascii_case(opening));
    let Some(comment) = memmem::find(content.as_bytes(), b"<!--") else { return false };
    let Some(script) = last() else { return false };
    // The place of the script is that in small letters, of which this one has two.
    let more = content[..script].matches('\u{130}').count();
    content[..comment].chars().count() < content[..script].chars().count() + more
}

/// Returns at most so many characters of a text, and whether they are all.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, true);
    }
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], false),
        None => (text, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_hidden_elements_are_cut_out_where_browsers_do() {
        for (raw, shown) in [
            ("a<!-->b<!-- -->", "ab"),
            ("a<!-- x -- > - -> <!-- y -->b-->", "ab-->"),
            ("<p title=\"<script>\">a<p title='</script>'>b", "\na\nb"),
            ("a<b title=x'>b<b title='c>d'>e", "abe"),
            ("<textarea><!--</textarea>a<b alt='-->'>b", "<!--ab"),
            ("a<script></script x='>'>b<script></scripty></script\n>c", "abc"),
            ("<svg><style><p>a</style>b", "<style><p>a</style>b"),
            ("a<noscript><b>b</b></noscript>c<noscript><!--</noscript>d-->", "abc<!--</noscript>d-->"),
            ("3 < 5 and 7 > 6 &lt;3\r\n\u{202e}x", "3 < 5 and 7 > 6 <3\nx"),
            ("a<SCRIPT>never closed", "anever closed"),
        ] {
            assert_eq!(visible_beginning(raw, usize::MAX), shown, "{raw}");
        }
    }

    #[test]
    fn of_a_long_text_the_beginning_is_enough() {
        assert_eq!(visible_beginning("中文中文", 2), "中文中");
        assert_eq!(visible_beginning(&"<p>&amp;".repeat(1_000), 3), "\n&\n&\n");
    }
}
