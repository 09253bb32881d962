//! The content hash of a text, its id as a page: a hash of its letters and digits that nobody can choose a text for.
//!
//! Whoever could find another text with the id of a given one could have it put into that one's cluster. Sums and
//! products, as hashes of passages are, can be solved for such a text; a cryptographic hash cannot.

use sha2::{Digest, Sha256};

// The end of a text alone.
const EMPTY: usize = 2;

/// Returns the content hash of `letters`, as `tokenise` makes them; 0 for a text without letters and digits.
///
/// Texts with the same tokens in the same order have the same.
pub fn content_hash(letters: &[u8]) -> u64 {
    if letters.len() <= EMPTY {
        return 0;
    }
    // Processors have instructions for this one.
    let digest = Sha256::digest(letters);
    digest.iter().take(8).fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}
