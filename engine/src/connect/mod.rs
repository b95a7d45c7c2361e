//! Where streams come from and where they go: connectors.
//!
//! A [`SourceConnector`] or [`SinkConnector`] is made when a job is planned, from typed options
//! ([`SourceOptions`], [`SinkOptions`]); it knows its schema and its splits, refuses what
//! cannot work, and builds the source or sink of each subtask.
//!
//! Nothing here blocks a worker. Files and pipes are read and written by side threads
//! ([`SplitSource`], [`WriterSink`]), which are not pinned, and which hand batches over through
//! rings that are bounded in batches and in bytes. Dropping a source stops its thread, which
//! ends soon after; dropping a sink also waits for it, so that no file is left half written.
//!
//! Every batch has the event time in column 0 ([`EventTimeLayout`]).

mod arrow_sink;
mod arrow_source;
mod bad_rows;
mod blackhole;
pub(crate) mod channel;
mod checksum;
mod connector;
mod csv_dialect;
mod csv_rows;
mod csv_schema;
mod csv_sink;
mod csv_source;
mod error;
mod event_time;
mod file_input;
mod generator;
mod json_numbers;
mod json_rows;
mod json_schema;
mod json_times;
mod lines;
mod live;
mod live_input;
mod memory;
mod ndjson_sink;
mod ndjson_source;
mod nexmark;
mod nexmark_columns;
mod options;
mod parquet_footer;
mod parquet_sink;
mod parquet_source;
mod pending_file;
mod progress;
mod rate;
mod reader;
pub(crate) mod side_thread;
pub mod spill;
mod split;
mod stats;
mod stdout;
mod text_input;
mod text_output;
mod text_reader;
mod text_rows;
mod times;
mod watch;
mod writer;

pub use arrow_sink::{ArrowCompression, ArrowForm, ArrowSink, ArrowSinkOptions};
pub use arrow_source::{ArrowSource, ArrowSourceOptions};
pub use blackhole::{Blackhole, BlackholeOptions, BlackholeSink};
pub use checksum::checksum;
pub use connector::{Paths, SinkConnector, SourceConnector, path_of_subtask};
pub use csv_sink::{CsvSink, CsvSinkOptions};
pub use csv_source::{CsvSource, CsvSourceOptions};
pub use error::ConnectError;
pub use event_time::EventTimeLayout;
pub use generator::{Generator, GeneratorOptions};
pub use json_schema::ColumnOption;
pub use live::{LineForm, LiveSource, SocketOptions, StdinOptions};
pub use memory::{CollectSink, Collected, MemorySource};
pub use ndjson_sink::{NdjsonSink, NdjsonSinkOptions};
pub use ndjson_source::{NdjsonSource, NdjsonSourceOptions};
pub use nexmark::{NexmarkOptions, NexmarkSource, nexmark_batches};
pub use nexmark_columns::{NexmarkKind, nexmark_schema};
pub use options::{SINK_CONNECTORS, SOURCE_CONNECTORS, SinkOptions, SourceOptions};
pub use parquet_sink::{ParquetCompression, ParquetSink, ParquetSinkOptions};
pub use parquet_source::{ParquetSource, ParquetSourceOptions};
pub use progress::{SplitOrder, WatermarkOptions};
pub use reader::{SplitFormat, SplitInput, SplitReader, SplitSource};
pub use split::{ListedFile, Part, Split, assigned, list_files};
pub use stats::{ConnectorStats, Counters};
pub use stdout::{Stdout, StdoutOptions};
pub use text_input::TextCompression;
pub use text_reader::OnError;
pub use writer::{BatchWriter, StartWriter, WriterSink};

#[cfg(test)]
mod tests;
