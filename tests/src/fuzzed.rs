//! What is done with bytes that nobody vouches for.
//!
//! Each function takes any bytes, and panics where a promise is broken: `tests/fuzz` searches for
//! such bytes, and `fuzz_corpus` tries those that are kept, and changes of them, in every run of
//! the tests.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use bytes::Bytes;
use ringway::expr::Expr;
use ringway::wire::ipc::{IpcError, IpcFileReader, IpcStreamReader};
use ringway::wire::region::{RegionDecoder, RegionEncoder, RegionKind};
use ringway::wire::{BatchDecoder, BatchEncoder, Compression, EncodedBatch, Form};

use crate::columns::columns;

/// Does something with any bytes.
pub type Fuzzed = fn(&[u8]);

/// Every function by the name of its target and of its folder of bytes.
pub const TARGETS: [(&str, Fuzzed); 5] = [
    ("ipc_stream", ipc_stream),
    ("ipc_file", ipc_file),
    ("frame_bodies", frame_bodies),
    ("region", region),
    ("expression", expression),
];

/// An Arrow stream: batches, or an error that is not a panic of the library.
pub fn ipc_stream(bytes: &[u8]) {
    let mut reader = match IpcStreamReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return refused(&error),
    };
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => sound(&batch),
            Ok(None) => return,
            Err(error) => return refused(&error),
        }
    }
}

/// An Arrow file: the same.
pub fn ipc_file(bytes: &[u8]) {
    let mut reader = match IpcFileReader::new(std::io::Cursor::new(bytes)) {
        Ok(reader) => reader,
        Err(error) => return refused(&error),
    };
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => sound(&batch),
            Ok(None) => return,
            Err(error) => return refused(&error),
        }
    }
}

/// The bodies of frames, each behind its length of two bytes: what version 1 sends, and after a
/// schema what the negotiated form sends.
pub fn frame_bodies(bytes: &[u8]) {
    let mut decoder = BatchDecoder::new();
    let mut negotiated = BatchDecoder::new();
    let mut rest = bytes;
    let mut first = true;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (body, later) = after.split_at(length);
        rest = later;
        let mut batches = Vec::new();
        if let Err(error) = decoder.decode_stream(Bytes::copy_from_slice(body), &mut batches) {
            refused(&error);
        }
        let body = Bytes::copy_from_slice(body);
        let decoded = match first {
            true => negotiated.decode_schema(body).map(drop),
            false => negotiated.decode_messages(body, &mut batches),
        };
        if let Err(error) = decoded {
            refused(&error);
        }
        first = false;
        batches.iter().for_each(sound);
    }
}

/// A region of shared memory: the first byte says of which kind, and whether a schema was there
/// before.
pub fn region(bytes: &[u8]) {
    let Some((&how, region)) = bytes.split_first() else {
        return;
    };
    let kind = match how & 1 {
        0 => RegionKind::Flat,
        _ => RegionKind::Messages,
    };
    let mut decoder = RegionDecoder::new(how & 2 != 0);
    if how & 4 != 0 {
        let (kind, whole) = sound_region(how >> 3);
        let decoded = decoder.decode_copied(kind, &whole);
        decoded.expect("a region that was just made is sound");
    }
    // A region lies at such an address, whatever the fuzzer's buffer does.
    match decoder.decode(kind, Bytes::copy_from_slice(region)) {
        Ok(batch) => sound(&batch),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains("panicked"), "{text}");
        }
    }
}

/// The text of an expression: what is understood says the same when it is read again.
pub fn expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(parsed) = Expr::parse(text) else {
        return;
    };
    let numbers = Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, 7, i64::MAX])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", numbers.clone()), ("b", numbers)]);
    let batch = batch.expect("both columns have five rows");
    if let Ok(bound) = parsed.bind(&batch.schema()) {
        // Dividing by zero and its like are errors.
        if let Ok(values) = bound.evaluate(&batch) {
            assert_eq!(values.len(), batch.num_rows());
        }
    }
}

/// Bytes that are right, one list for each of [`TARGETS`]: where a search begins.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "frame_bodies" => (0..columns().len()).map(framed).collect(),
        "region" => (0..columns().len() as u8)
            .map(|number| {
                let (kind, bytes) = sound_region(number);
                let how = u8::from(kind == RegionKind::Messages);
                [&[how][..], &bytes].concat()
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn sound_region(number: u8) -> (RegionKind, Vec<u8>) {
    let mut encoder = RegionEncoder::new();
    let prepared = encoder.prepare(&one_column(usize::from(number)));
    let kind = prepared.expect("every type can be sent").kind;
    let mut region = Vec::new();
    encoder.write(7, &mut region);
    (kind, region)
}

/// The frames of a batch of one column, in the form that says its schema once.
fn framed(number: usize) -> Vec<u8> {
    let mut encoder = BatchEncoder::new(Form::Messages { aligned: false }, Compression::None);
    let encoded = encoder.encode(&one_column(number));
    let EncodedBatch { schema, body } = encoded.expect("every type can be sent");
    let mut bytes = Vec::new();
    for body in schema.iter().chain([&body]) {
        let body = body.to_vec();
        bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&body);
    }
    bytes
}

/// The column of this number, which begins anew behind the last.
fn one_column(number: usize) -> RecordBatch {
    let all = columns();
    let (_, column) = &all[number % all.len()];
    let batch = RecordBatch::try_from_iter([("column", Arc::clone(column))]);
    batch.expect("one column has as many rows as itself")
}

/// All values of a batch can be looked at.
fn sound(batch: &RecordBatch) {
    let data = batch.columns().iter().map(|column| column.to_data());
    for data in data {
        data.validate_full().expect("what was decoded is sound");
    }
}

fn refused(error: &IpcError) {
    assert!(!matches!(error, IpcError::Panicked(_)), "{error}");
}
