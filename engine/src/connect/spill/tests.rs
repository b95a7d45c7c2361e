use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, Decimal256Array, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch,
    RunArray, StringArray, StringViewArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, i256};
use arrow::record_batch::RecordBatchOptions;

use ringway_shm::Bell;

use super::*;
use crate::connect::ArrowCompression;
use crate::limits::BATCH_ROWS;
use crate::operator::{Progress, Sink, Subtask};
use crate::partition::Parallelism;

/// Rows of many types, of which row `first` is the first.
fn batch(first: i64, rows: i64) -> RecordBatch {
    let numbers = || (first..first + rows).map(|n| (n % 3 > 0).then_some(n));
    let text = |n: i64| format!("a text of row {n} that does not fit into a view");
    let words: Vec<Option<String>> = numbers().map(|n| n.map(|n| text(n / 2))).collect();
    let words = || words.iter().map(Option::as_deref);
    let runs: RunArray<Int32Type> = words().map(|word| word.or(Some("none"))).collect();
    let inner = Arc::new(Field::new("n", DataType::Int64, true));
    let decimals: Decimal256Array = numbers().map(|n| n.map(i256::from)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(numbers().collect::<Int64Array>())),
        (
            "word",
            Arc::new(words().collect::<DictionaryArray<Int32Type>>()),
        ),
        ("view", Arc::new(words().collect::<StringViewArray>())),
        ("run", Arc::new(runs)),
        ("decimal", Arc::new(decimals)),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
                numbers().map(|n| n.map(|n| vec![Some(n), None, Some(n + 1)])),
            )),
        ),
        (
            "struct",
            Arc::new(StructArray::from(vec![(
                inner,
                Arc::new(numbers().collect::<Int64Array>()) as ArrayRef,
            )])),
        ),
    ];
    let fields = columns.iter().map(|(name, column)| {
        let metadata = [("field".to_owned(), (*name).to_owned())];
        Field::new(*name, column.data_type().clone(), true).with_metadata(metadata.into())
    });
    let metadata = [("origin".to_owned(), "t1".to_owned())];
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.into());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn spill(
    folder: &Path,
    compression: ArrowCompression,
    batches: &[RecordBatch],
) -> (Arc<SpillFolder>, Vec<SpilledFile>) {
    let folder = Arc::new(SpillFolder::create(Some(folder)).unwrap());
    let budget = SpillBudget::new(1 << 30);
    let mut writer = SpillWriter::new(
        folder.clone(),
        "part".to_owned(),
        compression,
        budget.clone(),
    );
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let files = writer.finish().unwrap();
    let bytes: u64 = files.iter().map(SpilledFile::bytes).sum();
    assert_eq!(budget.used_bytes(), bytes);
    (folder, files)
}

fn read(files: &[SpilledFile]) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for file in files {
        let mut reader = file.open().unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    batches
}

#[test]
fn batches_of_any_type_and_schema_come_back_as_they_were() {
    let parent = tempfile::tempdir().unwrap();
    let none = RecordBatchOptions::new().with_row_count(Some(5));
    let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &none);
    let twice = Field::new("same", DataType::Int32, false);
    let same: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let twice = RecordBatch::try_new(
        Arc::new(Schema::new(vec![twice.clone(), twice])),
        vec![same.clone(), same],
    );
    let batches = [
        batch(0, 100),
        batch(100, 7).slice(2, 4),
        batch(200, 50),
        empty.unwrap(),
        twice.unwrap(),
        batch(300, 1),
    ];
    for compression in [
        ArrowCompression::None,
        ArrowCompression::Lz4,
        ArrowCompression::Zstd,
    ] {
        let (_folder, files) = spill(parent.path(), compression, &batches);
        assert_eq!(files.len(), 4, "a file for each schema in a row");
        // As often as one likes.
        for _ in 0..2 {
            assert_eq!(read(&files), batches);
        }
    }
}

#[test]
fn large_batches_come_back_in_pieces_that_may_be_read() {
    let parent = tempfile::tempdir().unwrap();
    let rows = BATCH_ROWS as i64 * 2 + 3;
    let long = "x".repeat(40 << 20);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 2]));
    let texts = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    let batches = [batch(0, rows), texts.clone()];
    let (_folder, files) = spill(parent.path(), ArrowCompression::None, &batches);
    let read = read(&files);
    let sizes: Vec<usize> = read.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes, [BATCH_ROWS, BATCH_ROWS, 3, 1, 1]);
    assert_eq!(read[4], texts.slice(1, 1));
}

#[test]
fn a_file_that_is_not_what_was_written_is_named_whatever_was_done_to_it() {
    let parent = tempfile::tempdir().unwrap();
    let (_folder, files) = spill(parent.path(), ArrowCompression::None, &[batch(0, 500)]);
    let file = &files[0];
    // Changed while it is read, too.
    let mut reader = file.open().unwrap();
    let mut bytes = std::fs::read(file.path()).unwrap();
    bytes.truncate(bytes.len() - 100);
    std::fs::write(file.path(), &bytes).unwrap();
    let mut failed = None;
    while failed.is_none() {
        failed = match reader.next_batch() {
            Ok(None) => panic!("it came to the end"),
            Ok(Some(_)) => None,
            Err(error) => Some(error),
        };
    }
    let path = file.path().display().to_string();
    let named = |error: String| assert!(error.starts_with(&path), "{error}");
    named(failed.unwrap().to_string());
    named(file.open().err().unwrap().to_string());
    file.remove();
    named(file.open().err().unwrap().to_string());
}

#[test]
fn a_few_rows_of_many_take_a_few_bytes() {
    let parent = tempfile::tempdir().unwrap();
    let many = batch(0, 8_000);
    let few: Vec<RecordBatch> = (0..8).map(|part| many.slice(part * 1_000, 1)).collect();
    let (_folder, files) = spill(parent.path(), ArrowCompression::None, &few);
    assert_eq!(read(&files), few);
    // The texts of a dictionary are all written, once; those of views are only those of the rows.
    let view = many.project(&[2]).unwrap();
    let few: Vec<RecordBatch> = (0..8).map(|part| view.slice(part * 1_000, 1)).collect();
    let (_folder, files) = spill(parent.path(), ArrowCompression::None, &few);
    assert_eq!(read(&files), few);
    assert!(files[0].bytes() < 8_000, "{}", files[0].bytes());
}

#[test]
fn an_attempt_that_failed_leaves_nothing_behind() {
    let parent = tempfile::tempdir().unwrap();
    let options = BlockingOptions {
        spill_dir: Some(parent.path().to_owned()),
        spill_max_bytes: 1 << 20,
        ..BlockingOptions::default()
    };
    let exchange = Spill::new("tested".to_owned(), options);
    exchange.begin().unwrap();
    let folder = std::fs::read_dir(parent.path()).unwrap().next();
    let folder = folder.unwrap().unwrap().path();
    let files = || std::fs::read_dir(&folder).unwrap().count() - 1;
    let mut subtask = Subtask::single("tested");
    subtask.parallelism = Parallelism::new(2).unwrap();
    for _ in 0..3 {
        // One subtask had ended, the other had not.
        for index in 0..2 {
            subtask.index = index;
            let bell = Bell::thread();
            let mut sink = exchange.sink(&subtask).unwrap();
            sink.open(&subtask, &bell).unwrap();
            assert_eq!(sink.write(batch(0, 2_000), 0).unwrap(), Progress::Done);
            let mut waits = 0..30_000;
            while files() <= index as usize {
                assert!(waits.next().is_some(), "nothing was written");
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut progress = match index {
                0 => sink.on_end(0).unwrap(),
                _ => Progress::Done,
            };
            while progress == Progress::More {
                bell.arm();
                progress = sink.resume(0).unwrap();
                if progress == Progress::Done {
                    bell.disarm();
                } else {
                    assert!(bell.park(Some(Duration::from_secs(30))), "it never ended");
                }
            }
        }
        assert_eq!(files(), 2);
        exchange.begin_again();
        assert_eq!(files(), 0);
    }
    let report = exchange.end().unwrap();
    assert_eq!((report.rows, report.bytes), (0, 0));
    assert!(!folder.exists());
}

#[test]
fn no_more_is_spilled_than_may_be() {
    let parent = tempfile::tempdir().unwrap();
    let folder = Arc::new(SpillFolder::create(Some(parent.path())).unwrap());
    let budget = SpillBudget::new(100_000);
    let mut writer = SpillWriter::new(
        folder,
        "part".to_owned(),
        ArrowCompression::None,
        budget.clone(),
    );
    let error = (0..1000).find_map(|at| writer.write(&batch(at, 500)).err());
    let error = error.unwrap().to_string();
    assert!(error.contains("more than 100000 bytes"), "{error}");
    assert!(budget.used_bytes() <= 100_000);
}
