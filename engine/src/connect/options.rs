//! Connectors by name, as a job file names them.

use std::path::Path;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};

use super::{
    Blackhole, BlackholeOptions, ConnectError, Generator, GeneratorOptions, NdjsonSink,
    NdjsonSinkOptions, NdjsonSource, NdjsonSourceOptions, NexmarkOptions, NexmarkSource,
    ParquetSink, ParquetSinkOptions, ParquetSource, ParquetSourceOptions, SinkConnector,
    SourceConnector, Stdout, StdoutOptions,
};

/// The connectors that can be a source, by name.
pub const SOURCE_CONNECTORS: &[&str] = &["generator", "ndjson", "nexmark", "parquet"];

/// The connectors that can be a sink, by name.
pub const SINK_CONNECTORS: &[&str] = &["blackhole", "ndjson", "parquet", "stdout"];

/// The options of a source, whichever its connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOptions {
    /// Made-up rows of numbers.
    Generator(GeneratorOptions),
    /// Newline-delimited JSON files.
    Ndjson(NdjsonSourceOptions),
    /// Events of the Nexmark benchmark.
    Nexmark(NexmarkOptions),
    /// Parquet files.
    Parquet(ParquetSourceOptions),
}

impl SourceOptions {
    /// Reads the options of `connector`.
    ///
    /// # Errors
    /// The deserializer's, which knows the place: when there is no such connector, an option
    /// is unknown or missing, or a value is of the wrong type.
    pub fn read<'de, D: Deserializer<'de>>(connector: &str, options: D) -> Result<Self, D::Error> {
        match connector {
            "generator" => Deserialize::deserialize(options).map(Self::Generator),
            "ndjson" => Deserialize::deserialize(options).map(Self::Ndjson),
            "nexmark" => Deserialize::deserialize(options).map(Self::Nexmark),
            "parquet" => Deserialize::deserialize(options).map(Self::Parquet),
            other => Err(no_connector("source", other, SOURCE_CONNECTORS)),
        }
    }

    /// Makes the connector. Relative paths begin at `base`.
    ///
    /// # Errors
    /// When its input cannot be used; the error names the option or the file.
    pub fn connect(self, base: &Path) -> Result<Arc<dyn SourceConnector>, ConnectError> {
        Ok(match self {
            Self::Generator(options) => Arc::new(Generator::new(options)?),
            Self::Ndjson(options) => Arc::new(NdjsonSource::new(options, base)?),
            Self::Nexmark(options) => Arc::new(NexmarkSource::new(options)?),
            Self::Parquet(options) => Arc::new(ParquetSource::new(options, base)?),
        })
    }
}

/// The options of a sink, whichever its connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkOptions {
    /// Counts and forgets.
    Blackhole(BlackholeOptions),
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
            "blackhole" => Deserialize::deserialize(options).map(Self::Blackhole),
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
            Self::Blackhole(options) => Arc::new(Blackhole::new(options)),
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
