//! Simhash: a fingerprint of weighted hashes. Each adds its weight to component *i* if bit *i* is 1, and subtracts it if
//! the bit is 0. The signs of the sums are the fingerprint (Charikar, STOC 2002).

const BITS: usize = 64;
// Counters of 8 bits, of which a number of 64 bits has eight, are full after so many hashes.
const MOST_IN_A_LANE: usize = 255;
const LANES: u64 = 0x0101_0101_0101_0101;

/// Returns the simhash of hashes that all weigh the same: the bits that more than half of them have.
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

/// Returns the simhash of weighted hashes; 0 if there are none. Weights are whole numbers, so sums are exact: the same
/// on every machine and in every order.
pub fn weighted(hashes: impl Iterator<Item = (u64, i64)>) -> u64 {
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
    use crate::hashing::mixed;

    #[test]
    fn a_majority_is_a_simhash_of_equal_weights() {
        for count in [0, 1, 2, 255, 256, 1_000] {
            let hashes = || (0..count).map(mixed);
            assert_eq!(majority(hashes()), weighted(hashes().map(|hash| (hash, 1))), "{count}");
        }
    }

    #[test]
    fn weights_decide_and_zero_gives_0() {
        assert_eq!(weighted([(0b1100, 3), (0b1010, 3)].into_iter()), 0b1000);
        assert_eq!(weighted([(0b1100, 4), (0b1010, 3)].into_iter()), 0b1100);
    }
}
