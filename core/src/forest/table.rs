//! A hash table of 32-bit numbers, each stored under a hash that the caller computes.
//!
//! It uses linear hashing (Litwin, VLDB 1980), which splits one bucket at a time, so that no insertion waits for the
//! whole table to be copied. A bucket is one cache line. It stores each number with 8 bits of its hash as a tag, so
//! that a search skips nearly all numbers with other hashes. The tags also show which numbers a split moves, so three
//! of four splits hash no number again.

use bytemuck::{Pod, Zeroable};

use super::chunks::Chunks;

/// A placeholder for no number.
pub const NONE: u32 = u32::MAX;

const SLOTS: usize = 12;
// The average number of filled slots above which a bucket is split, chosen so that few buckets overflow.
const FILLED: usize = 8;
// After this many splits of a bucket, its tags take other bits.
const TAG_STEP: u32 = 4;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u8; SLOTS],
    // The next bucket of the chain, if this bucket overflows.
    next: u32,
    // The slots are filled from the front; in a chain, only the first bucket may have empty slots.
    numbers: [u32; SLOTS],
}

const EMPTY: Bucket = Bucket { tags: [0; SLOTS], next: NONE, numbers: [NONE; SLOTS] };

impl Bucket {
    fn filled(&self) -> usize {
        self.numbers.iter().position(|number| *number == NONE).unwrap_or(SLOTS)
    }

    /// Returns whether the bucket may contain the tag. False means that the bucket does not contain the tag.
    #[inline]
    fn may_have(&self, tag: u8) -> bool {
        const LOWEST: u64 = 0x0101_0101_0101_0101;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.tags;
        let differences = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ (LOWEST * u64::from(tag));
        let of_others = u64::from(u32::from_le_bytes([i, j, k, l])) ^ (LOWEST * u64::from(tag));
        // A zero byte borrows, which sets its highest bit.
        let zeros = differences.wrapping_sub(LOWEST) & !differences;
        let zeros_of_others = of_others.wrapping_sub(LOWEST) & !of_others;
        (zeros | zeros_of_others) & (LOWEST << 7) != 0
    }
}

/// Returns the position of a tag's lowest bit in the hash, for a bucket selected by the lowest `level` bits. In each
/// doubling of the table, the tags of a quarter of the buckets take other bits.
#[inline]
fn tag_shift(level: u32, bucket: usize) -> u32 {
    if level < TAG_STEP { 0 } else { (level - (level + bucket as u32) % TAG_STEP).min(u32::BITS - u8::BITS) }
}

/// Maps hashes to numbers; a hash may have several numbers.
pub struct Table {
    buckets: Chunks<Bucket>,
    overflow: Chunks<Bucket>,
    // The head of the chain of free buckets in `overflow`.
    free: u32,
    // There are 2^level buckets, plus one for each bucket below `split`, since these buckets are already split.
    level: u32,
    split: usize,
    len: usize,
}

impl Default for Table {
    fn default() -> Self {
        let mut buckets = Chunks::default();
        buckets.push(EMPTY);
        Table { buckets, overflow: Chunks::default(), free: NONE, level: 0, split: 0, len: 0 }
    }
}

impl Table {
    /// Returns the memory used by the table.
    pub fn size_bytes(&self) -> usize {
        self.buckets.size_bytes() + self.overflow.size_bytes()
    }

    /// Returns the bucket of a hash, and the hash's tag in it.
    #[inline]
    fn bucket(&self, hash: u32) -> (usize, u8) {
        let address = hash as usize & ((2 << self.level) - 1);
        let bucket = if address < self.buckets.len() { address } else { address & ((1 << self.level) - 1) };
        let is_split = bucket < self.split || bucket >> self.level == 1;
        (bucket, (hash >> tag_shift(self.level + u32::from(is_split), bucket)) as u8)
    }

    /// Fetches the bucket of a hash into the processor's cache, before `scan` reads it.
    #[inline]
    pub fn touch(&self, hash: u32) -> u32 {
        self.buckets[self.bucket(hash).0].next
    }

    /// Calls `found` with the numbers stored under a hash, and with some other numbers in the same bucket.
    #[inline]
    pub fn scan(&self, hash: u32, found: &mut impl FnMut(u32)) {
        let (first, tag) = self.bucket(hash);
        for (_, bucket) in self.chain(first).filter(|(_, bucket)| bucket.may_have(tag)) {
            for (own, number) in bucket.tags.iter().zip(&bucket.numbers) {
                if *own == tag && *number != NONE {
                    found(*number);
                }
            }
        }
    }

    /// Returns the buckets of a chain with their places in `overflow`; the place of the first bucket is [`NONE`].
    #[inline]
    fn chain(&self, first: usize) -> impl Iterator<Item = (u32, &Bucket)> {
        std::iter::successors(Some((NONE, &self.buckets[first])), |(_, bucket)| {
            (bucket.next != NONE).then(|| (bucket.next, &self.overflow[bucket.next as usize]))
        })
    }

    /// Adds a number; `hash_of` returns the hash of any number in the table.
    pub fn add(&mut self, hash: u32, number: u32, hash_of: impl Fn(u32) -> u32) {
        self.len += 1;
        if self.len > self.buckets.len() * FILLED {
            self.split_one(hash_of);
        }
        let (bucket, tag) = self.bucket(hash);
        self.put(bucket, tag, number);
    }

    /// Removes a number; does nothing if the table does not contain it.
    pub fn remove(&mut self, hash: u32, number: u32) {
        let (first, _) = self.bucket(hash);
        let Some((at, slot)) = self.find(first, number) else { return };
        self.len -= 1;
        let head = &mut self.buckets[first];
        let last = head.filled() - 1;
        let (tag, moved) = (head.tags[last], head.numbers[last]);
        head.numbers[last] = NONE;
        let from = if at == NONE { head } else { &mut self.overflow[at as usize] };
        if moved != number {
            from.tags[slot] = tag;
            from.numbers[slot] = moved;
        }
        let next = self.buckets[first].next;
        if last == 0 && next != NONE {
            self.buckets[first] = self.overflow[next as usize];
            self.release(next);
        }
    }

    fn find(&self, first: usize, number: u32) -> Option<(u32, usize)> {
        self.chain(first).find_map(|(at, bucket)| {
            let slot = bucket.numbers.iter().position(|each| *each == number)?;
            Some((at, slot))
        })
    }

    fn put(&mut self, bucket: usize, tag: u8, number: u32) {
        let head = &mut self.buckets[bucket];
        let mut slot = head.filled();
        if slot == SLOTS {
            let full = *head;
            let next = self.move_to_overflow(full);
            self.buckets[bucket] = Bucket { next, ..EMPTY };
            slot = 0;
        }
        let head = &mut self.buckets[bucket];
        head.tags[slot] = tag;
        head.numbers[slot] = number;
    }

    fn move_to_overflow(&mut self, full: Bucket) -> u32 {
        if self.free == NONE {
            self.overflow.push(full);
            return self.overflow.len() as u32 - 1;
        }
        let place = self.free;
        self.free = self.overflow[place as usize].next;
        self.overflow[place as usize] = full;
        place
    }

    fn release(&mut self, place: u32) {
        self.overflow[place as usize].next = self.free;
        self.free = place;
    }

    fn split_one(&mut self, hash_of: impl Fn(u32) -> u32) {
        let shift = tag_shift(self.level, self.split);
        let keeps_tags = tag_shift(self.level + 1, self.split) == shift;
        // Compute all hashes first, so that the processor fetches the hashed values in parallel. If the tags keep their
        // position, the bucket and the tag have all bits of the hash that are needed.
        let (mut moved, mut freed) = (Vec::with_capacity(SLOTS), Vec::new());
        for (place, bucket) in self.chain(self.split) {
            let filled = bucket.tags.iter().zip(bucket.numbers).filter(|(_, number)| *number != NONE);
            moved.extend(filled.map(|(tag, number)| {
                let known = self.split as u32 & ((1 << shift) - 1) | u32::from(*tag) << shift;
                (number, if keeps_tags { known } else { hash_of(number) })
            }));
            freed.push(place);
        }
        // The first bucket of the chain is not in `overflow`.
        freed.into_iter().skip(1).for_each(|place| self.release(place));
        self.buckets[self.split] = EMPTY;
        self.buckets.push(EMPTY);
        self.split += 1;
        if self.split == 1 << self.level {
            self.level += 1;
            self.split = 0;
        }
        for (number, hash) in moved {
            let (bucket, tag) = self.bucket(hash);
            self.put(bucket, tag, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::mixed;

    fn hash(number: u32) -> u32 {
        // Several numbers share each hash.
        mixed(u64::from(number % 5_000)) as u32
    }

    fn found(table: &Table, hash: u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        table.scan(hash, &mut |number| numbers.push(number));
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn numbers_are_found_until_they_are_removed() {
        let mut table = Table::default();
        for number in 0..20_000 {
            table.add(hash(number), number, hash);
        }
        for number in 0..5_000 {
            let all = found(&table, hash(number));
            assert!((number..20_000).step_by(5_000).all(|each| all.contains(&each)));
        }
        for number in (0..20_000).filter(|number| number % 3 > 0) {
            table.remove(hash(number), number);
        }
        for number in 0..20_000 {
            assert_eq!(found(&table, hash(number)).contains(&number), number % 3 == 0);
        }
        let before = table.size_bytes();
        for number in 20_000..30_000 {
            table.add(hash(number), number, hash);
        }
        assert_eq!(table.size_bytes(), before);
    }
}
