//! Reads CSV files, split by file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::operator::{Source, Subtask};

use super::bad_rows::BadRows;
use super::csv_dialect::Dialect;
use super::csv_rows::CsvRows;
use super::csv_schema::{Inference, read_header};
use super::file_input::FileInput;
use super::json_schema::given_schema;
use super::lines::LineReader;
use super::reader::AHEAD_BYTES_MAX;
use super::text_input::TextInput;
use super::text_reader::{TextFormat, TextReader};
use super::times::{TimeColumns, TimeParser};
use super::{
    ColumnOption, ConnectError, ConnectorStats, EventTimeLayout, ListedFile, OnError, Paths,
    SourceConnector, Split, SplitFormat, SplitReader, TextCompression, WatermarkOptions,
};

/// Options of the connector `csv`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsvSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
    /// Whether the first row of each file names its columns. Default true.
    #[serde(default = "yes")]
    pub header: bool,
    /// What is between two values: one ASCII character. Default `","`.
    #[serde(default = "comma")]
    pub delimiter: String,
    /// What is around a value that holds a delimiter, a line end or a quote (which is doubled
    /// then): one ASCII character. Default `"\""`.
    #[serde(default = "double_quote")]
    pub quote: String,
    /// Values that mean null, in a column of any type. Default: the empty value.
    #[serde(default = "empty")]
    pub null_values: Vec<String>,
    /// The columns and their types. With a header they are found by name, and others are left
    /// out; without one they are all columns, in their order. Default: inferred from the first
    /// rows of the first file that has any, all nullable, in the order of that file.
    #[serde(default)]
    pub schema: Option<Vec<ColumnOption>>,
    /// Rows from which the schema is inferred. Default 1000.
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
    /// The form of timestamps: `"iso"`, `"epoch_s"`, `"epoch_ms"`, `"epoch_us"`,
    /// `"epoch_ns"`, or a pattern of `strftime`, which is then also the form of dates. Default
    /// `"iso"`.
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

/// A source of CSV files.
pub struct CsvSource {
    format: Arc<CsvFormat>,
    files: FileInput,
    watermark: Option<WatermarkOptions>,
    stats: ConnectorStats,
}

impl CsvSource {
    /// Lists the files (relative paths begin at `base`) and, where no schema is given, reads
    /// as many rows as it takes to infer one.
    ///
    /// # Errors
    /// When a path matches nothing, a file cannot be read, an option cannot be understood, or
    /// a schema cannot be inferred.
    pub fn new(options: CsvSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        let (delimiter, quote) = (&options.delimiter, &options.quote);
        let dialect = Dialect::new(options.header, delimiter, quote, &options.null_values)?;
        let parser = TimeParser::new(options.time_format.as_deref(), options.time_zone.as_deref())?;
        let files = FileInput::list(base, &options.path, options.watch_ms)?;
        let schema = match &options.schema {
            Some(columns) => given_schema(columns)?,
            None => Inference {
                dialect: &dialect,
                rows_max: options.infer_rows,
                on_error: options.on_error,
                compression: options.compression,
                event_time: options.event_time.as_deref(),
                has_time_format: options.time_format.is_some(),
            }
            .infer(files.files())?,
        };
        let layout = EventTimeLayout::new(&schema, options.event_time.as_deref())?;
        let (bad_rows, on_error) = (options.bad_rows.as_deref(), options.on_error);
        let bad_rows = BadRows::new(bad_rows, base, on_error, files.files())?;
        Ok(Self {
            format: Arc::new(CsvFormat {
                dialect,
                times: TimeColumns::new(Arc::new(schema), parser),
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

impl SourceConnector for CsvSource {
    fn schema(&self) -> SchemaRef {
        self.format.layout.schema().clone()
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
        self.files.describe("csv")
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

pub(super) struct CsvFormat {
    dialect: Dialect,
    times: TimeColumns,
    layout: EventTimeLayout,
    on_error: OnError,
    bad_rows: Option<BadRows>,
    compression: TextCompression,
}

impl CsvFormat {
    /// Rows without a header, that come by themselves.
    pub(super) fn live(
        columns: &[ColumnOption],
        event_time: Option<&str>,
        on_error: OnError,
    ) -> Result<Self, ConnectError> {
        let schema = given_schema(columns)?;
        Ok(Self {
            dialect: Dialect::new(false, &comma(), &double_quote(), &empty())?,
            layout: EventTimeLayout::new(&schema, event_time)?,
            times: TimeColumns::new(Arc::new(schema), TimeParser::new(None, None)?),
            on_error,
            bad_rows: None,
            compression: TextCompression::None,
        })
    }

    /// The names in the header; none where there is nothing at all.
    fn names(
        &self,
        lines: &mut LineReader<TextInput>,
        path: &Path,
    ) -> Result<Option<Vec<String>>, ConnectError> {
        let header = read_header(lines).map_err(|error| ConnectError::file(path, error))?;
        if header.is_empty() {
            return Ok(None);
        }
        let schema = self.dialect.infer(&header).map_err(|reason| {
            ConnectError::file(path, format_args!("the header cannot be read: {reason}"))
        })?;
        let names = schema.fields().iter().map(|field| field.name().clone());
        Ok(Some(names.collect()))
    }
}

impl TextFormat for CsvFormat {
    fn schema(&self) -> SchemaRef {
        self.layout.schema().clone()
    }

    fn reader(&self, input: TextInput, path: &Path) -> Result<Box<dyn SplitReader>, ConnectError> {
        let mut lines = LineReader::quoted(input, self.dialect.quoting());
        let names = match self.dialect.has_header {
            true => self.names(&mut lines, path)?,
            false => None,
        };
        let times = self.times.clone();
        let rows = CsvRows::new(self.dialect.clone(), names.as_deref(), times);
        let rows = Box::new(rows.map_err(|reason| ConnectError::file(path, reason))?);
        let layout = self.layout.clone();
        let reader = TextReader::new(lines, rows, layout, self.on_error, path);
        Ok(Box::new(reader.with_bad_rows(self.bad_rows.as_ref())?))
    }
}

impl SplitFormat for CsvFormat {
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

const fn yes() -> bool {
    true
}

fn comma() -> String {
    ",".to_owned()
}

fn double_quote() -> String {
    "\"".to_owned()
}

fn empty() -> Vec<String> {
    vec![String::new()]
}

const fn infer_rows() -> usize {
    1000
}
