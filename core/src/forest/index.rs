//! Stores signatures by row, and searches for the signatures near a given one.

use std::hint::black_box;

use super::chunks::Chunks;
use super::relation::Relation;
use super::simhash_tables::SimhashTables;
use super::table::Table;
use crate::hashing::BASE;

/// The result of a search; pass it to the next search to reuse its memory.
#[derive(Default, Debug)]
pub struct Matches {
    /// Rows whose signatures are equal in all compared fields.
    pub equal: Vec<u32>,
    /// Near rows, including equal ones: distinct, ascending.
    pub near: Vec<u32>,
    /// Rows that are not near, but whose text contains the searched text or is a part of it: distinct, ascending.
    pub linked: Vec<u32>,
    /// Rows with the same address, near or not, except equal rows.
    pub versions: Vec<u32>,
    /// Distinct pairs: a representative's place in the searched signature, and a row indexed under its value.
    pub postings: Vec<(usize, u32)>,
    numbers: Vec<u32>,
}

/// Signatures by row; removed rows are reused.
pub struct Index<R: Relation> {
    /// Defines which signatures are near each other.
    pub relation: R,
    signatures: Chunks<R::Signature>,
    free: Vec<u32>,
    // Both tables contain representatives by number: `row * PLACES + place`.
    simhashes: SimhashTables,
    exact: Table,
}

impl<R: Relation> Index<R> {
    /// Creates an empty index.
    pub fn new(relation: R) -> Index<R> {
        Index {
            relation,
            signatures: Chunks::default(),
            free: Vec::new(),
            simhashes: SimhashTables::default(),
            exact: Table::default(),
        }
    }

    /// Returns the number of signatures.
    pub fn len(&self) -> usize {
        self.signatures.len() - self.free.len()
    }

    /// Returns whether the index has no signatures.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory used by the index.
    pub fn size_bytes(&self) -> usize {
        let tables = self.simhashes.size_bytes() + self.exact.size_bytes();
        tables + self.signatures.size_bytes() + self.free.capacity() * size_of::<u32>()
    }

    /// Returns the signature of a row.
    #[inline]
    pub fn signature(&self, row: u32) -> &R::Signature {
        &self.signatures[row as usize]
    }

    /// Adds a signature under the representatives in its `indexed` bits; returns its row.
    pub fn add(&mut self, signature: R::Signature) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            let end = self.signatures.len();
            // `content_hashes` uses the highest bit of a row.
            assert!(end < u32::MAX as usize / R::PLACES.max(2), "a forest in memory is full");
            self.signatures.push(signature);
            end as u32
        });
        self.signatures[row as usize] = signature;
        let signatures = &self.signatures;
        let of = |number: u32| {
            R::representative(&signatures[number as usize / R::PLACES], number as usize % R::PLACES)
        };
        for (place, key) in R::keys(&signature) {
            let number = row * R::PLACES as u32 + place as u32;
            if R::is_exact(key) {
                self.exact.add(exact_hash(key), number, |number| exact_hash(of(number)));
            } else {
                self.simhashes.add(key, number, &of);
            }
        }
        row
    }

    /// Removes the signature in a row.
    pub fn remove(&mut self, row: u32) {
        let signature = self.signatures[row as usize];
        for (place, key) in R::keys(&signature) {
            let number = row * R::PLACES as u32 + place as u32;
            if R::is_exact(key) {
                self.exact.remove(exact_hash(key), number);
            } else {
                self.simhashes.remove(key, number);
            }
        }
        self.free.push(row);
    }

    /// Searches for rows that have a representative in common with a signature, and compares them with it.
    pub fn search(&self, signature: &R::Signature, found: &mut Matches) {
        let Matches { equal, near, linked, versions, postings, numbers } = found;
        equal.clear();
        near.clear();
        linked.clear();
        versions.clear();
        postings.clear();
        self.touch(signature);
        for (place, key) in R::distinct(signature) {
            numbers.clear();
            if R::is_exact(key) {
                self.exact.scan(exact_hash(key), &mut |number| numbers.push(number));
            } else {
                self.simhashes.search(key, numbers);
                numbers.sort_unstable();
                numbers.dedup();
            }
            for number in numbers.iter().map(|number| *number as usize) {
                let row = number / R::PLACES;
                let other = R::representative(&self.signatures[row], number % R::PLACES);
                if key == other {
                    postings.push((place, row as u32));
                }
                if self.relation.in_common(key, other) {
                    near.push(row as u32);
                }
            }
        }
        near.sort_unstable();
        near.dedup();
        near.retain(|row| {
            let other = self.signature(*row);
            if R::are_equal(signature, other) {
                equal.push(*row);
                return true;
            }
            if R::share_address(signature, other) {
                versions.push(*row);
            }
            let (agrees, part) = self.relation.compare(signature, other);
            if part.is_some() && !agrees {
                linked.push(*row);
            }
            agrees
        });
    }

    /// Reads the buckets that a search will scan, so that the processor fetches them in parallel.
    fn touch(&self, signature: &R::Signature) {
        let mut read = 0;
        for (_, key) in R::distinct(signature) {
            read ^=
                if R::is_exact(key) { self.exact.touch(exact_hash(key)) } else { self.simhashes.touch(key) };
        }
        black_box(read);
    }
}

fn exact_hash(key: u64) -> u32 {
    (key.wrapping_mul(BASE) >> 32) as u32
}
