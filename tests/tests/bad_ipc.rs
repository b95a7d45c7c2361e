//! Arrow IPC that nobody vouches for. Goal: whatever a peer or a file says, the answer is the
//! right rows or an error, without a panic, and within bounded memory. Method: the files of
//! `data/bad-ipc`, each broken in one way, with the answer that its manifest gives; and good
//! files, cut at every byte, with every byte changed, and with bytes changed at random.

use std::fs;
use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, ListViewArray, RecordBatch, RunArray, StringArray, UnionArray,
    new_null_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{
    DataType, Field, Fields, Int8Type, Int64Type, IntervalMonthDayNano, Schema, TimeUnit,
    UnionFields,
};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow::json::ReaderBuilder;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use ringway::wire::ipc::{IpcError, IpcFileReader, IpcStreamReader};
use ringway_tests::sockets::bad_ipc;

/// What a stream gave: its batches, and how it ended.
struct Outcome {
    batches: Vec<RecordBatch>,
    end: Result<(), IpcError>,
}

impl Outcome {
    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn read(bytes: &[u8]) -> Outcome {
    let mut batches = Vec::new();
    let end = read_into(bytes, &mut batches);
    if let Err(IpcError::Panicked(reason)) = &end {
        panic!("the library panicked: {reason}");
    }
    Outcome { batches, end }
}

fn read_into(bytes: &[u8], batches: &mut Vec<RecordBatch>) -> Result<(), IpcError> {
    let mut reader = IpcStreamReader::new(bytes)?;
    while let Some(batch) = reader.next_batch()? {
        batches.push(batch);
    }
    Ok(())
}

struct Case {
    name: String,
    expect: String,
    rows: Option<usize>,
    values: Option<serde_json::Value>,
    bytes: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let manifest = fs::read(bad_ipc().join("manifest.json")).unwrap();
    let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).unwrap();
    let case = |entry: &serde_json::Value| {
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        Case {
            name: text("name"),
            expect: text("expect"),
            rows: entry["rows"].as_u64().map(|rows| rows as usize),
            values: entry.get("values").cloned(),
            bytes: fs::read(bad_ipc().join(text("file"))).unwrap(),
        }
    };
    let cases: Vec<_> = manifest.iter().map(case).collect();
    assert!(cases.len() > 100, "the manifest lists the files");
    cases
}

/// A value as the manifest writes it.
fn shown(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "None".to_owned();
    }
    match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Utf8 => format!("'{}'", array.as_string::<i32>().value(row)),
        DataType::List(_) => all_shown(&*array.as_list::<i32>().value(row)),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            shown(dictionary.values(), key)
        }
        other => panic!("the manifest has no values of {other}"),
    }
}

fn all_shown(array: &dyn Array) -> String {
    let values: Vec<_> = (0..array.len()).map(|row| shown(array, row)).collect();
    format!("[{}]", values.join(", "))
}

fn values_of(batches: &[RecordBatch]) -> serde_json::Value {
    let batch = |batch: &RecordBatch| -> Vec<String> {
        batch
            .columns()
            .iter()
            .map(|column| all_shown(column))
            .collect()
    };
    batches.iter().map(batch).collect()
}

#[test]
fn every_broken_file_gets_the_answer_that_is_due() {
    let mut wrong = Vec::new();
    for case in cases() {
        let outcome = read(&case.bytes);
        let accepted = outcome.end.is_ok();
        let is_right = match case.expect.as_str() {
            "accept" => accepted,
            "reject" => !accepted,
            "either" => true,
            other => panic!("{}: expects {other}", case.name),
        };
        let rows = case.rows.unwrap_or(outcome.rows());
        if !is_right || accepted && outcome.rows() != rows {
            let (name, rows, end) = (&case.name, outcome.rows(), &outcome.end);
            wrong.push(format!("{name}: {rows} rows, {end:?}"));
        }
        if let (true, Some(values)) = (accepted, &case.values) {
            // All batches are kept to the end, so that a later dictionary could change them.
            assert_eq!(&values_of(&outcome.batches), values, "{}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn memory_stays_within_the_stated_limits() {
    for name in [
        "zstd_bomb_1GiB",
        "lz4_bomb_liar",
        "bomb_many_buffers",
        "lz4_claim_2p60",
    ] {
        let bytes = fs::read(bad_ipc().join(format!("{name}.arrows"))).unwrap();
        let _ = read(&bytes);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let peak_kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak_kib < 256 << 10, "{peak}");
}

#[test]
fn a_wrong_value_is_never_taken_for_a_right_one() {
    for (name, rows) in [("nulls_lie_zero", 2), ("validity_missing_with_nulls", 3)] {
        let bytes = fs::read(bad_ipc().join(format!("{name}.arrows"))).unwrap();
        let outcome = read(&bytes);
        assert!(outcome.end.is_err(), "{name}");
        assert_ne!(outcome.rows(), rows, "{name}");
    }
}

/// Files short enough to be changed in every way.
fn seeds() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.bytes.len() < 2000);
    let own = [
        None,
        Some(CompressionType::LZ4_FRAME),
        Some(CompressionType::ZSTD),
    ];
    cases.extend(own.map(|compression| Case {
        name: format!("ok_every_type_{compression:?}"),
        expect: "accept".to_owned(),
        rows: Some(3),
        values: None,
        bytes: written(&every_type(), compression),
    }));
    cases
}

fn written(batch: &RecordBatch, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(compression).unwrap();
    let mut bytes = Vec::new();
    let schema = batch.schema();
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
    writer.write(batch).unwrap();
    writer.write(&batch.slice(1, 1)).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// Three rows, the second of nulls, of every layout that there is.
fn every_type() -> RecordBatch {
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let pair = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int32, true),
    ]);
    let pair = Arc::new(Field::new("entries", DataType::Struct(pair), false));
    let parts = Fields::from(vec![Field::new("part", DataType::Utf8, true)]);
    let read = vec![
        ("bool", DataType::Boolean, "true"),
        ("i8", DataType::Int8, "-1"),
        ("u64", DataType::UInt64, "7"),
        ("f32", DataType::Float32, "1.5"),
        ("day", DataType::Date32, "\"2020-01-02\""),
        (
            "at",
            DataType::Timestamp(TimeUnit::Nanosecond, Some("+01:00".into())),
            "5",
        ),
        ("decimal", DataType::Decimal128(10, 2), "12.34"),
        ("large", DataType::Decimal256(50, 3), "-1.5"),
        ("text", DataType::Utf8, "\"text\""),
        ("long", DataType::LargeUtf8, "\"more text\""),
        ("view", DataType::Utf8View, "\"a text that is not short\""),
        ("bytes", DataType::Binary, "\"00ff\""),
        (
            "list",
            DataType::List(item(DataType::Int64)),
            "[1, null, 3]",
        ),
        (
            "big_list",
            DataType::LargeList(item(DataType::Utf8)),
            "[\"x\"]",
        ),
        ("struct", DataType::Struct(parts), "{\"part\": \"p\"}"),
        ("map", DataType::Map(pair, false), "{\"k\": 1}"),
    ];
    let fields: Vec<_> = read
        .iter()
        .map(|(name, data_type, _)| Field::new(*name, data_type.clone(), true))
        .collect();
    let row: Vec<_> = read
        .iter()
        .map(|(name, _, value)| format!("\"{name}\": {value}"))
        .collect();
    let text = format!("{{{0}}}\n{{}}\n{{{0}}}\n", row.join(", "));
    let schema = Arc::new(Schema::new(fields));
    let mut reader = ReaderBuilder::new(schema).build(text.as_bytes()).unwrap();
    let read = reader.next().unwrap().unwrap();
    let mut columns: Vec<(String, ArrayRef)> = read
        .schema()
        .fields()
        .iter()
        .zip(read.columns())
        .map(|(field, column)| (field.name().clone(), column.clone()))
        .collect();
    columns.extend(made().map(|(name, column)| (name.to_owned(), column)));
    let columns = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The layouts that JSON has no words for.
fn made() -> [(&'static str, ArrayRef); 8] {
    let texts: DictionaryArray<Int8Type> = [Some("a"), None, Some("b")].into_iter().collect();
    let ends = Int32Array::from(vec![1, 3]);
    let runs = RunArray::try_new(&ends, &StringArray::from(vec![Some("r"), None])).unwrap();
    let union = |is_dense: bool| {
        let fields = [
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ];
        let fields = UnionFields::try_new([0, 5], fields).unwrap();
        let ids = ScalarBuffer::from(vec![0_i8, 5, 0]);
        let offsets = is_dense.then(|| ScalarBuffer::from(vec![0, 0, 1]));
        let children: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![1, 2, 3])),
            Arc::new(StringArray::from(vec!["x", "y", "z"])),
        ];
        Arc::new(UnionArray::try_new(fields, ids, offsets, children).unwrap()) as ArrayRef
    };
    let months = IntervalMonthDayNano::new(1, 2, 3);
    let months = IntervalMonthDayNanoArray::from(vec![Some(months), None, Some(months)]);
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5, 6]));
    let pairs = FixedSizeListArray::new(item.clone(), 2, values.clone(), None);
    let (starts, sizes) = (vec![3, 0, 1].into(), vec![2, 1, 3].into());
    let views = ListViewArray::new(item, starts, sizes, values, None);
    let nothing = new_null_array(&DataType::Null, 3);
    [
        ("dictionary", Arc::new(texts)),
        ("runs", Arc::new(runs)),
        ("dense", union(true)),
        ("sparse", union(false)),
        ("months", Arc::new(months)),
        ("pairs", Arc::new(pairs)),
        ("views", Arc::new(views)),
        ("nothing", nothing),
    ]
}

#[test]
fn every_type_arrives_as_it_was_sent_compressed_or_not() {
    let batch = every_type();
    for compression in [
        None,
        Some(CompressionType::LZ4_FRAME),
        Some(CompressionType::ZSTD),
    ] {
        let outcome = read(&written(&batch, compression));
        assert_eq!(outcome.end, Ok(()), "{compression:?}");
        assert_eq!(outcome.batches, [batch.clone(), batch.slice(1, 1)]);
    }
}

#[test]
fn a_file_is_read_by_its_footer_and_a_broken_one_is_refused() {
    let batch = every_type();
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch.slice(0, 2)).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let whole = read_file(&bytes).unwrap();
    assert_eq!(whole, [batch.clone(), batch.slice(0, 2)]);
    for length in 0..bytes.len() {
        assert!(read_file(&bytes[..length]).is_err(), "cut at {length}");
    }
    for at in 0..bytes.len() {
        for flip in [0xff, 0x80, 0x01] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let _ = read_file(&bytes);
        }
    }
}

fn read_file(bytes: &[u8]) -> Result<Vec<RecordBatch>, IpcError> {
    let read = || {
        let mut reader = IpcFileReader::new(Cursor::new(bytes))?;
        let mut batches = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
        Ok(batches)
    };
    match read() {
        Err(IpcError::Panicked(reason)) => panic!("the library panicked: {reason}"),
        result => result,
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_an_error_or_ends_between_two_messages() {
    for case in seeds().iter().filter(|case| case.name.starts_with("ok_")) {
        let whole = read(&case.bytes);
        for length in 0..case.bytes.len() {
            let outcome = read(&case.bytes[..length]);
            let good = &whole.batches[..outcome.batches.len()];
            assert_eq!(outcome.batches, good, "{} cut at {length}", case.name);
            if length == 0 {
                assert!(outcome.end.is_err(), "nothing is no stream");
            }
        }
    }
}

#[test]
fn every_byte_may_be_changed_without_a_panic() {
    for case in seeds() {
        for at in 0..case.bytes.len().min(1500) {
            for flip in [0xff, 0x80, 0x01] {
                let mut bytes = case.bytes.clone();
                bytes[at] ^= flip;
                let _ = read(&bytes);
            }
        }
    }
}

#[test]
fn random_changes_never_panic() {
    let seed: u64 = match std::env::var("RINGWAY_SEED") {
        Ok(seed) => seed.parse().expect("RINGWAY_SEED is a number"),
        Err(_) => 1,
    };
    println!("RINGWAY_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut next = |below: usize| (random.next_u64() % below as u64) as usize;
    let seeds = seeds();
    for _ in 0..20_000 {
        let mut bytes = seeds[next(seeds.len())].bytes.clone();
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..=next(6) {
            let at = next(bytes.len());
            // Small numbers are the ones that make sense to a parser.
            let value = [next(256), next(9), 0, 255][next(4)];
            bytes[at] = value as u8;
        }
        let _ = read(&bytes);
    }
    for _ in 0..10_000 {
        let bytes: Vec<u8> = (0..next(200)).map(|_| next(256) as u8).collect();
        assert!(read(&bytes).end.is_err());
    }
}
