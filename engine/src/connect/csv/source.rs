//! Reads CSV files, split by bytes where line ends are always ends of rows, by file otherwise.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::Schema;
use serde::Deserialize;

use crate::connect::connector::SourceForm;
use crate::connect::files::input::FileInput;
use crate::connect::files::source::FileSource;
use crate::connect::text::columns::given_schema;
use crate::connect::text::format::{LineForm, TextFormat};
use crate::connect::text::lines::Marks;
use crate::connect::text::rows::TextRows;
use crate::connect::text::times::{TimeColumns, TimeParser};
use crate::connect::text::types::require_readable;
use crate::connect::{
    ColumnOption, ConnectError, EventTimeLayout, OnError, Paths, SourceConnector, TextCompression,
    WatermarkOptions, defaults,
};

use super::dialect::{self, Dialect};
use super::rows::{CsvRows, read_null, require_row};
use super::schema::Inference;

/// Options of the connector `csv`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsvSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
    /// Whether the first row of each file names its columns. Default true.
    #[serde(default = "defaults::yes")]
    pub header: bool,
    /// What is between two values: one ASCII character. Default `","`.
    #[serde(default = "dialect::comma")]
    pub delimiter: String,
    /// What is around a value that holds a delimiter, a line end or a quote (which is doubled
    /// then): one ASCII character. Default `"\""`.
    #[serde(default = "dialect::double_quote")]
    pub quote: String,
    /// Whether a value in quotes may hold line ends. Where it may, a file is read by one subtask,
    /// for where a row begins is only known from its start. Default true.
    #[serde(default = "defaults::yes")]
    pub quoted_line_ends: bool,
    /// Values that mean null, in a column of any type. Default: the empty value.
    #[serde(default = "empty")]
    pub null_values: Vec<String>,
    /// The columns and their types. With a header they are found by name, and others are left
    /// out; without one they are all columns, in their order. Default: inferred from the first
    /// rows of the first file that has any, all nullable, in the order of that file.
    #[serde(default)]
    pub schema: Option<Vec<ColumnOption>>,
    /// Rows from which the schema is inferred. Default 1000.
    #[serde(default = "defaults::infer_rows")]
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
    /// Bytes of a split, about: larger files that are not compressed are cut into pieces, each
    /// of which is read by one subtask. Needs `quoted_line_ends = false`. At least 1. Default
    /// 67108864 (64 MiB).
    #[serde(default = "defaults::split_bytes")]
    pub split_bytes: u64,
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
pub struct CsvSource(FileSource<TextFormat<CsvForm>>);

impl CsvSource {
    /// Lists the files (relative paths begin at `base`) and, where no schema is given, reads
    /// as many rows as it takes to infer one.
    ///
    /// # Errors
    /// When a path matches nothing, a file cannot be read, an option cannot be understood, or
    /// a schema cannot be inferred.
    pub fn new(options: CsvSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        let (delimiter, quote) = (&options.delimiter, &options.quote);
        let mut dialect = Dialect::new(options.header, delimiter, quote, &options.null_values)?;
        dialect.marks.hold_line_ends = options.quoted_line_ends;
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
        let form = CsvForm::new(schema, options.event_time.as_deref(), parser, dialect)?;
        let bad = (options.on_error, options.bad_rows.as_deref());
        let format = TextFormat::of_files(form, bad, options.compression, base, &files)?;
        let splits = format.splits(&files, options.split_bytes)?;
        Ok(Self(FileSource::new(
            format,
            files,
            splits,
            options.watermark,
        )))
    }
}

impl SourceForm for CsvSource {
    fn form(&self) -> &dyn SourceConnector {
        &self.0
    }
}

/// Lines of delimited values.
pub(crate) struct CsvForm {
    dialect: Dialect,
    times: TimeColumns,
    layout: EventTimeLayout,
}

impl CsvForm {
    /// Lines without a header, that come by themselves.
    pub(crate) fn live(
        columns: &[ColumnOption],
        event_time: Option<&str>,
    ) -> Result<Self, ConnectError> {
        let schema = given_schema(columns)?;
        let (comma, quote) = (dialect::comma(), dialect::double_quote());
        let dialect = Dialect::new(false, &comma, &quote, &empty())?;
        Self::new(schema, event_time, TimeParser::new(None, None)?, dialect)
    }

    fn new(
        schema: Schema,
        event_time: Option<&str>,
        parser: TimeParser,
        dialect: Dialect,
    ) -> Result<Self, ConnectError> {
        let layout = EventTimeLayout::new(&schema, event_time)?;
        let times = TimeColumns::new(Arc::new(schema), parser);
        require_readable(times.read_schema(), "CSV", read_null)?;
        Ok(Self {
            dialect,
            times,
            layout,
        })
    }

    /// The names in a header.
    fn names(&self, header: &[u8]) -> Result<Vec<String>, String> {
        let cannot = |reason| format!("the header cannot be read: {reason}");
        let schema = self.dialect.infer(header).map_err(cannot)?;
        require_row(&self.dialect, &schema, header).map_err(cannot)?;
        let names = schema.fields().iter().map(|field| field.name().clone());
        Ok(names.collect())
    }
}

impl LineForm for CsvForm {
    const CONNECTOR: &'static str = "csv";

    fn layout(&self) -> &EventTimeLayout {
        &self.layout
    }

    fn marks(&self) -> Option<Marks> {
        Some(self.dialect.marks)
    }

    fn has_header(&self) -> bool {
        self.dialect.has_header
    }

    fn rows(&self, header: Option<&[u8]>) -> Result<Box<dyn TextRows>, String> {
        // A file without anything has no header that could name a column.
        let header = header.filter(|header| !header.is_empty());
        let names = header.map(|header| self.names(header)).transpose()?;
        let (dialect, times) = (self.dialect.clone(), self.times.clone());
        Ok(Box::new(CsvRows::new(dialect, names.as_deref(), times)?))
    }
}

fn empty() -> Vec<String> {
    vec![String::new()]
}
