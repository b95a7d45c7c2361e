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
//! A connector has a folder of its own, with what only it knows. What it shares with others is
//! in `files` (splits, positions, how files appear), `text` (lines, columns, times, rows that
//! cannot be understood), `made` (rows by their number), `live` (lines that come) and `side`
//! (threads and queues). So another format of text is a `LineForm`, of files a `FileFormat` and an
//! `OutputFormat`, of rows a `RowMaker`; its options go into [`SourceOptions`] or
//! [`SinkOptions`], its page into `docs/connectors`.
//!
//! Every batch has the event time in column 0 ([`EventTimeLayout`]).

mod arrow;
mod blackhole;
mod checksum;
mod connector;
mod csv;
mod defaults;
mod error;
mod event_time;
mod files;
mod live;
mod made;
mod memory;
mod ndjson;
mod options;
mod parquet;
mod saved;
pub(crate) mod side;
pub mod spill;
mod stats;
mod stdout;
mod text;

pub use arrow::sink::{ArrowCompression, ArrowForm, ArrowSink, ArrowSinkOptions};
pub use arrow::source::{ArrowSource, ArrowSourceOptions};
pub use blackhole::{Blackhole, BlackholeOptions, BlackholeSink};
pub use checksum::checksum;
pub use connector::{SinkConnector, SourceConnector};
pub use csv::sink::{CsvSink, CsvSinkOptions};
pub use csv::source::{CsvSource, CsvSourceOptions};
pub use error::ConnectError;
pub use event_time::EventTimeLayout;
pub use files::list::{Paths, list_files};
pub use files::listed::ListedFile;
pub use files::output::path_of_subtask;
pub use files::planned::SplitInput;
pub use files::progress::{SplitOrder, WatermarkOptions};
pub use files::split::{Part, Position, Split};
pub use live::source::{LineForm, LiveSource, SocketOptions, StdinOptions};
pub use made::generator::{Generator, GeneratorOptions};
pub use made::nexmark::columns::{NexmarkKind, nexmark_schema};
pub use made::nexmark::source::{NexmarkOptions, NexmarkSource, nexmark_batches};
pub use memory::{CollectSink, Collected, MemorySource};
pub use ndjson::sink::{NdjsonSink, NdjsonSinkOptions};
pub use ndjson::source::{NdjsonSource, NdjsonSourceOptions};
pub use options::{SINK_CONNECTORS, SOURCE_CONNECTORS, SinkOptions, SourceOptions};
pub use parquet::sink::{ParquetCompression, ParquetSink, ParquetSinkOptions};
pub use parquet::source::{ParquetSource, ParquetSourceOptions};
pub use side::reader::{SplitFormat, SplitReader};
pub use side::source::SplitSource;
pub use side::writer::{BatchWriter, StartWriter, WriterSink};
pub use stats::{ConnectorStats, Counters};
pub use stdout::{Stdout, StdoutOptions};
pub use text::columns::ColumnOption;
pub use text::input::TextCompression;
pub use text::reader::OnError;

#[cfg(test)]
mod tests;
