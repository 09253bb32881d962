//! A hash table from 64-bit keys to a few numbers, which grows without a pause.
//!
//! A key and its numbers lie side by side, so that a look-up costs one miss of the processor's cache. A large table is
//! cut into shards that grow one at a time: what waits for growth waits for a 256th of the table. Not the standard map:
//! that one takes 16 bytes for a key and 4 bytes of numbers, grows at once, and to twice its size.

use std::hash::{BuildHasher, RandomState};

/// A key and its numbers; the first number is 0 if there is none.
type Row<const C: usize> = ([u32; 2], [u32; C]);

const SHARD_BITS: u32 = 8;
// A smaller table has one shard, since many stay small.
const UNDIVIDED_ROWS: usize = 4_096;
const FIRST_ROWS: usize = 16;
// Odd, with as many ones as zeros: 2^64 by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps keys to numbers, of which the first is never 0.
#[derive(Debug)]
pub struct Table<const C: usize> {
    shards: Vec<Shard<C>>,
    // Keys are hashes, but of texts that anybody can write: without a secret, all of them could be made to collide.
    seed: u64,
}

/// A part of a table: where a key's place is taken, the key is in the next free one.
#[derive(Clone, Default, Debug)]
struct Shard<const C: usize> {
    rows: Vec<Row<C>>,
    count: usize,
    // How many rows there will be once there is one.
    expected: usize,
}

impl<const C: usize> Default for Table<C> {
    fn default() -> Self {
        Table { shards: vec![Shard::default()], seed: RandomState::new().hash_one(0) }
    }
}

impl<const C: usize> Table<C> {
    /// Returns an empty table that will take as much room at once, so that it need not grow again.
    pub fn emptied(&self) -> Self {
        let empty = |shard: &Shard<C>| Shard { expected: shard.rows.len(), ..Shard::default() };
        Table { shards: self.shards.iter().map(empty).collect(), seed: self.seed }
    }

    /// Returns the memory that it takes, with the room for more keys.
    pub fn size_bytes(&self) -> usize {
        self.shards.iter().map(Shard::size_bytes).sum()
    }

    /// Returns the numbers of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<[u32; C]> {
        let hash = self.hash(key);
        let shard = &self.shards[self.shard(hash)];
        if shard.rows.is_empty() {
            return None;
        }
        let (_, numbers) = &shard.rows[shard.find(key, hash)];
        (numbers[0] > 0).then_some(*numbers)
    }

    /// Sets the numbers of a key, or removes it if the first is 0; returns those before, zeros if there were none.
    pub fn put(&mut self, key: u64, numbers: [u32; C]) -> [u32; C] {
        let hash = self.hash(key);
        let mut at = self.shard(hash);
        if self.shards[at].is_full() {
            self.grow(at);
            at = self.shard(hash);
        }
        let place = self.shards[at].find(key, hash);
        let shard = &mut self.shards[at];
        let before = std::mem::replace(&mut shard.rows[place], (split(key), numbers)).1;
        match (before[0] > 0, numbers[0] > 0) {
            (false, true) => shard.count += 1,
            (true, false) => self.close_gap(at, place),
            _ => {}
        }
        before
    }

    /// Returns all keys and their numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, [u32; C])> + '_ {
        let rows = self.shards.iter().flat_map(|shard| shard.rows.iter());
        rows.filter(|(_, numbers)| numbers[0] > 0).map(|(key, numbers)| (joined(*key), *numbers))
    }

    /// Returns a hash of a key: both halves of a product, one folded onto the other.
    #[inline]
    fn hash(&self, key: u64) -> u64 {
        let product = u128::from(key ^ self.seed) * u128::from(FACTOR);
        (product as u64) ^ ((product >> 64) as u64)
    }

    #[inline]
    fn shard(&self, hash: u64) -> usize {
        if self.shards.len() == 1 { 0 } else { (hash >> (64 - SHARD_BITS)) as usize }
    }

    /// Makes room in a shard, or cuts the table into shards.
    fn grow(&mut self, at: usize) {
        let shard = &mut self.shards[at];
        let rows = shard.expected.max(shard.rows.len() * 3 / 2).max(FIRST_ROWS);
        let moved = std::mem::take(&mut shard.rows);
        shard.expected = 0;
        if self.shards.len() == 1 && moved.len() > UNDIVIDED_ROWS {
            self.shards = vec![Shard { expected: rows >> SHARD_BITS, ..Shard::default() }; 1 << SHARD_BITS];
        } else {
            self.shards[at] = Shard { rows: vec![([0; 2], [0; C]); rows], ..Shard::default() };
        }
        for (key, numbers) in moved.into_iter().filter(|(_, numbers)| numbers[0] > 0) {
            self.put(joined(key), numbers);
        }
    }

    /// Fills the place of a key that was removed, so that those after it are still found.
    fn close_gap(&mut self, at: usize, mut gap: usize) {
        let length = self.shards[at].rows.len();
        let mut place = gap;
        loop {
            place = (place + 1) % length;
            let (key, numbers) = self.shards[at].rows[place];
            if numbers[0] == 0 {
                break;
            }
            let home = self.shards[at].home(self.hash(joined(key)));
            // How far each is from its home, round the end.
            if (place + length - home) % length >= (place + length - gap) % length {
                self.shards[at].rows[gap] = (key, numbers);
                gap = place;
            }
        }
        let shard = &mut self.shards[at];
        shard.rows[gap] = ([0; 2], [0; C]);
        shard.count -= 1;
    }
}

impl<const C: usize> Shard<C> {
    fn size_bytes(&self) -> usize {
        self.rows.len() * size_of::<Row<C>>()
    }

    /// Beyond three quarters, keys are far from their homes.
    fn is_full(&self) -> bool {
        4 * (self.count + 1) > 3 * self.rows.len()
    }

    /// Returns where a key is to be, if the place is free.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        // Below the bits that choose the shard.
        let fraction = u64::from((hash >> (32 - SHARD_BITS)) as u32);
        ((fraction * self.rows.len() as u64) >> 32) as usize
    }

    /// Returns the place of a key, or the free one where it would be.
    #[inline]
    fn find(&self, key: u64, hash: u64) -> usize {
        let (key, mut place) = (split(key), self.home(hash));
        loop {
            let (held, numbers) = &self.rows[place];
            if numbers[0] == 0 || *held == key {
                return place;
            }
            place += 1;
            if place == self.rows.len() {
                place = 0;
            }
        }
    }
}

#[inline]
fn split(key: u64) -> [u32; 2] {
    [key as u32, (key >> 32) as u32]
}

#[inline]
fn joined(key: [u32; 2]) -> u64 {
    u64::from(key[0]) | u64::from(key[1]) << 32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::hashing::mixed;

    /// Puts keys, of which many come again, and removes some; compares with the standard map.
    fn compare(keys: u64, steps: u64) {
        let (mut table, mut model) = (Table::<2>::default(), HashMap::new());
        for step in 0..steps {
            let key = mixed(step) % keys;
            let numbers = if mixed(step + 7) % 3 == 0 { [0, 0] } else { [step as u32 + 1, 5] };
            let before = if numbers[0] > 0 { model.insert(key, numbers) } else { model.remove(&key) };
            assert_eq!(table.put(key, numbers), before.unwrap_or_default());
        }
        assert_eq!(table.iter().collect::<HashMap<_, _>>(), model);
        for key in 0..keys {
            assert_eq!(table.get(key), model.get(&key).copied());
        }
        assert!(table.emptied().iter().next().is_none());
    }

    #[test]
    fn keys_are_found_however_many_come_and_go() {
        compare(0, 0);
        compare(20, 2_000);
        compare(3_000, 20_000);
        compare(40_000, 100_000);
    }

    #[test]
    fn a_table_as_large_as_the_last_one_takes_as_much_memory() {
        let mut table = Table::<1>::default();
        (0..50_000).for_each(|key| _ = table.put(mixed(key), [1]));
        let mut next = table.emptied();
        assert_eq!(next.size_bytes(), 0);
        (50_000..100_000).for_each(|key| _ = next.put(mixed(key), [1]));
        assert!(next.size_bytes() < table.size_bytes() * 11 / 10);
        assert!(table.size_bytes() < 50_000 * 12 * 2);
    }
}
