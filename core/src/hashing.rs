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
