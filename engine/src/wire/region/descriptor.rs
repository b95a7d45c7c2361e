//! What stands before the buffers of a batch.
//!
//! All numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | rows |
//! | 4 | columns at any depth |
//! | 4 | buffers |
//! | 4 | columns of views |
//! | 4 | zero |
//! | 16 each | a column: values, nulls |
//! | 8 each | the length of a buffer in bytes |
//! | 8 each | buffers behind the views of a column |
//!
//! The first buffer begins at the next multiple of 64 bytes of the region, and each other one at
//! the next after the one before it has ended. So no place is said and no two overlap.

use super::decode::RegionError;
use super::shape::Shape;
use crate::limits::IPC_ITEMS_MAX;

const HEAD_BYTES: usize = 24;
const NODE_BYTES: usize = 16;
const LENGTH_BYTES: usize = 8;

/// How many values a column has, and how many of them are null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) length: usize,
    pub(super) nulls: usize,
}

/// Bytes of a descriptor.
pub(super) fn bytes(nodes: usize, buffers: usize, views: usize) -> usize {
    HEAD_BYTES + nodes * NODE_BYTES + (buffers + views) * LENGTH_BYTES
}

/// Appends a descriptor.
pub(super) fn write(
    out: &mut Vec<u8>,
    rows: usize,
    nodes: &[Node],
    buffers: impl ExactSizeIterator<Item = usize>,
    views: &[usize],
) {
    out.extend_from_slice(&(rows as u64).to_le_bytes());
    for count in [nodes.len(), buffers.len(), views.len(), 0] {
        out.extend_from_slice(&(count as u32).to_le_bytes());
    }
    for node in nodes {
        out.extend_from_slice(&(node.length as u64).to_le_bytes());
        out.extend_from_slice(&(node.nulls as u64).to_le_bytes());
    }
    for length in buffers.chain(views.iter().copied()) {
        out.extend_from_slice(&(length as u64).to_le_bytes());
    }
}

/// A descriptor that was copied out of a region: nobody changes it any more.
#[derive(Debug, Default)]
pub(super) struct Descriptor {
    bytes: Vec<u8>,
    pub(super) rows: usize,
    nodes: usize,
    buffers: usize,
}

impl Descriptor {
    /// Copies the descriptor of a batch of this shape, and returns its length.
    ///
    /// # Errors
    /// It is longer than the region, or not that of such a batch.
    pub(super) fn read(&mut self, region: &[u8], shape: Shape) -> Result<usize, RegionError> {
        self.bytes.clear();
        let head = region.get(..HEAD_BYTES);
        self.bytes
            .extend_from_slice(head.ok_or_else(|| too_short(region))?);
        let count = |at: usize| u32_at(&self.bytes, at) as usize;
        let (nodes, buffers, views) = (count(8), count(12), count(16));
        if nodes != shape.nodes || views != shape.views || buffers < shape.buffers {
            return Err(RegionError::malformed(format_args!(
                "{nodes} columns, {buffers} buffers and {views} columns of views, where the \
                 schema has {}, {} and {}",
                shape.nodes, shape.buffers, shape.views
            )));
        }
        // None of these products can overflow: each factor is a number of 32 bits.
        let bytes = bytes(nodes, buffers, views);
        let body = region.get(HEAD_BYTES..bytes);
        self.bytes
            .extend_from_slice(body.ok_or_else(|| too_short(region))?);
        self.rows = length(u64_at(&self.bytes, 0))?;
        (self.nodes, self.buffers) = (nodes, buffers);
        Ok(bytes)
    }

    /// How many buffers there are.
    pub(super) fn buffers(&self) -> usize {
        self.buffers
    }

    /// Column number `index`.
    pub(super) fn node(&self, index: usize) -> Result<Node, RegionError> {
        debug_assert!(index < self.nodes, "the shape was compared");
        let at = HEAD_BYTES + index * NODE_BYTES;
        let node = Node {
            length: length(u64_at(&self.bytes, at))?,
            nulls: length(u64_at(&self.bytes, at + 8))?,
        };
        match node.nulls <= node.length {
            true => Ok(node),
            false => Err(RegionError::malformed(format_args!(
                "{} nulls in {} values",
                node.nulls, node.length
            ))),
        }
    }

    /// The length of buffer number `index`, which is there.
    pub(super) fn buffer(&self, index: usize) -> Result<usize, RegionError> {
        self.length(index)
    }

    /// How many buffers are behind the views of column number `index` of those.
    pub(super) fn view_buffers(&self, index: usize) -> Result<usize, RegionError> {
        self.length(self.buffers + index)
    }

    fn length(&self, index: usize) -> Result<usize, RegionError> {
        let at = HEAD_BYTES + self.nodes * NODE_BYTES + index * LENGTH_BYTES;
        length(u64_at(&self.bytes, at))
    }
}

fn too_short(region: &[u8]) -> RegionError {
    let bytes = region.len();
    RegionError::malformed(format_args!("a descriptor that ends behind {bytes} bytes"))
}

/// A length or count: types without buffers have no other bound, and sums and small multiples
/// of what is within it are right.
fn length(claimed: u64) -> Result<usize, RegionError> {
    match usize::try_from(claimed) {
        Ok(length) if length <= IPC_ITEMS_MAX => Ok(length),
        _ => Err(RegionError::malformed(format_args!(
            "{claimed} values or bytes"
        ))),
    }
}

/// The callers know that so many bytes are there; 0 where they are wrong.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
