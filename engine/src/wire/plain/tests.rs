//! Plain columns arrive as through the library, and what is wrong with a message is found as
//! there.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int16Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array,
};
use arrow::buffer::Buffer;
use proptest::prelude::*;

use crate::wire::ipc::{Decoded, IpcDecoder, IpcError, IpcMessage, Prefix};
use crate::wire::{BatchEncoder, Compression, Form};

/// All plain kinds, with nulls in some.
fn plain_batch(rows: usize) -> RecordBatch {
    let number = |row: usize| (row % 5 != 1).then_some(row as i64 * 7 - 3);
    let text = |row: usize| (row % 4 != 2).then(|| "é".repeat(row % 9));
    let rows = || 0..rows;
    let times = TimestampMicrosecondArray::from_iter(rows().map(number));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows().map(|row| row as i64))),
        Arc::new(Int64Array::from_iter(rows().map(number))),
        Arc::new(StringArray::from_iter(rows().map(text))),
        Arc::new(LargeStringArray::from_iter_values(
            rows().map(|row| format!("{row}")),
        )),
        Arc::new(BinaryArray::from_iter(rows().map(text))),
        Arc::new(BooleanArray::from_iter(
            rows().map(|row| (row % 3 != 0).then_some(row % 2 == 0)),
        )),
        Arc::new(UInt8Array::from_iter_values(rows().map(|row| row as u8))),
        Arc::new(Int16Array::from_iter_values(rows().map(|row| row as i16))),
        Arc::new(Float64Array::from_iter_values(
            rows().map(|row| row as f64 / 3.0),
        )),
        Arc::new(Date32Array::from_iter_values(rows().map(|row| row as i32))),
        Arc::new(times.with_timezone("Europe/Berlin")),
    ];
    let named = columns.into_iter().enumerate();
    let named = named.map(|(index, column)| (format!("c{index}"), column, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

/// Messages of the batches, of which the first goes through the library.
fn messages(batches: &[RecordBatch], aligned: bool) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut encoder = BatchEncoder::new(Form::Messages { aligned }, Compression::None);
    let mut schema = Vec::new();
    let mut bodies = Vec::new();
    for batch in batches {
        let encoded = encoder.encode(batch).unwrap();
        schema.extend(encoded.schema.iter().flat_map(|schema| schema.to_vec()));
        bodies.push(encoded.body.to_vec());
    }
    (schema, bodies)
}

/// Decodes by the long way.
fn decode(decoder: &mut IpcDecoder, message: &[u8]) -> Result<Decoded, IpcError> {
    let buffer = Buffer::from(message);
    let (Prefix::Metadata { bytes }, at) = Prefix::split(&buffer)? else {
        return Err(IpcError::malformed("an end"));
    };
    let Some((metadata, body)) = buffer[at..].split_at_checked(bytes) else {
        return Err(IpcError::malformed("metadata that is cut"));
    };
    let message = IpcMessage::open(metadata)?;
    if body.len() < message.body_bytes() {
        return Err(IpcError::malformed("a body that is cut"));
    }
    let body = buffer.slice_with_length(at + bytes, message.body_bytes());
    decoder.decode(&message, body)
}

fn decoder_of(schema: &[u8]) -> IpcDecoder {
    let mut decoder = IpcDecoder::new();
    decode(&mut decoder, schema).unwrap();
    decoder
}

#[test]
fn plain_batches_are_read_as_the_library_reads_them() {
    for aligned in [true, false] {
        for rows in [1, 2, 8, 63, 64, 65, 1000] {
            let batch = plain_batch(rows);
            let slice = batch.slice(rows / 2, rows - rows / 2);
            let front = batch.slice(0, rows.div_ceil(2));
            let batches = [batch.clone(), batch, slice, front];
            let (schema, messages) = messages(&batches, aligned);
            let mut decoder = decoder_of(&schema);
            for (message, batch) in messages.iter().zip(&batches) {
                let bytes = Buffer::from(&message[..]);
                let (plain, end) = decoder.read_plain(&bytes, 0).unwrap();
                assert_eq!((&plain, end), (batch, message.len()));
                let long = decode(&mut decoder, message).unwrap();
                assert_eq!(long, Decoded::Batch(plain));
            }
        }
    }
}

#[test]
fn a_plain_batch_is_written_as_the_library_writes_it() {
    for aligned in [true, false] {
        let batch = plain_batch(100);
        let (_, messages) = messages(&[batch.clone(), batch], aligned);
        assert_eq!(messages[0], messages[1]);
    }
}

#[test]
fn a_batch_without_rows_and_one_of_other_columns_go_the_long_way() {
    let empty = plain_batch(4).slice(0, 0);
    let (schema, messages) = messages(&[plain_batch(4), empty], true);
    let mut decoder = decoder_of(&schema);
    assert!(
        decoder
            .read_plain(&Buffer::from(&messages[1][..]), 0)
            .is_none()
    );
    let Decoded::Batch(batch) = decode(&mut decoder, &messages[1]).unwrap() else {
        panic!("a batch was sent")
    };
    assert_eq!(batch.num_rows(), 0);
}

proptest! {
    #[test]
    fn whatever_is_read_the_short_way_would_be_read_the_same_the_long_way(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        rows in 1_usize..40,
        aligned: bool,
    ) {
        let batch = plain_batch(rows);
        let (schema, mut messages) = messages(&[batch.clone(), batch], aligned);
        let mut message = messages.pop().unwrap();
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] ^= byte;
        }
        let mut decoder = decoder_of(&schema);
        let bytes = Buffer::from(&message[..]);
        if let Some((plain, _)) = decoder.read_plain(&bytes, 0) {
            // Floats are compared by their bits: a change may have made one that is no number.
            let long = decode(&mut decoder, &message).unwrap();
            prop_assert_eq!(format!("{:?}", Decoded::Batch(plain)), format!("{long:?}"));
        }
    }
}
