//! Finds simhashes within 3 bits of a given simhash.
//!
//! If two such simhashes are divided into four blocks, at least one block is equal in both (Manku, Jain and Das Sarma,
//! WWW 2007). So each simhash is stored under all four blocks, with some of its bits as a tag, and a search reads 4
//! lists.
//!
//! A block begins with few lists. As the tables fill, linear hashing (Litwin, VLDB 1980) splits one list at a time,
//! until each value of the block has its own list. When very many simhashes share a list, nested tables replace
//! the list. They divide the remaining bits into blocks that each distinguish about the same number of simhashes.

use std::collections::HashMap;

use super::postings::{Postings, TAG_BITS};
use crate::hashing::mixed;

/// The maximum distance (inclusive) from the given simhash to the simhashes that a search finds.
pub const MAX_DISTANCE_BITS: u32 = 3;

const BLOCKS: usize = MAX_DISTANCE_BITS as usize + 1;
const BLOCK_BITS: u32 = u64::BITS / BLOCKS as u32;
// The average length of lists above which one list of each block is split.
const FILLED: usize = 12;
// Lists that reach one of these lengths may be replaced by nested tables. Lists of random simhashes stay shorter, and
// replacing longer lists would take too much time.
const LONG: usize = 16_384;
const LONGEST: usize = 2 * LONG;
// The minimum number of bits to divide into blocks.
const LEAST_BITS: u32 = 16;

/// A set of numbers, searched by their simhashes. The set stores only tags, so callers pass `simhash_of`, which returns
/// the simhash of a number.
pub struct SimhashTables {
    blocks: [Block; BLOCKS],
    // The lists of an address are adjacent, one for each block.
    lists: Postings,
    // There are 2^level addresses, plus one for each address below `split`, since these addresses are already split.
    level: u32,
    split: usize,
    len: usize,
    // The tables that replace long lists; `replaced` maps a list to its table. After a split, two lists share a
    // table.
    nested: Vec<SimhashTables>,
    replaced: HashMap<usize, usize>,
}

/// A selection of the bits of a simhash.
#[derive(Clone, Copy, Default)]
struct Block {
    mask: u64,
    // The position of the mask's lowest bit if its bits are contiguous; their value then needs no hashing.
    shift: Option<u32>,
    // The position of the tag's lowest bit.
    tag_shift: u32,
}

impl Block {
    #[inline]
    fn hash(self, simhash: u64) -> usize {
        let bits = simhash & self.mask;
        self.shift.map_or_else(|| mixed(bits), |shift| bits >> shift) as usize
    }

    #[inline]
    fn tag(self, simhash: u64) -> u32 {
        simhash.rotate_right(self.tag_shift) as u32 & ((1 << TAG_BITS) - 1)
    }
}

impl Default for SimhashTables {
    fn default() -> Self {
        SimhashTables::new(std::array::from_fn(|number| {
            let shift = BLOCK_BITS * number as u32;
            let mask = ((1 << BLOCK_BITS) - 1) << shift;
            Block { mask, shift: Some(shift), tag_shift: shift + BLOCK_BITS }
        }))
    }
}

impl SimhashTables {
    fn new(blocks: [Block; BLOCKS]) -> SimhashTables {
        let mut lists = Postings::default();
        (0..BLOCKS).for_each(|_| lists.push_list());
        let (nested, replaced) = (Vec::new(), HashMap::new());
        SimhashTables { blocks, lists, level: 0, split: 0, len: 0, nested, replaced }
    }

    /// Returns the memory used by the tables.
    pub fn size_bytes(&self) -> usize {
        self.lists.size_bytes() + self.nested.iter().map(SimhashTables::size_bytes).sum::<usize>()
    }

    /// Adds a number.
    pub fn add(&mut self, simhash: u64, number: u32, simhash_of: &dyn Fn(u32) -> u64) {
        self.len += 1;
        if self.len > FILLED * self.addresses() && self.level < BLOCK_BITS {
            self.split_one(simhash_of);
        }
        for (block, list) in self.lists_of(simhash) {
            if let Some(nested) = self.nested_at(list) {
                self.nested[nested].add(simhash, number, simhash_of);
                continue;
            }
            self.lists.add(list, number, block.tag(simhash));
            let count = self.lists.count(list);
            if (LONG..=LONGEST).contains(&count) && count.is_power_of_two() {
                self.replace(list, block, simhash_of);
            }
        }
    }

    /// Removes a number that the tables contain.
    pub fn remove(&mut self, simhash: u64, number: u32) {
        self.len -= 1;
        for (_, list) in self.lists_of(simhash) {
            if let Some(nested) = self.nested_at(list) {
                self.nested[nested].remove(simhash, number);
            } else {
                self.lists.remove(list, number);
            }
        }
    }

    /// Reads the beginnings of the lists that `search` will read, so that the processor fetches them in parallel.
    #[inline]
    pub fn touch(&self, simhash: u64) -> u32 {
        self.lists_of(simhash).map(|(_, list)| self.lists.touch(list)).fold(0, |sum, read| sum ^ read)
    }

    /// Finds the numbers of all simhashes within 3 bits; may also find other numbers, and repeat numbers.
    pub fn search(&self, simhash: u64, found: &mut Vec<u32>) {
        for (block, list) in self.lists_of(simhash) {
            self.lists.near(list, block.tag(simhash), |number| found.push(number));
            if let Some(nested) = self.nested_at(list) {
                self.nested[nested].search(simhash, found);
            }
        }
    }

    fn addresses(&self) -> usize {
        (1 << self.level) + self.split
    }

    /// Returns each block with the list that contains the simhash.
    #[inline]
    fn lists_of(&self, simhash: u64) -> impl Iterator<Item = (Block, usize)> + use<> {
        let (level, addresses) = (self.level, self.addresses());
        self.blocks.into_iter().enumerate().map(move |(number, block)| {
            let address = block.hash(simhash) & ((2 << level) - 1);
            let address = if address < addresses { address } else { address & ((1 << level) - 1) };
            (block, address * BLOCKS + number)
        })
    }

    #[inline]
    fn nested_at(&self, list: usize) -> Option<usize> {
        if self.replaced.is_empty() { None } else { self.replaced.get(&list).copied() }
    }

    /// Replaces a list by nested tables if the tables at least halve the cost of a search.
    fn replace(&mut self, list: usize, block: Block, simhash_of: &dyn Fn(u32) -> u64) {
        let numbers: Vec<u32> = self.lists.all(list).map(|(number, _)| number).collect();
        let simhashes: Vec<u64> = numbers.iter().map(|number| simhash_of(*number)).collect();
        // Only the bits outside the block can differ within the list.
        let bits = self.blocks.iter().fold(0, |bits, each| bits | each.mask) & !block.mask;
        let Some(blocks) = divide(bits, &simhashes) else { return };
        let mut nested = SimhashTables::new(blocks);
        for (number, simhash) in numbers.into_iter().zip(simhashes) {
            nested.add(simhash, number, simhash_of);
        }
        self.lists.clear(list);
        self.replaced.insert(list, self.nested.len());
        self.nested.push(nested);
    }

    /// Splits the lists of one address.
    fn split_one(&mut self, simhash_of: &dyn Fn(u32) -> u64) {
        let (from, to) = (self.split * BLOCKS, self.addresses() * BLOCKS);
        self.split += 1;
        if self.split == 1 << self.level {
            self.level += 1;
            self.split = 0;
        }
        for block in 0..BLOCKS {
            self.lists.push_list();
            if let Some(nested) = self.nested_at(from + block) {
                self.replaced.insert(to + block, nested);
            }
            let numbers: Vec<_> = self.lists.all(from + block).collect();
            self.lists.clear(from + block);
            for (number, tag) in numbers {
                let list = self.lists_of(simhash_of(number)).nth(block).map_or(from + block, |found| found.1);
                self.lists.add(list, number, tag);
            }
        }
    }
}

/// Divides bits into blocks that distinguish the simhashes equally well; returns None if a search in these blocks
/// would still read more than half as many numbers as in one list.
fn divide(bits: u64, simhashes: &[u64]) -> Option<[Block; BLOCKS]> {
    if bits.count_ones() < LEAST_BITS {
        return None;
    }
    let distinguished = |bit: u32| {
        let ones = simhashes.iter().filter(|simhash| **simhash >> bit & 1 == 1).count();
        ones.min(simhashes.len() - ones)
    };
    let mut order: Vec<(usize, u32)> =
        (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1).map(|bit| (distinguished(bit), bit)).collect();
    order.sort_unstable_by(|one, other| other.cmp(one));
    let best = order[..order.len() / 2].iter().fold(0, |best, each| best | 1_u64 << each.1);
    let mut blocks = [Block::default(); BLOCKS];
    for (at, (_, bit)) in order.into_iter().enumerate() {
        blocks[at % BLOCKS].mask |= 1 << bit;
    }
    let mut read = 0;
    for block in &mut blocks {
        let mut values: Vec<u64> = simhashes.iter().map(|simhash| simhash & block.mask).collect();
        values.sort_unstable();
        read += values.chunk_by(|one, other| one == other).map(|run| run.len().pow(2)).sum::<usize>();
        // The tag covers as many as possible of the best distinguishing bits outside the block.
        let covered = |shift: &u32| (best & !block.mask).rotate_right(*shift) & ((1 << TAG_BITS) - 1);
        block.tag_shift = (0..u64::BITS).max_by_key(|shift| covered(shift).count_ones()).unwrap_or(0);
    }
    (read <= simhashes.len().pow(2) / 2).then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::mixed;

    fn assert_complete(simhashes: &[u64], queries: &[u64]) -> SimhashTables {
        let mut tables = SimhashTables::default();
        let simhash_of = |number: u32| simhashes[number as usize];
        let is_removed = |number: usize| number % 5 == 0;
        for (number, simhash) in simhashes.iter().enumerate() {
            tables.add(*simhash, number as u32, &simhash_of);
        }
        for (number, simhash) in simhashes.iter().enumerate().filter(|(number, _)| is_removed(*number)) {
            tables.remove(*simhash, number as u32);
        }
        for one in queries {
            let near = |other: &u64| (one ^ other).count_ones() <= MAX_DISTANCE_BITS;
            let expected: Vec<u32> = (0..simhashes.len())
                .filter(|number| near(&simhashes[*number]) && !is_removed(*number))
                .map(|number| number as u32)
                .collect();
            let mut found = Vec::new();
            tables.search(*one, &mut found);
            assert!(found.iter().all(|number| !is_removed(*number as usize)));
            found.retain(|number| near(&simhash_of(*number)));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, expected);
        }
        tables
    }

    /// Returns simhashes with few bits set, so that many are near each other.
    fn sparse(count: u64, mask: u64) -> Vec<u64> {
        (0..count).map(|each| mixed(each) & mixed(each + 1_000_000) & mixed(each + 9) & mask).collect()
    }

    #[test]
    fn all_near_simhashes_are_found() {
        let simhashes = sparse(4_000, u64::MAX);
        let queries: Vec<u64> = (0..64).map(|bit| simhashes[bit] ^ 1 << bit ^ 3 << (63 - bit)).collect();
        assert_complete(&simhashes, &queries);
    }

    #[test]
    fn simhashes_with_a_very_frequent_block_are_found() {
        for mask in [u64::MAX >> 32, u64::MAX << 32, 0xff_ff00_ffff_0000, 0xffff, 0xff_0000_0000] {
            let simhashes: Vec<u64> = (0..LONG as u64 + 2_000).map(|each| mixed(each) & mask).collect();
            let queries: Vec<u64> = (0..40).map(|bit| simhashes[bit] ^ 1 << bit ^ 1 << (63 - bit)).collect();
            let tables = assert_complete(&simhashes, &queries);
            assert_eq!(tables.nested.is_empty(), mask.count_ones() < 16);
        }
    }

    #[test]
    fn equal_simhashes_are_stored_once_per_block() {
        let simhashes = vec![5; 2 * LONG + 2_000];
        let tables = assert_complete(&simhashes, &[2]);
        assert!(tables.size_bytes() < simhashes.len() * BLOCKS * 9);
    }
}
