//! Goal: batches have exactly the columns that other engines on the same wire expect, and what
//! such an engine sends is read as it meant it. Method: the schema of each built-in type is
//! compared field by field with the table below; streams of frames are decoded and compared
//! with a listing of their rows: streams made here, and, where `RINGWAY_VECTORS` names a folder
//! of recorded ones, those in its `wire` folder too.

use std::fmt::Display;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use ringway::batch::{Row, Rows};
use ringway::batcher::{Batchable, check_schema, choose_batcher};
use ringway_tests::recordings::{read, recordings};

/// Name, type and nullability of each column.
type Columns = &'static [(&'static str, DataType, bool)];

const EVENT_TIME: (&str, DataType, bool) = ("event_time", DataType::Int64, true);
const INT64: Columns = &[EVENT_TIME, ("value", DataType::Int64, false)];
const INT32: Columns = &[EVENT_TIME, ("value", DataType::Int32, false)];
const UINT32: Columns = &[EVENT_TIME, ("value", DataType::UInt32, false)];
const UINT64: Columns = &[EVENT_TIME, ("value", DataType::UInt64, false)];
const STRING: Columns = &[EVENT_TIME, ("value", DataType::Utf8, false)];
const KEYED_INT64: Columns = &[
    EVENT_TIME,
    ("key", DataType::Int64, false),
    ("value", DataType::Int64, false),
];
const KEYED_STRING: Columns = &[
    EVENT_TIME,
    ("key", DataType::Utf8, false),
    ("value", DataType::Int64, false),
];
const BINARY: Columns = &[EVENT_TIME, ("value_bytes", DataType::Binary, false)];

fn assert_schema<T: Batchable>(expected: Columns) {
    let schema = choose_batcher::<T>(None).schema();
    let type_name = std::any::type_name::<T>();
    assert_eq!(schema.fields().len(), expected.len(), "{type_name}");
    for (field, (name, data_type, nullable)) in schema.fields().iter().zip(expected) {
        assert_eq!(field.name(), name, "{type_name}");
        assert_eq!(field.data_type(), data_type, "{type_name}, `{name}`");
        assert_eq!(field.is_nullable(), *nullable, "{type_name}, `{name}`");
        assert!(field.metadata().is_empty(), "{type_name}, `{name}`");
    }
    assert!(schema.metadata().is_empty(), "{type_name}");
}

#[test]
fn each_built_in_type_has_the_columns_of_the_table() {
    assert_schema::<i64>(INT64);
    assert_schema::<i32>(INT32);
    assert_schema::<u32>(UINT32);
    assert_schema::<u64>(UINT64);
    assert_schema::<String>(STRING);
    assert_schema::<(i64, i64)>(KEYED_INT64);
    assert_schema::<(String, i64)>(KEYED_STRING);
    assert_schema::<Vec<u8>>(BINARY);
    assert_schema::<(i64, String)>(BINARY);
    assert_schema::<Option<i64>>(BINARY);
    assert_schema::<Vec<String>>(BINARY);
}

#[test]
fn frames_decode_to_the_rows_that_were_sent() {
    let extremes = Rows::from(vec![
        Row::at(i64::MIN, i64::MIN),
        Row::at(i64::MAX, i64::MAX),
        Row::untimed(-7),
    ]);
    assert_sent(
        vec![extremes, Rows::new()],
        "DATA n=3 -9223372036854775808@-9223372036854775808 \
         9223372036854775807@9223372036854775807 -7@null\nDATA n=0\n",
    );
    let texts = [Row::at(1, "né\0"), Row::untimed(""), Row::at(2, "a\nb c")];
    let texts = texts.map(|row| Row {
        value: row.value.to_string(),
        event_time: row.event_time,
    });
    let listing = r#"DATA n=3 "n\xc3\xa9\x00"@1 ""@null "a\x0ab\x20c"@2"#;
    assert_sent(vec![Rows::from_iter(texts)], listing);
    let keyed = Rows::from(vec![Row::at(3, (-2_i64, 9_i64)), Row::untimed((0, 1))]);
    assert_sent(vec![keyed], "DATA n=2 (-2:9)@3 (0:1)@null");
    let keyed = Rows::from(vec![Row::at(3, ("k".to_string(), 9_i64))]);
    assert_sent(vec![keyed], "DATA n=1 (\"k\":9)@3");
    let bytes = Rows::from(vec![Row::untimed(vec![0xfe_u8, b'z'])]);
    assert_sent(vec![bytes], r#"DATA n=1 "\xfez"@null"#);
    assert_sent(vec![one(i32::MIN)], "DATA n=1 -2147483648@0");
    assert_sent(vec![one(u32::MAX)], "DATA n=1 4294967295@0");
    assert_sent(vec![one(u64::MAX)], "DATA n=1 18446744073709551615@0");
}

#[test]
fn recorded_frames_decode_to_the_rows_that_their_own_receiver_saw() {
    // The comparison itself must be able to tell, with recordings or without.
    assert_ne!(
        listing_of::<i64>(&stream_of(&[one(2_i64)])),
        ["DATA n=1 2@2"]
    );
    let Some(wire) = recordings("wire") else {
        return;
    };
    assert_recorded::<i64>(&wire, "01_int64_ts");
    assert_recorded::<i64>(&wire, "02_int64_all_null_ts");
    assert_recorded::<i64>(&wire, "03_int64_extremes");
    assert_recorded::<i64>(&wire, "04_int64_empty_batch");
    assert_recorded::<i64>(&wire, "05_int64_alt_null_17");
    assert_recorded::<String>(&wire, "06_string");
    assert_recorded::<(i64, i64)>(&wire, "08_kint64");
    assert_recorded::<Vec<u8>>(&wire, "10_binary_fallback_string");
    assert_recorded::<i32>(&wire, "12_int32");
    assert_recorded::<u64>(&wire, "14_uint64");
    assert_recorded::<i64>(&wire, "21_mixed_script");
    assert_recorded::<i64>(&wire, "30_int64_2048_one_frame");
    assert_recorded::<i64>(&wire, "31_int64_2049_split");
    assert_recorded::<String>(&wire, "33_string_3000_split");
    assert_recorded::<i64>(&wire, "40_int64_eof_without_close");
}

fn one<T>(value: T) -> Rows<T> {
    Rows::from(vec![Row::at(0, value)])
}

fn assert_sent<T: Batchable + Listed>(batches: Vec<Rows<T>>, listing: &str) {
    let expected: Vec<&str> = listing.lines().collect();
    assert_eq!(listing_of::<T>(&stream_of(&batches)), expected);
}

fn assert_recorded<T: Batchable + Listed>(wire: &Path, name: &str) {
    let read = |suffix| read(&wire.join(format!("{name}.{suffix}")));
    let expected = String::from_utf8(read("expected.txt")).unwrap();
    let expected: Vec<&str> = expected
        .lines()
        .filter(|line| line.starts_with("DATA"))
        .collect();
    assert!(!expected.is_empty(), "{name} lists no data");
    assert_eq!(listing_of::<T>(&read("bin")), expected, "{name}");
}

/// Every data frame of a stream as a line of the listing. What each batch says of itself, and
/// what building it again gives, is checked on the way.
fn listing_of<T: Batchable + Listed>(stream: &[u8]) -> Vec<String> {
    let batcher = choose_batcher::<T>(None);
    let mut lines = Vec::new();
    for payload in data_payloads(stream) {
        let batch = only_batch(payload);
        check_schema(&batch.schema(), &batcher.schema()).unwrap();
        let rows = batcher.parse(&batch).unwrap();
        assert_eq!(batcher.build(&rows).unwrap(), batch);
        let mut line = format!("DATA n={}", rows.len());
        for Row { value, event_time } in &rows {
            let time = event_time.map_or_else(|| "null".into(), |time| time.to_string());
            line += &format!(" {}@{time}", value.listed());
        }
        lines.push(line);
    }
    lines
}

const KIND_WATERMARK: u8 = 1;
const KIND_CLOSE: u8 = 3;
const KIND_ARROW_BATCH: u8 = 7;

/// The bodies of the data frames. A frame is a big-endian u32 length of what follows, a byte
/// that tells its kind, and a body.
fn data_payloads(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut payloads = Vec::new();
    while let Some((head, rest)) = stream.split_first_chunk() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*head) as usize);
        if frame[0] == KIND_ARROW_BATCH {
            payloads.push(&frame[1..]);
        }
        stream = rest;
    }
    assert!(stream.is_empty(), "the stream ends inside a frame");
    payloads
}

fn only_batch(payload: &[u8]) -> RecordBatch {
    let mut batches = StreamReader::try_new(payload, None).unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none(), "one batch a frame");
    batch
}

/// The batches as frames, with a watermark between them and a close at the end.
fn stream_of<T: Batchable>(batches: &[Rows<T>]) -> Vec<u8> {
    let batcher = choose_batcher::<T>(None);
    let mut stream = Vec::new();
    for rows in batches {
        let batch = batcher.build(rows).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        push_frame(&mut stream, KIND_ARROW_BATCH, &writer.into_inner().unwrap());
        push_frame(&mut stream, KIND_WATERMARK, &5_i64.to_be_bytes());
    }
    push_frame(&mut stream, KIND_CLOSE, &[]);
    stream
}

fn push_frame(stream: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let length = u32::try_from(body.len() + 1).unwrap();
    stream.extend_from_slice(&length.to_be_bytes());
    stream.push(kind);
    stream.extend_from_slice(body);
}

/// How a value stands in a listing.
trait Listed {
    fn listed(&self) -> String;
}

macro_rules! listed_as_number {
    ($($type:ty),*) => {$(
        impl Listed for $type {
            fn listed(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

listed_as_number!(i32, i64, u32, u64);

impl Listed for String {
    fn listed(&self) -> String {
        quoted(self.as_bytes())
    }
}

impl Listed for Vec<u8> {
    fn listed(&self) -> String {
        quoted(self)
    }
}

impl<K: Listed, V: Display> Listed for (K, V) {
    fn listed(&self) -> String {
        format!("({}:{})", self.0.listed(), self.1)
    }
}

fn quoted(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\x{byte:02x}"),
        byte if byte.is_ascii_graphic() => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", bytes.iter().map(shown).collect::<String>())
}
