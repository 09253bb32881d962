//! Columns of numbers as bytes in native byte order, which Python reads with `numpy.frombuffer`.

use bytemuck::{AnyBitPattern, NoUninit, bytes_of, pod_read_unaligned};

/// A column; Python gets it as `bytes`.
pub type Column = Vec<u8>;

/// Reads the numbers of a column.
pub fn numbers<T: AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(pod_read_unaligned).collect()
}

/// Writes a column.
pub fn column<T: NoUninit>(values: impl IntoIterator<Item = T>) -> Column {
    let values = values.into_iter();
    let mut bytes = Vec::with_capacity(values.size_hint().0 * size_of::<T>());
    values.for_each(|value| bytes.extend_from_slice(bytes_of(&value)));
    bytes
}
