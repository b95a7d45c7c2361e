//! Where batches go.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, TimestampMillisecondArray,
};

use super::*;
use crate::connect::{Collected, NexmarkKind, SinkConnector, nexmark_batches};

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn build(connector: &dyn SinkConnector, batch: &RecordBatch) -> Box<dyn Sink<RecordBatch>> {
    connector.validate(&batch.schema(), 1).unwrap();
    connector.build(&subtask(0, 1), &batch.schema())
}

#[test]
fn what_a_file_sink_wrote_is_read_back_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let written = nexmark_batches(NexmarkKind::Auction, 20_000, 1000);
    let elements: Vec<Element> = written.iter().cloned().map(StreamElement::Data).collect();
    for (connector, options) in [
        ("parquet", "path = 'out'\nrow_group_rows = 3000"),
        ("parquet", "path = 'out'\ncompression = 'snappy'"),
        ("ndjson", "path = 'out'"),
    ] {
        let to = sink(connector, options, dir.path());
        write_all(&mut *build(&*to, &written[0]), written.clone()).unwrap();
        assert_eq!(names_in(dir.path()), ["out"]);
        let stats = to.stats().read();
        assert_eq!((stats.rows, stats.batches), (20_000, 20));
        let size = fs::metadata(dir.path().join("out")).unwrap().len();
        assert_eq!(stats.bytes, size);
        let columns = "columns = ['id', 'item_name', 'initial_bid', 'expires']";
        if connector == "parquet" {
            let from = source("parquet", "path = 'out'", dir.path());
            assert_eq!(sum(&run_all(&*from, 2)), sum(&elements));
            let few = source("parquet", &format!("path = 'out'\n{columns}"), dir.path());
            assert_eq!(rows(&run_all(&*few, 1)), 20_000);
        } else {
            // Inferred columns come in the order of their names.
            let from = source("ndjson", "path = 'out'", dir.path());
            let read = run_all(&*from, 1);
            let names = |column: &str| -> Vec<ArrayRef> {
                let columns = batches(&read).into_iter();
                columns
                    .map(|batch| batch.column_by_name(column).unwrap().clone())
                    .collect()
            };
            assert_eq!(rows(&read), 20_000);
            assert_eq!(
                names("id")[0].slice(0, 1000).as_ref(),
                written[0].column_by_name("id").unwrap().as_ref()
            );
        }
    }
}

#[test]
fn a_stream_that_does_not_end_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let batch = nexmark_batches(NexmarkKind::Bid, 100, 100).remove(0);
    for connector in ["parquet", "ndjson"] {
        fs::write(dir.path().join("out"), "from before").unwrap();
        let to = sink(connector, "path = 'out'", dir.path());
        let mut sink = build(&*to, &batch);
        sink.open(&subtask(0, 1), &Bell::thread()).unwrap();
        assert_eq!(sink.write(batch.clone(), 0).unwrap(), Progress::Done);
        drop(sink);
        assert_eq!(names_in(dir.path()), ["out"]);
        let text = fs::read_to_string(dir.path().join("out")).unwrap();
        assert_eq!(text, "from before");
    }
}

#[test]
fn several_subtasks_write_a_file_each() {
    let dir = tempfile::tempdir().unwrap();
    let batch = nexmark_batches(NexmarkKind::Bid, 10, 10).remove(0);
    let to = sink("ndjson", "path = 'out.v1.ndjson'", dir.path());
    for index in 0..2 {
        let mut sink = to.build(&subtask(index, 2), &batch.schema());
        write_all(&mut *sink, [batch.clone()]).unwrap();
    }
    assert_eq!(names_in(dir.path()), ["out.v1-0.ndjson", "out.v1-1.ndjson"]);
}

#[test]
fn a_folder_that_does_not_exist_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for connector in ["parquet", "ndjson"] {
        let table: toml::Table = toml::from_str("path = 'none/out'").unwrap();
        let options = SinkOptions::read(connector, table).unwrap();
        let error = options.connect(dir.path()).err().unwrap().to_string();
        assert!(error.contains("none/out: there is no folder"), "{error}");
    }
}

#[test]
fn a_sink_whose_file_cannot_be_written_fails_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("gone");
    fs::create_dir(&folder).unwrap();
    let batch = nexmark_batches(NexmarkKind::Bid, 10, 10).remove(0);
    let to = sink("ndjson", "path = 'gone/out'", dir.path());
    let mut sink = build(&*to, &batch);
    fs::remove_dir(&folder).unwrap();
    let batches = std::iter::repeat_n(batch, 1000);
    let error = write_all(&mut *sink, batches).unwrap_err().to_string();
    assert!(error.contains("gone/out: there is no folder"), "{error}");
}

#[test]
fn json_lines_are_written_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "event_time",
            Arc::new(Int64Array::from(vec![Some(-5), None])),
        ),
        ("f", Arc::new(Float64Array::from(vec![f64::NAN, 1.5]))),
        (
            "d",
            Arc::new(
                Decimal128Array::from(vec![12_345, -1])
                    .with_precision_and_scale(20, 3)
                    .unwrap(),
            ),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for (option, expected) in [
        (
            "",
            "{\"event_time\":-5,\"f\":null,\"d\":12.345}\n{\"f\":1.5,\"d\":-0.001}\n",
        ),
        (
            "explicit_nulls = true",
            "{\"event_time\":-5,\"f\":null,\"d\":12.345}\n\
             {\"event_time\":null,\"f\":1.5,\"d\":-0.001}\n",
        ),
    ] {
        let to = sink("ndjson", &format!("path = 'out'\n{option}"), dir.path());
        write_all(&mut *build(&*to, &batch), [batch.clone()]).unwrap();
        let text = fs::read_to_string(dir.path().join("out")).unwrap();
        assert_eq!(text, expected);
    }
}

#[test]
fn a_blackhole_counts_and_its_checksum_knows_no_order() {
    let batches = nexmark_batches(NexmarkKind::Person, 300, 100);
    let mut sums = Vec::new();
    for order in [[0, 1, 2], [2, 0, 1]] {
        let to = sink("blackhole", "", Path::new("."));
        for index in order {
            let mut sink = build(&*to, &batches[index]);
            write_all(&mut *sink, [batches[index].clone()]).unwrap();
        }
        let stats = to.stats().read();
        assert_eq!((stats.rows, stats.batches), (300, 3));
        sums.push(stats.checksum.unwrap());
    }
    assert_eq!(sums[0], sums[1]);
    let without = sink("blackhole", "checksum = false", Path::new("."));
    write_all(&mut *build(&*without, &batches[0]), batches.clone()).unwrap();
    assert_eq!(without.stats().read().checksum, None);
}

#[test]
fn a_collecting_sink_keeps_order_and_refuses_more_than_its_bound() {
    let batch = nexmark_batches(NexmarkKind::Bid, 10, 10).remove(0);
    let collected = Collected::new();
    let mut sink = collected.sink().bounded(20);
    assert_eq!(sink.write(batch.clone(), 0).unwrap(), Progress::Done);
    sink.on_watermark(Watermark::active(3)).unwrap();
    assert_eq!(sink.write(batch.clone(), 0).unwrap(), Progress::Done);
    assert!(sink.write(batch.clone(), 0).is_err());
    assert_eq!(collected.batches().len(), 2);
    let expected = [
        StreamElement::Data(batch.clone()),
        StreamElement::Watermark(Watermark::active(3)),
        StreamElement::Data(batch),
    ];
    assert_eq!(collected.take(), expected);
    assert!(collected.take().is_empty());
}

#[test]
fn a_time_without_a_date_fails_a_text_sink_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let at: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0, i64::MAX]));
    let time: ArrayRef = Arc::new(Int64Array::from(vec![0, 0]));
    let batch = RecordBatch::try_from_iter([("event_time", time), ("at", at)]).unwrap();
    for connector in ["ndjson", "csv"] {
        let to = sink(connector, "path = 'out'", dir.path());
        let written = write_all(&mut *build(&*to, &batch), [batch.clone()]);
        let error = written.unwrap_err().to_string();
        assert!(error.contains("9223372036854775807"), "{error}");
        if connector == "ndjson" {
            assert!(error.contains("out: the column `at` has"), "{error}");
        }
    }
    assert_eq!(names_in(dir.path()), Vec::<String>::new());
}
