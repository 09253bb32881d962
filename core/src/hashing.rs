//! Hashes of numbers.

/// Odd, so that it has an inverse modulo 2^64.
pub const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a hash of a number, by the finalizer of MurmurHash3.
#[inline]
pub const fn mixed(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

/// Returns up to eight bytes as a number, the first of them lowest.
#[inline]
pub fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Returns the MurmurHash3 of numbers as their bytes on a little-endian machine: its variant of 128 bits for 64-bit
/// processors, with the seed 0 (Appleby, public domain).
pub fn murmur128<const N: usize>(words: &[u64; N]) -> [u8; 16] {
    const { assert!(N % 2 == 0, "it takes two numbers at a time") };
    const FIRST: u64 = 0x87c3_7b91_1142_53d5;
    const SECOND: u64 = 0x4cf5_ad43_2745_937f;
    let (mut low, mut high) = (0_u64, 0_u64);
    for pair in words.chunks_exact(2) {
        low ^= pair[0].wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND);
        low = low.rotate_left(27).wrapping_add(high).wrapping_mul(5).wrapping_add(0x52dc_e729);
        high ^= pair[1].wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST);
        high = high.rotate_left(31).wrapping_add(low).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    low ^= 8 * N as u64;
    high ^= 8 * N as u64;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    (low, high) = (mixed(low), mixed(high));
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}
