//! Hashes of numbers and bytes, and simhashes, which are fingerprints of weighted hashes (Charikar, STOC 2002). A
//! simhash is computed from a sum for each bit: a hash adds its weight to the sum if the hash's bit is 1, and
//! subtracts its weight if the bit is 0. The signs of the sums are the bits of the simhash.

/// A multiplier for hashes. It is odd, so it has an inverse modulo 2^64.
pub const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a hash of a number, computed by the finalizer of MurmurHash3.
#[inline]
pub const fn mixed(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

/// Returns up to eight bytes as a little-endian number.
#[inline]
pub fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Returns the MurmurHash3 of bytes: the 128-bit variant for 64-bit processors, with the seed 0 (Appleby, public
/// domain).
pub fn murmur128(bytes: &[u8]) -> [u8; 16] {
    const FIRST: u64 = 0x87c3_7b91_1142_53d5;
    const SECOND: u64 = 0x4cf5_ad43_2745_937f;
    let (mut low, mut high) = (0_u64, 0_u64);
    let blocks = bytes.chunks_exact(16);
    let rest = blocks.remainder();
    let low_part = |bytes: &[u8]| word(bytes).wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND);
    let high_part = |bytes: &[u8]| word(bytes).wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST);
    for block in blocks {
        low ^= low_part(&block[..8]);
        low = low.rotate_left(27).wrapping_add(high).wrapping_mul(5).wrapping_add(0x52dc_e729);
        high ^= high_part(&block[8..]);
        high = high.rotate_left(31).wrapping_add(low).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    low ^= low_part(&rest[..rest.len().min(8)]) ^ bytes.len() as u64;
    high ^= high_part(&rest[rest.len().min(8)..]) ^ bytes.len() as u64;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    (low, high) = (mixed(low), mixed(high));
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

const BITS: usize = 64;
// The number of hashes that fills the 8-bit counters, eight of which are packed into a 64-bit number.
const MOST_IN_A_LANE: usize = 255;
const LANES: u64 = 0x0101_0101_0101_0101;

/// Returns the simhash of hashes with equal weights: the bits that are set in more than half of them.
pub fn majority(hashes: impl Iterator<Item = u64>) -> u64 {
    let mut ones = [0u32; BITS];
    let mut lanes = [0u64; 8];
    let (mut total, mut in_lanes) = (0u32, 0);
    for hash in hashes {
        for (shift, lane) in lanes.iter_mut().enumerate() {
            *lane += hash >> shift & LANES;
        }
        total += 1;
        in_lanes += 1;
        if in_lanes == MOST_IN_A_LANE {
            empty(&mut lanes, &mut ones);
            in_lanes = 0;
        }
    }
    empty(&mut lanes, &mut ones);
    (0..BITS).fold(0, |simhash, bit| simhash | u64::from(2 * ones[bit] > total) << bit)
}

/// Returns the simhash of weighted hashes; 0 if there are none. Weights are integers, so that the sums are exact and
/// do not depend on the order of the hashes.
pub fn weighted_simhash(hashes: impl Iterator<Item = (u64, i64)>) -> u64 {
    let mut sums = [0i64; BITS];
    for (hash, weight) in hashes {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 { weight } else { -weight };
        }
    }
    (0..BITS).fold(0, |simhash, bit| simhash | u64::from(sums[bit] > 0) << bit)
}

fn empty(lanes: &mut [u64; 8], ones: &mut [u32; BITS]) {
    for (shift, lane) in lanes.iter_mut().enumerate() {
        for (place, count) in lane.to_le_bytes().into_iter().enumerate() {
            ones[place * 8 + shift] += u32::from(count);
        }
        *lane = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majority_is_the_simhash_with_equal_weights() {
        for count in [0, 1, 2, 255, 256, 1_000] {
            let hashes = || (0..count).map(mixed);
            assert_eq!(majority(hashes()), weighted_simhash(hashes().map(|hash| (hash, 1))), "{count}");
        }
    }

    #[test]
    fn heavier_hash_decides_and_tied_bits_are_0() {
        assert_eq!(weighted_simhash([(0b1100, 3), (0b1010, 3)].into_iter()), 0b1000);
        assert_eq!(weighted_simhash([(0b1100, 4), (0b1010, 3)].into_iter()), 0b1100);
    }

    #[test]
    fn murmur_matches_hashes_of_mmh3() {
        // Computed by mmh3 for prefixes of this URL, with lengths around the block size of 16 bytes.
        let name = b"https://www.example.org/2026/11/23";
        for (length, hash) in [
            (0, 0x0000_0000_0000_0000),
            (1, 0xd6fc_b2bb_61cb_4523),
            (8, 0xbf41_abcc_39fa_50ac),
            (15, 0xca8b_87fd_770d_2afa),
            (16, 0x7235_5c62_b0a6_34fe),
            (34, 0x2e89_cc73_05cb_1391),
        ] {
            assert_eq!(word(&murmur128(&name[..length])[..8]), hash, "{length}");
        }
    }
}
