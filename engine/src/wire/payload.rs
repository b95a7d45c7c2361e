//! Between what an edge carries and the record batches that the wire carries.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::batch::{Payload, Rows};
use crate::batcher::{BatchError, Batchable, Batcher, check_schema};

/// Calls a codec, which may be a user's. A panic of it is an error of its edge, and not of all
/// others whose connections the thread drives.
///
/// # Errors
/// That of the codec, or the message of its panic, as text.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, BatchError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "no message".to_owned());
            Err(format!("the batcher panicked: {text}"))
        }
    }
}

/// Turns payloads into record batches and back. Given to an edge when it is opened, so that a
/// payload which never leaves its process needs none.
pub trait PayloadCodec<B>: Send + Sync {
    /// The schema of every batch, if it is fixed. A peer that sends another is refused.
    fn schema(&self) -> Option<SchemaRef>;

    /// The payload itself, if it is a record batch that goes as it is: it can be written from
    /// where it is, and is still there if it found no room. None, which is the default, where
    /// it has to be [encoded](Self::encode).
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    fn as_record<'a>(&self, payload: &'a B) -> Option<Result<&'a RecordBatch, BatchError>> {
        let _ = payload;
        None
    }

    /// The payload as a record batch.
    ///
    /// # Errors
    /// [`BatchError`], where the payload has no such form: it can't be sent.
    fn encode(&self, payload: B) -> Result<RecordBatch, BatchError>;

    /// The payload in a record batch, whose schema was compared with
    /// [`schema`](Self::schema) before.
    ///
    /// # Errors
    /// [`BatchError`], where the batch holds no such payload: its sender is at fault.
    fn decode(&self, batch: RecordBatch) -> Result<B, BatchError>;
}

/// A payload that knows how it goes over a wire.
pub trait Wired: Payload {
    /// The codec of this payload.
    fn codec() -> Arc<dyn PayloadCodec<Self>>;
}

/// Record batches, as they are.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    schema: Option<SchemaRef>,
}

/// Typed rows, through their batcher.
#[derive(Clone)]
pub struct Typed<T> {
    batcher: Arc<dyn Batcher<T>>,
}

impl Columns {
    /// Batches of any schema, which may change from one to the next.
    pub fn any() -> Self {
        Self { schema: None }
    }

    /// Batches of this schema only, metadata aside.
    pub fn of(schema: SchemaRef) -> Self {
        Self {
            schema: Some(schema),
        }
    }

    fn check(&self, batch: &RecordBatch) -> Result<(), BatchError> {
        match &self.schema {
            Some(expected) if !Arc::ptr_eq(expected, batch.schema_ref()) => {
                check_schema(batch.schema_ref(), expected)
            }
            _ => Ok(()),
        }
    }
}

impl<T> Typed<T> {
    /// Rows that this batcher turns into columns.
    pub fn new(batcher: Arc<dyn Batcher<T>>) -> Self {
        Self { batcher }
    }
}

impl PayloadCodec<RecordBatch> for Columns {
    fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }

    fn as_record<'a>(&self, batch: &'a RecordBatch) -> Option<Result<&'a RecordBatch, BatchError>> {
        Some(self.check(batch).map(|()| batch))
    }

    fn encode(&self, batch: RecordBatch) -> Result<RecordBatch, BatchError> {
        self.check(&batch)?;
        Ok(batch)
    }

    fn decode(&self, batch: RecordBatch) -> Result<RecordBatch, BatchError> {
        Ok(batch)
    }
}

impl<T> PayloadCodec<Rows<T>> for Typed<T> {
    fn schema(&self) -> Option<SchemaRef> {
        Some(self.batcher.schema())
    }

    fn encode(&self, rows: Rows<T>) -> Result<RecordBatch, BatchError> {
        self.batcher.build(&rows)
    }

    fn decode(&self, batch: RecordBatch) -> Result<Rows<T>, BatchError> {
        self.batcher.parse(&batch)
    }
}

impl Wired for RecordBatch {
    fn codec() -> Arc<dyn PayloadCodec<Self>> {
        Arc::new(Columns::any())
    }
}

impl<T: Batchable + Clone + Send> Wired for Rows<T> {
    fn codec() -> Arc<dyn PayloadCodec<Self>> {
        Arc::new(Typed::new(T::batcher()))
    }
}

impl<T> fmt::Debug for Typed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").finish_non_exhaustive()
    }
}
