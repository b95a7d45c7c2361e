//! Reads Parquet files, split by row group.

use std::fs::File;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use serde::Deserialize;

use crate::batch::EVENT_TIME_COLUMN;
use crate::connect::connector::SourceForm;
use crate::connect::event_time::column_names;
use crate::connect::files::input::FileInput;
use crate::connect::files::source::{FileFormat, FileSource};
use crate::connect::{
    ConnectError, Counters, EventTimeLayout, ListedFile, Part, Paths, Position, SourceConnector,
    Split, SplitFormat, SplitReader, WatermarkOptions,
};
use crate::limits::BATCH_ROWS;

use super::footer::{common_schema, compressed_bytes, or_reason, read_footer, row_groups};

/// Options of the connector `parquet`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParquetSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
    /// The columns to read, in this order after the event time. Default: all, in the order of
    /// the file.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// The column that holds the event time: int64 milliseconds since the Unix epoch, or a
    /// timestamp. It becomes column 0, `event_time`. Default: the column `event_time` if
    /// there is one; otherwise no row has an event time.
    #[serde(default)]
    pub event_time: Option<String>,
    /// How watermarks are made. Default: none before the end.
    #[serde(default)]
    pub watermark: Option<WatermarkOptions>,
}

/// A source of Parquet files. Their footers are read when it is made.
pub struct ParquetSource(FileSource<ParquetFormat>);

impl ParquetSource {
    /// Lists the files (relative paths begin at `base`) and reads their footers.
    ///
    /// # Errors
    /// When a path matches nothing, a file is not Parquet, the files differ in their columns,
    /// or an option does not fit them.
    pub fn new(options: ParquetSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        let files = FileInput::list(base, &options.path, None)?;
        let footers = files.files().iter().map(read_footer);
        let footers = footers.collect::<Result<Vec<_>, _>>()?;
        let schema = common_schema(files.files(), &footers)?;
        let columns = chosen_columns(&schema, &options)?;
        let chosen = schema
            .project(&columns)
            .map_err(|error| ConnectError::option("columns", error.to_string()))?;
        let time = options.event_time.as_deref();
        let splits = row_groups(&footers, time.unwrap_or(EVENT_TIME_COLUMN));
        let format = ParquetFormat {
            layout: EventTimeLayout::new(&chosen, time)?,
            footers,
            columns,
        };
        Ok(Self(FileSource::new(
            format,
            files,
            splits,
            options.watermark,
        )))
    }
}

impl SourceForm for ParquetSource {
    fn form(&self) -> &dyn SourceConnector {
        &self.0
    }
}

struct ParquetFormat {
    /// One for each file.
    footers: Vec<ArrowReaderMetadata>,
    /// The columns of the file that are read, by their place in it, in the order wanted.
    columns: Vec<usize>,
    layout: EventTimeLayout,
}

impl FileFormat for ParquetFormat {
    const CONNECTOR: &'static str = "parquet";
    const PIECES: &'static str = "row groups";

    fn layout(&self) -> &EventTimeLayout {
        &self.layout
    }
}

impl SplitFormat for ParquetFormat {
    fn open(
        &self,
        split: &Split,
        from: Position,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let footer = self.footers[split.file].clone();
        let row_groups = match split.part {
            Part::RowGroup(row_group) => vec![row_group],
            _ => (0..footer.metadata().num_row_groups()).collect(),
        };
        let rows_done = match from {
            Position::Rows(rows) => rows,
            _ => 0,
        };
        let rows_due = row_groups.iter().map(|&row_group| {
            let rows = footer.metadata().row_group(row_group).num_rows();
            usize::try_from(rows).unwrap_or(0)
        });
        let rows_due = rows_due.sum();
        let mask = ProjectionMask::roots(footer.parquet_schema(), self.columns.iter().copied());
        let bytes = compressed_bytes(&footer, &row_groups, &mask);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer)
            .with_projection(mask)
            .with_row_groups(row_groups)
            .with_batch_size(BATCH_ROWS)
            .with_offset(rows_done);
        let reader = or_reason(|| builder.build());
        let reader = reader.map_err(|reason| not_readable(listed, split.part, &reason))?;
        Ok(Box::new(RowGroupReader {
            reader,
            order: wanted_order(&self.columns),
            layout: self.layout.clone(),
            listed: listed.clone(),
            part: split.part,
            rows_due,
            rows_done,
            bytes,
        }))
    }
}

struct RowGroupReader {
    reader: ParquetRecordBatchReader,
    /// Where each wanted column is among those read.
    order: Vec<usize>,
    layout: EventTimeLayout,
    listed: ListedFile,
    part: Part,
    /// Rows of the split, as the footer says.
    rows_due: usize,
    /// Rows of the split that were handed on.
    rows_done: usize,
    /// Bytes that have not been counted.
    bytes: u64,
}

impl RowGroupReader {
    /// Makes sure that the end is the end: the library ends without an error where pages have
    /// fewer rows than they should.
    fn require_all(&self) -> Result<(), ConnectError> {
        let (due, done) = (self.rows_due, self.rows_done);
        if due == done {
            return Ok(());
        }
        let reason = format!("it is damaged: the footer says {due} rows, and there are {done}");
        Err(not_readable(&self.listed, self.part, &reason))
    }
}

impl SplitReader for RowGroupReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let read = or_reason(|| self.reader.next().transpose());
        let read = read.map_err(|reason| not_readable(&self.listed, self.part, &reason))?;
        let Some(batch) = read else {
            return self.require_all().map(|()| None);
        };
        self.rows_done += batch.num_rows();
        let ordered = batch
            .project(&self.order)
            .map_err(|error| not_readable(&self.listed, self.part, &error))?;
        self.layout
            .apply(&ordered)
            .map(Some)
            .map_err(|reason| not_readable(&self.listed, self.part, &reason))
    }

    fn position(&self) -> Position {
        Position::Rows(self.rows_done)
    }

    fn take_counters(&mut self) -> Counters {
        Counters {
            bytes: std::mem::take(&mut self.bytes),
            ..Counters::default()
        }
    }
}

/// The columns to read, by their place in the file, in the order wanted.
fn chosen_columns(
    schema: &Schema,
    options: &ParquetSourceOptions,
) -> Result<Vec<usize>, ConnectError> {
    let Some(wanted) = &options.columns else {
        return Ok((0..schema.fields().len()).collect());
    };
    let mut columns = Vec::with_capacity(wanted.len() + 1);
    for name in wanted {
        let index = schema.index_of(name).map_err(|_| {
            ConnectError::option(
                "columns",
                format!(
                    "there is no column `{name}`; the columns are {}",
                    column_names(schema)
                ),
            )
        })?;
        if columns.contains(&index) {
            let reason = format!("names the column `{name}` twice");
            return Err(ConnectError::option("columns", reason));
        }
        columns.push(index);
    }
    let time = options.event_time.as_deref().unwrap_or(EVENT_TIME_COLUMN);
    if let Ok(index) = schema.index_of(time)
        && !columns.contains(&index)
    {
        columns.push(index);
    }
    Ok(columns)
}

/// Columns are read in the order of the file: where each wanted one is among them.
fn wanted_order(columns: &[usize]) -> Vec<usize> {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    columns
        .iter()
        .map(|column| sorted.partition_point(|other| other < column))
        .collect()
}

fn not_readable(listed: &ListedFile, part: Part, error: &dyn std::fmt::Display) -> ConnectError {
    match part {
        Part::RowGroup(row_group) => ConnectError::file(
            &listed.path,
            format_args!("row group {row_group} cannot be read: {error}"),
        ),
        _ => ConnectError::file(&listed.path, format_args!("cannot be read: {error}")),
    }
}
