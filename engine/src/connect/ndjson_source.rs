//! Reads newline-delimited JSON files, split by file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::operator::{Source, Subtask};

use super::bad_rows::BadRows;
use super::file_input::FileInput;
use super::json_rows::JsonRows;
use super::json_schema::{ColumnOption, given_schema, inferred_schema};
use super::lines::LineReader;
use super::reader::AHEAD_BYTES_MAX;
use super::text_input::{TextCompression, TextInput};
use super::text_reader::{OnError, TextFormat, TextReader};
use super::text_rows::TextRows;
use super::times::{TimeColumns, TimeParser, event_time_as_time};
use super::{
    ConnectError, ConnectorStats, EventTimeLayout, ListedFile, Paths, SourceConnector, Split,
    SplitFormat, SplitReader, WatermarkOptions,
};

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
    /// Where to write the rows that are left out: one JSON object a line, with their file,
    /// line, the reason and the text. Needs `on_error = "skip"`. Default: nowhere.
    #[serde(default)]
    pub bad_rows: Option<PathBuf>,
    /// How the files are compressed. Default `"auto"`: as their names say.
    #[serde(default)]
    pub compression: TextCompression,
    /// The form of the timestamps at the top of a row: `"iso"`, `"epoch_s"`, `"epoch_ms"`,
    /// `"epoch_us"`, `"epoch_ns"`, or a pattern of `strftime`. Default: text is ISO 8601,
    /// numbers are in the unit of the column.
    #[serde(default)]
    pub time_format: Option<String>,
    /// The offset from UTC of times that do not say theirs, such as `+02:00`. Default UTC.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// How often to look for new files, in milliseconds. The source does not end then.
    /// Default: never; it ends with the files that there are when the job starts.
    #[serde(default)]
    pub watch_ms: Option<u64>,
    /// The column that holds the event time: int64 milliseconds since the Unix epoch, or a
    /// timestamp. It becomes column 0, `event_time`. Default: the column `event_time` if
    /// there is one; otherwise no row has an event time.
    #[serde(default)]
    pub event_time: Option<String>,
    /// How watermarks are made. Default: none before the end.
    #[serde(default)]
    pub watermark: Option<WatermarkOptions>,
}

/// A source of newline-delimited JSON files.
pub struct NdjsonSource {
    format: Arc<NdjsonFormat>,
    files: FileInput,
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
        let files = FileInput::list(base, &options.path, options.watch_ms)?;
        let schema = match &options.schema {
            Some(columns) => given_schema(columns)?,
            None => inferred_schema(
                files.files(),
                options.infer_rows,
                options.on_error,
                options.compression,
            )?,
        };
        let (time_format, time_zone) = (&options.time_format, &options.time_zone);
        let parser = TimeParser::new(time_format.as_deref(), time_zone.as_deref())?;
        let has_form = time_format.is_some() || time_zone.is_some();
        let schema = match options.schema {
            None if has_form => {
                let event_time = options.event_time.as_deref();
                event_time_as_time(schema, event_time, time_format.is_some())
            }
            _ => schema,
        };
        let layout = EventTimeLayout::new(&schema, options.event_time.as_deref())?;
        let schema = Arc::new(schema);
        let (bad_rows, on_error) = (options.bad_rows.as_deref(), options.on_error);
        let bad_rows = BadRows::new(bad_rows, base, on_error, files.files())?;
        Ok(Self {
            format: Arc::new(NdjsonFormat {
                times: has_form.then(|| TimeColumns::new(schema.clone(), parser)),
                schema,
                is_inferred: options.schema.is_none(),
                layout,
                on_error: options.on_error,
                bad_rows,
                compression: options.compression,
            }),
            files,
            watermark: options.watermark,
            stats: ConnectorStats::default(),
        })
    }
}

impl SourceConnector for NdjsonSource {
    fn schema(&self) -> SchemaRef {
        self.format.layout.schema().clone()
    }

    fn has_event_time(&self) -> bool {
        self.format.layout.has_event_time()
    }

    fn parallelism_max(&self) -> Option<usize> {
        self.files.parallelism_max()
    }

    fn paths_read(&self) -> Vec<PathBuf> {
        self.files.paths()
    }

    fn patterns_watched(&self) -> Vec<String> {
        self.files.patterns_watched()
    }

    fn bad_rows_path(&self) -> Option<PathBuf> {
        let bad_rows = self.format.bad_rows.as_ref();
        bad_rows.map(|rows| rows.path().to_owned())
    }

    fn describe(&self) -> String {
        self.files.describe("ndjson")
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let (stats, watermark) = (self.stats.clone(), self.watermark.clone());
        self.files
            .build(subtask, self.format.clone(), stats, watermark)
    }
}

pub(super) struct NdjsonFormat {
    /// The schema of the files.
    schema: SchemaRef,
    /// Whether the schema was inferred.
    is_inferred: bool,
    /// Where times are in a form of their own.
    times: Option<TimeColumns>,
    layout: EventTimeLayout,
    on_error: OnError,
    bad_rows: Option<BadRows>,
    compression: TextCompression,
}

impl NdjsonFormat {
    /// Rows that come by themselves.
    pub(super) fn live(
        columns: &[ColumnOption],
        event_time: Option<&str>,
        on_error: OnError,
    ) -> Result<Self, ConnectError> {
        let schema = given_schema(columns)?;
        Ok(Self {
            layout: EventTimeLayout::new(&schema, event_time)?,
            schema: Arc::new(schema),
            is_inferred: false,
            times: None,
            on_error,
            bad_rows: None,
            compression: TextCompression::None,
        })
    }
}

impl TextFormat for NdjsonFormat {
    fn schema(&self) -> SchemaRef {
        self.layout.schema().clone()
    }

    fn reader(&self, input: TextInput, path: &Path) -> Result<Box<dyn SplitReader>, ConnectError> {
        let rows: Box<dyn TextRows> = Box::new(match &self.times {
            Some(times) => JsonRows::with_times(times.clone()),
            None => JsonRows::new(self.schema.clone(), self.is_inferred),
        });
        let (lines, layout) = (LineReader::new(input), self.layout.clone());
        let reader = TextReader::new(lines, rows, layout, self.on_error, path);
        Ok(Box::new(reader.with_bad_rows(self.bad_rows.as_ref())?))
    }
}

impl SplitFormat for NdjsonFormat {
    fn open(
        &self,
        _split: &Split,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        if let Some(bad_rows) = &self.bad_rows {
            bad_rows.require_other_than(listed)?;
        }
        let input = TextInput::of_file(&listed.path, file, self.compression)
            .map_err(|error| ConnectError::file(&listed.path, error))?;
        self.reader(input, &listed.path)
    }
}

const fn infer_rows() -> usize {
    1000
}
