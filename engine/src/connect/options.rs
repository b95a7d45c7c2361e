//! Connectors by name, as a job file names them.

use std::path::Path;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};

use crate::connect::{
    ArrowSink, ArrowSinkOptions, ArrowSource, ArrowSourceOptions, Blackhole, BlackholeOptions,
    ConnectError, CsvSink, CsvSinkOptions, CsvSource, CsvSourceOptions, Generator,
    GeneratorOptions, LiveSource, NdjsonSink, NdjsonSinkOptions, NdjsonSource, NdjsonSourceOptions,
    NexmarkOptions, NexmarkSource, ParquetSink, ParquetSinkOptions, ParquetSource,
    ParquetSourceOptions, SinkConnector, SocketOptions, SourceConnector, StdinOptions, Stdout,
    StdoutOptions, WatermarkOptions,
};

/// The connectors that can be a source, by name.
pub const SOURCE_CONNECTORS: &[&str] = &[
    "arrow",
    "csv",
    "generator",
    "ndjson",
    "nexmark",
    "parquet",
    "socket",
    "stdin",
];

/// The connectors that can be a sink, by name.
pub const SINK_CONNECTORS: &[&str] = &["arrow", "blackhole", "csv", "ndjson", "parquet", "stdout"];

/// The options of a source, whichever its connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOptions {
    /// Arrow IPC files and streams.
    Arrow(ArrowSourceOptions),
    /// CSV files.
    Csv(CsvSourceOptions),
    /// Made-up rows of numbers.
    Generator(GeneratorOptions),
    /// Newline-delimited JSON files.
    Ndjson(NdjsonSourceOptions),
    /// Events of the Nexmark benchmark.
    Nexmark(NexmarkOptions),
    /// Parquet files.
    Parquet(ParquetSourceOptions),
    /// Lines from a connection of this host.
    Socket(SocketOptions),
    /// Lines from standard input.
    Stdin(StdinOptions),
}

impl SourceOptions {
    /// Reads the options of `connector`.
    ///
    /// # Errors
    /// The deserializer's, which knows the place: when there is no such connector, an option
    /// is unknown or missing, or a value is of the wrong type.
    pub fn read<'de, D: Deserializer<'de>>(connector: &str, options: D) -> Result<Self, D::Error> {
        match connector {
            "arrow" => Deserialize::deserialize(options).map(Self::Arrow),
            "csv" => Deserialize::deserialize(options).map(Self::Csv),
            "generator" => Deserialize::deserialize(options).map(Self::Generator),
            "ndjson" => Deserialize::deserialize(options).map(Self::Ndjson),
            "nexmark" => Deserialize::deserialize(options).map(Self::Nexmark),
            "parquet" => Deserialize::deserialize(options).map(Self::Parquet),
            "socket" => Deserialize::deserialize(options).map(Self::Socket),
            "stdin" => Deserialize::deserialize(options).map(Self::Stdin),
            other => Err(no_connector("source", other, SOURCE_CONNECTORS)),
        }
    }

    /// Where the option `watermark` is kept; none where a connector makes its own watermarks.
    pub fn watermark_mut(&mut self) -> Option<&mut Option<WatermarkOptions>> {
        match self {
            Self::Arrow(options) => Some(&mut options.watermark),
            Self::Csv(options) => Some(&mut options.watermark),
            Self::Ndjson(options) => Some(&mut options.watermark),
            Self::Parquet(options) => Some(&mut options.watermark),
            Self::Socket(options) => Some(&mut options.watermark),
            Self::Stdin(options) => Some(&mut options.watermark),
            Self::Generator(_) | Self::Nexmark(_) => None,
        }
    }

    /// Makes the connector. Relative paths begin at `base`.
    ///
    /// # Errors
    /// When its input cannot be used; the error names the option or the file.
    pub fn connect(self, base: &Path) -> Result<Arc<dyn SourceConnector>, ConnectError> {
        Ok(match self {
            Self::Arrow(options) => Arc::new(ArrowSource::new(options, base)?),
            Self::Csv(options) => Arc::new(CsvSource::new(options, base)?),
            Self::Generator(options) => Arc::new(Generator::new(options)?),
            Self::Ndjson(options) => Arc::new(NdjsonSource::new(options, base)?),
            Self::Nexmark(options) => Arc::new(NexmarkSource::new(options)?),
            Self::Parquet(options) => Arc::new(ParquetSource::new(options, base)?),
            Self::Socket(options) => Arc::new(LiveSource::socket(options, base)?),
            Self::Stdin(options) => Arc::new(LiveSource::stdin(options, base)?),
        })
    }
}

/// The options of a sink, whichever its connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkOptions {
    /// Arrow IPC files or streams.
    Arrow(ArrowSinkOptions),
    /// Counts and forgets.
    Blackhole(BlackholeOptions),
    /// CSV files.
    Csv(CsvSinkOptions),
    /// Newline-delimited JSON files.
    Ndjson(NdjsonSinkOptions),
    /// Parquet files.
    Parquet(ParquetSinkOptions),
    /// Newline-delimited JSON on standard output.
    Stdout(StdoutOptions),
}

impl SinkOptions {
    /// Reads the options of `connector`.
    ///
    /// # Errors
    /// As for [`SourceOptions::read`].
    pub fn read<'de, D: Deserializer<'de>>(connector: &str, options: D) -> Result<Self, D::Error> {
        match connector {
            "arrow" => Deserialize::deserialize(options).map(Self::Arrow),
            "blackhole" => Deserialize::deserialize(options).map(Self::Blackhole),
            "csv" => Deserialize::deserialize(options).map(Self::Csv),
            "ndjson" => Deserialize::deserialize(options).map(Self::Ndjson),
            "parquet" => Deserialize::deserialize(options).map(Self::Parquet),
            "stdout" => Deserialize::deserialize(options).map(Self::Stdout),
            other => Err(no_connector("sink", other, SINK_CONNECTORS)),
        }
    }

    /// Makes the connector. Relative paths begin at `base`.
    ///
    /// # Errors
    /// When its output cannot be written; the error names the option or the file.
    pub fn connect(self, base: &Path) -> Result<Arc<dyn SinkConnector>, ConnectError> {
        Ok(match self {
            Self::Arrow(options) => Arc::new(ArrowSink::new(options, base)?),
            Self::Blackhole(options) => Arc::new(Blackhole::new(options)),
            Self::Csv(options) => Arc::new(CsvSink::new(options, base)?),
            Self::Ndjson(options) => Arc::new(NdjsonSink::new(options, base)?),
            Self::Parquet(options) => Arc::new(ParquetSink::new(options, base)?),
            Self::Stdout(options) => Arc::new(Stdout::new(options)),
        })
    }
}

fn no_connector<E: Error>(kind: &str, name: &str, known: &[&str]) -> E {
    E::custom(format_args!(
        "there is no {kind} connector `{name}`; there are {}",
        known.join(", ")
    ))
}
