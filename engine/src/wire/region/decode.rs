//! Regions into batches.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bytes::Bytes;

use crate::limits::BATCH_ROWS_MAX;
use crate::wire::BatchDecoder;
use crate::wire::encode::Owned;
use crate::wire::ipc::{IpcError, panic_text};

use super::arrays::Columns;
use super::descriptor::Descriptor;
use super::shape::Shape;
use super::{HEAD_BYTES, REGION_ALIGNMENT, RegionKind, padded};

/// Why a region is refused. Nothing after it can be read either; batches before it are good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// It is not laid out as its schema asks for: its writer is defective, or something else.
    #[error("malformed region: {0}")]
    Malformed(String),
    /// What is in it as messages of Arrow IPC is refused.
    #[error(transparent)]
    Messages(#[from] IpcError),
}

/// Makes batches from the regions of one edge, in their order.
#[derive(Debug, Default)]
pub struct RegionDecoder {
    messages: BatchDecoder,
    known: Option<(SchemaRef, Option<Shape>)>,
    descriptor: Descriptor,
    copies: bool,
    stamp: u64,
    copied_bytes: u64,
}

impl RegionError {
    pub(super) fn malformed(what: impl Display) -> Self {
        Self::Malformed(what.to_string())
    }
}

impl RegionDecoder {
    /// A decoder for an edge that has just begun. If it `copies`, batches use no memory of
    /// their region: for a writer that is trusted with nothing.
    pub fn new(copies: bool) -> Self {
        Self {
            // A peer could make a little memory much otherwise.
            messages: BatchDecoder::of_uncompressed(),
            copies,
            ..Self::default()
        }
    }

    /// Bytes of buffers that were copied so far.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Makes the batch of a region, which it goes on using.
    ///
    /// # Errors
    /// [`RegionError`]: the stream has ended.
    pub fn decode(&mut self, kind: RegionKind, region: Bytes) -> Result<RecordBatch, RegionError> {
        let body = self.open(&region)?;
        match kind {
            RegionKind::Flat => self.decode_flat(region, body, self.copies),
            RegionKind::Messages => self.decode_messages(&region[body..]),
        }
    }

    /// Makes the batch of a region, of which it uses nothing afterwards.
    ///
    /// # Errors
    /// [`RegionError`]: the stream has ended.
    pub fn decode_copied(
        &mut self,
        kind: RegionKind,
        region: &[u8],
    ) -> Result<RecordBatch, RegionError> {
        match kind {
            RegionKind::Flat => {
                // In one piece: many buffers of their own would cost more.
                self.copied_bytes += region.len() as u64;
                let region = copied(region);
                let body = self.open(&region)?;
                self.decode_flat(region, body, false)
            }
            RegionKind::Messages => {
                let body = self.open(region)?;
                self.decode_messages(&region[body..])
            }
        }
    }

    /// What its writer stamped the last batch with.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Takes in what comes before the batch, and returns where that begins.
    fn open(&mut self, region: &[u8]) -> Result<usize, RegionError> {
        let Some(head) = region.first_chunk::<HEAD_BYTES>() else {
            let bytes = region.len();
            return Err(RegionError::malformed(format_args!("{bytes} bytes")));
        };
        // Read once: it may change.
        let head = u128::from_le_bytes(*head);
        self.stamp = head as u64;
        let schema_bytes = usize::try_from((head >> 64) as u64).unwrap_or(usize::MAX);
        if schema_bytes == 0 {
            return Ok(HEAD_BYTES);
        }
        let start = padded(HEAD_BYTES);
        let schema = start
            .checked_add(schema_bytes)
            .and_then(|end| region.get(start..end));
        let Some(schema) = schema else {
            return Err(RegionError::malformed(format_args!(
                "a schema of {schema_bytes} bytes"
            )));
        };
        let schema = self.messages.decode_schema(copied(schema))?;
        let shape = Shape::of(&schema);
        self.known = Some((schema, shape));
        let body = start + padded(schema_bytes);
        match body <= region.len() {
            true => Ok(body),
            false => Err(RegionError::malformed("a schema without a batch")),
        }
    }

    /// The schema that was said last.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.known.as_ref().map(|(schema, _)| schema)
    }

    fn decode_messages(&mut self, region: &[u8]) -> Result<RecordBatch, RegionError> {
        self.copied_bytes += region.len() as u64;
        let mut batches = Vec::with_capacity(1);
        self.messages
            .decode_messages(copied(region), &mut batches)?;
        match (batches.pop(), batches.is_empty()) {
            (Some(batch), true) => Ok(batch),
            _ => Err(RegionError::malformed("more than one batch")),
        }
    }

    fn decode_flat(
        &mut self,
        region: Bytes,
        body: usize,
        copies: bool,
    ) -> Result<RecordBatch, RegionError> {
        let (schema, shape) = match &self.known {
            Some((schema, Some(shape))) => (Arc::clone(schema), *shape),
            Some((_, None)) => return Err(RegionError::malformed("a schema without a flat form")),
            None => return Err(RegionError::malformed("a batch before its schema")),
        };
        let start = body + self.descriptor.read(&region[body..], shape)?;
        let rows = self.descriptor.rows;
        if rows > BATCH_ROWS_MAX {
            return Err(RegionError::malformed(format_args!("{rows} rows")));
        }
        let is_aligned = region.as_ptr().addr().is_multiple_of(REGION_ALIGNMENT);
        let region = Buffer::from(region);
        let copies = copies || !is_aligned;
        let mut columns = Columns::new(&self.descriptor, &region, padded(start), copies);
        let batch = guarded(|| {
            let arrays = columns.read(&schema, rows)?;
            batch(schema, arrays, rows)
        });
        self.copied_bytes += columns.copied_bytes();
        batch
    }
}

fn batch(
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, RegionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(refused)
}

/// The library refuses the values.
pub(super) fn refused(error: ArrowError) -> RegionError {
    RegionError::malformed(error)
}

/// Calls the library, whose panics must not take other edges with them.
fn guarded<T>(call: impl FnOnce() -> Result<T, RegionError>) -> Result<T, RegionError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        Err(RegionError::Messages(IpcError::Panicked(text)))
    })
}

/// A copy that is aligned for any type.
fn copied(region: &[u8]) -> Bytes {
    Bytes::from_owner(Owned(Buffer::from(region)))
}
