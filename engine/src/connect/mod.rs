//! Where streams come from and where they go: connectors.

mod channel;
mod connector;
mod error;
mod event_time;
mod json_rows;
mod lines;
mod ndjson;
mod parquet;
mod progress;
mod reader;
mod side_thread;
mod split;
mod stats;

pub use connector::{Paths, SinkConnector, SourceConnector, path_of_subtask};
pub use error::ConnectError;
pub use event_time::EventTimeLayout;
pub use ndjson::{ColumnOption, NdjsonSource, NdjsonSourceOptions, OnError};
pub use parquet::{ParquetSource, ParquetSourceOptions};
pub use progress::{SplitOrder, WatermarkOptions};
pub use reader::{SplitFormat, SplitInput, SplitReader, SplitSource};
pub use side_thread::remember_allowed_cpus;
pub use split::{ListedFile, Part, Split, assigned, list_files};
pub use stats::{ConnectorStats, Counters};
