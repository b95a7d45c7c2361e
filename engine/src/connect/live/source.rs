//! Lines that others write in their own time: standard input, and a socket for tests.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;
use serde_json::Value;

use crate::connect::csv::source::CsvForm;
use crate::connect::ndjson::source::NdjsonForm;
use crate::connect::saved::Saved;
use crate::connect::side::reader::{AHEAD_BYTES_MAX, Note, ReadJob, ReadOutput, Stop};
use crate::connect::side::source::{Input, SplitSource};
use crate::connect::text::format::{LiveFormat, TextFormat};
use crate::connect::text::input::TextInput;
use crate::connect::{
    ColumnOption, ConnectError, ConnectorStats, OnError, SourceConnector, Split, WatermarkOptions,
};
use crate::operator::{Source, Subtask};

use super::input::{LiveInput, wait_readable};

/// Options of the connector `stdin`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdinOptions {
    /// The form of the lines. Default `"ndjson"`.
    #[serde(default)]
    pub form: LineForm,
    /// The columns and their types. Required: what has been read to infer them would be gone.
    pub schema: Vec<ColumnOption>,
    /// What a row does that cannot be understood. Default `"fail"`.
    #[serde(default)]
    pub on_error: OnError,
    /// Where to write the rows that are left out: one JSON object a line, with their line, the
    /// reason and the text. Needs `on_error = "skip"`. Default: nowhere.
    #[serde(default)]
    pub bad_rows: Option<PathBuf>,
    /// The column that holds the event time. Default: the column `event_time` if there is one.
    #[serde(default)]
    pub event_time: Option<String>,
    /// How watermarks are made. Default: none before the end.
    #[serde(default)]
    pub watermark: Option<WatermarkOptions>,
}

/// Options of the connector `socket`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SocketOptions {
    /// The port of 127.0.0.1 to listen at; 0 for any that is free. Required.
    pub port: u16,
    /// The form of the lines. Default `"ndjson"`.
    #[serde(default)]
    pub form: LineForm,
    /// The columns and their types. Required.
    pub schema: Vec<ColumnOption>,
    /// What a row does that cannot be understood. Default `"fail"`.
    #[serde(default)]
    pub on_error: OnError,
    /// Where to write the rows that are left out: one JSON object a line, with their line, the
    /// reason and the text. Needs `on_error = "skip"`. Default: nowhere.
    #[serde(default)]
    pub bad_rows: Option<PathBuf>,
    /// The column that holds the event time. Default: the column `event_time` if there is one.
    #[serde(default)]
    pub event_time: Option<String>,
    /// How watermarks are made. Default: none before the end.
    #[serde(default)]
    pub watermark: Option<WatermarkOptions>,
}

/// The form of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineForm {
    /// One JSON object a line.
    #[default]
    Ndjson,
    /// Values with commas between them, of all columns in their order, without a header.
    Csv,
}

/// A source of lines that come. It can be read once, by one subtask, and ends with its input.
pub struct LiveSource {
    name: String,
    format: Arc<dyn LiveFormat>,
    /// Taken by the subtask that reads.
    input: Mutex<Option<LiveEnd>>,
    address: Option<SocketAddr>,
    watermark: Option<WatermarkOptions>,
    stats: ConnectorStats,
}

/// Where the lines come from.
enum LiveEnd {
    Open(OwnedFd),
    /// The first connection is the input.
    Listener(TcpListener),
}

impl LiveSource {
    /// Reads standard input. A relative path of `bad_rows` begins at `base`.
    ///
    /// # Errors
    /// When an option cannot be understood, or there is no standard input.
    pub fn stdin(options: StdinOptions, base: &Path) -> Result<Self, ConnectError> {
        let input = rustix::io::dup(std::io::stdin());
        let input = input.map_err(|error| ConnectError::file(Path::new("stdin"), error))?;
        Self::of_input("stdin".to_owned(), input, options, base)
    }

    /// Reads `input`, which messages call `name`, as if it were standard input: for embedders
    /// that have a pipe or a connection. A relative path of `bad_rows` begins at `base`.
    ///
    /// # Errors
    /// When an option cannot be understood, or `bad_rows` is what is to be read.
    pub fn of_input(
        name: String,
        input: OwnedFd,
        options: StdinOptions,
        base: &Path,
    ) -> Result<Self, ConnectError> {
        if let Some(bad_rows) = &options.bad_rows {
            require_other_file(&input, &base.join(bad_rows))?;
        }
        Self::new(name, LiveEnd::Open(input), None, options, base)
    }

    /// Listens at 127.0.0.1 and reads what the first connection sends. Nobody is asked who they
    /// are, which is why only this host is listened to. A relative path of `bad_rows` begins at
    /// `base`.
    ///
    /// # Errors
    /// When an option cannot be understood, or the port is taken.
    pub fn socket(options: SocketOptions, base: &Path) -> Result<Self, ConnectError> {
        let unusable = |error| ConnectError::option("port", format!("cannot be used: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let options = StdinOptions {
            form: options.form,
            schema: options.schema,
            on_error: options.on_error,
            bad_rows: options.bad_rows,
            event_time: options.event_time,
            watermark: options.watermark,
        };
        let name = format!("socket {address}");
        Self::new(
            name,
            LiveEnd::Listener(listener),
            Some(address),
            options,
            base,
        )
    }

    fn new(
        name: String,
        input: LiveEnd,
        address: Option<SocketAddr>,
        options: StdinOptions,
        base: &Path,
    ) -> Result<Self, ConnectError> {
        let (columns, event_time) = (&options.schema, options.event_time.as_deref());
        let bad = (options.on_error, options.bad_rows.as_deref());
        let format: Arc<dyn LiveFormat> = match options.form {
            LineForm::Ndjson => Arc::new(TextFormat::live(
                NdjsonForm::live(columns, event_time)?,
                bad,
                base,
            )?),
            LineForm::Csv => Arc::new(TextFormat::live(
                CsvForm::live(columns, event_time)?,
                bad,
                base,
            )?),
        };
        Ok(Self {
            name,
            format,
            input: Mutex::new(Some(input)),
            address,
            watermark: options.watermark,
            stats: ConnectorStats::default(),
        })
    }

    /// Where it listens, if it does.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl SourceConnector for LiveSource {
    fn schema(&self) -> SchemaRef {
        self.format.schema()
    }

    fn parallelism_max(&self) -> Option<usize> {
        Some(1)
    }

    fn describe(&self) -> String {
        self.name.clone()
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn can_resume(&self) -> bool {
        false
    }

    fn bad_rows_path(&self) -> Option<PathBuf> {
        self.format.bad_rows().map(Path::to_owned)
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let taken = || {
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            input.take()
        };
        let lines = LiveLines {
            name: PathBuf::from(&self.name),
            format: self.format.clone(),
            // One input is one stream: other subtasks have nothing to read.
            input: (subtask.index == 0).then(taken).flatten(),
        };
        let input = LiveLinesInput {
            lines: (subtask.index == 0).then_some(lines),
            name: self.name.clone(),
        };
        let (stats, watermark) = (self.stats.clone(), self.watermark.clone());
        Box::new(SplitSource::of(Box::new(input), stats, watermark))
    }
}

/// Makes sure that the file `bad_rows` is not `input`, which may come from a file too.
fn require_other_file(input: &OwnedFd, bad_rows: &Path) -> Result<(), ConnectError> {
    let (Ok(written), Ok(read)) = (std::fs::metadata(bad_rows), rustix::fs::fstat(input)) else {
        return Ok(());
    };
    if (written.dev(), written.ino()) != (read.st_dev, read.st_ino) || !written.is_file() {
        return Ok(());
    }
    let reason = "is the file that this source reads: give another one";
    Err(ConnectError::option("bad_rows", reason))
}

/// The input of one subtask: all lines, or none.
struct LiveLinesInput {
    lines: Option<LiveLines>,
    name: String,
}

impl Input for LiveLinesInput {
    fn open(&mut self, _index: u32, _parallelism: u32) {}

    fn restore(&mut self, saved: Vec<Saved<Value>>) -> Result<(), ConnectError> {
        // Where nobody had anything left to read, all was read before.
        if saved.iter().all(|saved| saved.index > 0) {
            self.lines = None;
            return Ok(());
        }
        Err(ConnectError::NoResume {
            what: self.name.clone(),
            reason: "lines that came before the checkpoint are not asked for again, and those that \
                     came after it were read by the job that failed",
        })
    }

    fn splits(&self) -> Vec<Split> {
        vec![Split::whole(0)]
    }

    fn job(&mut self) -> Option<Box<dyn ReadJob>> {
        let lines = self.lines.take()?;
        Some(Box::new(lines))
    }

    fn note(&mut self, _note: Note) {}

    fn save(&self) -> Value {
        Value::Null
    }
}

/// Reads the lines that come.
struct LiveLines {
    name: PathBuf,
    format: Arc<dyn LiveFormat>,
    input: Option<LiveEnd>,
}

impl ReadJob for LiveLines {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        out.reading(&self.name);
        let unreadable = |error| ConnectError::file(&self.name, error);
        let input = match self.input.take() {
            Some(LiveEnd::Open(input)) => input,
            Some(LiveEnd::Listener(listener)) => {
                let waiting = listener.try_clone().map_err(unreadable)?.into();
                wait_readable(&waiting, &out.wanted()).map_err(unreadable)?;
                listener.accept().map_err(unreadable)?.0.into()
            }
            None => {
                let reason = "it has been read: what was written there cannot be had again";
                return Err(ConnectError::file(&self.name, reason).into());
            }
        };
        let input = TextInput::live(LiveInput::new(input, out.wanted()));
        let mut reader = self.format.open(input, self.name.clone())?;
        out.read_all(0, &mut *reader)
    }
}
