//! Words of normal texts as Unicode has them: runs of letters, digits and the marks that belong to them.

use crate::characters::{JOINER, NUMBER, tables};

/// Returns the words of a normal text. Signs within a number, as in 1,000.5, belong to it.
pub fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = None;
    let mut last_role = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let point = tables().point(character.into());
        let next_role = characters.peek().map_or(0, |(_, next)| tables().point((*next).into()).role());
        let joins = point.role() == JOINER && last_role == NUMBER && next_role == NUMBER;
        last_role = point.role();
        match (point.is_in_word() || joins, start) {
            (true, None) => start = Some(at),
            (false, Some(first)) => {
                found.push(&text[first..at]);
                start = None;
            }
            _ => {}
        }
    }
    found.extend(start.map(|first| &text[first..]));
    found
}

/// Returns the letters, digits and marks of a normal text, without all that stands between them.
pub fn letters(text: &str) -> String {
    text.chars().filter(|&each| tables().point(each.into()).is_in_word()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_by_unicode() {
        assert_eq!(
            words("1,000.5 of iphone15, naïve 中文。x"),
            ["1,000.5", "of", "iphone15", "naïve", "中文", "x"]
        );
        assert_eq!(words(" ,. "), [""; 0]);
        assert_eq!(letters("a-b 1,5。中"), "ab15中");
    }
}
