//! Reads newline-delimited JSON files, split by file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::json::reader::infer_json_schema;
use serde::Deserialize;

use crate::limits::BATCH_ROWS;
use crate::operator::{Source, Subtask};

use super::json_rows::{BadLine, JsonRows};
use super::lines::{Chunk, LineReader};
use super::{
    ConnectError, ConnectorStats, Counters, EventTimeLayout, ListedFile, Paths, SourceConnector,
    Split, SplitFormat, SplitInput, SplitReader, SplitSource, WatermarkOptions, assigned,
    list_files,
};

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 256 << 10;

/// Options of the connector `ndjson`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NdjsonSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
    /// The columns and their types. Fields of a row that are not among them are left out.
    /// Default: inferred from the first rows: all columns nullable, in the order of their
    /// names; a column that is of several types, or null in all these rows, is text.
    #[serde(default)]
    pub schema: Option<Vec<ColumnOption>>,
    /// Rows from which the schema is inferred, over the files in order. Default 1000.
    #[serde(default = "infer_rows")]
    pub infer_rows: usize,
    /// What a row does that cannot be understood. Default `"fail"`.
    #[serde(default)]
    pub on_error: OnError,
    /// The column that holds the event time: int64 milliseconds since the Unix epoch, or a
    /// timestamp. It becomes column 0, `event_time`. Default: the column `event_time` if
    /// there is one; otherwise no row has an event time.
    #[serde(default)]
    pub event_time: Option<String>,
    /// How watermarks are made. Default: none before the end.
    #[serde(default)]
    pub watermark: Option<WatermarkOptions>,
}

/// One column of a text file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOption {
    /// Its name. Required.
    pub name: String,
    /// Its type: `bool`, `int8` to `int64`, `uint8` to `uint64`, `float32`, `float64`,
    /// `utf8`, `date32`, `timestamp_s`, `timestamp_ms`, `timestamp_us`, `timestamp_ns`, or
    /// any type as Arrow writes it, such as `Decimal128(10, 2)`. Required.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Whether a row may do without it. Default true.
    #[serde(default = "yes")]
    pub nullable: bool,
}

/// What a row does that cannot be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It fails the job, with its file and line.
    #[default]
    Fail,
    /// It is left out and counted ([`Counters::skipped_rows`]).
    Skip,
}

/// A source of newline-delimited JSON files.
pub struct NdjsonSource {
    format: Arc<NdjsonFormat>,
    files: Arc<[ListedFile]>,
    watermark: Option<WatermarkOptions>,
    stats: ConnectorStats,
}

impl NdjsonSource {
    /// Lists the files (relative paths begin at `base`) and, where no schema is given, reads
    /// as many rows as it takes to infer one.
    ///
    /// # Errors
    /// When a path matches nothing, a file cannot be read, a schema cannot be understood or
    /// inferred, or there is no such column for the event time.
    pub fn new(options: NdjsonSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        let files = list_files(base, options.path.as_slice())?;
        let schema = match &options.schema {
            Some(columns) => given_schema(columns)?,
            None => inferred_schema(&files, options.infer_rows, options.on_error)?,
        };
        let layout = EventTimeLayout::new(&schema, options.event_time.as_deref())?;
        Ok(Self {
            format: Arc::new(NdjsonFormat {
                schema: Arc::new(schema),
                is_inferred: options.schema.is_none(),
                layout,
                on_error: options.on_error,
            }),
            files: files.into(),
            watermark: options.watermark,
            stats: ConnectorStats::default(),
        })
    }
}

impl SourceConnector for NdjsonSource {
    fn schema(&self) -> SchemaRef {
        self.format.layout.schema().clone()
    }

    fn parallelism_max(&self) -> Option<usize> {
        Some(self.files.len())
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let splits: Vec<Split> = (0..self.files.len()).map(Split::whole).collect();
        let input = SplitInput {
            format: self.format.clone(),
            files: self.files.clone(),
            splits: assigned(&splits, subtask.index, subtask.parallelism.subtasks()),
            stats: self.stats.clone(),
        };
        Box::new(SplitSource::new(input, self.watermark.clone()))
    }
}

struct NdjsonFormat {
    /// The schema of the files.
    schema: SchemaRef,
    /// Whether the schema was inferred.
    is_inferred: bool,
    layout: EventTimeLayout,
    on_error: OnError,
}

impl SplitFormat for NdjsonFormat {
    fn open(
        &self,
        _split: &Split,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        Ok(Box::new(NdjsonReader {
            lines: LineReader::new(BufReader::with_capacity(READ_BYTES, file)),
            chunk: Chunk::default(),
            rows: JsonRows::new(self.schema.clone(), self.is_inferred),
            layout: self.layout.clone(),
            on_error: self.on_error,
            listed: listed.clone(),
            skipped_rows: 0,
        }))
    }
}

struct NdjsonReader {
    lines: LineReader<BufReader<File>>,
    chunk: Chunk,
    rows: JsonRows,
    layout: EventTimeLayout,
    on_error: OnError,
    listed: ListedFile,
    /// Rows left out that have not been counted.
    skipped_rows: u64,
}

impl SplitReader for NdjsonReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        loop {
            self.lines
                .read(&mut self.chunk, BATCH_ROWS)
                .map_err(|error| ConnectError::file(&self.listed.path, error))?;
            let Some(first) = self.chunk.lines().first().map(|line| line.number) else {
                return Ok(None);
            };
            let on_bad = |line| match self.on_error {
                OnError::Fail => Err(bad_row(&self.listed.path, line)),
                OnError::Skip => {
                    self.skipped_rows += 1;
                    Ok(())
                }
            };
            if let Some(batch) = self.rows.decode(&self.chunk, on_bad)? {
                let applied = self.layout.apply(&batch);
                return applied.map(Some).map_err(|reason| {
                    let number = first;
                    bad_row(&self.listed.path, BadLine { number, reason })
                });
            }
        }
    }

    fn take_counters(&mut self) -> Counters {
        Counters {
            bytes: self.lines.take_bytes(),
            skipped_rows: std::mem::take(&mut self.skipped_rows),
            ..Counters::default()
        }
    }
}

fn given_schema(columns: &[ColumnOption]) -> Result<Schema, ConnectError> {
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
    for column in columns {
        if fields.iter().any(|field| field.name() == &column.name) {
            let reason = format!("names the column `{}` twice", column.name);
            return Err(ConnectError::option("schema", reason));
        }
        let data_type = parse_type(&column.data_type).ok_or_else(|| {
            let reason = format!(
                "the column `{}` has the type `{}`, which is not one",
                column.name, column.data_type
            );
            ConnectError::option("schema", reason)
        })?;
        fields.push(Field::new(&column.name, data_type, column.nullable));
    }
    Ok(Schema::new(fields))
}

fn parse_type(name: &str) -> Option<DataType> {
    let arrow_name = match name {
        "bool" => "Boolean",
        "int8" => "Int8",
        "int16" => "Int16",
        "int32" => "Int32",
        "int64" => "Int64",
        "uint8" => "UInt8",
        "uint16" => "UInt16",
        "uint32" => "UInt32",
        "uint64" => "UInt64",
        "float32" => "Float32",
        "float64" => "Float64",
        "utf8" => "Utf8",
        "date32" => "Date32",
        "timestamp_s" => "Timestamp(s)",
        "timestamp_ms" => "Timestamp(ms)",
        "timestamp_us" => "Timestamp(µs)",
        "timestamp_ns" => "Timestamp(ns)",
        other => other,
    };
    arrow_name.parse().ok()
}

/// Infers the columns from the first `rows_max` rows. Rows that are no JSON object are the
/// reader's to report or to skip, so that both do the same.
fn inferred_schema(
    files: &[ListedFile],
    rows_max: usize,
    on_error: OnError,
) -> Result<Schema, ConnectError> {
    let mut text = Vec::new();
    let mut rows = 0;
    let mut chunk = Chunk::default();
    for listed in files {
        let mut lines = LineReader::new(BufReader::new(listed.open()?));
        while rows < rows_max {
            lines
                .read(&mut chunk, rows_max - rows)
                .map_err(|error| ConnectError::file(&listed.path, error))?;
            if chunk.lines().is_empty() {
                break;
            }
            for line in chunk.lines() {
                let object: Result<serde_json::Map<String, serde_json::Value>, _> =
                    serde_json::from_slice(chunk.text(line));
                match (object, on_error) {
                    (Ok(_), _) => {
                        text.extend_from_slice(chunk.text(line));
                        text.push(b'\n');
                        rows += 1;
                    }
                    (Err(_), OnError::Skip) => {}
                    (Err(error), OnError::Fail) => {
                        let (number, reason) = (line.number, error.to_string());
                        return Err(bad_row(&listed.path, BadLine { number, reason }));
                    }
                }
            }
        }
    }
    if rows == 0 {
        let reason = "there is no row from which to infer the columns: give them";
        return Err(ConnectError::option("schema", reason));
    }
    let inferred = infer_json_schema(&text[..], None).map_err(|error| {
        let reason = format!("cannot be inferred from the first {rows} rows: {error}; give it");
        ConnectError::option("schema", reason)
    })?;
    Ok(Schema::new(in_name_order(inferred.0.fields())))
}

/// Fields are inferred in no particular order; every run must have the same.
fn in_name_order(fields: &Fields) -> Vec<Field> {
    let mut ordered: Vec<Field> = fields.iter().map(|field| settled(field)).collect();
    ordered.sort_by(|a, b| a.name().cmp(b.name()));
    ordered
}

/// The field with what it contains in order; one that was always null is text.
fn settled(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Null => DataType::Utf8,
        DataType::Struct(fields) => DataType::Struct(in_name_order(fields).into()),
        DataType::List(item) => DataType::List(Arc::new(settled(item))),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn bad_row(path: &Path, line: BadLine) -> ConnectError {
    ConnectError::Row {
        path: path.to_owned(),
        line: line.number,
        reason: line.reason,
    }
}

const fn infer_rows() -> usize {
    1000
}

const fn yes() -> bool {
    true
}
