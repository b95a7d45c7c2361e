//! The flights example, in a folder of its own.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
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
            let expected = examples().join(format!("data/expected_{name}.parquet"));
            let expected = batches(&expected);
            let columns = expected[0].schema();
            let columns: Vec<_> = columns.fields().iter().map(|f| f.name().as_str()).collect();
            let written = self.folder.path().join(format!("out/{name}.parquet"));
            let written = rows(&batches(&written), &columns);
            let expected = rows(&expected, &columns);
            assert_eq!(written.len(), expected.len(), "{name}");
            let differs = written
                .iter()
                .zip(&expected)
                .find(|(one, other)| one != other);
            assert_eq!(differs, None, "{name}");
        }
    }
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
enum Cell {
    Null,
    Integer(i64),
    FloatBits(u64),
    Text(String),
}

/// The rows of these columns, sorted.
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
    rows.sort();
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
