//! Where streams come from and where they go: connectors.

mod blackhole;
mod channel;
mod checksum;
mod connector;
mod error;
mod event_time;
mod generator;
mod json_rows;
mod lines;
mod memory;
mod ndjson;
mod ndjson_sink;
mod nexmark;
mod options;
mod parquet;
mod parquet_sink;
mod pending_file;
mod progress;
mod rate;
mod reader;
mod side_thread;
mod split;
mod stats;
mod stdout;
mod writer;

pub use blackhole::{Blackhole, BlackholeOptions, BlackholeSink};
pub use checksum::checksum;
pub use connector::{Paths, SinkConnector, SourceConnector, path_of_subtask};
pub use error::ConnectError;
pub use event_time::EventTimeLayout;
pub use generator::{Generator, GeneratorOptions};
pub use memory::{CollectSink, Collected, MemorySource};
pub use ndjson::{ColumnOption, NdjsonSource, NdjsonSourceOptions, OnError};
pub use ndjson_sink::{NdjsonSink, NdjsonSinkOptions};
pub use nexmark::{NexmarkKind, NexmarkOptions, NexmarkSource, nexmark_batches, nexmark_schema};
pub use options::{SINK_CONNECTORS, SOURCE_CONNECTORS, SinkOptions, SourceOptions};
pub use parquet::{ParquetSource, ParquetSourceOptions};
pub use parquet_sink::{ParquetCompression, ParquetSink, ParquetSinkOptions};
pub use progress::{SplitOrder, WatermarkOptions};
pub use reader::{SplitFormat, SplitInput, SplitReader, SplitSource};
pub use side_thread::remember_allowed_cpus;
pub use split::{ListedFile, Part, Split, assigned, list_files};
pub use stats::{ConnectorStats, Counters};
pub use stdout::{Stdout, StdoutOptions};
pub use writer::{BatchWriter, StartWriter, WriterSink};

#[cfg(test)]
mod tests;
