//! Where in a visible text the points of its normal form come from.

use crate::characters::{Form, tables};
use crate::normal_form::normalise_line;
use crate::parsed::ParsedText;

const ELLIPSIS: char = '\u{2026}';

/// Returns where the passages of a text start and end in what is visible of it, in characters.
///
/// What has a normal form only together with its neighbours (a letter and its accents), and what is not shown, has one
/// place: that of the first character.
pub fn passage_places(visible: &str, text: &ParsedText) -> Vec<(usize, usize)> {
    let places = places_of_points(visible);
    let place = |point: usize| places.get(point).or(places.last()).copied().unwrap_or(0);
    let spans = text.sentences.iter().map(|each| {
        let last = place(each.sentence.end);
        let after = places.partition_point(|&each| each <= last);
        (place(each.sentence.start), place(after))
    });
    spans.collect()
}

/// Returns the place of each point that `normalise` makes of all of a text, but for the end; last its length.
fn places_of_points(visible: &str) -> Vec<usize> {
    let tables = tables();
    let mut places = Vec::with_capacity(visible.len());
    // A character that is no form by itself belongs to those before it: no other combines with one before it.
    let mut group = String::new();
    let mut first = 0;
    let mut length = 0;
    let mut finish = |group: &mut String, first: usize, has_several: bool| {
        let mut points = Vec::new();
        if has_several {
            normalise_line(group, &mut points);
        }
        let count = if has_several { points.len() } else { usize::from(!group.is_empty()) };
        places.extend(std::iter::repeat_n(first, count));
        group.clear();
    };
    let mut has_several = false;
    for (at, character) in visible.chars().enumerate() {
        length = at + 1;
        // Three full stops at one place.
        let dots = [if character == ELLIPSIS { '.' } else { character }; 3];
        let unfolded = if character == ELLIPSIS { &dots[..] } else { &dots[..1] };
        for &each in unfolded {
            let is_start = matches!(tables.form(each.into()), Form::Single(_));
            if is_start {
                finish(&mut group, first, has_several);
                has_several = false;
            } else {
                has_several = true;
            }
            if group.is_empty() {
                first = at;
            }
            group.push(each);
        }
    }
    finish(&mut group, first, has_several);
    places.push(length);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_form::normalise;

    #[test]
    fn each_point_comes_from_a_place_in_the_text() {
        for text in [
            "",
            "abc",
            "e\u{301}x…y\u{200b}z",
            "\u{301}a\u{301}",
            "\u{fdfa}…\u{1100}\u{1161}",
            "\u{ad}\u{ad}a",
        ] {
            let mut points = Vec::new();
            normalise(text, usize::MAX, &mut points);
            let places = places_of_points(text);
            assert_eq!(places.len(), points.len(), "{text}");
            assert!(places.is_sorted());
            assert_eq!(places.last(), Some(&text.chars().count()));
        }
        assert_eq!(places_of_points("e\u{301}x…"), [0, 2, 3, 3, 3, 4]);
    }
}
