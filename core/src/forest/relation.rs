//! The relation of a profile: which signatures are near each other, and which may share a tree.

use std::cmp::Ordering;

use bytemuck::{Pod, pod_read_unaligned};

/// The id of a node: of 8 bytes, its simhash; of 16, a hash of all that is compared.
pub type Id = u128;

/// A way by which a text joins a tree, as a bit: it is near a member, and may join the root.
pub const BY_ROOT: u8 = 1;
/// It is all but equal to a member, and still resembles the root enough.
pub const BY_MEMBER: u8 = 2;
/// It is a later version of a member's article, and still has some of the root.
pub const BY_ADDRESS: u8 = 4;

/// How a profile compares, names and indexes signatures.
pub trait Relation: Send + 'static {
    /// What is compared, with the keys by which a node is found.
    type Signature: Pod + Send + Sync;
    /// The bytes of a signature.
    const SIZE: usize = size_of::<Self::Signature>();
    /// The bytes of an id.
    const ID_BYTES: usize;
    /// The number of representatives and addresses of a signature, which need not be distinct.
    const PLACES: usize;
    /// Whether, among several roots, the one with most live leaves is joined, not the most similar one.
    const COUNTS_LEAVES: bool = false;

    /// Reads a signature of `SIZE` bytes.
    fn read(bytes: &[u8]) -> Self::Signature {
        pod_read_unaligned(bytes)
    }
    /// Returns the id: ids are equal if and only if everything compared, and the period, is equal.
    fn id(signature: &Self::Signature) -> Id;
    /// Returns the signature with an id, if ids contain it.
    fn signature_of(_: Id) -> Option<Self::Signature> {
        None
    }
    /// Returns whether two signatures are equal in everything that is compared.
    fn are_equal(one: &Self::Signature, other: &Self::Signature) -> bool;
    /// Returns a representative, or an address as one, by its place below `PLACES`.
    fn representative(signature: &Self::Signature, place: usize) -> u64;
    /// Returns a bit for each representative that a node is indexed under, the lowest for the first.
    fn indexed(signature: &Self::Signature) -> u16;
    /// Returns the signature of a node that is indexed under these representatives.
    fn with_indexed(signature: Self::Signature, indexed: u16) -> Self::Signature;
    /// Returns a signature whose id depends on the period of the retention in which its root was made.
    fn with_period(signature: Self::Signature, _period: u64) -> Self::Signature {
        signature
    }
    /// Returns whether two texts have the same address or the same id.
    fn share_address(_one: &Self::Signature, _other: &Self::Signature) -> bool {
        false
    }
    /// Returns how long a text is; 0 where that is not known.
    fn length(_: &Self::Signature) -> u32 {
        0
    }
    /// Returns whether only equal representatives are near this one.
    fn is_exact(representative: u64) -> bool;

    /// The largest distance between two simhashes in common, inclusive, at most 3.
    fn max_distance_bits(&self) -> u32;
    /// At most this many nodes made within the retention are indexed under one representative.
    fn max_postings(&self) -> usize;
    /// Returns whether two whole texts agree: then they are near if they have a representative in common. If one is a
    /// part of the other, also returns how the first compares with the other in size.
    fn compare(&self, _text: &Self::Signature, _other: &Self::Signature) -> (bool, Option<Ordering>) {
        (true, None)
    }
    /// Returns the ways by which a text may join a tree through a member with a key in common, as far as the member
    /// allows them.
    fn ways_by(&self, _text: &Self::Signature, _member: &Self::Signature) -> u8 {
        BY_ROOT
    }
    /// Returns the ways by which a text may join the tree of a root, as far as the root allows them. It joins if one of
    /// them is in `ways_by` too.
    fn ways_to(&self, _text: &Self::Signature, _root: &Self::Signature) -> u8 {
        BY_ROOT
    }
    /// Returns how much a text resembles a root, 0 to 1.
    fn resemblance(text: &Self::Signature, root: &Self::Signature) -> f64;

    /// Returns whether two representatives count as common: equal, or simhashes within a few bits.
    #[inline]
    fn in_common(&self, one: u64, other: u64) -> bool {
        one == other
            || !Self::is_exact(one)
                && !Self::is_exact(other)
                && (one ^ other).count_ones() <= self.max_distance_bits()
    }

    /// Returns the distinct representatives, each with its first place.
    fn distinct(signature: &Self::Signature) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = move |place| Self::representative(signature, place);
        let is_first = move |place: &usize| (0..*place).all(|earlier| all(earlier) != all(*place));
        (0..Self::PLACES).filter(is_first).map(move |place| (place, all(place)))
    }

    /// Returns the representatives that a node is indexed under, with their places.
    fn keys(signature: &Self::Signature) -> impl Iterator<Item = (usize, u64)> + '_ {
        let indexed = Self::indexed(signature);
        let places = (0..Self::PLACES).filter(move |place| indexed >> place & 1 == 1);
        places.map(|place| (place, Self::representative(signature, place)))
    }
}

/// The relation of profiles with one simhash for each text: near within a distance, and all may join.
#[derive(Clone, Copy)]
pub struct ByDistance {
    /// Inclusive, at most 3.
    pub max_distance_bits: u32,
}

impl Relation for ByDistance {
    type Signature = u64;
    const ID_BYTES: usize = 8;
    const PLACES: usize = 1;
    const COUNTS_LEAVES: bool = true;

    fn id(signature: &u64) -> Id {
        Id::from(*signature)
    }

    fn signature_of(id: Id) -> Option<u64> {
        u64::try_from(id).ok()
    }

    fn are_equal(one: &u64, other: &u64) -> bool {
        one == other
    }

    fn representative(signature: &u64, _: usize) -> u64 {
        *signature
    }

    fn indexed(_: &u64) -> u16 {
        1
    }

    fn with_indexed(signature: u64, _: u16) -> u64 {
        signature
    }

    fn is_exact(_: u64) -> bool {
        false
    }

    fn max_distance_bits(&self) -> u32 {
        self.max_distance_bits
    }

    fn max_postings(&self) -> usize {
        // Never reached: equal texts share one node.
        usize::MAX
    }

    fn resemblance(text: &u64, root: &u64) -> f64 {
        1.0 - f64::from((text ^ root).count_ones()) / f64::from(u64::BITS)
    }
}
