//! The relation of a profile, which decides whether texts are near each other and whether they may share a tree.

use std::cmp::Ordering;

use bytemuck::{Pod, pod_read_unaligned};

/// The id of a node. An id of 8 bytes is the node's simhash; an id of 16 bytes is a hash of all compared fields.
pub type Id = u128;

/// A way in which a text can join a tree, as a bit: the text is near a member, and may join the root.
pub const BY_ROOT: u8 = 1;
/// The text is nearly equal to a member, and resembles the root enough.
pub const BY_MEMBER: u8 = 2;
/// The text is a later version of a member's article, and shares enough wording with the root.
pub const BY_ADDRESS: u8 = 4;

/// How a profile compares, names and indexes signatures.
pub trait Relation: Send + 'static {
    /// The compared fields, and the keys by which a node is found.
    type Signature: Pod + Send + Sync;
    /// The size of a signature in bytes.
    const SIZE: usize = size_of::<Self::Signature>();
    /// The size of an id in bytes.
    const ID_BYTES: usize;
    /// The number of representatives and addresses in a signature; they need not be distinct.
    const PLACES: usize;
    /// Whether a text joins the root with the most live leaves instead of the most similar root.
    const COUNTS_LEAVES: bool = false;

    /// Reads a signature of `SIZE` bytes.
    fn read(bytes: &[u8]) -> Self::Signature {
        pod_read_unaligned(bytes)
    }
    /// Returns the id. Two ids are equal if and only if all compared fields and the periods are equal.
    fn id(signature: &Self::Signature) -> Id;
    /// Returns the signature for an id, if ids contain signatures.
    fn signature_of(_: Id) -> Option<Self::Signature> {
        None
    }
    /// Returns whether two signatures are equal in all compared fields.
    fn are_equal(one: &Self::Signature, other: &Self::Signature) -> bool;
    /// Returns the representative at a place below `PLACES`, which may also be an address.
    fn representative(signature: &Self::Signature, place: usize) -> u64;
    /// Returns a bit for each representative that a node is indexed under; the first has the lowest bit.
    fn indexed(signature: &Self::Signature) -> u16;
    /// Returns the signature with the given `indexed` bits.
    fn with_indexed(signature: Self::Signature, indexed: u16) -> Self::Signature;
    /// Returns the signature with the retention period of its root's creation; the period becomes part of the id.
    fn with_period(signature: Self::Signature, _period: u64) -> Self::Signature {
        signature
    }
    /// Returns whether two texts have the same address or the same id.
    fn share_address(_one: &Self::Signature, _other: &Self::Signature) -> bool {
        false
    }
    /// Returns the length of a text; 0 if unknown.
    fn length(_: &Self::Signature) -> u32 {
        0
    }
    /// Returns whether a representative matches only equal representatives.
    fn is_exact(representative: u64) -> bool;

    /// Returns the maximum distance (inclusive) between two simhashes that match, at most 3.
    fn max_distance_bits(&self) -> u32;
    /// Returns how many nodes must be indexed under a representative to make it a frequent key, counting only nodes
    /// created within the retention period.
    fn max_postings(&self) -> usize;
    /// Returns whether two whole texts agree; texts that agree are near if they have a representative in common. If
    /// one text is a part of the other, also returns how the first compares with the second in size.
    fn compare(&self, _text: &Self::Signature, _other: &Self::Signature) -> (bool, Option<Ordering>) {
        (true, None)
    }
    /// Returns the ways of joining a tree that a member allows. The member has a key in common with the text.
    fn ways_by(&self, _text: &Self::Signature, _member: &Self::Signature) -> u8 {
        BY_ROOT
    }
    /// Returns the ways of joining a tree that its root allows. The text may join if `ways_by` also returns one of
    /// these ways.
    fn ways_to(&self, _text: &Self::Signature, _root: &Self::Signature) -> u8 {
        BY_ROOT
    }
    /// Returns how much a text resembles a root, 0 to 1.
    fn resemblance(text: &Self::Signature, root: &Self::Signature) -> f64;

    /// Returns whether two representatives match: they are equal, or simhashes within `max_distance_bits`.
    #[inline]
    fn in_common(&self, one: u64, other: u64) -> bool {
        one == other
            || !Self::is_exact(one)
                && !Self::is_exact(other)
                && (one ^ other).count_ones() <= self.max_distance_bits()
    }

    /// Returns the distinct representatives, each with the first place where it occurs.
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

/// The relation of profiles with one simhash per text: texts within a distance are near, and any near text may join.
#[derive(Clone, Copy)]
pub struct ByDistance {
    /// The maximum distance (inclusive) between near texts, at most 3.
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
        // No key becomes frequent, since equal texts share one node.
        usize::MAX
    }

    fn resemblance(text: &u64, root: &u64) -> f64 {
        1.0 - f64::from((text ^ root).count_ones()) / f64::from(u64::BITS)
    }
}
