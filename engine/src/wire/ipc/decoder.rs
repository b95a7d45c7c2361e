//! Turns checked messages into batches.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{read_dictionary, read_record_batch};
use arrow::ipc::{DictionaryBatch, MessageHeader};

use crate::limits::IPC_DICTIONARY_BYTES_MAX;

use super::IpcMessage;
use super::batch::check_batch;
use super::compressed::expand;
use super::error::{IpcError, bounded};
use super::plain::PlainReader;
use super::schema::check_schema;

/// What a message was.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// The schema of what follows.
    Schema(SchemaRef),
    /// Values that keys of batches to come point to.
    Dictionary,
    /// Rows.
    Batch(RecordBatch),
}

/// Decodes the messages of one stream, in their order.
///
/// It holds the schema and the dictionaries of the stream, at most
/// [`IPC_DICTIONARY_BYTES_MAX`] of them. After an error it is of no more use.
#[derive(Debug, Default)]
pub struct IpcDecoder {
    schema: Option<SchemaRef>,
    /// Reads batches of that schema, if its columns are plain.
    plain: Option<Arc<PlainReader>>,
    dictionaries: HashMap<i64, ArrayRef>,
    refuses_compressed: bool,
}

impl IpcDecoder {
    /// A decoder of a stream that begins with its schema.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), of a stream in which nothing is compressed: then a batch takes no
    /// more memory than its message.
    pub(in crate::wire) fn of_uncompressed() -> Self {
        Self {
            refuses_compressed: true,
            ..Self::default()
        }
    }

    /// A decoder of another stream with the schema of this one.
    pub(in crate::wire) fn with_schema_of(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            plain: self.plain.clone(),
            dictionaries: HashMap::new(),
            refuses_compressed: self.refuses_compressed,
        }
    }

    /// A decoder of another stream, of the same kind.
    pub(in crate::wire) fn of_another(&self) -> Self {
        Self {
            refuses_compressed: self.refuses_compressed,
            ..Self::default()
        }
    }

    /// The batch of the message that begins at `at` in `bytes`, if it is a plain one, and where
    /// its body ends.
    pub(in crate::wire) fn read_plain(
        &self,
        bytes: &Buffer,
        at: usize,
    ) -> Option<(RecordBatch, usize)> {
        self.plain.as_ref()?.read(bytes, at)
    }

    /// The schema, once it came.
    pub const fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// Decodes `message` with its `body`, which batches may go on using. They need no copy
    /// where the body is aligned to 16 bytes or more in memory, and is not compressed.
    ///
    /// # Errors
    /// [`IpcError`] when the message cannot be read, or must not come now. The stream has
    /// ended then.
    pub fn decode(&mut self, message: &IpcMessage<'_>, body: Buffer) -> Result<Decoded, IpcError> {
        if body.len() != message.body_bytes() {
            let (due, given) = (message.body_bytes(), body.len());
            return Err(IpcError::malformed(format_args!(
                "a body of {given} bytes where {due} are announced"
            )));
        }
        let root = message.message();
        if root.header_type() == MessageHeader::Schema {
            return self.decode_schema(message);
        }
        let dictionary = root.header_as_dictionary_batch();
        let batch = match dictionary {
            Some(dictionary) => dictionary.data(),
            None => root.header_as_record_batch(),
        };
        let batch = batch.ok_or_else(|| IpcError::malformed("a message without a batch"))?;
        if self.refuses_compressed && batch.compression().is_some() {
            return Err(IpcError::malformed("a compressed batch where none may be"));
        }
        match expand(message, batch, &body)? {
            None => self.decode_plain(message, &body),
            Some(expanded) => {
                let message = IpcMessage::open(&expanded.metadata)?;
                self.decode_plain(&message, &expanded.body)
            }
        }
    }

    fn decode_schema(&mut self, message: &IpcMessage<'_>) -> Result<Decoded, IpcError> {
        if self.schema.is_some() {
            return Err(IpcError::malformed("a second schema"));
        }
        let schema = message.message().header_as_schema();
        let schema = schema.ok_or_else(|| IpcError::malformed("a message without a schema"))?;
        self.set_schema(schema).map(Decoded::Schema)
    }

    /// Takes the schema of the stream from where a file has it.
    pub(super) fn set_schema(
        &mut self,
        schema: arrow::ipc::Schema<'_>,
    ) -> Result<SchemaRef, IpcError> {
        check_schema(schema)?;
        let schema = Arc::new(guarded(|| Ok(fb_to_schema(schema)))?);
        self.schema = Some(schema.clone());
        self.plain = PlainReader::new(&schema).map(Arc::new);
        Ok(schema)
    }

    fn decode_plain(
        &mut self,
        message: &IpcMessage<'_>,
        body: &Buffer,
    ) -> Result<Decoded, IpcError> {
        let Some(schema) = self.schema.clone() else {
            return Err(IpcError::malformed("a batch before the schema"));
        };
        let (root, version) = (message.message(), message.message().version());
        if let Some(dictionary) = root.header_as_dictionary_batch() {
            let (id, data) = (dictionary.id(), dictionary.data());
            let data = data.ok_or_else(|| IpcError::malformed("a dictionary without values"))?;
            let value = dictionary_values(&schema, id)?;
            check_batch(data, version, std::iter::once(&value), body)?;
            self.add_dictionary(dictionary, &schema, body, version)?;
            return Ok(Decoded::Dictionary);
        }
        let Some(batch) = root.header_as_record_batch() else {
            return Err(IpcError::malformed("a message without a batch"));
        };
        let fields = schema.fields().iter().map(AsRef::as_ref);
        check_batch(batch, version, fields, body)?;
        let dictionaries = &self.dictionaries;
        let batch = guarded(|| {
            read_record_batch(body, batch, schema.clone(), dictionaries, None, &version)
        })?;
        Ok(Decoded::Batch(batch))
    }

    fn add_dictionary(
        &mut self,
        dictionary: DictionaryBatch<'_>,
        schema: &Schema,
        body: &Buffer,
        version: arrow::ipc::MetadataVersion,
    ) -> Result<(), IpcError> {
        let dictionaries = &mut self.dictionaries;
        guarded(|| read_dictionary(body, dictionary, schema, dictionaries, &version))?;
        let mut total = 0_i64;
        for values in self.dictionaries.values() {
            let bytes = values.to_data().get_slice_memory_size();
            let bytes = bytes.map_err(|error| IpcError::Values(error.to_string()))?;
            total = total.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        let what = "bytes of all dictionaries of a stream";
        bounded(what, total, IPC_DICTIONARY_BYTES_MAX).map(drop)
    }
}

/// The field of the values of dictionary `id`.
fn dictionary_values(schema: &Schema, id: i64) -> Result<Field, IpcError> {
    // The id of a dictionary is in the message only; where the library keeps it is deprecated
    // without another place to look.
    #[allow(deprecated)]
    let fields = schema.fields_with_dict_id(id);
    match fields.first().map(|field| field.data_type()) {
        Some(DataType::Dictionary(_, values)) => Ok(Field::new("", values.as_ref().clone(), true)),
        _ => Err(IpcError::malformed(format_args!(
            "the dictionary {id}, which is in no field"
        ))),
    }
}

/// Calls the library, whose panics must not take other streams with them.
fn guarded<T>(call: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, IpcError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(IpcError::Values(error.to_string())),
        Err(panic) => Err(IpcError::Panicked(panic_text(&*panic))),
    }
}

pub(in crate::wire) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
