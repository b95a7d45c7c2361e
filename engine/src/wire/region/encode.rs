//! Batches into regions.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::wire::{BatchEncoder, Compression, EncodeError, Encoded, Form};

use super::lay_out::Layout;
use super::shape::Shape;
use super::{HEAD_BYTES, RegionKind, padded};

/// Memory that a region is written to, from its beginning to its end.
pub trait RegionOut {
    /// Copies these bytes behind what was written before.
    fn put(&mut self, bytes: &[u8]);

    /// Writes so many zeros, fewer than 64.
    fn pad(&mut self, bytes: usize);
}

impl RegionOut for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn pad(&mut self, bytes: usize) {
        self.resize(self.len() + bytes, 0);
    }
}

/// Lays out the batches of one edge, in their order.
///
/// A batch is [prepared](Self::prepare), and then written if there is room for it. What is not
/// written is prepared again later.
pub struct RegionEncoder {
    messages: BatchEncoder,
    known: Option<Known>,
    layout: Layout,
    /// What was prepared as messages.
    encoded: Encoded,
    prepared: Option<Prepared>,
    /// What comes before the buffers, while it is put together.
    front: Vec<u8>,
}

/// The schema of the last batch.
struct Known {
    schema: SchemaRef,
    is_flat: bool,
    /// Its message, until it was written.
    message: Option<Encoded>,
}

/// How many bytes a batch takes, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Prepared {
    /// How it is written.
    pub kind: RegionKind,
    /// Bytes of the region.
    pub bytes: usize,
}

impl RegionEncoder {
    /// An encoder for an edge that has just begun.
    pub fn new() -> Self {
        Self {
            messages: BatchEncoder::new(Form::Messages { aligned: true }, Compression::None),
            known: None,
            layout: Layout::default(),
            encoded: Encoded::default(),
            prepared: None,
            front: Vec::new(),
        }
    }

    /// Lays a batch out, and says what it takes.
    ///
    /// # Errors
    /// [`EncodeError`]: the batch has no form outside of its process. The next one may.
    pub fn prepare(&mut self, batch: &RecordBatch) -> Result<Prepared, EncodeError> {
        self.give_up();
        let schema = batch.schema_ref();
        let is_known =
            |known: &Known| Arc::ptr_eq(&known.schema, schema) || known.schema == *schema;
        if !self.known.as_ref().is_some_and(is_known) {
            self.begin_schema(schema)?;
        }
        let is_flat = self.known.as_ref().is_some_and(|known| known.is_flat);
        if !is_flat {
            let encoded = self.messages.encode(batch)?;
            if let (Some(schema), Some(known)) = (encoded.schema, &mut self.known) {
                known.message = Some(schema);
            }
            self.encoded = encoded.body;
        }
        let before = match self.message() {
            Some(message) => padded(HEAD_BYTES) + padded(message.bytes()),
            None => HEAD_BYTES,
        };
        let prepared = match is_flat {
            true => {
                let (descriptor, buffers) = self.layout.begin(batch);
                Prepared {
                    kind: RegionKind::Flat,
                    bytes: padded(before + descriptor) + buffers,
                }
            }
            false => Prepared {
                kind: RegionKind::Messages,
                bytes: before + self.encoded.bytes(),
            },
        };
        self.prepared = Some(prepared);
        Ok(prepared)
    }

    /// Writes what was prepared: as many bytes as were said.
    ///
    /// # Panics
    /// If nothing was prepared.
    pub fn write(&mut self, stamp: u64, out: &mut impl RegionOut) {
        self.put(stamp, out);
        self.let_go();
    }

    /// Writes what was prepared, but holds on to it until it is to [let go](Self::let_go): that
    /// need not come before what was written is seen.
    ///
    /// # Panics
    /// If nothing was prepared.
    pub(crate) fn put(&mut self, stamp: u64, out: &mut impl RegionOut) {
        // Invariant: callers prepare before they write, whatever they were given.
        let prepared = self.prepared.take().expect("a batch was prepared");
        let message = self.known.as_mut().and_then(|known| known.message.take());
        self.front.clear();
        self.front.put(&stamp.to_le_bytes());
        let schema_bytes = message.as_ref().map_or(0, Encoded::bytes);
        self.front.put(&(schema_bytes as u64).to_le_bytes());
        if let Some(message) = message {
            self.front.pad(padded(HEAD_BYTES) - HEAD_BYTES);
            message.append_to(&mut self.front);
            self.front.pad(padded(schema_bytes) - schema_bytes);
        }
        match prepared.kind {
            RegionKind::Flat => {
                self.layout.describe(&mut self.front);
                let front = self.front.len();
                self.front.pad(padded(front) - front);
                out.put(&self.front);
                self.layout.write(out);
            }
            RegionKind::Messages => {
                out.put(&self.front);
                self.encoded.append_to(out);
            }
        }
    }

    /// Lets go of what was written.
    pub(crate) fn let_go(&mut self) {
        self.layout.clear();
        self.encoded = Encoded::default();
    }

    /// Lets go of what was prepared and not written: nothing of it is kept alive.
    pub fn give_up(&mut self) {
        let Some(prepared) = self.prepared.take() else {
            return;
        };
        self.layout.clear();
        if prepared.kind == RegionKind::Messages {
            // It may have brought dictionaries, which later batches would build on.
            self.encoded = Encoded::default();
            self.messages.forget();
            self.known = None;
        }
    }

    /// The schema, where it has to go ahead.
    fn message(&self) -> Option<&Encoded> {
        self.known.as_ref()?.message.as_ref()
    }

    fn begin_schema(&mut self, schema: &SchemaRef) -> Result<(), EncodeError> {
        self.known = None;
        self.messages.forget();
        let is_flat = Shape::of(schema).is_some();
        let message = match is_flat {
            true => {
                let nothing = RecordBatch::new_empty(Arc::clone(schema));
                self.messages.encode(&nothing)?.schema
            }
            false => None,
        };
        self.known = Some(Known {
            schema: Arc::clone(schema),
            is_flat,
            message,
        });
        Ok(())
    }
}

impl Default for RegionEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for RegionEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegionEncoder")
            .field("prepared", &self.prepared)
            .finish_non_exhaustive()
    }
}
