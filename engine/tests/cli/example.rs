//! The flights example, in a folder of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// What the job writes and what another engine computed, by the name of the file.
const OUTPUTS: [&str; 3] = ["hourly", "daily", "union_hourly"];

/// The flights job with its own folder for what it writes.
pub(crate) struct Example {
    folder: TempDir,
    job: String,
}

impl Example {
    /// A copy of the job file that reads the data of the repository.
    pub(crate) fn in_folder_of_its_own() -> Self {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        std::fs::create_dir(folder.path().join("out")).expect("the folder is writable");
        let text = std::fs::read_to_string(examples().join("flights.toml"));
        let data = examples().join("data").display().to_string();
        let text = text
            .expect("the example is there")
            .replace("\"data/", &format!("\"{data}/"));
        let job = folder.path().join("flights.toml");
        std::fs::write(&job, text).expect("the folder is writable");
        Self {
            job: job.display().to_string(),
            folder,
        }
    }

    /// Replaces `from` by `to` in the job file.
    pub(crate) fn change(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.job).expect("it was written");
        assert!(text.contains(from), "{from}");
        std::fs::write(&self.job, text.replace(from, to)).expect("the folder is writable");
    }

    /// Makes the job read the flights in another order, in which none is `bound_ms` or more
    /// behind a later one before it.
    pub(crate) fn shuffle(&self, bound_ms: i64, seed: u64) {
        let data = examples().join("data/flights.parquet");
        let flights = batches(&data);
        let flights = concat_batches(&flights[0].schema(), &flights).expect("one schema");
        let times = flights.column_by_name("event_time").expect("it is there");
        let mut random = seed;
        let moved = times.as_primitive::<Int64Type>().iter().map(|time| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            time.map(|time| time + ((random >> 33) as i64) % bound_ms)
        });
        let moved: Int64Array = moved.collect();
        let order = sort_to_indices(&moved, None, None).expect("integers have an order");
        let shuffled = take_record_batch(&flights, &order).expect("every row is there");
        let path = self.folder.path().join("shuffled.parquet");
        let file = File::create(&path).expect("the folder is writable");
        let groups = WriterProperties::builder().set_max_row_group_row_count(Some(16_384));
        let writer = ArrowWriter::try_new(file, shuffled.schema(), Some(groups.build()));
        let mut writer = writer.expect("it can be Parquet");
        writer.write(&shuffled).expect("the folder is writable");
        writer.close().expect("the folder is writable");
        self.change(&data.display().to_string(), "shuffled.parquet");
    }

    /// The last row that was written for each window and key is the one that there must be.
    pub(crate) fn assert_last_results(&self, name: &str, keys: usize) {
        let mut last = BTreeMap::new();
        for row in self.written(name) {
            last.insert(row[..2 + keys].to_vec(), row);
        }
        let expected = expected(name);
        assert_eq!(last.len(), expected.len(), "{name}");
        let differs = last
            .values()
            .zip(&expected)
            .find(|(one, other)| one != other);
        assert_eq!(differs, None, "{name}");
    }

    /// The path of the job file.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    /// Whether anything was written.
    pub(crate) fn has_outputs(&self) -> bool {
        let mut entries = std::fs::read_dir(self.folder.path().join("out")).unwrap();
        entries.next().is_some()
    }

    /// Every file that was written has the rows that it must have, in any order.
    pub(crate) fn assert_outputs(&self) {
        for name in OUTPUTS {
            let (mut written, expected) = (self.written(name), expected(name));
            written.sort();
            assert_eq!(written.len(), expected.len(), "{name}");
            let differs = written
                .iter()
                .zip(&expected)
                .find(|(one, other)| one != other);
            assert_eq!(differs, None, "{name}");
        }
    }

    /// The rows that were written, in that order, with the columns that are expected.
    pub(crate) fn written(&self, name: &str) -> Vec<Vec<Cell>> {
        let columns = batches(&expected_file(name))[0].schema();
        let columns: Vec<_> = columns.fields().iter().map(|f| f.name().as_str()).collect();
        let path = self.folder.path().join(format!("out/{name}.parquet"));
        rows(&batches(&path), &columns)
    }
}

/// The rows that another engine computed, sorted.
fn expected(name: &str) -> Vec<Vec<Cell>> {
    let batches = batches(&expected_file(name));
    let columns = batches[0].schema();
    let columns: Vec<_> = columns.fields().iter().map(|f| f.name().as_str()).collect();
    let mut rows = rows(&batches, &columns);
    rows.sort();
    rows
}

fn expected_file(name: &str) -> PathBuf {
    examples().join(format!("data/expected_{name}.parquet"))
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples")
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .expect("it is Parquet")
        .build();
    reader
        .expect("it can be read")
        .map(|batch| batch.expect("it can be read"))
        .collect()
}

/// A value that can be compared bit by bit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    FloatBits(u64),
    Text(String),
}

/// The rows of these columns.
fn rows(batches: &[RecordBatch], columns: &[&str]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = columns
            .iter()
            .map(|name| {
                batch
                    .column_by_name(name)
                    .unwrap_or_else(|| panic!("no column {name}"))
            })
            .collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| cell(column, row)).collect());
        }
    }
    rows
}

fn cell(column: &dyn Array, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Null;
    }
    match column.data_type() {
        DataType::Int64 => Cell::Integer(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => {
            Cell::FloatBits(column.as_primitive::<Float64Type>().value(row).to_bits())
        }
        DataType::Utf8 => Cell::Text(column.as_string::<i32>().value(row).to_owned()),
        other => panic!("no output has a column of type {other}"),
    }
}
