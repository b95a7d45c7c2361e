use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array, StringArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use arrow::record_batch::RecordBatchOptions;

use super::sorter::{GivesSorted, Stop};
use super::*;
use crate::element::{StreamElement, Watermark};
use crate::operators::columnar::samples::numbers;
use crate::operators::testing::{Harness, Random};
use crate::partition::Parallelism;

type SortHarness = Harness<Sort, RecordBatch>;

/// A row of each type that is sorted by; `id` counts from 0.
#[derive(Clone, Debug)]
struct Row {
    id: i64,
    number: Option<i64>,
    float: Option<f64>,
    text: Option<String>,
    decimal: Option<i128>,
    word: Option<String>,
}

/// How two rows without nulls compare in one column.
type Compare = fn(&Row, &Row) -> Ordering;

/// Whether a row has no value in a column.
type IsNull = fn(&Row) -> bool;

const COLUMNS: [(IsNull, Compare); 5] = [
    (|row| row.number.is_none(), |a, b| a.number.cmp(&b.number)),
    (
        |row| row.float.is_none(),
        |a, b| a.float.unwrap().total_cmp(&b.float.unwrap()),
    ),
    (|row| row.text.is_none(), |a, b| a.text.cmp(&b.text)),
    (
        |row| row.decimal.is_none(),
        |a, b| a.decimal.cmp(&b.decimal),
    ),
    (|row| row.word.is_none(), |a, b| a.word.cmp(&b.word)),
];

fn random_row(random: &mut Random, id: i64) -> Row {
    let floats = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1.5,
        -2.5,
    ];
    let texts = [
        "",
        "a",
        "ab",
        "b",
        "ä",
        "zz\0z",
        "a longer text than fits in a view",
    ];
    let mut some = |bound: u64| Some(random.below(bound + 1)).filter(|value| *value < bound);
    Row {
        id,
        number: some(5).map(|n| n as i64 - 2),
        float: some(7).map(|n| floats[n as usize]),
        text: some(7).map(|n| texts[n as usize].to_owned()),
        decimal: some(4).map(|n| i128::from(n) - 2),
        word: some(3).map(|n| texts[n as usize].to_owned()),
    }
}

fn schema() -> SchemaRef {
    let word = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = vec![
        Field::new("number", DataType::Int64, true),
        Field::new("float", DataType::Float64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("decimal", DataType::Decimal128(20, 3), true),
        Field::new("word", word, true),
        Field::new("id", DataType::Int64, false),
    ];
    let metadata = [("origin".to_owned(), "t1".to_owned())];
    Arc::new(Schema::new_with_metadata(fields, metadata.into()))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let decimals: Decimal128Array = rows.iter().map(|row| row.decimal).collect();
    let words = rows.iter().map(|row| row.word.as_deref());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.number).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.float).collect::<Float64Array>()),
        Arc::new(
            rows.iter()
                .map(|row| row.text.as_deref())
                .collect::<StringArray>(),
        ),
        Arc::new(decimals.with_precision_and_scale(20, 3).unwrap()),
        Arc::new(words.collect::<DictionaryArray<Int32Type>>()),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn compare(keys: &[SortKey], one: &Row, other: &Row) -> Ordering {
    for key in keys {
        let (is_null, compare) = COLUMNS[key.column];
        let order = match (is_null(one), is_null(other)) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if key.descending => compare(one, other).reverse(),
            (false, false) => compare(one, other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn open(schema: SchemaRef, spec: SortSpec, room: usize) -> SortHarness {
    let mut harness = Harness::new(Sort::new(schema, spec).unwrap(), room);
    let subtask = Subtask {
        uid: "sort".to_owned(),
        name: "sort".to_owned(),
        index: 0,
        parallelism: Parallelism::ONE,
    };
    harness.operator.open(&subtask, &Bell::thread()).unwrap();
    harness
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let ids = batches.iter().flat_map(|batch| {
        let ids = batch.column_by_name("id").unwrap();
        ids.as_primitive::<Int64Type>().values().to_vec()
    });
    ids.collect()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn any_rows_come_in_the_order_of_a_naive_sort_whether_they_are_spilled_or_not() {
    let name = "any_rows_come_in_the_order_of_a_naive_sort_whether_they_are_spilled_or_not";
    let mut random = Random::new(name);
    let folder = tempfile::tempdir().unwrap();
    for round in 0..60 {
        let count = random.below(300) as i64;
        let rows: Vec<Row> = (0..count).map(|id| random_row(&mut random, id)).collect();
        let keys = (0..=random.below(3)).map(|_| SortKey {
            column: random.below(5) as usize,
            descending: random.below(2) == 0,
            nulls_first: random.below(2) == 0,
        });
        let mut spec = SortSpec::new(keys.collect());
        spec.spill_dir = Some(folder.path().to_owned());
        let is_spilled = round % 2 == 0;
        if is_spilled {
            // Every batch is a run: more of them than are merged at a time.
            spec.memory_max_bytes = 1;
            spec.compression = ArrowCompression::Zstd;
        }
        let mut harness = open(schema(), spec.clone(), 1 + random.below(3) as usize);
        for chunk in rows.chunks(1 + random.below(7) as usize) {
            harness.push(batch(chunk));
        }
        harness.end();
        let sorted = harness.take_data();
        let mut expected = rows.clone();
        expected.sort_by(|one, other| compare(&spec.order, one, other));
        let expected: Vec<i64> = expected.iter().map(|row| row.id).collect();
        assert_eq!(ids(&sorted), expected, "by {:?}", spec.order);
        let by_id = |id: i64| batch(&rows[id as usize..=id as usize]);
        for sorted in &sorted {
            assert_eq!(sorted.schema(), schema());
            for at in 0..sorted.num_rows() {
                let row = sorted.slice(at, 1);
                let id = ids(std::slice::from_ref(&row))[0];
                let cast =
                    |column: &ArrayRef| arrow::compute::cast(column, &DataType::Utf8).unwrap();
                let (row, of_id) = (row.columns(), by_id(id));
                assert!(row.iter().map(cast).eq(of_id.columns().iter().map(cast)));
            }
        }
        let spilled_bytes = harness.counts().spilled_bytes;
        assert_eq!(spilled_bytes > 0, is_spilled && count > 0);
        drop(harness);
        assert!(is_empty(folder.path()));
    }
}

#[test]
fn nothing_is_given_before_the_end_and_watermarks_come_behind_the_rows() {
    let schema = numbers(&[]).schema();
    let mut harness = open(schema, SortSpec::new(vec![SortKey::descending(1)]), 1);
    harness.push(numbers(&[Some(1), Some(3)]));
    harness.watermark(Watermark::active(7));
    harness.watermark(Watermark::idle(8));
    harness.push(numbers(&[None, Some(2)]));
    assert!(harness.take().is_empty());
    harness.end();
    let given = harness.take();
    let [
        StreamElement::Data(rows),
        StreamElement::Watermark(watermark),
    ] = &given[..]
    else {
        panic!("rows and a watermark: {given:?}")
    };
    let values = rows.column(1).as_primitive::<Int64Type>();
    assert_eq!(
        values.iter().collect::<Vec<_>>(),
        [Some(3), Some(2), Some(1), None]
    );
    assert_eq!(*watermark, Watermark::active(7));
}

#[test]
fn a_stream_without_rows_gives_none() {
    let schema = numbers(&[]).schema();
    let mut harness = open(schema, SortSpec::new(vec![SortKey::ascending(1)]), 1);
    harness.end();
    assert!(harness.take().is_empty());
}

#[test]
fn a_sort_that_may_not_spill_enough_is_an_error_that_says_so_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = SortSpec::new(vec![SortKey::ascending(1)]);
    spec.memory_max_bytes = 1;
    spec.spill_max_bytes = 1000;
    spec.spill_dir = Some(folder.path().to_owned());
    let mut harness = open(numbers(&[]).schema(), spec, 1);
    let mut failed = None;
    while failed.is_none() {
        failed = harness.process(numbers(&[Some(1); 100])).err();
    }
    let error = failed.unwrap().to_string();
    assert!(error.contains("more than 1000 bytes"), "{error}");
    assert!(error.contains("spill_max"), "{error}");
    drop(harness);
    assert!(is_empty(folder.path()));
}

#[test]
fn what_cannot_be_ordered_by_is_refused_before_anything_runs() {
    let refused = |order| Sort::new(schema(), SortSpec::new(order)).err().unwrap();
    assert_eq!(refused(Vec::new()), SpecError::NoOrder);
    let none = refused(vec![SortKey::ascending(6)]).to_string();
    assert!(none.contains("column 6 of an input of 6"), "{none}");
    let inside = DataType::Struct(vec![Field::new("text", DataType::Utf8, true)].into());
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(inside));
    let schema = Arc::new(Schema::new(vec![Field::new("value", dictionary, true)]));
    let spec = SortSpec::new(vec![SortKey::ascending(0)]);
    let refused = Sort::new(schema, spec).err().unwrap();
    assert!(matches!(refused, SpecError::ColumnType { .. }), "{refused}");
}

#[test]
fn a_batch_of_other_types_than_planned_is_an_error() {
    let spec = SortSpec::new(vec![SortKey::ascending(0)]);
    let mut harness = open(schema(), spec, 1);
    let none = RecordBatchOptions::new().with_row_count(Some(1));
    let empty = Arc::new(Schema::empty());
    let other = RecordBatch::try_new_with_options(empty, Vec::new(), &none).unwrap();
    assert!(harness.process(other).is_err());
}

/// Takes batches until it is gone.
struct Taker {
    batches: Vec<RecordBatch>,
    is_gone: bool,
}

impl GivesSorted for Taker {
    fn give(&mut self, sorted: Sorted) -> Result<(), Stop> {
        if let Sorted::Batch(batch) = sorted {
            self.batches.push(batch);
        }
        Ok(())
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}

fn sorter(folder: &Path, memory_max_bytes: usize, batches: &[RecordBatch]) -> Sorter {
    let mut spec = SortSpec::new(vec![SortKey::ascending(1)]);
    spec.memory_max_bytes = memory_max_bytes;
    spec.spill_dir = Some(folder.to_owned());
    let schema = batches[0].schema();
    let converter = order_converter(&schema, &spec.order).unwrap();
    let mut sorter = Sorter::new(schema, spec, converter);
    for batch in batches {
        sorter.add(batch.clone(), &|| false).unwrap();
    }
    sorter
}

#[test]
fn a_sort_that_nobody_waits_for_stops_before_it_has_merged_anything() {
    let folder = tempfile::tempdir().unwrap();
    let batches: Vec<_> = (0..100).map(|n| numbers(&[Some(n)])).collect();
    let sorter = sorter(folder.path(), 1, &batches);
    let files = || {
        let folder = std::fs::read_dir(folder.path()).unwrap().next().unwrap();
        std::fs::read_dir(folder.unwrap().path()).unwrap().count()
    };
    assert_eq!(files(), 100 + 1, "each run and the lock");
    let mut taker = Taker {
        batches: Vec::new(),
        is_gone: true,
    };
    assert!(matches!(sorter.finish(&mut taker), Err(Stop::Gone)));
    assert!(taker.batches.is_empty());
    assert!(is_empty(folder.path()));
}

#[test]
fn dropping_a_sort_does_not_wait_for_its_thread() {
    let mut random = Random::new("dropping_a_sort_does_not_wait_for_its_thread");
    let values: Vec<_> = (0..300_000).map(|_| Some(random.next() as i64)).collect();
    let batch = numbers(&values);
    let sort = |ends: bool| {
        let spec = SortSpec::new(vec![SortKey::ascending(1)]);
        let mut harness = open(batch.schema(), spec, usize::MAX);
        harness.push(batch.clone());
        let clock = crate::clock::Clock::start();
        let began = clock.now();
        match ends {
            true => harness.end(),
            // The first step only says that the stream has ended.
            false => _ = harness.step(|sort, out| sort.on_end(out)),
        }
        drop(harness);
        clock.now().since(began)
    };
    let whole = sort(true);
    let dropped = sort(false);
    assert!(dropped < whole / 2, "{dropped:?} of {whole:?}");
}

#[test]
fn batches_of_wide_rows_are_merged_in_the_memory_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    const MEMORY_MAX_BYTES: usize = 8 << 20;
    let text = "x".repeat(1000);
    let wide = |n: i64| {
        let ids = Int64Array::from_iter_values((0..1000).map(|at| at * 40 + n));
        let times = Arc::new(ids.clone()) as ArrayRef;
        let texts = StringArray::from_iter_values((0..1000).map(|_| &text));
        let columns: [(&str, ArrayRef); 3] = [
            ("event_time", times),
            ("id", Arc::new(ids)),
            ("text", Arc::new(texts)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    // 40 MB, of which 8 are held.
    let batches: Vec<_> = (0..40).map(wide).collect();
    let sorter = sorter(folder.path(), MEMORY_MAX_BYTES, &batches);
    let largest = sorter.largest_batch_bytes();
    assert!(largest <= 2 * MEMORY_MAX_BYTES / 64, "{largest}");
    let mut taker = Taker {
        batches: Vec::new(),
        is_gone: false,
    };
    assert!(sorter.finish(&mut taker).is_ok());
    assert!(ids(&taker.batches).into_iter().eq(0..40_000));
    let largest = taker.batches.iter().map(Payload::bytes).max().unwrap();
    assert!(largest <= 2 * MEMORY_MAX_BYTES / 64, "{largest}");
}
