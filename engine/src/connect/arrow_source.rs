//! Reads Arrow IPC files and streams, split by file.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::limits::{BATCH_ROWS, IPC_BODY_BYTES_MAX, IPC_DICTIONARY_BYTES_MAX};
use crate::operator::{Source, Subtask};
use crate::wire::ipc::{IpcError, IpcFileReader, IpcStreamReader};

use super::event_time::column_names;
use super::file_input::FileInput;
use super::reader::AHEAD_BYTES_MAX;
use super::{
    ConnectError, ConnectorStats, Counters, EventTimeLayout, ListedFile, Paths, SourceConnector,
    Split, SplitFormat, SplitReader, WatermarkOptions,
};

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 256 << 10;

/// Options of the connector `arrow`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrowSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
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

/// A source of Arrow IPC files and streams; which of them a file is, it says itself.
pub struct ArrowSource {
    format: Arc<ArrowFormat>,
    files: FileInput,
    watermark: Option<WatermarkOptions>,
    stats: ConnectorStats,
}

impl ArrowSource {
    /// Lists the files (relative paths begin at `base`) and reads their schemas.
    ///
    /// # Errors
    /// When a path matches nothing, a file is not Arrow IPC, or the files differ in their
    /// columns.
    pub fn new(options: ArrowSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        let files = FileInput::list(base, &options.path, options.watch_ms)?;
        let Some((first, others)) = files.files().split_first() else {
            let reason = "there is no file yet that could tell the columns: put one there";
            return Err(ConnectError::option("path", reason));
        };
        let schema = Batches::open(first, first.open()?)?.schema();
        for listed in others {
            let own = Batches::open(listed, listed.open()?)?.schema();
            require_fields(listed, &own, &schema)?;
        }
        let layout = EventTimeLayout::new(&schema, options.event_time.as_deref())?;
        Ok(Self {
            format: Arc::new(ArrowFormat { schema, layout }),
            files,
            watermark: options.watermark,
            stats: ConnectorStats::default(),
        })
    }
}

impl SourceConnector for ArrowSource {
    fn schema(&self) -> SchemaRef {
        self.format.layout.schema().clone()
    }

    fn parallelism_max(&self) -> Option<usize> {
        self.files.parallelism_max()
    }

    fn paths_read(&self) -> Vec<PathBuf> {
        self.files.paths()
    }

    fn patterns_watched(&self) -> Vec<String> {
        self.files.patterns_watched()
    }

    fn describe(&self) -> String {
        self.files.describe("arrow")
    }

    fn memory_bytes(&self) -> usize {
        // A batch is cut up, but its memory is one piece; a compressed one is there twice.
        AHEAD_BYTES_MAX + 2 * IPC_BODY_BYTES_MAX + IPC_DICTIONARY_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let (stats, watermark) = (self.stats.clone(), self.watermark.clone());
        self.files
            .build(subtask, self.format.clone(), stats, watermark)
    }
}

struct ArrowFormat {
    /// The schema of the files.
    schema: SchemaRef,
    layout: EventTimeLayout,
}

impl SplitFormat for ArrowFormat {
    fn open(
        &self,
        _split: &Split,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let batches = Batches::open(listed, file)?;
        require_fields(listed, &batches.schema(), &self.schema)?;
        Ok(Box::new(ArrowReader {
            batches,
            rest: None,
            layout: self.layout.clone(),
            listed: listed.clone(),
            bytes: listed.size_bytes,
        }))
    }
}

/// The batches of a file, whichever form it has.
enum Batches {
    File(IpcFileReader<BufReader<File>>),
    Stream(IpcStreamReader<BufReader<File>>),
}

impl Batches {
    fn open(listed: &ListedFile, mut file: File) -> Result<Self, ConnectError> {
        let unreadable = |error| ConnectError::file(&listed.path, error);
        let mut start = Vec::new();
        let read = file.by_ref().take(8).read_to_end(&mut start);
        read.and_then(|_| file.seek(SeekFrom::Start(0)))
            .map_err(unreadable)?;
        let input = BufReader::with_capacity(READ_BYTES, file);
        let opened = if IpcFileReader::<BufReader<File>>::is_file(&start) {
            IpcFileReader::new(input).map(Self::File)
        } else {
            IpcStreamReader::new(input).map(Self::Stream)
        };
        opened.map_err(|error| refused(listed, &error))
    }

    fn schema(&self) -> SchemaRef {
        match self {
            Self::File(reader) => reader.schema().clone(),
            Self::Stream(reader) => reader.schema().clone(),
        }
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, IpcError> {
        match self {
            Self::File(reader) => reader.next_batch(),
            Self::Stream(reader) => reader.next_batch(),
        }
    }
}

struct ArrowReader {
    batches: Batches,
    /// What is left of a batch that is larger than a source's may be.
    rest: Option<RecordBatch>,
    layout: EventTimeLayout,
    listed: ListedFile,
    /// Bytes of the file that have not been counted.
    bytes: u64,
}

impl ArrowReader {
    /// What is left of a batch, or the next that has rows.
    fn rest_or_next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        loop {
            let next = self.batches.next();
            let Some(batch) = next.map_err(|error| refused(&self.listed, &error))? else {
                return Ok(None);
            };
            if batch.num_rows() > 0 {
                let applied = self.layout.apply(&batch);
                let unfit = |reason| ConnectError::file(&self.listed.path, reason);
                return applied.map(Some).map_err(unfit);
            }
        }
    }
}

impl SplitReader for ArrowReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let Some(batch) = self.rest_or_next()? else {
            return Ok(None);
        };
        let rows = batch.num_rows();
        if rows <= BATCH_ROWS {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(BATCH_ROWS, rows - BATCH_ROWS));
        Ok(Some(batch.slice(0, BATCH_ROWS)))
    }

    fn take_counters(&mut self) -> Counters {
        Counters {
            bytes: std::mem::take(&mut self.bytes),
            ..Counters::default()
        }
    }
}

fn require_fields(
    listed: &ListedFile,
    own: &SchemaRef,
    due: &SchemaRef,
) -> Result<(), ConnectError> {
    if own.fields() == due.fields() {
        return Ok(());
    }
    let (own, due) = (column_names(own), column_names(due));
    Err(ConnectError::file(
        &listed.path,
        format_args!("its columns are {own}, and those of the first file {due}, or differ in type"),
    ))
}

fn refused(listed: &ListedFile, error: &IpcError) -> ConnectError {
    ConnectError::file(&listed.path, error)
}
