//! A struct as another engine sends it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::ipc::reader::StreamReader;
use ringway::batch::{Row, Rows};
use ringway::batcher::{Batchable, Columnar};
use ringway_tests::recordings::{read, recordings};

/// The struct of the recording.
#[derive(Clone, Debug, PartialEq, Columnar)]
struct Recorded {
    id: i64,
    symbol: String,
    px: f64,
    live: bool,
    i8: i8,
    u16: u16,
    f32: f32,
    opt: Option<i64>,
    list: Vec<i64>,
    map: BTreeMap<String, i64>,
    inner: Inner,
}

/// The struct within it.
#[derive(Clone, Debug, PartialEq, Columnar)]
struct Inner {
    a: i64,
    b: String,
}

fn field(name: &str, data_type: DataType, nullable: bool) -> Field {
    Field::new(name, data_type, nullable)
}

/// The schema that the recording has, written down here so that it is compared without it.
fn schema() -> Schema {
    let item = Arc::new(field("item", DataType::Int64, false));
    let entry = vec![
        field("key", DataType::Utf8, false),
        field("value", DataType::Int64, true),
    ];
    let entries = field("entries", DataType::Struct(entry.into()), false);
    let inner = vec![
        field("a", DataType::Int64, false),
        field("b", DataType::Utf8, false),
    ];
    Schema::new(vec![
        field("event_time", DataType::Int64, true),
        field("id", DataType::Int64, false),
        field("symbol", DataType::Utf8, false),
        field("px", DataType::Float64, false),
        field("live", DataType::Boolean, false),
        field("i8", DataType::Int8, false),
        field("u16", DataType::UInt16, false),
        field("f32", DataType::Float32, false),
        field("opt", DataType::Int64, true),
        field("list", DataType::List(item), false),
        field("map", DataType::Map(Arc::new(entries), false), false),
        field("inner", DataType::Struct(Fields::from(inner)), false),
    ])
}

/// The rows of the recording.
fn rows() -> Rows<Recorded> {
    let value = |i: i64| Recorded {
        id: i,
        symbol: format!("SYM{i}"),
        px: i as f64 + 0.5,
        live: i % 2 == 0,
        i8: -i as i8,
        u16: 3 * i as u16,
        f32: i as f32 / 4.0,
        opt: (i % 2 == 1).then_some(100 * i),
        list: (0..i % 4).map(|n| i + n).collect(),
        map: (0..i % 3).map(|n| (format!("k{n}"), i + n)).collect(),
        inner: Inner {
            a: 2 * i,
            b: format!("in{i}"),
        },
    };
    let row = |i| Row {
        value: value(i),
        event_time: (i % 2 == 0).then_some(1000 + i),
    };
    (0..5).map(row).collect()
}

#[test]
fn the_schema_is_that_of_the_recording() {
    assert_eq!(*Recorded::batcher().schema(), schema());
}

#[test]
fn the_recorded_struct_is_read_as_it_was_meant_and_built_the_same() {
    let built = Recorded::batcher().build(&rows()).unwrap();
    assert_eq!(
        listing(&rows()),
        listing(&Recorded::batcher().parse(&built).unwrap())
    );
    let Some(wire) = recordings("wire") else {
        return;
    };
    let read = |suffix| read(&wire.join(format!("15_struct_fields.{suffix}")));
    let batch = first_batch(&read("bin"));
    assert_eq!(*batch.schema(), schema());
    let parsed = Recorded::batcher().parse(&batch).unwrap();
    assert_eq!(parsed, rows());
    assert_eq!(built, batch);
    let expected = String::from_utf8(read("expected.txt")).unwrap();
    assert_eq!(expected.lines().next(), Some(&*listing(&parsed)));
}

/// The batch of the first frame: a big-endian length, the kind of a batch, and the stream.
fn first_batch(stream: &[u8]) -> RecordBatch {
    let (head, rest) = stream.split_first_chunk().unwrap();
    let frame = &rest[..u32::from_be_bytes(*head) as usize];
    assert_eq!(frame[0], 7);
    let mut batches = StreamReader::try_new(&frame[1..], None).unwrap();
    batches.next().unwrap().unwrap()
}

/// The rows as the listing of the recording has them.
fn listing(rows: &Rows<Recorded>) -> String {
    let shown = |row: &Row<Recorded>| {
        let Row { value, event_time } = row;
        let null = || "null".to_string();
        let opt = value.opt.map_or_else(null, |opt| opt.to_string());
        let list: String = value.list.iter().map(|item| format!("{item} ")).collect();
        let map: String = value.map.iter().map(|(k, v)| format!("{k}={v} ")).collect();
        let time = event_time.map_or_else(null, |time| time.to_string());
        format!(
            " {{{};{};{};{};{};{};{};{opt};[{list}];{{{map}}};({} {})}}@{time}",
            value.id,
            value.symbol,
            value.px,
            u8::from(value.live),
            value.i8,
            value.u16,
            value.f32,
            value.inner.a,
            value.inner.b,
        )
    };
    let shown: String = rows.iter().map(shown).collect();
    format!("DATA n={}{shown}", rows.len())
}
