//! Hashes of names: of sites and of articles.

use super::marks::Origin;
use crate::hashing::{mixed, word};

const FIRST: u64 = 0x87c3_7b91_1142_53d5;
const SECOND: u64 = 0x4cf5_ad43_2745_937f;

/// Returns where a page comes from, by the names of its site and its article as far as they are known; without a name,
/// the page is an article by itself.
pub fn origin_of(site: Option<&[u8]>, article: Option<&[u8]>, page_id: u64) -> Origin {
    let site = site.map_or(0, short_hash);
    let article = article.map_or_else(|| (page_id as u32).max(1), short_hash);
    Origin { site, article, number: 0 }
}

/// Returns the hash of a name: never 0, which stands for none.
fn short_hash(name: &[u8]) -> u32 {
    ((murmur64(name) >> 32) as u32).max(1)
}

/// Returns the first 64 bits of MurmurHash3 (x64, 128 bits, seed 0).
pub fn murmur64(bytes: &[u8]) -> u64 {
    let first_mixed = |word: u64| word.wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND);
    let second_mixed = |word: u64| word.wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST);
    let (mut one, mut other) = (0u64, 0u64);
    let blocks = bytes.chunks_exact(16);
    let tail = blocks.remainder();
    for block in blocks {
        one ^= first_mixed(word(&block[..8]));
        one = one.rotate_left(27).wrapping_add(other).wrapping_mul(5).wrapping_add(0x52dc_e729);
        other ^= second_mixed(word(&block[8..]));
        other = other.rotate_left(31).wrapping_add(one).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    other ^= second_mixed(word(high));
    one ^= first_mixed(word(low));
    one ^= bytes.len() as u64;
    other ^= bytes.len() as u64;
    one = one.wrapping_add(other);
    other = other.wrapping_add(one);
    mixed(one).wrapping_add(mixed(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // By mmh3, for beginnings of this name of all lengths about a block.
        let name = b"https://www.example.org/2026/11/23";
        for (length, hash) in KNOWN {
            assert_eq!(murmur64(&name[..length]), hash, "{length}");
        }
    }

    const KNOWN: [(usize, u64); 6] = [
        (0, 0x0000_0000_0000_0000),
        (1, 0xd6fc_b2bb_61cb_4523),
        (8, 0xbf41_abcc_39fa_50ac),
        (15, 0xca8b_87fd_770d_2afa),
        (16, 0x7235_5c62_b0a6_34fe),
        (34, 0x2e89_cc73_05cb_1391),
    ];

    #[test]
    fn a_page_without_a_name_is_an_article_by_itself() {
        assert_eq!(origin_of(None, None, 7 << 32), Origin { site: 0, article: 1, number: 0 });
        assert_eq!(origin_of(None, None, 7 << 32 | 9).article, 9);
    }
}
