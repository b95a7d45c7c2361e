//! Reads newline-delimited JSON files, split by bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use serde::Deserialize;

use crate::connect::connector::SourceForm;
use crate::connect::files::input::FileInput;
use crate::connect::files::source::FileSource;
use crate::connect::text::columns::given_schema;
use crate::connect::text::format::{LineForm, TextFormat};
use crate::connect::text::rows::TextRows;
use crate::connect::text::times::{TimeColumns, TimeParser, event_time_as_time};
use crate::connect::text::types::require_readable;
use crate::connect::{
    ColumnOption, ConnectError, EventTimeLayout, OnError, Paths, SourceConnector, TextCompression,
    WatermarkOptions, defaults,
};

use super::rows::{JsonRows, read_null};
use super::schema::inferred_schema;

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
    /// The form of the timestamps at the top of a row: `"iso"`, `"epoch_s"`, `"epoch_ms"`,
    /// `"epoch_us"`, `"epoch_ns"`, or a pattern of `strftime`. Default: text is ISO 8601,
    /// numbers are in the unit of the column.
    #[serde(default)]
    pub time_format: Option<String>,
    /// The offset from UTC of times that do not say theirs, such as `+02:00`. Default UTC.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Bytes of a split, about: larger files that are not compressed are cut into pieces, each
    /// of which is read by one subtask. At least 1. Default 67108864 (64 MiB).
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

/// A source of newline-delimited JSON files.
pub struct NdjsonSource(FileSource<TextFormat<NdjsonForm>>);

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
        let event_time = options.event_time.as_deref();
        let schema = match options.schema {
            None if has_form => event_time_as_time(schema, event_time, time_format.is_some()),
            _ => schema,
        };
        let times = has_form.then_some(parser);
        let mut form = NdjsonForm::new(schema, event_time, times)?;
        form.is_inferred = options.schema.is_none();
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

impl SourceForm for NdjsonSource {
    fn form(&self) -> &dyn SourceConnector {
        &self.0
    }
}

/// Lines of one JSON object each.
pub(crate) struct NdjsonForm {
    /// The schema of the files.
    schema: SchemaRef,
    /// Whether the schema was inferred.
    is_inferred: bool,
    /// Where times are in a form of their own.
    times: Option<TimeColumns>,
    layout: EventTimeLayout,
}

impl NdjsonForm {
    /// Lines that come by themselves.
    pub(crate) fn live(
        columns: &[ColumnOption],
        event_time: Option<&str>,
    ) -> Result<Self, ConnectError> {
        Self::new(given_schema(columns)?, event_time, None)
    }

    fn new(
        schema: Schema,
        event_time: Option<&str>,
        times: Option<TimeParser>,
    ) -> Result<Self, ConnectError> {
        require_readable(&schema, "JSON", read_null)?;
        let layout = EventTimeLayout::new(&schema, event_time)?;
        let schema = Arc::new(schema);
        Ok(Self {
            times: times.map(|parser| TimeColumns::new(schema.clone(), parser)),
            schema,
            is_inferred: false,
            layout,
        })
    }
}

impl LineForm for NdjsonForm {
    const CONNECTOR: &'static str = "ndjson";

    fn layout(&self) -> &EventTimeLayout {
        &self.layout
    }

    fn rows(&self, _header: Option<&[u8]>) -> Result<Box<dyn TextRows>, String> {
        Ok(Box::new(match &self.times {
            Some(times) => JsonRows::with_times(times.clone()),
            None => JsonRows::new(self.schema.clone(), self.is_inferred),
        }))
    }
}
