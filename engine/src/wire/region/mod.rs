//! Record batches in a region of memory, for an edge whose schema was said once.
//!
//! A message of Arrow IPC describes its columns in a table of its own, which costs about half a
//! microsecond to make and as much to check: more than the rest of a batch of one row. Where
//! both ends know the schema the columns need no description. What is left is how many values
//! and nulls each has and how long its buffers are: the descriptor, and behind
//! it the buffers, each at a multiple of 64 bytes, in the order of Arrow IPC.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | a stamp: a number of the writer's that goes with the batch |
//! | 8 | the length of the schema, 0 where it was said before |
//! | | the schema, as a message of Arrow IPC, from the next multiple of 64 to the next |
//! | | the descriptor and its buffers, or messages of Arrow IPC |
//!
//! - [`RegionEncoder`] says how many bytes a batch takes, and writes it into memory of that
//!   length: once, straight from the columns. Of a slice it writes the sliced part.
//! - [`RegionDecoder`] makes the batch from the region and goes on using its memory. Whoever
//!   wrote it may be able to write to it still, so whatever decides whether reading is safe is
//!   copied first and the copy is checked: the schema, the descriptor, offsets, views, text,
//!   and every bitmap. Values of a fixed width and binary values stay where they are.
//!
//! Dictionaries, run ends, unions and views of lists have no such form: batches with one of
//! them are messages of Arrow IPC, as on the wire, and are always copied out of the region.

mod arrays;
mod decode;
mod descriptor;
mod encode;
mod lay_out;
mod shape;

pub use decode::{RegionDecoder, RegionError};
pub use encode::{Prepared, RegionEncoder, RegionOut};

/// How a region holds its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// A descriptor with its buffers.
    Flat,
    /// A batch as messages of Arrow IPC, dictionaries before it.
    Messages,
}

/// Every buffer begins at a multiple of this, and so does the region: no type needs more, and
/// no two buffers share a line of the cache.
pub const REGION_ALIGNMENT: usize = 64;

/// Bytes of the stamp and the length of the schema.
const HEAD_BYTES: usize = 16;

const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(REGION_ALIGNMENT)
}

#[cfg(test)]
mod tests;
