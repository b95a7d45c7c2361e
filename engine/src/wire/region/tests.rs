//! What an encoder writes a decoder reads, over the memory of the region where that is safe.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, DictionaryArray, Int64Array, ListArray,
    RecordBatch, RecordBatchOptions, StringArray, StringViewArray,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use bytes::Bytes;

use super::*;
use crate::wire::encode::Owned;
use crate::wire::{BatchEncoder, Compression, Form};

/// The region of a batch, aligned as an edge would have it.
fn region(encoder: &mut RegionEncoder, batch: &RecordBatch) -> (RegionKind, Bytes) {
    let prepared = encoder.prepare(batch).unwrap();
    let mut region = Vec::new();
    encoder.write(7, &mut region);
    assert_eq!(region.len(), prepared.bytes);
    (prepared.kind, owned(&region))
}

fn owned(region: &[u8]) -> Bytes {
    Bytes::from_owner(Owned(Buffer::from(region)))
}

fn decoded(decoder: &mut RegionDecoder, (kind, region): (RegionKind, Bytes)) -> RecordBatch {
    let batch = decoder.decode(kind, region).unwrap();
    assert_eq!(decoder.stamp(), 7);
    batch
}

fn of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn numbers(numbers: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

#[test]
fn one_row_takes_a_line_for_each_buffer_and_two_for_what_describes_them() {
    let batch = of(vec![("event_time", numbers([7])), ("n", numbers([1]))]);
    let mut encoder = RegionEncoder::new();
    let _ = region(&mut encoder, &batch);
    let prepared = encoder.prepare(&batch).unwrap();
    assert_eq!((prepared.kind, prepared.bytes), (RegionKind::Flat, 256));
}

#[test]
fn the_schema_goes_ahead_once_and_again_when_it_changes() {
    let (mut encoder, mut decoder) = (RegionEncoder::new(), RegionDecoder::default());
    let first = of(vec![("n", numbers(0..10))]);
    let second = of(vec![("m", numbers(0..10))]);
    for (batch, is_said) in [
        (&first, true),
        (&first, false),
        (&second, true),
        (&first, true),
    ] {
        let region = region(&mut encoder, batch);
        assert_eq!(region.1.len() > 256, is_said);
        assert_eq!(decoded(&mut decoder, region), *batch);
    }
}

#[test]
fn a_batch_that_found_no_room_brings_its_schema_the_next_time() {
    let (mut encoder, mut decoder) = (RegionEncoder::new(), RegionDecoder::default());
    let keys = arrow::array::DictionaryArray::<Int32Type>::from_iter(["a", "b", "a"]);
    for batch in [
        of(vec![("n", numbers([1]))]),
        of(vec![("k", Arc::new(keys))]),
    ] {
        let waits = encoder.prepare(&batch).unwrap();
        assert_eq!(encoder.prepare(&batch).unwrap(), waits);
        encoder.give_up();
        let region = region(&mut encoder, &batch);
        assert_eq!(region.1.len(), waits.bytes);
        assert_eq!(decoded(&mut decoder, region), batch);
    }
}

#[test]
fn fixed_width_and_binary_values_stay_where_they_are_and_all_else_is_copied() {
    let text = || ["a", "some longer text that no view holds", ""];
    let batch = of(vec![
        ("n", numbers(0..3)),
        ("binary", Arc::new(BinaryArray::from_iter_values(text()))),
        ("text", Arc::new(StringArray::from_iter_values(text()))),
        ("view", Arc::new(StringViewArray::from_iter_values(text()))),
        (
            "flag",
            Arc::new(BooleanArray::from(vec![true, false, true])),
        ),
    ]);
    let region = region(&mut RegionEncoder::new(), &batch);
    let range = region.1.as_ptr_range();
    let inside = |buffer: &Buffer| range.contains(&buffer.as_ptr());
    for copies in [false, true] {
        let mut decoder = RegionDecoder::new(copies);
        let batch = decoded(&mut decoder, region.clone());
        let values = batch.column(0).as_primitive::<Int64Type>().values().inner();
        assert_eq!(inside(values), !copies);
        let binary = batch.column(1).as_binary::<i32>();
        assert_eq!(inside(binary.values()), !copies);
        assert!(!inside(binary.offsets().inner().inner()));
        let text = batch.column(2).as_string::<i32>();
        assert!(!inside(text.values()) && !inside(text.offsets().inner().inner()));
        let view = batch.column(3).as_string_view();
        assert!(!inside(view.views().inner()) && !inside(&view.data_buffers()[0]));
        assert!(!inside(batch.column(4).as_boolean().values().inner()));
        assert!(decoder.copied_bytes() > 0);
        let (kind, region) = &region;
        assert_eq!(decoder.decode_copied(*kind, region).unwrap(), batch);
    }
}

#[test]
fn a_slice_takes_the_room_of_its_own_rows() {
    let texts = (0..10_000).map(|n| format!("text number {n}"));
    let list = (0..10_000).map(|n| Some(vec![Some(n); 3]));
    let whole = of(vec![
        ("n", numbers(0..10_000)),
        (
            "text",
            Arc::new(StringArray::from_iter_values(texts.clone())),
        ),
        ("view", Arc::new(StringViewArray::from_iter_values(texts))),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(list)),
        ),
    ]);
    let (mut encoder, mut decoder) = (RegionEncoder::new(), RegionDecoder::default());
    let _ = decoded(&mut decoder, region(&mut encoder, &whole));
    for (start, rows) in [(5_000, 3), (0, 0), (9_999, 1), (1, 9)] {
        let slice = whole.slice(start, rows);
        let region = region(&mut encoder, &slice);
        assert!(region.1.len() <= 2_048);
        assert_eq!(decoded(&mut decoder, region), slice);
    }
}

#[test]
fn rows_without_columns_are_counted_and_names_and_metadata_are_kept() {
    let (mut encoder, mut decoder) = (RegionEncoder::new(), RegionDecoder::default());
    let options = RecordBatchOptions::new().with_row_count(Some(77));
    let alone = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options);
    let field =
        || Field::new("n", DataType::Int64, true).with_metadata([("k".into(), "v".into())].into());
    let schema =
        Schema::new_with_metadata(vec![field(), field()], [("a".into(), "b".into())].into());
    let twice = RecordBatch::try_new(Arc::new(schema), vec![numbers([1]), numbers([2])]);
    for batch in [alone.unwrap(), twice.unwrap()] {
        let region = region(&mut encoder, &batch);
        let decoded = decoded(&mut decoder, region);
        assert_eq!(decoded, batch);
        assert_eq!(decoded.schema(), batch.schema());
    }
}

#[test]
fn a_region_of_another_schema_or_none_is_refused() {
    let batch = of(vec![("n", numbers(0..10))]);
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(["a"; 10]));
    let mut encoder = RegionEncoder::new();
    let _ = region(&mut encoder, &of(vec![("n", Arc::clone(&text))]));
    let (_, other) = region(&mut encoder, &of(vec![("n", text)]));
    let mut decoder = RegionDecoder::default();
    assert!(decoder.decode(RegionKind::Flat, other.clone()).is_err());
    let _ = decoded(&mut decoder, region(&mut RegionEncoder::new(), &batch));
    for kind in [RegionKind::Flat, RegionKind::Messages] {
        assert!(decoder.decode(kind, other.clone()).is_err());
    }
}

#[test]
fn claims_are_held_against_what_is_there() {
    let batch = of(vec![("n", numbers(0..10))]);
    let mut encoder = RegionEncoder::new();
    let mut decoder = RegionDecoder::default();
    let _ = decoded(&mut decoder, region(&mut encoder, &batch));
    let (_, sound) = region(&mut encoder, &batch);
    // The schema, rows, columns, buffers, columns of views, values, nulls, both buffers.
    for at in [8, 16, 24, 28, 32, 40, 48, 56, 64] {
        for claim in [u32::MAX, i32::MAX as u32, 1 << 20, 11, 9] {
            let mut region = sound.to_vec();
            region[at..at + 4].copy_from_slice(&claim.to_le_bytes());
            let refused = decoder.decode(RegionKind::Flat, owned(&region));
            assert!(refused.is_err(), "{claim} at {at}");
        }
    }
    for bytes in 0..sound.len() {
        let cut = sound.slice(..bytes);
        assert!(decoder.decode(RegionKind::Flat, cut).is_err(), "{bytes}");
    }
    assert!(decoder.decode(RegionKind::Flat, sound).is_ok());
}

/// A few bytes could become any amount of memory.
#[test]
fn a_compressed_batch_is_refused() {
    let words: DictionaryArray<Int32Type> = std::iter::repeat_n("the same", 1_000).collect();
    let batch = of(vec![("word", Arc::new(words))]);
    for (compression, is_taken) in [
        (Compression::None, true),
        (Compression::Lz4, false),
        (Compression::Zstd, false),
    ] {
        let mut encoder = BatchEncoder::new(Form::Messages { aligned: true }, compression);
        let encoded = encoder.encode(&batch).unwrap();
        let schema = encoded.schema.unwrap().to_vec();
        let mut region = 7_u64.to_le_bytes().to_vec();
        region.extend((schema.len() as u64).to_le_bytes());
        region.resize(padded(region.len()), 0);
        region.extend(schema);
        region.resize(padded(region.len()), 0);
        region.extend(encoded.body.to_vec());
        let decoded = RegionDecoder::new(false).decode(RegionKind::Messages, owned(&region));
        assert_eq!(decoded.is_ok(), is_taken, "{compression:?}: {decoded:?}");
        if let Err(error) = decoded {
            assert!(error.to_string().contains("compressed"), "{error}");
        }
    }
}
