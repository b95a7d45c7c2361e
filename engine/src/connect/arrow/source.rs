//! Reads Arrow IPC files, split by their batches, and streams, split by file.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::connect::connector::SourceForm;
use crate::connect::event_time::column_names;
use crate::connect::files::input::FileInput;
use crate::connect::files::source::{FileFormat, FileSource};
use crate::connect::files::split::{batch_splits, require_split_bytes, total_bytes};
use crate::connect::{
    ConnectError, Counters, EventTimeLayout, ListedFile, Part, Paths, Position, SourceConnector,
    Split, SplitFormat, SplitReader, WatermarkOptions, defaults,
};
use crate::limits::{BATCH_ROWS, IPC_BODY_BYTES_MAX, IPC_DICTIONARY_BYTES_MAX};
use crate::wire::ipc::{IpcError, IpcFileReader, IpcStreamReader};

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 256 << 10;

/// Options of the connector `arrow`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrowSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
    /// Bytes of a split, about: IPC files that are larger are cut between their batches, and each
    /// piece is read by one subtask. IPC streams are read whole. At least 1. Default 67108864
    /// (64 MiB).
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

/// A source of Arrow IPC files and streams; which of them a file is, it says itself.
pub struct ArrowSource(FileSource<ArrowFormat>);

impl ArrowSource {
    /// Lists the files (relative paths begin at `base`) and reads their schemas.
    ///
    /// # Errors
    /// When a path matches nothing, a file is not Arrow IPC, or the files differ in their
    /// columns.
    pub fn new(options: ArrowSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        require_split_bytes(options.split_bytes)?;
        let files = FileInput::list(base, &options.path, options.watch_ms)?;
        let Some(first) = files.files().first() else {
            let reason = "there is no file yet that could tell the columns: put one there";
            return Err(ConnectError::option("path", reason));
        };
        let schema = Batches::open(first, first.open()?)?.schema();
        let mut splits = Vec::new();
        for (file, listed) in files.files().iter().enumerate() {
            let batches = Batches::open(listed, listed.open()?)?;
            require_fields(listed, &batches.schema(), &schema)?;
            splits.extend(batch_splits(file, &batches.bytes(), options.split_bytes));
        }
        let layout = EventTimeLayout::new(&schema, options.event_time.as_deref())?;
        let format = ArrowFormat { schema, layout };
        Ok(Self(FileSource::new(
            format,
            files,
            splits,
            options.watermark,
        )))
    }
}

impl SourceForm for ArrowSource {
    fn form(&self) -> &dyn SourceConnector {
        &self.0
    }
}

struct ArrowFormat {
    /// The schema of the files.
    schema: SchemaRef,
    layout: EventTimeLayout,
}

impl FileFormat for ArrowFormat {
    const CONNECTOR: &'static str = "arrow";

    fn layout(&self) -> &EventTimeLayout {
        &self.layout
    }

    fn reading_bytes(&self) -> usize {
        // A batch is cut up, but its memory is one piece; a compressed one is there twice.
        2 * IPC_BODY_BYTES_MAX + IPC_DICTIONARY_BYTES_MAX
    }
}

impl SplitFormat for ArrowFormat {
    fn open(
        &self,
        split: &Split,
        from: Position,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let mut batches = Batches::open(listed, file)?;
        require_fields(listed, &batches.schema(), &self.schema)?;
        let (first, end) = match split.part {
            Part::Batches { from, to } => (from, to),
            _ => (0, usize::MAX),
        };
        let (batch, rows) = match from {
            Position::Batch { batch, rows } => (batch, rows),
            _ => (first, 0),
        };
        let bytes = match split.part {
            Part::Batches { from, to } => total_bytes(&batches.bytes()[from..to]),
            _ => listed.size_bytes,
        };
        Ok(Box::new(ArrowReader {
            next_batch: batches.enter(batch),
            batches,
            from: (batch, rows),
            end,
            current: None,
            layout: self.layout.clone(),
            listed: listed.clone(),
            bytes,
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

    /// Bytes of the batches that are left; of a stream they are not known.
    fn bytes(&self) -> Vec<u64> {
        match self {
            Self::File(reader) => reader.batch_bytes(),
            Self::Stream(_) => Vec::new(),
        }
    }

    /// Goes to the batch of this number, and tells where it is: a stream is where it was.
    fn enter(&mut self, batch: usize) -> usize {
        match self {
            Self::File(reader) => {
                reader.skip_batches(batch);
                batch
            }
            Self::Stream(_) => 0,
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
    /// The number of the batch that is read next.
    next_batch: usize,
    /// The batch, and the row in it, from which on it was asked to read.
    from: (usize, usize),
    /// The batch before which it ends.
    end: usize,
    /// A batch, and how many of its rows were handed on: it may be larger than a source's may be.
    current: Option<(RecordBatch, usize)>,
    layout: EventTimeLayout,
    listed: ListedFile,
    /// Bytes of the file that have not been counted.
    bytes: u64,
}

impl ArrowReader {
    /// Reads the next batch, if there is one, and tells whether there was.
    fn advance(&mut self) -> Result<bool, ConnectError> {
        if self.next_batch >= self.end {
            return Ok(false);
        }
        let next = self.batches.next();
        let Some(batch) = next.map_err(|error| refused(&self.listed, &error))? else {
            return Ok(false);
        };
        let number = self.next_batch;
        self.next_batch += 1;
        let rows_done = match number.cmp(&self.from.0) {
            // Batches of a stream, which has to be read from its start.
            std::cmp::Ordering::Less => batch.num_rows(),
            std::cmp::Ordering::Equal => self.from.1,
            std::cmp::Ordering::Greater => 0,
        };
        let applied = self.layout.apply(&batch);
        let batch = applied.map_err(|reason| ConnectError::file(&self.listed.path, reason))?;
        self.current = Some((batch, rows_done));
        Ok(true)
    }
}

impl SplitReader for ArrowReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let is_over = self
            .current
            .as_ref()
            .is_none_or(|(batch, done)| *done >= batch.num_rows());
        if is_over && !self.advance()? {
            return Ok(None);
        }
        Ok(self.current.as_mut().map(|(batch, done)| {
            let rows = batch.num_rows().saturating_sub(*done).min(BATCH_ROWS);
            let part = batch.slice(*done, rows);
            *done += rows;
            part
        }))
    }

    fn position(&self) -> Position {
        match &self.current {
            Some((batch, done)) if *done < batch.num_rows() => Position::Batch {
                batch: self.next_batch - 1,
                rows: *done,
            },
            _ => Position::Batch {
                batch: self.next_batch,
                rows: 0,
            },
        }
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
