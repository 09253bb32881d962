//! A hash table from 64-bit keys to a few numbers. A large table is divided into 256 shards that grow one at a time,
//! so an insertion never waits for the whole table to grow.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::hashing::BASE;

/// A key and its numbers. The key is split, because a 64-bit number would need padding.
type Row<const C: usize> = ([u32; 2], [u32; C]);

const SHARD_BITS: u32 = 8;
// A smaller table has only one shard, because many tables stay small.
const UNDIVIDED_ROWS: usize = 4_096;

/// Maps each key to a few numbers, the first of which is never 0.
pub struct ShardedTable<const C: usize> {
    shards: Vec<HashTable<Row<C>>>,
    // Anyone can write texts whose keys collide in the table, unless the seed is secret.
    seed: u64,
}

impl<const C: usize> Default for ShardedTable<C> {
    fn default() -> Self {
        ShardedTable { shards: vec![HashTable::new()], seed: RandomState::new().hash_one(0) }
    }
}

impl<const C: usize> ShardedTable<C> {
    /// Returns the number of bytes used, including the space for more keys.
    pub fn size_bytes(&self) -> usize {
        self.shards.iter().map(HashTable::allocation_size).sum()
    }

    /// Returns the numbers of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<[u32; C]> {
        let hash = hash(key, self.seed);
        self.shards[self.shard(hash)].find(hash, |row| row.0 == halves(key)).map(|row| row.1)
    }

    /// Sets the numbers of a key, or removes the key if the first number is 0. Returns the previous numbers, or
    /// zeros.
    pub fn put(&mut self, key: u64, numbers: [u32; C]) -> [u32; C] {
        if self.shards.len() == 1 && self.shards[0].len() == UNDIVIDED_ROWS {
            self.divide();
        }
        let hash = hash(key, self.seed);
        let at = self.shard(hash);
        let shard = &mut self.shards[at];
        match shard.find_entry(hash, |row| row.0 == halves(key)) {
            Ok(found) if numbers[0] == 0 => found.remove().0.1,
            Ok(mut found) => std::mem::replace(&mut found.get_mut().1, numbers),
            Err(_) => {
                if numbers[0] > 0 {
                    shard.insert_unique(hash, (halves(key), numbers), hash_of(self.seed));
                }
                [0; C]
            }
        }
    }

    /// Returns all keys and their numbers, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, [u32; C])> + '_ {
        self.shards.iter().flatten().map(|(key, numbers)| (joined(*key), *numbers))
    }

    fn divide(&mut self) {
        let rows = std::mem::take(&mut self.shards[0]);
        self.shards.resize_with(1 << SHARD_BITS, HashTable::new);
        for row in rows {
            let hash = hash_of(self.seed)(&row);
            let at = self.shard(hash);
            self.shards[at].insert_unique(hash, row, hash_of(self.seed));
        }
    }

    /// Returns the shard of a hash. The choice depends on bits that the shard does not use to find the key.
    #[inline]
    fn shard(&self, hash: u64) -> usize {
        if self.shards.len() == 1 { 0 } else { (hash >> 48) as usize & ((1 << SHARD_BITS) - 1) }
    }
}

/// Returns a hash of a key: the exclusive or of the two halves of a product.
#[inline]
fn hash(key: u64, seed: u64) -> u64 {
    let product = u128::from(key ^ seed) * u128::from(BASE);
    (product as u64) ^ ((product >> 64) as u64)
}

fn hash_of<const C: usize>(seed: u64) -> impl Fn(&Row<C>) -> u64 {
    move |row| hash(joined(row.0), seed)
}

#[inline]
fn halves(key: u64) -> [u32; 2] {
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

    /// Puts and removes keys, many of them repeatedly, and compares the table with a standard map.
    fn compare(keys: u64, steps: u64) {
        let (mut table, mut model) = (ShardedTable::<2>::default(), HashMap::new());
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
    }

    #[test]
    fn tables_of_all_sizes_agree_with_a_standard_map() {
        compare(0, 0);
        compare(20, 2_000);
        compare(3_000, 20_000);
        compare(40_000, 100_000);
    }
}
