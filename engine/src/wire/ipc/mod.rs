//! Reads Arrow IPC messages that nobody vouches for.
//!
//! The Arrow library panics, or asks for as much memory as a message claims to need, on
//! messages that are well formed but make no sense. So a message goes through these steps, and
//! only what passed them reaches the library:
//!
//! 1. [`Prefix`]: the length of the metadata is positive and within its limit.
//! 2. [`IpcMessage::open`]: the metadata is a flatbuffer without a pointer astray, of a kind
//!    and version that can be read, and the body is within its limit.
//! 3. The schema's types make sense, or the batch has exactly the nodes and buffers that its
//!    schema asks for, each within the body and long enough for its rows.
//! 4. Compressed buffers are expanded here, to exactly what they claim; the claims of a batch
//!    together are within the limit before any is expanded.
//!
//! The library then checks the values (offsets, UTF-8, dictionary keys, run ends, views). A
//! panic of it is caught all the same, and is an error of its own: [`IpcError::Panicked`].
//!
//! Batches of plain columns whose metadata is, but for its numbers, what we would have written
//! ourselves need neither step 2 nor the library: the numbers go through the same checks, and
//! what does not pass them goes the long way, which says why.
//!
//! Big-endian data, the framing without continuation markers (before Arrow 0.15) and metadata
//! before version 4 are refused.

mod batch;
mod compressed;
mod decoder;
mod error;
mod file;
mod message;
mod plain;
mod schema;
mod stream;
mod template;

pub(in crate::wire) use decoder::panic_text;
pub use decoder::{Decoded, IpcDecoder};
pub use error::IpcError;
pub use file::IpcFileReader;
pub use message::{IpcMessage, PREFIX_BYTES, Prefix};
pub(super) use plain::Plain;
pub use stream::IpcStreamReader;
pub(super) use template::Template;
