//! Record batches to bytes and back: as on the wire, and in a region of memory.
//!
//! Each end has seen the schema before, as it has from the second batch of an edge on.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use gungraun::prelude::*;
use ringway::wire::region::{RegionDecoder, RegionEncoder, RegionKind};
use ringway::wire::{BatchDecoder, BatchEncoder, Compression, EncodedBatch, Form};

use crate::rows::batch;

const FORM: Form = Form::Messages { aligned: true };

fn to_encode(rows: usize) -> (BatchEncoder, RecordBatch) {
    let batch = batch(rows);
    let mut encoder = BatchEncoder::new(FORM, Compression::None);
    encoder.encode(&batch).expect("it has a form on the wire");
    (encoder, batch)
}

#[library_benchmark]
#[bench::row_1(to_encode(1))]
#[bench::rows_1024(to_encode(1024))]
pub(crate) fn wire_encode(
    (mut encoder, batch): (BatchEncoder, RecordBatch),
) -> (BatchEncoder, RecordBatch, EncodedBatch) {
    let encoded = encoder.encode(black_box(&batch));
    let encoded = encoded.expect("it has a form on the wire");
    (encoder, batch, encoded)
}

fn to_decode(rows: usize) -> (BatchDecoder, Bytes) {
    let mut encoder = BatchEncoder::new(FORM, Compression::None);
    let encoded = encoder
        .encode(&batch(rows))
        .expect("it has a form on the wire");
    let schema = encoded.schema.expect("it is the first of its schema");
    let mut decoder = BatchDecoder::new();
    let schema = decoder.decode_schema(aligned(&schema.to_vec()));
    schema.expect("it was just encoded");
    (decoder, aligned(&encoded.body.to_vec()))
}

#[library_benchmark]
#[bench::row_1(to_decode(1))]
#[bench::rows_1024(to_decode(1024))]
pub(crate) fn wire_decode(
    (mut decoder, body): (BatchDecoder, Bytes),
) -> (BatchDecoder, Vec<RecordBatch>) {
    let mut batches = Vec::new();
    let decoded = decoder.decode_messages(black_box(body), &mut batches);
    decoded.expect("it was just encoded");
    (decoder, batches)
}

fn to_write(rows: usize) -> (RegionEncoder, RecordBatch, Vec<u8>) {
    let batch = batch(rows);
    let mut encoder = RegionEncoder::new();
    let mut region = Vec::new();
    let prepared = encoder.prepare(&batch).expect("it has a form in a region");
    encoder.write(1, &mut region);
    assert_eq!(region.len(), prepared.bytes);
    region.clear();
    (encoder, batch, region)
}

#[library_benchmark]
#[bench::row_1(to_write(1))]
#[bench::rows_1024(to_write(1024))]
pub(crate) fn region_encode(
    (mut encoder, batch, mut region): (RegionEncoder, RecordBatch, Vec<u8>),
) -> (RegionEncoder, RecordBatch, Vec<u8>) {
    let prepared = encoder.prepare(black_box(&batch));
    let prepared = prepared.expect("it has a form in a region");
    encoder.write(2, &mut region);
    assert_eq!(region.len(), prepared.bytes);
    (encoder, batch, region)
}

fn to_read(rows: usize) -> (RegionDecoder, RegionKind, Bytes) {
    let batch = batch(rows);
    let mut encoder = RegionEncoder::new();
    let mut decoder = RegionDecoder::new(false);
    let mut next = || {
        let mut region = Vec::new();
        let prepared = encoder.prepare(&batch).expect("it has a form in a region");
        encoder.write(1, &mut region);
        (prepared.kind, aligned(&region))
    };
    let (kind, first) = next();
    decoder.decode(kind, first).expect("it was just written");
    let (kind, second) = next();
    (decoder, kind, second)
}

#[library_benchmark]
#[bench::row_1(to_read(1))]
#[bench::rows_1024(to_read(1024))]
pub(crate) fn region_decode(
    (mut decoder, kind, region): (RegionDecoder, RegionKind, Bytes),
) -> (RegionDecoder, RecordBatch) {
    let batch = decoder.decode(kind, black_box(region));
    (decoder, batch.expect("it was just written"))
}

/// The same bytes at a multiple of 64, where an edge has them.
fn aligned(bytes: &[u8]) -> Bytes {
    let mut buffer = MutableBuffer::new(bytes.len());
    buffer.extend_from_slice(bytes);
    Bytes::from_owner(Owned(buffer.into()))
}

struct Owned(Buffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
