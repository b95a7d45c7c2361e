//! Parquet files as input.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::DataType;

use super::*;
use crate::limits::BATCH_ROWS;

const FLIGHTS_ROWS: usize = 336_776;

fn write_file(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn flights_source(more: &str) -> Arc<dyn SourceConnector> {
    let options = format!("path = '{}'\n{more}", flights().display());
    source("parquet", &options, Path::new("."))
}

#[test]
fn every_row_is_read_once_at_any_parallelism() {
    let mut sums = Vec::new();
    for parallelism in [1, 2, 4] {
        let flights = flights_source("");
        assert_eq!(flights.parallelism_max(), Some(21));
        let described = flights.describe();
        assert!(
            described.ends_with("flights.parquet, 21 row groups"),
            "{described}"
        );
        let elements = run_all(&*flights, parallelism);
        assert_eq!(rows(&elements), FLIGHTS_ROWS);
        assert_eq!(elements.len(), batches(&elements).len(), "no watermarks");
        for batch in batches(&elements) {
            assert_eq!(batch.schema(), flights.schema());
            assert!(batch.num_rows() <= BATCH_ROWS);
        }
        let stats = flights.stats().read();
        assert_eq!(stats.rows, FLIGHTS_ROWS as u64);
        assert!((2_000_000..2_700_000).contains(&stats.bytes), "{stats:?}");
        sums.push(sum(&elements));
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]));
}

#[test]
fn a_row_group_with_fewer_rows_than_its_footer_says_is_an_error_and_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
    write_file(&path, vec![("n", column)]);
    let bytes = std::fs::read(&path).unwrap();
    let (data, end) = bytes.split_at(bytes.len() - 8);
    let footer_bytes = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
    let footer = ParquetMetaDataReader::new().parse_and_finish(&File::open(&path).unwrap());
    let footer = footer.unwrap();
    let groups = footer.row_groups().iter().map(|group| {
        let group = group.clone().into_builder().set_num_rows(10_007);
        group.build().unwrap()
    });
    let groups = groups.collect();
    let footer = footer.clone().into_builder().set_row_groups(groups).build();
    let mut changed = data[..data.len() - footer_bytes].to_vec();
    let writer = ParquetMetaDataWriter::new(&mut changed, &footer);
    writer.finish().unwrap();
    std::fs::write(&path, changed).unwrap();
    let connector = source("parquet", "path = 'a.parquet'", dir.path());
    let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
    let error = error.to_string();
    for part in ["a.parquet", "row group 0", "10007", "10000"] {
        assert!(error.contains(part), "{error}");
    }
}

/// A file without rows, of one column that is in so many others.
fn nested_file(levels: usize) -> Vec<u8> {
    let group = [0x35, 0x02, 0x18, 1, b'g', 0x15, 0x02, 0];
    let column = [0x15, 0x04, 0x25, 0x02, 0x18, 1, b'x', 0];
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let mut columns = levels + 2;
    while columns > 0 {
        let more = columns > 0x7f;
        footer.push((columns & 0x7f) as u8 | u8::from(more) << 7);
        columns >>= 7;
    }
    footer.extend([0x48, 1, b'r', 0x15, 0x02, 0]);
    footer.extend(group.repeat(levels));
    footer.extend(column);
    footer.extend([0x16, 0x00, 0x19, 0x0c, 0]);
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PAR1", &footer[..], &length, b"PAR1"].concat()
}

#[test]
fn columns_that_are_nested_too_deeply_for_the_stack_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for (levels, is_read) in [(100, true), (1_000, false), (1_000_000, false)] {
        std::fs::write(dir.path().join("a.parquet"), nested_file(levels)).unwrap();
        let made = try_source("parquet", "path = 'a.parquet'", dir.path());
        match made.map(|_| ()) {
            Ok(()) => assert!(is_read, "{levels}"),
            Err(error) => {
                let error = error.to_string();
                assert!(!is_read && error.contains("nested in more than"), "{error}");
                assert!(error.contains("a.parquet"), "{error}");
            }
        }
    }
}

#[test]
fn more_subtasks_than_row_groups_end_at_once() {
    let flights = flights_source("");
    assert_eq!(rows(&Stepped::open(&*flights, 21, 30).run().unwrap()), 0);
    assert_eq!(rows(&run_all(&*flights, 30)), FLIGHTS_ROWS);
}

#[test]
fn statistics_let_the_watermark_advance_before_the_last_row_group() {
    let watermark = "[watermark]\nout_of_orderness_ms = 86400000";
    for parallelism in [1, 3] {
        let flights = flights_source(watermark);
        for index in 0..parallelism {
            let elements = Stepped::open(&*flights, index, parallelism).run().unwrap();
            assert_watermarks_hold(&elements);
            let (seen, of) = (elements.len(), batches(&elements).len());
            assert!(seen > of + of / 2, "nearly every batch advances it");
            let again = Stepped::open(&*flights, index, parallelism).run();
            assert_eq!(again.unwrap(), elements, "every run emits the same");
        }
    }
}

#[test]
fn chosen_columns_come_in_the_order_asked_for_after_the_event_time() {
    let flights = flights_source("columns = ['distance', 'carrier']");
    let schema = flights.schema();
    let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["event_time", "distance", "carrier"]);
    let elements = run_all(&*flights, 1);
    let first = batches(&elements)[0];
    assert_eq!(first.schema(), schema);
    assert_eq!(ints(first, 1)[0], Some(1400));
    assert!(flights.stats().read().bytes < 1_500_000);
    // No columns at all still has every row, with its time.
    let times = run_all(&*flights_source("columns = []"), 2);
    assert_eq!(rows(&times), FLIGHTS_ROWS);
    assert_eq!(batches(&times)[0].num_columns(), 1);
}

#[test]
fn a_file_without_event_time_has_rows_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    write_file(&dir.path().join("a.parquet"), vec![("v", values)]);
    for columns in ["", "columns = []"] {
        let options = format!("path = 'a.parquet'\n{columns}\nwatermark = {{}}");
        let elements = run_all(&*source("parquet", &options, dir.path()), 1);
        assert_eq!(elements.len(), 1, "no time, no watermark");
        let batch = batches(&elements)[0];
        assert_eq!(ints(batch, 0), [None; 3]);
        assert_eq!(batch.schema().field(0).data_type(), &DataType::Int64);
    }
}

#[test]
fn what_does_not_fit_the_files_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let ints: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    write_file(&dir.path().join("a1.parquet"), vec![("v", ints)]);
    write_file(&dir.path().join("a2.parquet"), vec![("v", texts)]);
    std::fs::write(dir.path().join("b.parquet"), "not parquet").unwrap();
    let refused = |options: &str| {
        let error = try_source("parquet", options, dir.path()).err().unwrap();
        error.to_string()
    };
    let differs = refused("path = 'a*.parquet'");
    assert!(
        differs.contains("a2.parquet: its columns differ"),
        "{differs}"
    );
    let other = refused("path = 'b.parquet'");
    assert!(
        other.contains("b.parquet: is not a Parquet file"),
        "{other}"
    );
    let column = refused("path = 'a1.parquet'\ncolumns = ['w']");
    assert!(
        column.contains("no column `w`; the columns are `v`"),
        "{column}"
    );
    let time = refused("path = 'a2.parquet'\nevent_time = 'v'");
    assert!(
        time.contains("`event_time`: the column `v` is of type Utf8"),
        "{time}"
    );
    let none = refused("path = 'none/*.parquet'");
    assert!(
        none.contains("no file matches") && none.contains("none/*.parquet"),
        "{none}"
    );
}

#[test]
fn a_damaged_row_group_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    write_file(&path, vec![("event_time", values)]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..200].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let damaged = source("parquet", "path = 'a.parquet'", dir.path());
    let error = Stepped::open(&*damaged, 0, 1)
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a.parquet: row group 0 cannot be read"),
        "{error}"
    );
}
