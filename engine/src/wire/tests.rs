//! What the codec promises: a batch arrives as it was, in every form, without a copy of its
//! values where they are large.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray,
    Int64Array, IntervalMonthDayNanoArray, ListArray, ListViewArray, RecordBatch,
    RecordBatchOptions, RunArray, StringArray, StringViewArray, StructArray, new_null_array,
};
use arrow::datatypes::{
    DataType, Field, Int8Type, Int32Type, Int64Type, IntervalMonthDayNano, Schema,
};
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;

use super::*;
use crate::batch::{Row, Rows};

const FORMS: [Form; 3] = [
    Form::Stream,
    Form::Messages { aligned: false },
    Form::Messages { aligned: true },
];

/// Encodes batches for one connection and decodes what arrives there.
struct Both {
    form: Form,
    encoder: BatchEncoder,
    decoder: BatchDecoder,
    schemas: usize,
}

impl Both {
    fn new(form: Form, compression: Compression) -> Self {
        Self {
            form,
            encoder: BatchEncoder::new(form, compression),
            decoder: BatchDecoder::new(),
            schemas: 0,
        }
    }

    fn pass(&mut self, batch: &RecordBatch) -> RecordBatch {
        let encoded = self.encoder.encode(batch).unwrap();
        if let Some(schema) = encoded.schema {
            self.schemas += 1;
            self.decoder.decode_schema(arrived(&schema)).unwrap();
        }
        if self.form == (Form::Messages { aligned: true }) {
            assert_eq!(encoded.body.bytes() % 64, 0);
        }
        let mut batches = Vec::new();
        let body = arrived(&encoded.body);
        match self.form {
            Form::Stream => self.decoder.decode_stream(body, &mut batches),
            Form::Messages { .. } => self.decoder.decode_messages(body, &mut batches),
        }
        .unwrap();
        assert_eq!(batches.len(), 1);
        batches.remove(0)
    }
}

/// The body as a connection brings it.
fn arrived(body: &Encoded) -> Bytes {
    let (mut out, mut segments) = (Vec::new(), VecDeque::new());
    body.clone().gather(&mut out, &mut segments);
    segments.push_back(Bytes::from(out));
    let bytes: Vec<u8> = segments.iter().flatten().copied().collect();
    assert_eq!(bytes, body.to_vec());
    assert_eq!(bytes.len(), body.bytes());
    Bytes::from(bytes)
}

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let named = columns.into_iter().enumerate();
    let named = named.map(|(index, column)| (format!("c{index}"), column, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

/// One batch of 40 rows of many types.
fn many_types() -> RecordBatch {
    let rows = 40;
    let texts = (0..rows).map(|n| (n % 3 != 0).then(|| format!("text number {n}, rather long")));
    let texts: Vec<Option<String>> = texts.collect();
    let lists = (0..rows).map(|n| (n % 5 != 0).then(|| vec![Some(n), None]));
    let pairs: Vec<_> = (0..2 * rows as i64).map(Some).collect();
    let pairs = Arc::new(Int64Array::from(pairs)) as ArrayRef;
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let numbers = Arc::new(Int64Array::from_iter(
        (0..rows as i64).map(|n| (n != 7).then_some(n)),
    ));
    let field = Arc::new(Field::new("inner", DataType::Int64, true));
    let runs: RunArray<Int32Type> = (0..rows)
        .map(|n| Some(["a", "b"][n as usize / 25]))
        .collect();
    let keys: DictionaryArray<Int8Type> = (0..rows)
        .map(|n| Some(["x", "yy"][n as usize % 2]))
        .collect();
    let nano = |n| IntervalMonthDayNano::new(n, n + 1, i64::from(n));
    let list_view = ListViewArray::from_iter_primitive::<Int32Type, _, _>(lists.clone());
    batch(vec![
        numbers.clone(),
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(StringViewArray::from_iter(texts)),
        Arc::new(BooleanArray::from_iter((0..rows).map(|n| Some(n % 3 == 0)))),
        Arc::new(Decimal128Array::from_iter_values((0..rows).map(i128::from))),
        Arc::new(IntervalMonthDayNanoArray::from_iter_values(
            (0..rows).map(nano),
        )),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        Arc::new(list_view),
        Arc::new(FixedSizeListArray::new(item, 2, pairs, None)),
        Arc::new(StructArray::from(vec![(field, numbers as ArrayRef)])),
        Arc::new(runs),
        Arc::new(keys),
        new_null_array(&DataType::Null, rows as usize),
    ])
}

#[test]
fn batches_of_every_type_and_their_slices_arrive_as_they_were() {
    let whole = many_types();
    for form in FORMS {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let mut both = Both::new(form, compression);
            assert_eq!(both.pass(&whole), whole, "{form:?} {compression:?}");
            for (offset, rows) in [(0, 1), (3, 20), (39, 1), (17, 0)] {
                let slice = whole.slice(offset, rows);
                assert_eq!(both.pass(&slice), slice, "{form:?} {offset} {rows}");
            }
        }
    }
}

#[test]
fn a_batch_without_columns_keeps_its_rows() {
    let options = RecordBatchOptions::new().with_row_count(Some(5));
    let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options);
    let none = none.unwrap();
    for form in FORMS {
        assert_eq!(Both::new(form, Compression::None).pass(&none), none);
    }
}

#[test]
fn the_schema_goes_ahead_once_and_again_when_it_changes() {
    let a = batch(vec![Arc::new(Int64Array::from(vec![1]))]);
    let b = batch(vec![Arc::new(StringArray::from(vec!["b"]))]);
    let mut both = Both::new(Form::Messages { aligned: true }, Compression::None);
    for (batch, schemas) in [(&a, 1), (&a, 1), (&b, 2), (&b, 2), (&a, 3)] {
        assert_eq!(both.pass(batch), *batch);
        assert_eq!(both.schemas, schemas);
    }
    both.encoder.forget();
    assert_eq!(both.pass(&a), a);
    assert_eq!(both.schemas, 4);
}

#[test]
fn dictionaries_that_change_and_that_stay_arrive() {
    let of = |values: &[&str]| -> RecordBatch {
        let column: DictionaryArray<Int32Type> = values.iter().map(|&value| Some(value)).collect();
        batch(vec![Arc::new(column)])
    };
    let (first, second) = (of(&["a", "b", "a"]), of(&["a", "b", "c"]));
    for form in FORMS {
        let mut both = Both::new(form, Compression::None);
        let held = both.pass(&first);
        for batch in [
            &first.slice(1, 2),
            &second,
            &second,
            &first,
            &second.slice(2, 1),
        ] {
            assert_eq!(both.pass(batch), *batch, "{form:?}");
        }
        assert_eq!(held, first, "a batch that is held does not change");
    }
}

#[test]
fn large_buffers_are_shared_on_the_way_out_and_aliased_on_the_way_in() {
    let values = Int64Array::from_iter_values(0..100_000);
    let sent = values.values().inner().as_ptr_range();
    let batch = batch(vec![Arc::new(values)]);
    for form in FORMS {
        let encoded = BatchEncoder::new(form, Compression::None)
            .encode(&batch)
            .unwrap();
        let (mut out, mut segments) = (Vec::new(), VecDeque::new());
        let copied = encoded.body.clone().gather(&mut out, &mut segments);
        assert!(copied < 1_000, "{copied} bytes are copied");
        let shares = |segment: &Bytes| sent.contains(&segment.as_ptr());
        assert!(segments.iter().any(shares), "{form:?}");

        let mut decoder = BatchDecoder::new();
        if let Some(schema) = &encoded.schema {
            decoder.decode_schema(arrived(schema)).unwrap();
        }
        let body = arrived(&encoded.body);
        let came = body.as_ptr_range();
        let mut batches = Vec::new();
        match form {
            Form::Stream => decoder.decode_stream(body, &mut batches),
            Form::Messages { .. } => decoder.decode_messages(body, &mut batches),
        }
        .unwrap();
        let values = batches[0].column(0).as_primitive::<Int64Type>().values();
        assert!(came.contains(&values.inner().as_ptr()), "{form:?}");
    }
}

#[test]
fn views_send_no_more_than_they_show() {
    let texts = (0..1_000).map(|n| format!("{n:0100}"));
    let batch = batch(vec![Arc::new(StringViewArray::from_iter_values(texts))]);
    let slice = batch.slice(500, 2);
    let mut encoder = BatchEncoder::new(Form::Messages { aligned: true }, Compression::None);
    let encoded = encoder.encode(&slice).unwrap();
    assert!(encoded.body.bytes() < 1_000, "{}", encoded.body.bytes());
}

#[test]
fn a_frame_of_version_1_is_a_stream_that_others_read_and_that_others_write() {
    let sent = many_types();
    let mut encoder = BatchEncoder::new(Form::Stream, Compression::None);
    for _ in 0..2 {
        let body = encoder.encode(&sent).unwrap().body.to_vec();
        let mut reader = arrow::ipc::reader::StreamReader::try_new(&body[..], None).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), sent);
        assert!(reader.next().is_none());
    }
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &sent.schema()).unwrap();
    writer.write(&sent).unwrap();
    writer.write(&sent.slice(2, 3)).unwrap();
    writer.finish().unwrap();
    let mut decoder = BatchDecoder::new();
    let mut batches = Vec::new();
    for end in [bytes.len(), bytes.len() - 8] {
        batches.clear();
        let body = Bytes::copy_from_slice(&bytes[..end]);
        decoder.decode_stream(body, &mut batches).unwrap();
        assert_eq!(
            batches,
            [sent.clone(), sent.slice(2, 3)],
            "all of them, in order"
        );
    }
    bytes.extend_from_slice(b"garbage");
    batches.clear();
    decoder
        .decode_stream(Bytes::from(bytes), &mut batches)
        .unwrap();
    assert_eq!(batches.len(), 2);
}

#[test]
fn bodies_that_are_none_are_errors() {
    let mut batches = Vec::new();
    for body in [&b""[..], b"x", &[0; 64], &[0xff; 8]] {
        let body = Bytes::from_static(body);
        let mut decoder = BatchDecoder::new();
        assert!(decoder.decode_stream(body.clone(), &mut batches).is_err());
        assert!(decoder.decode_messages(body.clone(), &mut batches).is_err());
        assert!(decoder.decode_schema(body).is_err());
    }
    assert!(batches.is_empty());
}

/// Each would be copied where it is not aligned, however many lie in one place.
#[test]
fn buffers_that_lie_in_one_place_are_refused() {
    let numbers = |from| Arc::new(Int64Array::from_iter_values(from..from + 100)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", numbers(0)), ("b", numbers(100))]).unwrap();
    let mut encoder = BatchEncoder::new(Form::Messages { aligned: false }, Compression::None);
    let encoded = encoder.encode(&batch).unwrap();
    let mut decoder = BatchDecoder::new();
    decoder
        .decode_schema(arrived(&encoded.schema.unwrap()))
        .unwrap();
    let body = encoded.body.to_vec();
    let place = |offset: u64, bytes: u64| [offset.to_le_bytes(), bytes.to_le_bytes()].concat();
    let whole = place(0, 1_600);
    let mut changed = body.clone();
    for offset in [0, 800] {
        let found = changed
            .windows(16)
            .position(|bytes| bytes == place(offset, 800));
        let at = found.expect("the place of a buffer");
        changed[at..at + 16].copy_from_slice(&whole);
    }
    let mut batches = Vec::new();
    decoder
        .decode_messages(Bytes::from(body), &mut batches)
        .unwrap();
    assert_eq!(batches, [batch]);
    let error = decoder
        .decode_messages(Bytes::from(changed), &mut batches)
        .unwrap_err();
    let said = "buffers of 3200 bytes in a body of 1600";
    assert!(error.to_string().contains(said), "{error}");
}

#[test]
fn typed_rows_go_through_their_batcher() {
    let codec = Rows::<String>::codec();
    let rows = Rows::from(vec![
        Row::at(5, "a".to_owned()),
        Row::untimed(String::new()),
    ]);
    let batch = codec.encode(rows.clone()).unwrap();
    assert_eq!(batch.schema(), codec.schema().unwrap());
    assert_eq!(codec.decode(batch).unwrap(), rows);
    let other = Columns::of(Rows::<i64>::codec().schema().unwrap());
    let strings = Rows::<String>::codec().encode(rows).unwrap();
    assert!(other.encode(strings).is_err());
}
