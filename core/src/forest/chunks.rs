//! Columns that grow by one chunk at a time, so that growing rarely copies items.

use std::ops::{Index, IndexMut};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use memmap2::MmapMut;

const CHUNK_BITS: u32 = 15;
const CHUNK: usize = 1 << CHUNK_BITS;

enum Chunk<T> {
    Small(Vec<T>),
    /// Memory in huge pages, if the system has them; they make random look-ups faster, because the processor can
    /// cache the addresses of more memory.
    Large(MmapMut),
}

impl<T: Pod> Chunk<T> {
    fn new() -> Chunk<T> {
        let memory = MmapMut::map_anon(CHUNK * size_of::<T>()).expect("memory for another chunk");
        #[cfg(target_os = "linux")]
        // A kernel without huge pages rejects the advice, and uses ordinary pages.
        let _ = memory.advise(memmap2::Advice::HugePage);
        Chunk::Large(memory)
    }

    #[inline]
    fn items(&self) -> &[T] {
        match self {
            Chunk::Small(items) => items,
            Chunk::Large(memory) => cast_slice(memory),
        }
    }

    #[inline]
    fn items_mut(&mut self) -> &mut [T] {
        match self {
            Chunk::Small(items) => items,
            Chunk::Large(memory) => cast_slice_mut(memory),
        }
    }
}

/// Numbered items.
pub struct Chunks<T> {
    chunks: Vec<Chunk<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Pod> Chunks<T> {
    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds an item; its number is `len` before the call.
    pub fn push(&mut self, item: T) {
        if self.len == self.chunks.len() << CHUNK_BITS {
            // A small forest needs only this growing vector.
            self.chunks.push(if self.len == 0 { Chunk::Small(Vec::new()) } else { Chunk::new() });
        }
        match &mut self.chunks[self.len >> CHUNK_BITS] {
            Chunk::Small(items) if self.len < CHUNK => items.push(item),
            chunk => chunk.items_mut()[self.len & (CHUNK - 1)] = item,
        }
        self.len += 1;
    }

    /// Returns `count` consecutive items, all of which must be in one chunk.
    #[inline]
    pub fn slice(&self, first: usize, count: usize) -> &[T] {
        &self.chunks[first >> CHUNK_BITS].items()[first & (CHUNK - 1)..][..count]
    }

    /// Returns `count` consecutive items of one chunk, mutable.
    pub fn slice_mut(&mut self, first: usize, count: usize) -> &mut [T] {
        &mut self.chunks[first >> CHUNK_BITS].items_mut()[first & (CHUNK - 1)..][..count]
    }

    /// Returns the memory used by the items. The system does not allocate the unused part of a chunk.
    pub fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: Pod> Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        &self.chunks[number >> CHUNK_BITS].items()[number & (CHUNK - 1)]
    }
}

impl<T: Pod> IndexMut<usize> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.chunks[number >> CHUNK_BITS].items_mut()[number & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_numbers_in_small_and_large_chunks() {
        let mut chunks = Chunks::default();
        for number in 0..100_000_u64 {
            assert_eq!(chunks.len() as u64, number);
            chunks.push(number);
        }
        chunks[90_000] += 1;
        assert!((0..100_000).all(|number| chunks[number] == number as u64 + u64::from(number == 90_000)));
    }
}
