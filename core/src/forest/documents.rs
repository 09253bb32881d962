//! Nodes and pages as documents of their forest's index: JSON, written from what is packed.
//!
//! A document has all of it in packed form. Its other fields repeat parts of that, by which it is found.

use super::aging::NO_TIME;
use super::pages::NO_PAGE;
use super::records::Record;
use super::relation::{Id, Relation};
use super::terms::Layout;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the id and the JSON of what is packed; None if it is neither a node nor a page.
pub fn document<R: Relation>(packed: &[u8], layout: &Layout) -> Option<(String, String)> {
    let mut json = format!(r#"{{"packed":"{}""#, base64(packed));
    let id = match Record::unpack::<R>(packed)? {
        Record::Node { id, root, signature, node } => {
            json += &format!(r#","root":"{}","seq":{}"#, hex::<R>(root), { node.seq });
            add_time(&mut json, "made", node.made_ms);
            add_time(&mut json, "seen", node.seen_ms);
            if node.page != NO_PAGE {
                json += &format!(r#","page":"{:016x}""#, { node.page });
            }
            let keys = layout.terms::<R>(&signature, true);
            let quoted =
                if keys.is_empty() { String::new() } else { format!(r#""{}""#, keys.join(r#"",""#)) };
            json += &format!(r#","leaf":{},"keys":[{quoted}]"#, id != root);
            hex::<R>(id)
        }
        Record::Page { page, seen_ms, .. } => {
            json += &format!(r#","page":"{page:016x}""#);
            add_time(&mut json, "seen", seen_ms);
            format!("page-{page:016x}")
        }
    };
    json.push('}');
    Some((id, json))
}

fn hex<R: Relation>(id: Id) -> String {
    format!("{id:0digits$x}", digits = 2 * R::ID_BYTES)
}

/// Adds a time that is known.
fn add_time(json: &mut String, name: &str, time_ms: i64) {
    if time_ms != NO_TIME {
        *json += &format!(r#","{name}":{time_ms}"#);
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for some in bytes.chunks(3) {
        let number = (0..3).fold(0u32, |sum, at| sum << 8 | u32::from(some.get(at).copied().unwrap_or(0)));
        for place in 0..4 {
            let digit = BASE64[(number >> (18 - 6 * place) & 63) as usize];
            text.push(if place > some.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_everybody() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }
}
