//! Lines that others write in their own time: standard input, and a socket for tests.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::operator::{Source, Subtask};

use super::csv_source::CsvFormat;
use super::live_input::{LiveInput, wait_readable};
use super::ndjson_source::NdjsonFormat;
use super::reader::{AHEAD_BYTES_MAX, ReadJob, ReadOutput, Stop};
use super::text_input::TextInput;
use super::text_reader::TextFormat;
use super::{
    ColumnOption, ConnectError, ConnectorStats, OnError, SourceConnector, SplitSource,
    WatermarkOptions,
};

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
    format: Arc<dyn TextFormat>,
    schema: SchemaRef,
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
    /// Reads standard input.
    ///
    /// # Errors
    /// When the schema cannot be understood, or there is no standard input.
    pub fn stdin(options: StdinOptions) -> Result<Self, ConnectError> {
        let input = rustix::io::dup(std::io::stdin());
        let input = input.map_err(|error| ConnectError::file(Path::new("stdin"), error))?;
        Self::of_input("stdin".to_owned(), input, options)
    }

    /// Reads `input`, which messages call `name`, as if it were standard input: for embedders
    /// that have a pipe or a connection.
    ///
    /// # Errors
    /// When the schema cannot be understood.
    pub fn of_input(
        name: String,
        input: OwnedFd,
        options: StdinOptions,
    ) -> Result<Self, ConnectError> {
        Self::new(name, LiveEnd::Open(input), None, options)
    }

    /// Listens at 127.0.0.1 and reads what the first connection sends. Nobody is asked who they
    /// are, which is why only this host is listened to.
    ///
    /// # Errors
    /// When the schema cannot be understood, or the port is taken.
    pub fn socket(options: SocketOptions) -> Result<Self, ConnectError> {
        let unusable = |error| ConnectError::option("port", format!("cannot be used: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let options = StdinOptions {
            form: options.form,
            schema: options.schema,
            on_error: options.on_error,
            event_time: options.event_time,
            watermark: options.watermark,
        };
        let name = format!("socket {address}");
        Self::new(name, LiveEnd::Listener(listener), Some(address), options)
    }

    fn new(
        name: String,
        input: LiveEnd,
        address: Option<SocketAddr>,
        options: StdinOptions,
    ) -> Result<Self, ConnectError> {
        let (columns, event_time) = (&options.schema, options.event_time.as_deref());
        let format: Arc<dyn TextFormat> = match options.form {
            LineForm::Ndjson => {
                Arc::new(NdjsonFormat::live(columns, event_time, options.on_error)?)
            }
            LineForm::Csv => Arc::new(CsvFormat::live(columns, event_time, options.on_error)?),
        };
        Ok(Self {
            name,
            schema: format.schema(),
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
        self.schema.clone()
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

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let input = match subtask.index {
            0 => self
                .input
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
            // One input is one stream: other subtasks have nothing to read.
            _ => None,
        };
        let job = LiveJob {
            name: PathBuf::from(&self.name),
            format: self.format.clone(),
            input,
            is_reader: subtask.index == 0,
        };
        let (stats, watermark) = (self.stats.clone(), self.watermark.clone());
        Box::new(SplitSource::of_job(Box::new(job), stats, watermark))
    }
}

struct LiveJob {
    name: PathBuf,
    format: Arc<dyn TextFormat>,
    input: Option<LiveEnd>,
    is_reader: bool,
}

impl ReadJob for LiveJob {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        if !self.is_reader {
            return Ok(());
        }
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
        let mut reader = self.format.reader(input, &self.name)?;
        out.read_all(0, &mut *reader)
    }
}
